#include "tile.h"

// Products on tensor cores (kernels.Linear in class matrix/16x25), a block for each tile.

BLOCK_KERNEL(matrix_matmul, TILE_THREADS, 2) {
	TILE_MEMORY(shared);
	float acc[4][8][4], *room = room_of(shared);
	const struct tile t = tile_of(a.M, a.N);
	no_sums(acc);
	if (a.bias) {
		EACH_PART(i) UNROLL for (int j = 0; j < 8; j++) UNROLL for (int e = 0; e < 4; e++) {
			const long n = t.n + t.column + j * 8 + threadIdx.x % 4 * 2 + e % 2;
			if (n < a.N) acc[i][j][e] = a.bias[n];
		}
	}
	tile_products(acc, shared, t, side_of(a.x, a.M, 1), side_of(a.w, a.N, 1), steps_of(a.K));
	EACH_PART(i) {
		put_sums(room, acc[i]);
		EACH_ROW(r) {
			const long m = row_of(t, i, r), n = column_of(t, r);
			if (m < a.M && n < a.N) store(a.out, m * a.N + n, *sum_at(room, r));
		}
	}
}

BLOCK_KERNEL(matrix_matmul_dx, TILE_THREADS, 2) {
	TILE_MEMORY(shared);
	float acc[4][8][4], *room = room_of(shared);
	const struct tile t = tile_of(a.M, a.K);
	no_sums(acc);
	tile_products(acc, shared, t, side_of(a.dout, a.M, 1), side_of(a.w, a.K, 0), steps_of(a.N));
	EACH_PART(i) {
		put_sums(room, acc[i]);
		EACH_ROW(r) {
			const long m = row_of(t, i, r), k = column_of(t, r);
			if (m < a.M && k < a.K) store(a.dx, m * a.K + k, *sum_at(room, r));
		}
	}
}

// The sums continue in the gradient: a step is 16 rows of one block.
BLOCK_KERNEL(matrix_matmul_dw, TILE_THREADS, 2) {
	TILE_MEMORY(shared);
	float acc[4][8][4], *room = room_of(shared);
	const struct tile t = tile_of(a.N, a.K);
	EACH_PART(i) {
		EACH_ROW(r) {
			const long n = row_of(t, i, r), k = column_of(t, r);
			*sum_at(room, r) = n < a.N && k < a.K ? a.dw[n * a.K + k] : 0;
		}
		take_sums(acc[i], room);
	}
	tile_products(acc, shared, t, side_of(a.dout, a.N, 0), side_of(a.x, a.K, 0), steps_of_blocks(a.blocks, a.B));
	EACH_PART(i) {
		put_sums(room, acc[i]);
		EACH_ROW(r) {
			const long n = row_of(t, i, r), k = column_of(t, r);
			if (n < a.N && k < a.K) a.dw[n * a.K + k] = *sum_at(room, r);
		}
	}
}

// A warp has 32 gates and, 32 columns further, their ups.
BLOCK_KERNEL(matrix_matmul_swiglu, TILE_THREADS, 2) {
	TILE_MEMORY(shared);
	float acc[4][8][4], *room = room_of(shared);
	const struct tile t = tile_of(a.M, 2 * ((a.F + 63) / 64 * 64));
	struct side w = side_of(a.w, 2 * a.F, 1);
	w.half = a.F;
	no_sums(acc);
	tile_products(acc, shared, t, side_of(a.x, a.M, 1), w, steps_of(a.K));
	EACH_PART(i) {
		put_sums(room, acc[i]);
		ROLLED for (int r = 0; r < 32; r += 2) {
			const long m = row_of(t, i, r), f = (t.n + t.column) / 2 + threadIdx.x % WARP;
			if (m >= a.M || f >= a.F) continue;
			const float g = rounded(*sum_at(room, r)), u = rounded(*sum_at(room, r + 1));
			if (a.gate_up.at) {
				store(a.gate_up, m * 2 * a.F + f, g);
				store(a.gate_up, m * 2 * a.F + a.F + f, u);
			}
			store(a.act, m * a.F + f, g * sigmoid_of(g) * u);
		}
	}
}

BLOCK_KERNEL(matrix_matmul_dx_swiglu, TILE_THREADS, 2) {
	TILE_MEMORY(shared);
	float acc[4][8][4], *room = room_of(shared);
	const struct tile t = tile_of(a.M, a.F);
	no_sums(acc);
	tile_products(acc, shared, t, side_of(a.dout, a.M, 1), side_of(a.w, a.F, 0), steps_of(a.N));
	EACH_PART(i) {
		put_sums(room, acc[i]);
		EACH_ROW(r) {
			const long m = row_of(t, i, r), f = column_of(t, r), gate = m * 2 * a.F + f, up = gate + a.F;
			if (m >= a.M || f >= a.F) continue;
			const float d = rounded(*sum_at(room, r)), g = load(a.gate_up, gate), u = load(a.gate_up, up), s = sigmoid_of(g);
			store(a.dgate_up, gate, d * u * (s * fmaf(g, 1 - s, 1)));
			store(a.dgate_up, up, d * (g * s));
		}
	}
}

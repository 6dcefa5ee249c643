// products.h has the kernels of matrix products on tiles, for each family of tile.h. NAME gives a
// family's kernels their names. FORWARD leaves out what only training needs.
#include "softmax.h"
#include "tile.h"

BLOCK_KERNEL(NAME(matmul), TILE_THREADS, BLOCKS) {
	TILE_MEMORY(shared);
	float *room = room_of(shared);
	sums_of_tile acc;
	const struct tile t = tile_of(a.M, a.N, 1, 1);
	no_sums(acc);
	if (a.bias) {
		EACH_PART(i) EACH_SUM(j, e) {
			const long n = t.n + t.column + column_in_warp(t, j, e);
			if (n < a.N) acc[i][j][e] = a.bias[n];
		}
	}
	tile_products(acc, shared, t, side_of(a.x, a.M, 1), side_of(a.w, a.N, 1), steps_of(a.K));
	EACH_PART(i) {
		put_sums(room, acc[i], t);
		EACH_32(r, WARP_COLUMNS) {
			const struct place p = place_of(t, room, i, r);
			if (p.row < a.M && p.column < a.N) store(a.out, p.row * a.N + p.column, *p.sum);
		}
	}
}

// A warp has HALF gates and, HALF columns further, their ups.
BLOCK_KERNEL(NAME(matmul_swiglu), TILE_THREADS, BLOCKS) {
	TILE_MEMORY(shared);
	float *room = room_of(shared);
	sums_of_tile acc;
	const struct tile t = tile_of(a.M, 2 * ((a.F + TILE_COLUMNS / 2 - 1) / (TILE_COLUMNS / 2) * (TILE_COLUMNS / 2)), 1, 1);
	struct side w = side_of(a.w, 2 * a.F, 1);
	w.half = a.F;
	no_sums(acc);
	tile_products(acc, shared, t, side_of(a.x, a.M, 1), w, steps_of(a.K));
	EACH_PART(i) {
		put_sums(room, acc[i], t);
		EACH_32(r, HALF) {
			const struct place p = gate_of(t, room, i, r);
			const long at = p.row * 2 * a.F + p.column;
			if (p.row >= a.M || p.column >= a.F) continue;
			const float g = as_operand(p.sum[0]), u = as_operand(p.sum[HALF]);
			if (a.gate_up.at) {
				store(a.gate_up, at, g);
				store(a.gate_up, at + a.F, u);
			}
			store(a.act, p.row * a.F + p.column, g * sigmoid_of(g) * u);
		}
	}
}

// The output layer: a tile of logits. output.cu does the rest.
BLOCK_KERNEL(NAME(logits), TILE_THREADS, BLOCKS) {
	TILE_MEMORY(shared);
	float *room = room_of(shared), y;
	sums_of_tile acc;
	const struct tile t = tile_of(a.R, a.V, 1, 1);
	no_sums(acc);
	tile_products(acc, shared, t, side_of(a.h, a.R, 1), side_of(a.w, a.V, 1), steps_of(a.C));
	EACH_PART(i) {
		put_sums(room, acc[i], t);
		EACH_32(k, WARP_COLUMNS) {
			const struct place p = place_of(t, room, i, k);
			if (p.row < a.R && p.column < a.V) a.z[p.row * a.V + p.column] = logit_of(*p.sum, a.x, &y);
		}
	}
}

#if !defined(FORWARD)
BLOCK_KERNEL(NAME(matmul_dx), TILE_THREADS, BLOCKS) {
	TILE_MEMORY(shared);
	float *room = room_of(shared);
	sums_of_tile acc;
	const struct tile t = tile_of(a.M, a.K, 1, 0);
	no_sums(acc);
	tile_products(acc, shared, t, side_of(a.dout, a.M, 1), side_of(a.w, a.K, 0), steps_of(a.N));
	EACH_PART(i) {
		put_sums(room, acc[i], t);
		EACH_32(r, WARP_COLUMNS) {
			const struct place p = place_of(t, room, i, r);
			if (p.row < a.M && p.column < a.K) store(a.dx, p.row * a.K + p.column, *p.sum);
		}
	}
}

#if defined(CHAINS)
// A chain starts at 0 in each block of rows.
BLOCK_KERNEL(NAME(matmul_dw), TILE_THREADS, BLOCKS) {
	TILE_MEMORY(shared);
	float *room = room_of(shared);
	sums_of_tile acc;
	const struct tile t = tile_of(a.N, a.K, 0, 0);
	ROLLED for (long b = 0; b < a.B; b++) {
		no_sums(acc);
		tile_products(acc, shared, t, side_of(a.dout, a.N, 0), side_of(a.x, a.K, 0),
			steps_between(a.blocks[b], a.blocks[b + 1]));
		EACH_PART(i) {
			put_sums(room, acc[i], t);
			EACH_32(r, WARP_COLUMNS) {
				const struct place p = place_of(t, room, i, r);
				if (p.row < a.N && p.column < a.K) a.dw[p.row * a.K + p.column] += *p.sum;
			}
		}
	}
}
#else
// The sums continue in the gradient: a step is 16 rows of one block.
BLOCK_KERNEL(NAME(matmul_dw), TILE_THREADS, BLOCKS) {
	TILE_MEMORY(shared);
	float *room = room_of(shared);
	sums_of_tile acc;
	const struct tile t = tile_of(a.N, a.K, 0, 0);
	EACH_PART(i) {
		EACH_32(r, WARP_COLUMNS) {
			const struct place p = place_of(t, room, i, r);
			*p.sum = p.row < a.N && p.column < a.K ? a.dw[p.row * a.K + p.column] : 0;
		}
		take_sums(acc[i], room, t);
	}
	tile_products(acc, shared, t, side_of(a.dout, a.N, 0), side_of(a.x, a.K, 0), steps_of_blocks(a.blocks, a.B));
	EACH_PART(i) {
		put_sums(room, acc[i], t);
		EACH_32(r, WARP_COLUMNS) {
			const struct place p = place_of(t, room, i, r);
			if (p.row < a.N && p.column < a.K) a.dw[p.row * a.K + p.column] = *p.sum;
		}
	}
}
#endif

BLOCK_KERNEL(NAME(matmul_dx_swiglu), TILE_THREADS, BLOCKS) {
	TILE_MEMORY(shared);
	float *room = room_of(shared);
	sums_of_tile acc;
	const struct tile t = tile_of(a.M, a.F, 1, 0);
	no_sums(acc);
	tile_products(acc, shared, t, side_of(a.dout, a.M, 1), side_of(a.w, a.F, 0), steps_of(a.N));
	EACH_PART(i) {
		put_sums(room, acc[i], t);
		EACH_32(r, WARP_COLUMNS) {
			const struct place p = place_of(t, room, i, r);
			const long gate = p.row * 2 * a.F + p.column, up = gate + a.F;
			if (p.row >= a.M || p.column >= a.F) continue;
			const float d = as_operand(*p.sum), g = load(a.gate_up, gate), u = load(a.gate_up, up), s = sigmoid_of(g);
			store(a.dgate_up, gate, d * u * (s * fmaf(g, 1 - s, 1)));
			store(a.dgate_up, up, d * (g * s));
		}
	}
}

BLOCK_KERNEL(NAME(logits_backward), TILE_THREADS, BLOCKS) {
	TILE_MEMORY(shared);
	float *room = room_of(shared), y;
	sums_of_tile acc;
	const struct tile t = tile_of(a.R, a.V, 1, 1);
	no_sums(acc);
	tile_products(acc, shared, t, side_of(a.h, a.R, 1), side_of(a.w, a.V, 1), steps_of(a.C));
	EACH_PART(i) {
		put_sums(room, acc[i], t);
		EACH_32(k, WARP_COLUMNS) {
			const struct place p = place_of(t, room, i, k);
			const long r = p.row;
			if (r >= a.R || p.column >= a.V) continue;
			const float z = logit_of(*p.sum, a.x, &y);
			store(a.dz, r * a.V + p.column, logit_gradient(z, y, p.column == a.targets[r], a.dlogprob[r], a.dentropy[r],
				a.entropy[r], a.lse[r], a.x));
		}
	}
}
#endif

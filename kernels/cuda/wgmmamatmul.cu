// Products on tensor cores by wgmma (wgmma.h), of compute capability 9.0 alone. They have the bits of products.h.
// Tiles are 256 × 256.
#define GROUPS 2
#define CLUSTER 2
#define BLOCKS 1
#define TILE_COLUMNS 256
#define ROOMS 8
#define SHARED_BYTES WGMMA_SHARED
#include "wgmma.h"
#include "softmax.h"

CLUSTER_KERNEL(wgmma_matmul) {
	LAUNCH_SHARED(char, shared, SHARED_BYTES);
	struct pipeline p = open_pipeline(shared);
	if (threadIdx.x < GROUP_THREADS) {
		FETCH(wgmma_matmul, a.of.M, a.of.N, part_of(t), 0, steps_of(a.of.K), 1, 1);
	} else {
		MORE_REGISTERS();
		const int pairs = has_pairs(a.of.out, a.of.N);
		float sum[EIGHTS][4];
		EACH_TILE(t, a.of.M, a.of.N) {
			EACH_PAIR(j, h) for (int e = 0; e < 2; e++) {
				const long n = column_of(t, j) + e;
				sum[j][2 * h + e] = a.of.bias && n < a.of.N ? a.of.bias[n] : 0;
			}
			add_tile(sum, &p, steps_of(a.of.K), 1, 1);
			EACH_PAIR(j, h) {
				const long m = row_of(t, h), n = column_of(t, j);
				if (m < a.of.M) store_pair(a.of.out, m * a.of.N + n, a.of.N - n, pairs, &sum[j][2 * h]);
			}
		}
	}
	close_pipeline();
}

CLUSTER_KERNEL(wgmma_matmul_dx) {
	LAUNCH_SHARED(char, shared, SHARED_BYTES);
	struct pipeline p = open_pipeline(shared);
	if (threadIdx.x < GROUP_THREADS) {
		FETCH(wgmma_matmul_dx, a.of.M, a.of.K, part_of(t), 0, steps_of(a.of.N), 1, 0);
	} else {
		MORE_REGISTERS();
		const int pairs = has_pairs(a.of.dx, a.of.K);
		float sum[EIGHTS][4];
		EACH_TILE(t, a.of.M, a.of.K) {
			no_sums(sum);
			add_tile(sum, &p, steps_of(a.of.N), 1, 0);
			EACH_PAIR(j, h) {
				const long m = row_of(t, h), n = column_of(t, j);
				if (m < a.of.M) store_pair(a.of.dx, m * a.of.K + n, a.of.K - n, pairs, &sum[j][2 * h]);
			}
		}
	}
	close_pipeline();
}

// The sums continue in the gradient: a step is 16 rows of one block.
CLUSTER_KERNEL(wgmma_matmul_dw) {
	LAUNCH_SHARED(char, shared, SHARED_BYTES);
	struct pipeline p = open_pipeline(shared);
	if (threadIdx.x < GROUP_THREADS) {
		FETCH(wgmma_matmul_dw, a.of.N, a.of.K, part_of(t), 0,
			steps_of_blocks(a.of.blocks, a.of.B), 0, 0);
	} else {
		MORE_REGISTERS();
		const struct operand dw = floats(a.of.dw);
		const int pairs = has_pairs(dw, a.of.K);
		float sum[EIGHTS][4];
		EACH_TILE(t, a.of.N, a.of.K) {
			EACH_PAIR(j, h) for (int e = 0; e < 2; e++) {
				const long m = row_of(t, h), n = column_of(t, j) + e;
				sum[j][2 * h + e] = m < a.of.N && n < a.of.K ? a.of.dw[m * a.of.K + n] : 0;
			}
			add_tile(sum, &p, steps_of_blocks(a.of.blocks, a.of.B), 0, 0);
			EACH_PAIR(j, h) {
				const long m = row_of(t, h), n = column_of(t, j);
				if (m < a.of.N) store_pair(dw, m * a.of.K + n, a.of.K - n, pairs, &sum[j][2 * h]);
			}
		}
	}
	close_pipeline();
}

// Columns of a tile are gates in the first half and, in the second, which the other block fetches, their ups.
CLUSTER_KERNEL(wgmma_matmul_swiglu) {
	LAUNCH_SHARED(char, shared, SHARED_BYTES);
	struct pipeline p = open_pipeline(shared);
	const long across = up(a.of.F, TILE_COLUMNS / 2) * TILE_COLUMNS;
	if (threadIdx.x < GROUP_THREADS) {
		FETCH(wgmma_matmul_swiglu, a.of.M, across, t.n / 2 + rank_of_block() * a.of.F, 0, steps_of(a.of.K), 1, 1);
	} else {
		MORE_REGISTERS();
		float sum[EIGHTS][4], *room = room_of(p);
		EACH_TILE(t, a.of.M, across) {
			no_sums(sum);
			add_tile(sum, &p, steps_of(a.of.K), 1, 1);
			UNROLL for (int j = 0; j < EIGHTS / 2; j += 2) {
				meet();
				put_sums(room, &sum[j], 0, 2);
				put_sums(room, &sum[j + EIGHTS / 2], 2, 2);
				meet();
				ROLLED for (int n = threadIdx.x % WARP; n < 16 * 16; n += WARP) {
					const long m = row_in_room(t, n / 16), f = t.n / 2 + j * 8 + n % 16, at = m * 2 * a.of.F + f;
					const float *s = &room[n / 16 * ROOM_PITCH + n % 16], g = rounded(s[0]), u = rounded(s[16]);
					if (m >= a.of.M || f >= a.of.F) continue;
					if (a.of.gate_up.at) {
						store(a.of.gate_up, at, g);
						store(a.of.gate_up, at + a.of.F, u);
					}
					store(a.of.act, m * a.of.F + f, g * sigmoid_of(g) * u);
				}
			}
		}
	}
	close_pipeline();
}

CLUSTER_KERNEL(wgmma_matmul_dx_swiglu) {
	LAUNCH_SHARED(char, shared, SHARED_BYTES);
	struct pipeline p = open_pipeline(shared);
	if (threadIdx.x < GROUP_THREADS) {
		FETCH(wgmma_matmul_dx_swiglu, a.of.M, a.of.F, part_of(t), 0, steps_of(a.of.N), 1, 0);
	} else {
		MORE_REGISTERS();
		float sum[EIGHTS][4], *room = room_of(p);
		EACH_TILE(t, a.of.M, a.of.F) {
			no_sums(sum);
			add_tile(sum, &p, steps_of(a.of.N), 1, 0);
			UNROLL for (int j = 0; j < EIGHTS; j += 4) {
				meet();
				put_sums(room, &sum[j], 0, 4);
				meet();
				ROLLED for (int r = 0; r < 16; r++) {
					const long m = row_in_room(t, r), f = t.n + j * 8 + threadIdx.x % WARP;
					const long gate = m * 2 * a.of.F + f, up = gate + a.of.F;
					if (m >= a.of.M || f >= a.of.F) continue;
					const float d = rounded(room[r * ROOM_PITCH + threadIdx.x % WARP]);
					const float g = load(a.of.gate_up, gate), u = load(a.of.gate_up, up), s = sigmoid_of(g);
					store(a.of.dgate_up, gate, d * u * (s * fmaf(g, 1 - s, 1)));
					store(a.of.dgate_up, up, d * (g * s));
				}
			}
		}
	}
	close_pipeline();
}

// The output layer: a tile of logits. output.cu does the rest.
CLUSTER_KERNEL(wgmma_logits) {
	LAUNCH_SHARED(char, shared, SHARED_BYTES);
	struct pipeline p = open_pipeline(shared);
	if (threadIdx.x < GROUP_THREADS) {
		FETCH(wgmma_logits, a.of.R, a.of.V, part_of(t), 0, steps_of(a.of.C), 1, 1);
	} else {
		MORE_REGISTERS();
		const struct operand z = floats(a.of.z);
		const int pairs = has_pairs(z, a.of.V);
		float sum[EIGHTS][4], y;
		EACH_TILE(t, a.of.R, a.of.V) {
			no_sums(sum);
			add_tile(sum, &p, steps_of(a.of.C), 1, 1);
			EACH_PAIR(j, h) {
				const long r = row_of(t, h), v = column_of(t, j);
				if (r >= a.of.R || v >= a.of.V) continue;
				UNROLL for (int e = 0; e < 2; e++) sum[j][2 * h + e] = logit_of(sum[j][2 * h + e], a.of.x, &y);
				store_pair(z, r * a.of.V + v, a.of.V - v, pairs, &sum[j][2 * h]);
			}
		}
	}
	close_pipeline();
}

CLUSTER_KERNEL(wgmma_logits_backward) {
	LAUNCH_SHARED(char, shared, SHARED_BYTES);
	struct pipeline p = open_pipeline(shared);
	if (threadIdx.x < GROUP_THREADS) {
		FETCH(wgmma_logits_backward, a.of.R, a.of.V, part_of(t), 0, steps_of(a.of.C), 1, 1);
	} else {
		MORE_REGISTERS();
		float sum[EIGHTS][4], y, *room = room_of(p);
		EACH_TILE(t, a.of.R, a.of.V) {
			no_sums(sum);
			add_tile(sum, &p, steps_of(a.of.C), 1, 1);
			UNROLL for (int j = 0; j < EIGHTS; j += 4) {
				meet();
				put_sums(room, &sum[j], 0, 4);
				meet();
				ROLLED for (int i = 0; i < 16; i++) {
					const long r = row_in_room(t, i), v = t.n + j * 8 + threadIdx.x % WARP;
					if (r >= a.of.R || v >= a.of.V) continue;
					const float z = logit_of(room[i * ROOM_PITCH + threadIdx.x % WARP], a.of.x, &y);
					store(a.of.dz, r * a.of.V + v, logit_gradient(z, y, v == a.of.targets[r], a.of.dlogprob[r],
						a.of.dentropy[r], a.of.entropy[r], a.of.lse[r], a.of.x));
				}
			}
		}
	}
	close_pipeline();
}

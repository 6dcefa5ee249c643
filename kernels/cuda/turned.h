// turned.h has the forward products of few rows by wgmma (wgmma.h), with the bits of products.h. Tiles are turned around: the
// rows in wgmma.h are the weight's, 64 for each of two blocks, and the columns are the rows of x, of which each block
// fetches half for both. NAME gives a family's kernels their names. Reading the weight takes the time, and all
// stages of a multiprocessor are one block's, so that much of it is on the way.
#define GROUPS 1
#define BLOCKS 1
#define ROOMS 4
#include "wgmma.h"

CLUSTER_KERNEL(NAME(matmul)) {
	LAUNCH_SHARED(char, shared, SHARED_BYTES);
	struct pipeline p = open_pipeline(shared);
	if (threadIdx.x < GROUP_THREADS) {
		FETCH(NAME(matmul), a.of.N, a.of.M, part_of(t), 0, steps_of(a.of.K), 1, 1);
	} else {
		MORE_REGISTERS();
		float sum[EIGHTS][4], *room = room_of(p);
		EACH_TILE(t, a.of.N, a.of.M) {
			UNROLL for (int h = 0; h < 2; h++) {
				const long n = row_of(t, h);
				const float bias = a.of.bias && n < a.of.N ? a.of.bias[n] : 0;
				UNROLL for (int j = 0; j < EIGHTS; j++) sum[j][2 * h] = sum[j][2 * h + 1] = bias;
			}
			add_tile(sum, &p, steps_of(a.of.K), 1, 1);
			store_turned(a.of.out, a.of.M, a.of.N, t, sum, room, 0);
		}
	}
	close_pipeline();
}

// 16 rows of a warp are 8 gates and their ups.
CLUSTER_KERNEL(NAME(matmul_swiglu)) {
	LAUNCH_SHARED(char, shared, SHARED_BYTES);
	struct pipeline p = open_pipeline(shared);
	const long rows = up(a.of.F, TILE_ROWS / 2) * TILE_ROWS;
	if (threadIdx.x < GROUP_THREADS) {
		FETCH(NAME(matmul_swiglu), rows, a.of.M, part_of(t), a.of.F, steps_of(a.of.K), 1, 1);
	} else {
		MORE_REGISTERS();
		float sum[EIGHTS][4], *room = room_of(p);
		const int quads = has_quads(a.of.act, a.of.F) && has_quads(a.of.gate_up, a.of.F);
		EACH_TILE(t, rows, a.of.M) {
			no_sums(sum);
			add_tile(sum, &p, steps_of(a.of.K), 1, 1);
			EACH_IN_ROOM(sum, j, column) {
				const long m = t.n + column + threadIdx.x % WARP, first = row_in_room(t, 0) / 2;
				const float *const own = &room[threadIdx.x % WARP];
				meet();
				put_sums(room, &sum[j], 0, 4);
				meet();
				if (m >= a.of.M) continue;
				if (quads) {
					ROLLED for (int i = 0; i < 8; i += 4) {
						float g[4], u[4];
						UNROLL for (int e = 0; e < 4; e++) {
							g[e] = own[(i + e) * ROOM_PITCH];
							u[e] = own[(i + e + 8) * ROOM_PITCH];
						}
						if (first + i < a.of.F) store_gates(&a.of, m, first + i, g, u);
					}
				} else {
					ROLLED for (int i = 0; i < 8; i++)
						if (first + i < a.of.F)
							store_gate(&a.of, m, first + i, own[i * ROOM_PITCH], own[(i + 8) * ROOM_PITCH]);
				}
			}
		}
	}
	close_pipeline();
}

// The output layer: a tile of logits. output.cu does the rest.
CLUSTER_KERNEL(NAME(logits)) {
	LAUNCH_SHARED(char, shared, SHARED_BYTES);
	struct pipeline p = open_pipeline(shared);
	if (threadIdx.x < GROUP_THREADS) {
		FETCH(NAME(logits), a.of.V, a.of.R, part_of(t), 0, steps_of(a.of.C), 1, 1);
	} else {
		MORE_REGISTERS();
		float sum[EIGHTS][4], *room = room_of(p);
		EACH_TILE(t, a.of.V, a.of.R) {
			no_sums(sum);
			add_tile(sum, &p, steps_of(a.of.C), 1, 1);
			store_turned(floats(a.of.z), a.of.R, a.of.V, t, sum, room, &a.of.x);
		}
	}
	close_pipeline();
}

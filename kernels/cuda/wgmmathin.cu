// Products of few rows on tensor cores by wgmma (wgmma.h), of compute capability 9.0 alone. They have the bits of
// products.h.
//
// Tiles are 128 rows and 256 columns, and turned around: the rows in wgmma.h are the weight's, 64 for each of four
// blocks, and the columns are the rows of x, of which each block fetches a quarter for all. A multiprocessor has room for
// two blocks, so that one multiplies while the other begins or stores.
#define GROUPS 1
#define CLUSTER 4
#define BLOCKS 2
#define TILE_COLUMNS 128
#define ROOMS 4
#define SHARED_BYTES THIN_SHARED
#include "wgmma.h"
#include "softmax.h"

// EACH_OUTPUT goes over the sums of the calling thread, sum[j][2h+e], at row m and column n of the product.
#define EACH_OUTPUT(t, M, N)                                                                           \
	EACH_PAIR(j, h) for (int e = 0; e < 2; e++)                                                          \
		for (long m = column_of(t, j) + e, n = row_of(t, h), once_ = 1; once_ && m < (M) && n < (N); once_ = 0)

CLUSTER_KERNEL(thin_matmul) {
	LAUNCH_SHARED(char, shared, SHARED_BYTES);
	struct pipeline p = open_pipeline(shared);
	if (threadIdx.x < GROUP_THREADS) {
		FETCH(thin_matmul, a.of.N, a.of.M, part_of(t), 0, steps_of(a.of.K), 1, 1);
	} else {
		MORE_REGISTERS();
		float sum[EIGHTS][4];
		EACH_TILE(t, a.of.N, a.of.M) {
			EACH_PAIR(j, h) {
				const long n = row_of(t, h);
				sum[j][2 * h] = sum[j][2 * h + 1] = a.of.bias && n < a.of.N ? a.of.bias[n] : 0;
			}
			add_tile(sum, &p, steps_of(a.of.K), 1, 1);
			EACH_OUTPUT(t, a.of.M, a.of.N) store(a.of.out, m * a.of.N + n, sum[j][2 * h + e]);
		}
	}
	close_pipeline();
}

// 16 rows of a warp are 8 gates and their ups.
CLUSTER_KERNEL(thin_matmul_swiglu) {
	LAUNCH_SHARED(char, shared, SHARED_BYTES);
	struct pipeline p = open_pipeline(shared);
	const long rows = up(a.of.F, TILE_ROWS / 2) * TILE_ROWS;
	if (threadIdx.x < GROUP_THREADS) {
		FETCH(thin_matmul_swiglu, rows, a.of.M, part_of(t), a.of.F, steps_of(a.of.K), 1, 1);
	} else {
		MORE_REGISTERS();
		float sum[EIGHTS][4], *room = room_of(p);
		EACH_TILE(t, rows, a.of.M) {
			no_sums(sum);
			add_tile(sum, &p, steps_of(a.of.K), 1, 1);
			UNROLL for (int j = 0; j < EIGHTS; j += 4) {
				meet();
				put_sums(room, &sum[j], 0, 4);
				meet();
				ROLLED for (int i = threadIdx.x % WARP; i < 8 * ROOM_COLUMNS; i += WARP) {
					const long m = t.n + j * 8 + i / 8, f = row_in_room(t, 0) / 2 + i % 8, at = m * 2 * a.of.F + f;
					const float *s = &room[i % 8 * ROOM_PITCH + i / 8], g = rounded(s[0]), u = rounded(s[8 * ROOM_PITCH]);
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

// The output layer: a tile of logits. output.cu does the rest.
CLUSTER_KERNEL(thin_logits) {
	LAUNCH_SHARED(char, shared, SHARED_BYTES);
	struct pipeline p = open_pipeline(shared);
	if (threadIdx.x < GROUP_THREADS) {
		FETCH(thin_logits, a.of.V, a.of.R, part_of(t), 0, steps_of(a.of.C), 1, 1);
	} else {
		MORE_REGISTERS();
		float sum[EIGHTS][4], y;
		EACH_TILE(t, a.of.V, a.of.R) {
			no_sums(sum);
			add_tile(sum, &p, steps_of(a.of.C), 1, 1);
			EACH_OUTPUT(t, a.of.R, a.of.V) a.of.z[m * a.of.V + n] = logit_of(sum[j][2 * h + e], a.of.x, &y);
		}
	}
	close_pipeline();
}

// row.h goes over a row of logits with a block of threads.
#ifndef EXP_CUDA_ROW_H
#define EXP_CUDA_ROW_H

#include "warp.h"

#define ROW_THREADS 256
#define ROW_WARPS (ROW_THREADS / WARP)
#define PIECE ((ROW_THREADS - WARP) * BURST) // elements of a row in shared memory

// A row's logits in pieces, less the largest, and e to the power of them.
struct row_room {
	float e[2][PIECE], t[2][PIECE], of_warp[ROW_WARPS], sum, dot;
};

// What a row of logits adds up to: e^(z-largest) in lanes, and its products with z-largest.
struct row_sums {
	float largest, sum, dot;
};

// row_largest returns the largest of V numbers.
DEVICE float row_largest(struct row_room *room, const float *z, long V) {
	float m = -INFINITE;
	AHEAD for (long v = threadIdx.x; v < V; v += ROW_THREADS) m = z[v] > m ? z[v] : m;
	for (int w = WARP / 2; w > 0; w /= 2) {
		const float other = shuffle_xor(m, w);
		m = other > m ? other : m;
	}
	if (threadIdx.x % WARP == 0) room->of_warp[threadIdx.x / WARP] = m;
	barrier();
	for (int w = 0; w < ROW_WARPS; w++) m = room->of_warp[w] > m ? room->of_warp[w] : m;
	return m;
}

// row_sums_of returns the sums of z [V], and sets e [V] unless it is null. The first warp adds up a piece,
// 16 lanes the powers and 16 the products, while the others compute the next.
DEVICE struct row_sums row_sums_of(struct row_room *room, const float *z, long V, float *e) {
	struct row_sums s;
	float lane = 0;
	const int first = threadIdx.x % LANES, dots = threadIdx.x / LANES, mine = (int)threadIdx.x - WARP;
	s.largest = row_largest(room, z, V);
	for (long lo = 0, piece = 0; lo < V + PIECE; lo += PIECE, piece ^= 1) {
		if (mine >= 0 && lo < V) {
			float v[BURST];
			load_burst(v, floats(z), lo, mine, PIECE / BURST, V - lo);
			EACH_LOAD(k) {
				const int i = mine + k * (PIECE / BURST);
				if (lo + i >= V) continue;
				const float t = v[k] - s.largest, power = exp_of(t);
				room->e[piece][i] = power;
				room->t[piece][i] = t;
				if (e) e[lo + i] = power;
			}
		}
		if (mine < 0 && lo > 0) { // the piece before
			const int n = V - lo + PIECE < PIECE ? (int)(V - lo + PIECE) : PIECE;
			const float *x = room->e[piece ^ 1], *t = room->t[piece ^ 1];
			AHEAD for (int i = first; i < n; i += LANES) lane = fmaf(x[i], dots ? t[i] : 1, lane);
		}
		barrier();
	}
	lane = fold_lanes(lane);
	if (threadIdx.x == 0) room->sum = lane;
	if (threadIdx.x == LANES) room->dot = lane;
	barrier();
	s.sum = room->sum;
	s.dot = room->dot;
	return s;
}

#endif

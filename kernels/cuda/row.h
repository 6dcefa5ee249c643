// row.h goes over a row of logits with a block of threads.
#ifndef EXP_CUDA_ROW_H
#define EXP_CUDA_ROW_H

#include "warp.h"
#include "wide.h"

#define ROW_THREADS 256
#define ROW_WARPS (ROW_THREADS / WARP)
#define PIECE ((ROW_THREADS - WARP) * BURST) // elements of a row in shared memory
#define QUADS (4 * LANES)                    // four of each lane, which lie next to each other there

// A row's logits in pieces, less the largest, and e to the power of them.
struct row_room {
	float e[2][PIECE], t[2][PIECE], one[4], of_warp[ROW_WARPS], sum, dot;
};

// What a row of logits adds up to: e^(z-largest) in lanes, and its products with z-largest.
struct row_sums {
	float largest, sum, dot;
};

// row_largest returns the largest of V numbers.
DEVICE float row_largest(struct row_room *room, const float *z, long V) {
	const long odd = -((uint64_t)z / 4) % 4, head = odd < V ? odd : V; // z + head is aligned
	const long n = (V - head) / 4, tail = head + 4 * n + threadIdx.x;
	const wide *at = (const wide *)(z + head);
	float m = threadIdx.x < head ? z[threadIdx.x] : -INFINITE;
	if (tail < V) m = larger(z[tail], m);
	for (long i = threadIdx.x; i < n; i += ROW_THREADS * BURST) {
		wide w[BURST];
		EACH_LOAD(k) w[k] = at[i + k * ROW_THREADS < n ? i + k * ROW_THREADS : i];
		EACH_LOAD(k) UNROLL for (int j = 0; j < 4; j++) m = larger(float_of(w[k][j]), m);
	}
	m = larger(m, -INFINITE); // may have been a NaN
	for (int w = WARP / 2; w > 0; w /= 2) m = larger(shuffle_xor(m, w), m);
	if (threadIdx.x % WARP == 0) room->of_warp[threadIdx.x / WARP] = m;
	barrier();
	for (int w = 0; w < ROW_WARPS; w++) m = larger(room->of_warp[w], m);
	return m;
}

// piece_at is the place in a piece of the k-th of BURST elements of a thread: four terms of a lane, and four more.
DEVICE int piece_at(int mine, int k) {
	return mine / LANES * QUADS + mine % LANES + k % 4 * LANES + k / 4 * (PIECE / 2);
}

// load_piece sets v to the thread's elements of the first PIECE of z [left].
INLINE void load_piece(float *v, const float *z, int mine, long left) {
	if (left >= PIECE) EACH_LOAD(k) v[k] = z[piece_at(mine, k)];
	else EACH_LOAD(k) v[k] = piece_at(mine, k) < left ? z[piece_at(mine, k)] : 0;
}

// raise_piece writes v less the largest, and e to the power of it, to a piece in shared memory: zeros past the end.
INLINE void raise_piece(float *e, float *t, const float *v, int mine, float largest, long left) {
	UNROLL for (int k = 0; k < BURST; k += 4) {
		wide power, less;
		UNROLL for (int j = 0; j < 4; j++) {
			const float d = v[k + j] - largest;
			less[j] = bits_of(d);
			power[j] = bits_of(exp_down(d));
		}
		if (left < PIECE)
			UNROLL for (int j = 0; j < 4; j++) if (piece_at(mine, k + j) >= left) less[j] = power[j] = 0;
		*(wide *)(e + 4 * mine + k / 4 * (PIECE / 2)) = power;
		*(wide *)(t + 4 * mine + k / 4 * (PIECE / 2)) = less;
	}
}

// row_sums_of returns the sums of z [V]. The first warp adds up a piece, 16 lanes the powers and 16 the products,
// while the others compute the next and load the one after it. Zeros at the end change no sum.
INLINE struct row_sums row_sums_of(struct row_room *room, const float *z, long V) {
	struct row_sums s;
	float lane = 0, v[BURST] = {0}, next[BURST];
	const int first = threadIdx.x % LANES, dots = threadIdx.x / LANES, mine = (int)threadIdx.x - WARP;
	if (mine < 4 && mine >= 0) room->one[mine] = 1;
	s.largest = row_largest(room, z, V);
	if (mine >= 0) load_piece(v, z, mine, V);
	for (long lo = 0, piece = 0; lo < V + PIECE; lo += PIECE, piece ^= 1) {
		if (mine >= 0 && lo < V) {
			load_piece(next, z + lo + PIECE, mine, V - lo - PIECE);
			raise_piece(room->e[piece], room->t[piece], v, mine, s.largest, V - lo);
			EACH_LOAD(k) v[k] = next[k];
		}
		if (mine < 0 && lo > 0) { // the piece before
			const long left = V - lo + PIECE, n = left < PIECE ? left : PIECE;
			const float *x = room->e[piece ^ 1] + 4 * first, *y = dots ? room->t[piece ^ 1] + 4 * first : room->one;
			const int step = dots ? QUADS : 0;
			AHEAD_4 for (long i = 0; i < n; i += QUADS, x += QUADS, y += step) {
				const wide p = *(const wide *)x, q = *(const wide *)y;
				UNROLL for (int j = 0; j < 4; j++) lane = fmaf(float_of(p[j]), float_of(q[j]), lane);
			}
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

// row_scores sets the scores of row r but log-probs, and returns what these are less than logits.
DEVICE float row_scores(float *entropy, float *lse, long r, struct row_sums x) {
	const float log = log_of(x.sum), all = x.largest + log;
	entropy[r] = log - x.dot / x.sum;
	lse[r] = all;
	return all;
}

#endif

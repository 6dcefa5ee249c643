#include "row.h"

// Sampling from long rows of logits, a block for each: Pick and Draw of kernels/ref.

#define BEST 1024 // tokens that are sorted at a time
#define FEW 64    // tokens that are worth sorting
#define SUMS 1024 // sample blocks whose sums are in shared memory

struct sample_room {
	union {
		struct row_room row;
		struct {
			uint64_t token[BEST];
			float e[BEST];
		} best;
		double sums[SUMS];
		float e[SAMPLE_BLOCK];
	} u;
	uint32_t count[ROW_THREADS];
	uint64_t end; // rank of the last token that is kept
	int found;    // sample block of the drawn token
};

// rank_of orders tokens: z descending, then id ascending, from the highest rank down.
DEVICE uint64_t rank_of(const float *z, long v) {
	const uint32_t u = bits_of(z[v] + 0.0f); // no -0
	return (uint64_t)(u >> 31 ? ~u : u | 0x80000000) << 32 | (uint32_t)~v;
}

// sum_counts adds up the threads' counts.
DEVICE uint32_t sum_counts(struct sample_room *room, uint32_t n) {
	for (int w = WARP / 2; w > 0; w /= 2) n += shuffle_word(n, w);
	barrier();
	if (threadIdx.x % WARP == 0) room->count[threadIdx.x / WARP] = n;
	barrier();
	n = 0;
	for (int w = 0; w < ROW_WARPS; w++) n += room->count[w];
	return n;
}

// count_from counts tokens with ranks from lo to below hi.
DEVICE uint32_t count_from(struct sample_room *room, const float *z, long V, uint64_t lo, uint64_t hi) {
	uint32_t n = 0;
	AHEAD for (long v = threadIdx.x; v < V; v += ROW_THREADS) {
		const uint64_t r = rank_of(z, v);
		n += r >= lo && r < hi;
	}
	return sum_counts(room, n);
}

// floor_below returns a rank from which to `hi` there are from FEW to BEST tokens, or 0 if there are fewer.
DEVICE uint64_t floor_below(struct sample_room *room, const float *z, long V, uint64_t hi) {
	uint64_t lo = 0;
	if (count_from(room, z, V, 0, hi) <= BEST) return 0;
	for (uint64_t top = hi;;) {
		const uint64_t mid = lo + (top - lo) / 2;
		const uint32_t n = count_from(room, z, V, mid, hi);
		if (n > BEST) lo = mid;
		else if (n < FEW) top = mid;
		else return mid;
	}
}

// take_best sorts the tokens with ranks from lo to below hi, the highest first, and returns how many there are.
DEVICE int take_best(struct sample_room *room, const float *z, const float *e, long V, uint64_t lo, uint64_t hi) {
	uint64_t *token = room->u.best.token;
	uint32_t n = 0, at = 0, all = 0;
	for (long v = threadIdx.x; v < V; v += ROW_THREADS) n += rank_of(z, v) >= lo && rank_of(z, v) < hi;
	barrier();
	room->count[threadIdx.x] = n;
	barrier();
	for (unsigned i = 0; i < ROW_THREADS; i++) {
		if (i == threadIdx.x) at = all;
		all += room->count[i];
	}
	unsigned places = 2;
	while (places < all) places *= 2;
	for (unsigned i = all + threadIdx.x; i < places; i += ROW_THREADS) token[i] = 0;
	for (long v = threadIdx.x; v < V; v += ROW_THREADS) {
		const uint64_t r = rank_of(z, v);
		if (r >= lo && r < hi) token[at++] = r;
	}
	for (unsigned size = 2; size <= places; size *= 2) {
		for (unsigned step = size / 2; step > 0; step /= 2) {
			barrier();
			for (unsigned k = threadIdx.x; k < places / 2; k += ROW_THREADS) {
				const unsigned i = k / step * 2 * step + k % step, j = i + step;
				const uint64_t x = token[i], y = token[j];
				if ((x < y) == !(i & size)) {
					token[i] = y;
					token[j] = x;
				}
			}
		}
	}
	barrier();
	for (unsigned i = threadIdx.x; i < all; i += ROW_THREADS) room->u.best.e[i] = e[(uint32_t)~token[i]];
	barrier();
	return (int)all;
}

// keep_prefix sets e to 0 past the prefix that top_k and top_p keep.
DEVICE void keep_prefix(struct sample_room *room, const struct sample_args *a, const float *z, float *e, float s) {
	double mass = 0;
	long kept = 0;
	uint64_t hi = ~0ull;
	barrier();
	if (threadIdx.x == 0) room->end = 0;
	for (;;) {
		const uint64_t lo = floor_below(room, z, a->V, hi);
		const int n = take_best(room, z, e, a->V, lo, hi);
		if (threadIdx.x == 0) {
			for (int i = 0; i < n && !room->end; i++) {
				mass += (double)room->u.best.e[i];
				kept++;
				if (kept == a->top_k || (a->top_p < 1 && mass >= a->top_p * (double)s)) room->end = room->u.best.token[i];
			}
		}
		barrier();
		if (lo == 0 || room->end) break;
		hi = lo;
	}
	for (long v = threadIdx.x; v < a->V; v += ROW_THREADS)
		if (rank_of(z, v) < room->end) e[v] = 0;
}

// sum_blocks_from sets room->u.sums to the lane sums in float64 of up to SUMS sample blocks from `first` on,
// and returns how many there are.
DEVICE int sum_blocks_from(struct sample_room *room, const float *e, long V, long first) {
	const long blocks = (V + SAMPLE_BLOCK - 1) / SAMPLE_BLOCK;
	const int n = blocks - first < SUMS ? (int)(blocks - first) : SUMS;
	barrier();
	for (int i = 0; i < n; i += ROW_THREADS / LANES) { // all threads take part in the fold
		const int b = i + threadIdx.x / LANES;
		const long lo = (first + b) * SAMPLE_BLOCK, end = b >= n ? lo : lo + SAMPLE_BLOCK < V ? lo + SAMPLE_BLOCK : V;
		double lane = 0;
		AHEAD for (long v = lo + threadIdx.x % LANES; v < end; v += LANES) lane += (double)e[v];
		lane = fold_lanes64(lane);
		if (b < n && threadIdx.x % LANES == 0) room->u.sums[b] = lane;
	}
	barrier();
	return n;
}

// draw returns the token that u selects from the weights e.
DEVICE int draw(struct sample_room *room, const float *e, long V, float u) {
	double sum = 0;
	for (long b = 0; b * SAMPLE_BLOCK < V; b += SUMS) {
		const int n = sum_blocks_from(room, e, V, b);
		if (threadIdx.x == 0)
			for (int i = 0; i < n; i++) sum += room->u.sums[i];
	}
	const double x = (double)u * sum;
	sum = 0;
	barrier();
	if (threadIdx.x == 0) room->found = -1;
	for (long b = 0; b * SAMPLE_BLOCK < V; b += SUMS) {
		const int n = sum_blocks_from(room, e, V, b);
		if (threadIdx.x == 0) {
			for (int i = 0; i < n && room->found < 0; i++) {
				const double end = sum + room->u.sums[i];
				if (end > x) room->found = (int)b + i;
				else sum = end;
			}
		}
		barrier();
		if (room->found >= 0) break;
	}
	if (room->found < 0) return 0;
	const long lo = (long)room->found * SAMPLE_BLOCK, end = lo + SAMPLE_BLOCK < V ? lo + SAMPLE_BLOCK : V;
	for (long v = lo + threadIdx.x; v < end; v += ROW_THREADS) room->u.e[v - lo] = e[v];
	barrier();
	long last = lo;
	for (long v = lo; threadIdx.x == 0 && v < end; v++) {
		if (room->u.e[v - lo] > 0) last = v;
		sum += (double)room->u.e[v - lo];
		if (sum > x) return (int)v;
	}
	return (int)last;
}

// first_of returns the first token with the largest logit.
DEVICE int first_of(struct sample_room *room, const float *z, long V, float largest) {
	uint32_t first = ~0u;
	for (long v = threadIdx.x; v < V; v += ROW_THREADS)
		if (z[v] == largest && v < first) first = (uint32_t)v;
	for (int w = WARP / 2; w > 0; w /= 2) {
		const uint32_t other = shuffle_word(first, w);
		first = other < first ? other : first;
	}
	if (threadIdx.x % WARP == 0) room->count[threadIdx.x / WARP] = first;
	barrier();
	for (int w = 0; w < ROW_WARPS; w++) first = room->count[w] < first ? room->count[w] : first;
	return (int)first;
}

BLOCK_KERNEL(sample, ROW_THREADS, 3) {
	SHARED(struct sample_room, room, 1);
	const long r = blockIdx.x;
	const float *z = a.z + r * a.V;
	float *e = a.e + r * a.V;
	int id = 0;
	const struct row_sums x = row_sums_of(&room->u.row, z, a.V);
	for (long v = threadIdx.x; v < a.V; v += ROW_THREADS) e[v] = exp_down(z[v] - x.largest);
	if (x.sum == x.sum) {
		if (a.greedy) {
			id = first_of(room, z, a.V, x.largest);
		} else {
			if (a.top_k > 0 || a.top_p < 1) keep_prefix(room, &a, z, e, x.sum);
			barrier();
			for (long v = threadIdx.x; v < a.V; v += ROW_THREADS)
				if ((double)e[v] < a.min_p) e[v] = 0;
			id = draw(room, e, a.V, a.u[r]);
		}
	}
	if (threadIdx.x == 0) a.ids[r] = id;
}

#include "row.h"

// Sampling from long rows of logits, a block for each: Pick and Draw of kernels/ref. Weights are computed again
// where they are wanted, which takes less than to keep them.

#define BEST 1024    // tokens that are sorted at a time
#define FEW 64       // tokens that are worth sorting
#define SUMS 1024    // sample blocks whose sums are in shared memory
#define BINS 2048    // of a histogram
#define PER_UNIT 128 // bins for logits that differ by 1
#define MOVES 4      // times that a bin may turn out to be another
#define UNSURE (~0ul)

#if SAMPLE_BLOCK != ROW_THREADS
#error "a thread has a token of a sample block"
#endif

// Tokens of ranks from lo to hi: how many they are and what they weigh, and how many and what is above them.
struct stretch {
	uint64_t lo, hi;
	double above, mass;
	long before, count;
	int shift; // of ranks to bins
};

struct sample_room {
	union {
		struct row_room row;
		struct {
			uint64_t token[BEST];
			float e[BEST];
		} best;
		double sums[SUMS];
		uint32_t bins[BINS];
	} u;
	struct stretch part[ROW_WARPS];
	uint64_t scan[ROW_THREADS], end; // rank of the last token that is kept
	double above;
	uint32_t count[ROW_WARPS], many;
	int bin;
};

// A row. Tokens of ranks below `end` and of weights below min_p are dropped.
struct tokens {
	const float *z;
	long V;
	float largest;
	uint64_t end;
	double min_p;
};

// rank_of orders tokens: z descending, then id ascending, from the highest rank down.
DEVICE uint64_t rank_of(float z, long v) {
	const uint32_t u = bits_of(z + 0.0f); // no -0
	return (uint64_t)(u >> 31 ? ~u : u | 0x80000000) << 32 | (uint32_t)~v;
}

DEVICE float weight_of(struct tokens t, float z) { return exp_down(z - t.largest); }

// kept_weight is the weight of a token, or 0 if it is dropped.
DEVICE float kept_weight(struct tokens t, float z, long v) {
	const float e = weight_of(t, z);
	return rank_of(z, v) < t.end || (double)e < t.min_p ? 0 : e;
}

// sum_counts adds up the threads' counts, and least_of returns the smallest of their numbers.
DEVICE uint32_t sum_counts(struct sample_room *room, uint32_t n) {
	for (int w = WARP / 2; w > 0; w /= 2) n += shuffle_word(n, w);
	barrier();
	if (threadIdx.x % WARP == 0) room->count[threadIdx.x / WARP] = n;
	barrier();
	n = 0;
	for (int w = 0; w < ROW_WARPS; w++) n += room->count[w];
	return n;
}

DEVICE uint32_t least_of(struct sample_room *room, uint32_t n) {
	for (int w = WARP / 2; w > 0; w /= 2) {
		const uint32_t other = shuffle_word(n, w);
		n = other < n ? other : n;
	}
	barrier();
	if (threadIdx.x % WARP == 0) room->count[threadIdx.x / WARP] = n;
	barrier();
	for (int w = 0; w < ROW_WARPS; w++) n = room->count[w] < n ? room->count[w] : n;
	return n;
}

// floor_of returns a rank from which to hi there are from FEW to BEST tokens, or 0 if there are fewer.
DEVICE uint64_t floor_of(struct sample_room *room, struct tokens t, uint64_t hi) {
	uint64_t lo = 0, top = hi, mid = 0;
	for (;;) {
		uint32_t n = 0;
		AHEAD for (long v = threadIdx.x; v < t.V; v += ROW_THREADS) {
			const uint64_t r = rank_of(t.z[v], v);
			n += r >= mid && r <= hi;
		}
		n = sum_counts(room, n);
		if (n > BEST) lo = mid;
		else if (n < FEW && mid) top = mid;
		else return mid;
		mid = lo + (top - lo) / 2;
	}
}

// sort_best sorts n tokens, the highest rank first.
DEVICE void sort_best(uint64_t *token, unsigned n) {
	unsigned places = 2;
	while (places < n) places *= 2;
	for (unsigned i = n + threadIdx.x; i < places; i += ROW_THREADS) token[i] = 0;
	for (unsigned size = 2; size <= places; size *= 2) {
		for (unsigned step = size / 2; step > 0; step /= 2) {
			barrier();
			for (unsigned k = threadIdx.x; k < places / 2; k += ROW_THREADS) {
				const unsigned i = (k & -step) * 2 + (k & (step - 1)), j = i + step;
				const uint64_t x = token[i], y = token[j];
				if ((x < y) == !(i & size)) {
					token[i] = y;
					token[j] = x;
				}
			}
		}
	}
	barrier();
}

// take_best sorts the tokens with ranks from lo to hi, at most BEST, and returns how many there are.
DEVICE int take_best(struct sample_room *room, struct tokens t, uint64_t lo, uint64_t hi) {
	uint64_t *token = room->u.best.token;
	barrier();
	if (threadIdx.x == 0) room->many = 0;
	barrier();
	for (long at = threadIdx.x; at < t.V; at += ROW_THREADS * BURST) {
		float z[BURST];
		load_burst(z, floats(t.z), 0, at, ROW_THREADS, t.V);
		EACH_LOAD(k) {
			const long v = at + k * ROW_THREADS;
			const uint64_t r = rank_of(z[k], v);
			if (v < t.V && r >= lo && r <= hi) token[add_shared(&room->many, 1)] = r;
		}
	}
	barrier();
	const unsigned n = room->many;
	sort_best(token, n);
	for (unsigned i = threadIdx.x; i < n; i += ROW_THREADS) room->u.best.e[i] = weight_of(t, t.z[(uint32_t)~token[i]]);
	barrier();
	return (int)n;
}

DEVICE int is_whole(struct stretch s) { return s.hi == UNSURE; }

// bin_of returns a token's bin in a histogram of a stretch, the highest ranks first, or -1 if the token is not in
// it. The whole row goes by logits, and its last bin holds all that are far below the largest; others go by ranks.
DEVICE int bin_of(struct tokens t, struct stretch s, float z, long v) {
	if (is_whole(s)) {
		const float d = (t.largest - z) * PER_UNIT;
		return d < BINS - 1 ? (int)d : BINS - 1;
	}
	const uint64_t r = rank_of(z, v);
	return r >= s.lo && r <= s.hi ? (int)((s.hi - r) >> s.shift) : -1;
}

// fill_bins counts the tokens of each bin, or adds up their weights in whole numbers if scale is not 0: a token
// has 1 at least. The last bin of the whole row stays empty, because all its tokens would wait for each other.
DEVICE void fill_bins(struct sample_room *room, struct tokens t, struct stretch s, float scale) {
	barrier();
	for (int i = threadIdx.x; i < BINS; i += ROW_THREADS) room->u.bins[i] = 0;
	barrier();
	for (long at = threadIdx.x; at < t.V; at += ROW_THREADS * BURST) {
		float z[BURST];
		load_burst(z, floats(t.z), 0, at, ROW_THREADS, t.V);
		EACH_LOAD(k) {
			const long v = at + k * ROW_THREADS;
			const int bin = bin_of(t, s, z[k], v);
			if (v >= t.V || bin < 0 || (is_whole(s) && bin == BINS - 1)) continue;
			const uint32_t n = (uint32_t)(weight_of(t, z[k]) * scale + 0.5f);
			add_shared(&room->u.bins[bin], n ? n : 1);
		}
	}
	barrier();
}

// bin_with returns the bin in which the running sum of bins reaches n, or the last one.
DEVICE int bin_with(struct sample_room *room, uint64_t n) {
	const uint32_t *own = room->u.bins + BINS / ROW_THREADS * threadIdx.x;
	uint64_t sum = 0;
	UNROLL for (int i = 0; i < BINS / ROW_THREADS; i++) sum += own[i];
	const uint64_t mine = sum;
	if (threadIdx.x == 0) room->bin = BINS - 1;
	for (int w = 1; w < ROW_THREADS; w *= 2) {
		room->scan[threadIdx.x] = sum;
		barrier();
		if (threadIdx.x >= (unsigned)w) sum += room->scan[threadIdx.x - w];
		barrier();
	}
	uint64_t before = sum - mine;
	for (int i = 0; i < BINS / ROW_THREADS && before < n && n <= sum; i++) {
		before += own[i];
		if (before >= n) room->bin = (int)(own - room->u.bins) + i;
	}
	barrier();
	return room->bin;
}

// next_bin returns the next bin in a direction that is not empty, or -1.
DEVICE int next_bin(struct sample_room *room, struct stretch s, int bin, int step) {
	barrier();
	if (threadIdx.x == 0) {
		do bin += step;
		while (bin >= 0 && bin < BINS && !room->u.bins[bin] && !(is_whole(s) && bin == BINS - 1));
		room->bin = bin < BINS ? bin : -1;
	}
	barrier();
	return room->bin;
}

// join puts the threads' parts of a stretch together.
INLINE struct stretch join(struct sample_room *room, struct stretch s) {
	for (int w = WARP / 2; w > 0; w /= 2) {
		const uint64_t lo = shuffle_long(s.lo, w), hi = shuffle_long(s.hi, w);
		s.lo = lo < s.lo ? lo : s.lo;
		s.hi = hi > s.hi ? hi : s.hi;
		s.above += shuffle_xor64(s.above, w);
		s.mass += shuffle_xor64(s.mass, w);
		s.before += shuffle_word((uint32_t)s.before, w);
		s.count += shuffle_word((uint32_t)s.count, w);
	}
	barrier();
	if (threadIdx.x % WARP == 0) room->part[threadIdx.x / WARP] = s;
	barrier();
	s = room->part[0];
	ROLLED for (int w = 1; w < ROW_WARPS; w++) { // eight of them do not fit into registers
		const struct stretch p = room->part[w];
		s.lo = p.lo < s.lo ? p.lo : s.lo;
		s.hi = p.hi > s.hi ? p.hi : s.hi;
		s.above += p.above;
		s.mass += p.mass;
		s.before += p.before;
		s.count += p.count;
	}
	return s;
}

// part_of returns the stretch of a bin of another.
INLINE struct stretch part_of(struct sample_room *room, struct tokens t, struct stretch s, int bin) {
	struct stretch p = {~0ul, 0, 0, 0, 0, 0, 0};
	AHEAD_4 for (long v = threadIdx.x; v < t.V; v += ROW_THREADS) {
		const float z = t.z[v], e = weight_of(t, z);
		const uint64_t r = rank_of(z, v);
		const int at = bin_of(t, s, z, v);
		if (at < 0) continue;
		if (at < bin) {
			p.above += (double)e;
			p.before++;
		} else if (at == bin) {
			p.mass += (double)e;
			p.count++;
			p.lo = r < p.lo ? r : p.lo;
			p.hi = r > p.hi ? r : p.hi;
		}
	}
	p = join(room, p);
	p.above += s.above;
	p.before += s.before;
	while ((p.hi - p.lo) >> p.shift >= BINS) p.shift++;
	return p;
}

// stretch_with returns a stretch of up to BEST tokens that holds the k-th token, or with k = 0 the one at which
// the running sum of weights reaches `mass`. Counts are exact. Bins of weights are near enough to choose one by;
// sums in float64 decide whether it is the right one. If that is not clear, no token is in the result.
INLINE struct stretch stretch_with(struct sample_room *room, struct tokens t, long k, double mass, float sum) {
	struct stretch s = {0, UNSURE, 0, sum, 0, t.V, 0};
	while (s.count > BEST) {
		const float scale = k ? 0 : 0x1p31f / (float)s.mass;
		const double want = (mass - s.above) * (double)scale;
		fill_bins(room, t, s, scale);
		int bin = bin_with(room, k ? (uint64_t)(k - s.before) : want < 1 ? 1 : (uint64_t)want), moves = 0;
		struct stretch p;
		for (;;) {
			p = part_of(room, t, s, bin);
			const int step = k ? 0 : p.above >= mass ? -1 : p.above + p.mass < mass;
			if (!step) break;
			bin = next_bin(room, s, bin, step);
			if (bin < 0 || ++moves == MOVES) {
				s.count = 0;
				return s;
			}
		}
		s = p;
	}
	return s;
}

// The definition adds weights one by one, from the highest rank down; `above` was added in another order. Either
// sum of n numbers that are not negative is within n·2⁻⁵³ of the exact one, and so of the other within 2⁻⁵² n, to
// first order. So the token is certain where the limit is further than twice that from the running sums before and
// behind it, and also where no sum is rounded: all weights down to e are multiples of 2⁻²⁴ of the power of 2 below
// e (twice as fine as e's own digits, should a weight above be smaller), and the sums have fewer than 53 bits.
DEVICE int is_certain(long n, double before, double behind, double mass, float e) {
	const double margin = behind * (double)n * 0x1p-51;
	return behind < (double)e * 0x1p27 || (behind - mass > margin && mass - before > margin);
}

// walk sets room->end to the rank of the last kept of n sorted tokens, to 0 if all are, or to UNSURE.
DEVICE void walk(struct sample_room *room, struct stretch s, int n, long k, double mass, long V, int exact) {
	double sum = s.above;
	room->end = 0;
	for (int i = 0; i < n && !room->end; i++) {
		const float e = room->u.best.e[i];
		const double behind = sum + (double)e;
		if (k ? s.before + i + 1 == k : behind >= mass)
			room->end = k || exact || is_certain(V, sum, behind, mass, e) ? room->u.best.token[i] : UNSURE;
		sum = behind;
	}
	room->above = sum;
}

// last_kept returns the rank of the last token that top_k = k, or with k = 0 top_p, keeps. If it is not certain,
// weights are added in order from the first on, which takes long.
INLINE uint64_t last_kept(struct sample_room *room, struct tokens t, long k, double mass, float sum) {
	struct stretch s = stretch_with(room, t, k, mass, sum);
	int exact = s.count == t.V;
	for (;;) {
		if (s.count) {
			const int n = take_best(room, t, s.lo, s.hi);
			if (threadIdx.x == 0) walk(room, s, n, k, mass, t.V, exact);
			barrier();
			const uint64_t end = room->end;
			if ((end && end != UNSURE) || (exact && s.lo == 0)) return end;
		}
		s.hi = exact ? s.lo - 1 : UNSURE;
		s.above = exact ? room->above : 0;
		s.lo = floor_of(room, t, s.hi);
		s.count = 1;
		exact = 1;
	}
}

// sum_blocks_from sets room->u.sums to the lane sums in float64 of up to SUMS sample blocks from `first` on, and
// returns how many there are.
DEVICE int sum_blocks_from(struct sample_room *room, struct tokens t, long first) {
	const long blocks = (t.V + SAMPLE_BLOCK - 1) / SAMPLE_BLOCK;
	const int n = blocks - first < SUMS ? (int)(blocks - first) : SUMS;
	barrier();
	for (int i = 0; i < n; i += ROW_THREADS / LANES) { // all threads take part in the fold
		const int b = i + threadIdx.x / LANES;
		const long lo = (first + b) * SAMPLE_BLOCK, hi = lo + SAMPLE_BLOCK < t.V ? lo + SAMPLE_BLOCK : t.V;
		const long end = b < n ? hi : lo;
		double lane = 0;
		AHEAD for (long v = lo + threadIdx.x % LANES; v < end; v += LANES) lane += (double)kept_weight(t, t.z[v], v);
		lane = fold_lanes64(lane);
		if (b < n && threadIdx.x % LANES == 0) room->u.sums[b] = lane;
	}
	barrier();
	return n;
}

// add_up makes room->u.sums [n] running sums that start from `sum`, and returns the last.
DEVICE double add_up(struct sample_room *room, double sum, int n) {
	double *sums = room->u.sums;
	for (int i = 0; threadIdx.x == 0 && i < n; i += BURST) {
		double x[BURST];
		EACH_LOAD(k) x[k] = i + k < n ? sums[i + k] : 0;
		EACH_LOAD(k) sums[i + k] = sum = sum + x[k];
	}
	barrier();
	return sums[n - 1];
}

// draw_within returns the token of the sample block at lo that makes the sum from `before` on exceed x.
DEVICE int draw_within(struct sample_room *room, struct tokens t, long lo, double before, double x) {
	const long v = lo + threadIdx.x;
	const float e = v < t.V ? kept_weight(t, t.z[v], v) : 0;
	barrier();
	room->u.sums[threadIdx.x] = (double)e;
	barrier();
	add_up(room, before, SAMPLE_BLOCK);
	const uint32_t first = least_of(room, room->u.sums[threadIdx.x] > x ? threadIdx.x : SAMPLE_BLOCK);
	const uint32_t behind = least_of(room, e > 0 ? SAMPLE_BLOCK - 1 - threadIdx.x : SAMPLE_BLOCK - 1);
	return (int)lo + (first < SAMPLE_BLOCK ? (int)first : SAMPLE_BLOCK - 1 - (int)behind);
}

// draw returns the token that u selects from the kept weights.
DEVICE int draw(struct sample_room *room, struct tokens t, float u) {
	const long blocks = (t.V + SAMPLE_BLOCK - 1) / SAMPLE_BLOCK;
	double x = 0, sum = 0;
	for (int pass = 0; pass < 2; pass++) {
		for (long b = 0; b < blocks; b += SUMS) {
			double end = sum;
			int n = blocks < SUMS ? (int)blocks : SUMS;
			if (pass == 0 || blocks > SUMS) {
				n = sum_blocks_from(room, t, b);
				end = add_up(room, sum, n);
			}
			uint32_t found = SUMS;
			for (int i = n - 1 - (int)threadIdx.x; pass && i >= 0; i -= ROW_THREADS)
				if (room->u.sums[i] > x) found = i;
			found = least_of(room, found);
			if (found < SUMS)
				return draw_within(room, t, (b + found) * SAMPLE_BLOCK, found ? room->u.sums[found - 1] : sum, x);
			sum = end;
		}
		x = (double)u * sum;
		sum = 0;
	}
	return 0;
}

// pick returns the token of a row that u selects.
DEVICE int pick(struct sample_room *room, const struct sample_args *a, struct tokens t, float sum, float u) {
	if (sum != sum) return 0;
	if (a->greedy) {
		uint32_t first = ~0u;
		AHEAD for (long v = threadIdx.x; v < t.V; v += ROW_THREADS)
			if (t.z[v] == t.largest && v < first) first = (uint32_t)v;
		return (int)least_of(room, first);
	}
	ROLLED for (int by_mass = 0; by_mass < 2; by_mass++) {
		if (by_mass ? a->top_p >= 1 : a->top_k == 0 || a->top_k >= t.V) continue;
		const uint64_t end = last_kept(room, t, by_mass ? 0 : a->top_k, a->top_p * (double)sum, sum);
		t.end = end > t.end ? end : t.end;
	}
	return draw(room, t, u);
}

BLOCK_KERNEL(sample, ROW_THREADS, 2) {
	SHARED(struct sample_room, room, 1);
	const long r = blockIdx.x;
	const float *z = a.z + r * a.V;
	const struct row_sums x = row_sums_of(&room->u.row, z, a.V);
	const struct tokens t = {z, a.V, x.largest, 0, a.min_p};
	const int id = pick(room, &a, t, x.sum, a.u[r]);
	if (threadIdx.x != 0) return;
	a.ids[r] = id;
	a.logprob[r] = z[id] - row_scores(a.entropy, a.lse, r, x);
}

// The first K tokens, a block for each row of logits.
BLOCK_KERNEL(top_tokens, ROW_THREADS, 2) {
	SHARED(struct sample_room, room, 1);
	const long r = blockIdx.x;
	const float *z = a.z + r * a.V;
	const struct row_sums x = row_sums_of(&room->u.row, z, a.V);
	const struct tokens t = {z, a.V, x.largest, 0, 0};
	const int known = x.sum == x.sum;
	if (known) take_best(room, t, last_kept(room, t, a.K, 0, x.sum), UNSURE);
	for (long i = threadIdx.x; i < a.K; i += ROW_THREADS)
		a.ids[r * a.K + i] = known ? (int)(uint32_t)~room->u.best.token[i] : (int)i;
}

// heads.h computes attention on tensor cores, a warp for 16 rows of a head: their products with 16
// positions at a time. What a lane holds of the first product, it turns into its part of a factor of
// the second. Positions count from a sequence's start, so steps of 16 begin at multiples of 16.
#ifndef EXP_CUDA_HEADS_H
#define EXP_CUDA_HEADS_H

#include "matrix.h"
#include "sequence.h"

// Where FULL is 1, rows see all of their sequence, which has no prefix and no window. Where LOOKS_AHEAD is 1, they see
// others behind them (end_seen).
#if !defined(FULL)
#define FULL 0
#endif
#if !defined(LOOKS_AHEAD)
#define LOOKS_AHEAD 0
#endif

#define HEAD_WARPS 4
#define HEAD_THREADS (HEAD_WARPS * WARP)

// EACH_SCORE goes over a lane's elements z[j][e] of a product of 16 rows and 16 positions.
#define EACH_SCORE(j, e) UNROLL for (int j = 0; j < 2; j++) UNROLL for (int e = 0; e < 4; e++)

// quad and pair are the calling lane's group of four lanes, and its place among them.
DEVICE int quad(void) { return threadIdx.x % WARP / 4; }
DEVICE int pair(void) { return threadIdx.x % 4; }

// row_in_tile and column_in_tile locate element z[j][e].
DEVICE int row_in_tile(int e) { return quad() + e / 2 * 8; }
DEVICE int column_in_tile(int j, int e) { return j * 8 + pair() * 2 + e % 2; }

// Rows of an array of bf16: an element is at[offset + d·step]. A negative offset is a row of zeros. If wide is
// set, rows are aligned to 16 bytes and have a multiple of 8 elements.
struct rows {
	const uint16_t *at;
	long step;
	int wide;
};

DEVICE struct rows rows_in(struct operand x, long step, long D) {
	struct rows r;
	r.at = (const uint16_t *)x.at;
	r.step = step;
	r.wide = step == 1 && D % 8 == 0 && ((uint64_t)x.at & 15) == 0;
	return r;
}

struct words_8 {
	uint32_t w[2];
} __attribute__((aligned(8)));

struct words_16 {
	uint32_t w[4];
} __attribute__((aligned(16)));

// load_some sets words to n elements of a row from d on, those from D on to zeros.
INLINE void load_some(uint32_t *word, int n, struct rows x, long offset, long d, long D) {
	UNROLL for (int i = 0; i < n / 2; i++) word[i] = 0;
	if (offset < 0 || d >= D) return;
	const uint16_t *at = x.at + offset + d * x.step;
	if (x.wide && n == 4) {
		const struct words_8 v = *(const struct words_8 *)at;
		UNROLL for (int i = 0; i < 2; i++) word[i] = v.w[i];
	} else if (x.wide) {
		const struct words_16 v = *(const struct words_16 *)at;
		UNROLL for (int i = 0; i < 4; i++) word[i] = v.w[i];
	} else {
		UNROLL for (int i = 0; i < n; i++)
			if (d + i < D) word[i / 2] |= (uint32_t)at[i * x.step] << i % 2 * 16;
	}
}

// AT_ONCE is how many steps of channels a lane loads before it multiplies the first.
#define AT_ONCE 2

// dot sets z to the products of 16 rows and 16 positions over D channels. left holds the offsets of
// the lane's rows (quad, quad+8), right the offsets of its columns (quad, quad+8). The order of a step's 16
// terms is free, so a lane takes four channels next to each other.
INLINE void dot(float z[2][4], struct rows x, const long *left, struct rows y, const long *right, long D) {
	EACH_SCORE(j, e) z[j][e] = 0;
	ROLLED for (long d = 0; d < D; d += AT_ONCE * STEP) {
		uint32_t l[AT_ONCE][2][2], r[AT_ONCE][2][2];
		UNROLL for (int k = 0; k < AT_ONCE; k++) UNROLL for (int i = 0; i < 2; i++) {
			load_some(l[k][i], 4, x, left[i], d + k * STEP + 4 * pair(), D);
			load_some(r[k][i], 4, y, right[i], d + k * STEP + 4 * pair(), D);
		}
		UNROLL for (int k = 0; k < AT_ONCE; k++) {
			const uint32_t a[] = {l[k][0][0], l[k][1][0], l[k][0][1], l[k][1][1]};
			UNROLL for (int j = 0; j < 2; j++)
				if (d + k * STEP < D) multiply(z[j], a, r[k][j]);
		}
	}
}

// What a query sees: positions from `from` up to `end`.
struct seen {
	int from, end;
} __attribute__((aligned(8)));

// The weights of 16 rows and 16 positions. If by_keys is set, rows are keys and positions queries. If FULL, rows see
// positions up to `keys`. If LOOKS_AHEAD, `seen`,
// in shared memory, says what each query sees.
struct step {
	int row, position, window, by_keys;
#if FULL
	int keys;
#endif
#if LOOKS_AHEAD
	struct seen *seen;
#endif
};

// window_of returns the window of a step, 0 without one. Positions are below the largest int.
DEVICE int window_of(struct attention_shape s) { return s.window < 0x7fffffff ? (int)s.window : 0; }

// sees reports whether the query of an element sees the key: not whether they exist.
DEVICE int sees(struct step s, int row, int position) {
	const int query = s.by_keys ? s.position + position : s.row + row, key = s.by_keys ? s.row + row : s.position + position;
#if FULL
	(void)query;
	return key < s.keys;
#endif
#if LOOKS_AHEAD
	(void)query;
	const struct seen seen = s.seen[computed_here(s.by_keys ? position : row)];
	return key >= seen.from && key < seen.end;
#endif
	return key <= query && (s.window == 0 || query - key < s.window);
}

// is_partial reports whether some element does not count. If LOOKS_AHEAD, it may say so of others, too.
DEVICE int is_partial(struct step s) {
	const int query = s.by_keys ? s.position : s.row, key = s.by_keys ? s.row : s.position;
#if FULL
	(void)query;
	return key + STEP > s.keys;
#endif
	return key + STEP - 1 > query || (s.window > 0 && query + STEP - 1 - key >= s.window);
}

// hide sets scores of keys that a row does not see to -∞: they are not the largest, and their weights are 0.
INLINE void hide(float (*z)[4], struct step s) {
	if (!is_partial(s)) return;
	EACH_SCORE(j, e) if (!sees(s, row_in_tile(e), column_in_tile(j, e))) z[j][e] = -INFINITE;
}

// has_special reports whether one of two factors is infinite or NaN.
DEVICE int has_special(uint32_t w) { return (w & 0x7f80) == 0x7f80 || (w & 0x7f800000) == 0x7f800000; }

// A group of 64 channels is 8 tiles of 8 columns. Column g of tile i is channel 8·g+i, so that a lane loads its
// channels of all tiles at once.
#define GROUP 8
#define GROUP_CHANNELS 64

// channel_of is the channel of element e of tile i.
DEVICE long channel_of(int i, int e) { return i / GROUP * GROUP_CHANNELS + (2 * pair() + e % 2) * 8 + i % GROUP; }

// load_group sets b to the lane's part of a group of channels from d on: offset holds the offsets of
// positions 2·pair, +1, +8 and +9.
INLINE void load_group(uint32_t b[GROUP][2], struct rows x, const long *offset, long d, long D) {
	UNROLL for (int w = 0; w < 2; w++) {
		uint32_t first[4], second[4];
		load_some(first, 8, x, offset[2 * w], d + 8 * quad(), D);
		load_some(second, 8, x, offset[2 * w + 1], d + 8 * quad(), D);
		UNROLL for (int k = 0; k < 4; k++) {
			b[2 * k][w] = (first[k] & 0xffff) | second[k] << 16;
			b[2 * k + 1][w] = first[k] >> 16 | (second[k] & 0xffff0000);
		}
	}
}

// sees_special reports whether a row does not see a position with a factor that is infinite or NaN.
INLINE int sees_special(uint32_t (*b)[2], int tiles, struct step s) {
	int special = 0;
	if (!is_partial(s)) return 0;
	UNROLL for (int i = 0; i < tiles; i++) special |= has_special(b[i][0]) || has_special(b[i][1]);
	return any(special);
}

// add_seen is add_weighted where sees_special: not even the products with weight 0 count. Each row
// has products of its own.
INLINE void add_seen(float (*sum)[4], const uint32_t *weights, uint32_t (*b)[2], int tiles, struct step s) {
	ROLLED for (int r = 0; r < 16; r++) {
		uint32_t mask[2];
		UNROLL for (int w = 0; w < 2; w++) {
			const int k = 2 * pair() + 8 * w;
			mask[w] = (sees(s, r, k) ? 0xffff : 0) | (sees(s, r, k + 1) ? 0xffff0000 : 0);
		}
		UNROLL for (int i = 0; i < tiles; i++) {
			const uint32_t seen[] = {b[i][0] & mask[0], b[i][1] & mask[1]};
			float one[] = {sum[i][0], sum[i][1], sum[i][2], sum[i][3]};
			multiply(one, weights, seen);
			UNROLL for (int e = 0; e < 4; e++) sum[i][e] = row_in_tile(e) == r ? one[e] : sum[i][e];
		}
	}
}

// as_weights makes powers of e, none of them subnormal, a factor, and gradients_as_weights any z.
DEVICE void as_weights(uint32_t *weights, float z[2][4]) {
	UNROLL for (int i = 0; i < 4; i++) weights[i] = both(z[i / 2][i % 2 * 2], z[i / 2][i % 2 * 2 + 1]);
}

DEVICE void gradients_as_weights(uint32_t *weights, float z[2][4]) {
	UNROLL for (int i = 0; i < 4; i++) weights[i] = both_flushed(z[i / 2][i % 2 * 2], z[i / 2][i % 2 * 2 + 1]);
}

// add_weighted adds to sums [16, tiles·8] the products of weights and rows of channels from d on.
INLINE void add_weighted(float sum[][4], int tiles, const uint32_t *weights, struct rows x, const long *offset, long d, long D,
	struct step s) {
	UNROLL for (int g = 0; g < tiles; g += GROUP) {
		uint32_t b[GROUP][2];
		const long first = d + g / GROUP * GROUP_CHANNELS;
		if (first >= D) continue;
		load_group(b, x, offset, first, D);
		if (sees_special(b, GROUP, s)) add_seen(sum + g, weights, b, GROUP, s);
		else UNROLL for (int i = 0; i < GROUP; i++) multiply(sum[g + i], weights, b[i]);
	}
}

// largest_of is the largest of a row's numbers that the lanes of a quad have.
DEVICE float largest_of(float m) {
	for (int w = 1; w <= 2; w *= 2) {
		const float other = shuffle_xor(m, w);
		m = other > m ? other : m;
	}
	return m;
}

// fold_quad is fold for lanes 2·pair, 2·pair+1, +8 and +9 of a lane sum.
DEVICE float fold_quad(const float *lane) {
	float even = lane[0] + lane[2], odd = lane[1] + lane[3];
	for (int w = 2; w > 0; w /= 2) {
		even = even + shuffle_xor(even, w);
		odd = odd + shuffle_xor(odd, w);
	}
	return even + odd;
}

// KEYS is kernels.MatrixKeys, and RISE kernels.MatrixRise: attention takes KEYS keys at once, and first lets rows' maxima rise
// by more than RISE.
#define KEYS 32
#define RISE 8
#define LEAST -3.402823466e38f // the least finite float32

// What a lane knows of 16 rows, of quad and quad+8: the maximum that scores are subtracted from, and the powers of e added up
// in lanes.
struct running {
	float m[2], lane[2][4];
};

INLINE void no_keys(struct running *r) {
	UNROLL for (int i = 0; i < 2; i++) {
		r->m[i] = LEAST;
		UNROLL for (int e = 0; e < 4; e++) r->lane[i][e] = 0;
	}
}

// rise_rows makes the maximum of a row the largest score of the next keys, if that is larger by more than RISE; `top` is the
// largest that this lane has. It returns whether a row of the warp rose, and then the factors for sums until now, which it
// applies to the lanes. Mostly no row rises, and then no lane asks others.
INLINE int rise_rows(struct running *r, const float *top, float *factor) {
	if (!any(top[0] > r->m[0] + RISE || top[1] > r->m[1] + RISE)) return 0;
	UNROLL for (int i = 0; i < 2; i++) {
		const float largest = largest_of(top[i]);
		factor[i] = largest > r->m[i] + RISE ? exp_down(r->m[i] - largest) : 1;
		if (largest > r->m[i] + RISE) r->m[i] = largest;
		UNROLL for (int e = 0; e < 4; e++) r->lane[i][e] *= factor[i];
	}
	return 1;
}

INLINE void scale_sums(float (*sum)[4], int tiles, const float *factor) {
	UNROLL for (int j = 0; j < tiles; j++) UNROLL for (int e = 0; e < 4; e++) sum[j][e] *= factor[e / 2];
}

// rise is rise_rows, and applies the factors to the sums.
INLINE void rise(struct running *r, const float *top, float (*sum)[4], int tiles) {
	float factor[2];
	if (rise_rows(r, top, factor)) scale_sums(sum, tiles, factor);
}

// weigh turns scores of 16 keys into powers of e, which it adds to the lanes.
INLINE void weigh(struct running *r, float z[2][4]) {
	EACH_SCORE(j, e) {
		z[j][e] = exp_down(z[j][e] - r->m[e / 2]);
		r->lane[e / 2][j * 2 + e % 2] += z[j][e];
	}
}

// The rows that a warp or a block works on: positions of a sequence from `base` on, a multiple of 16. Those from `lo` to
// `hi` count.
struct span {
	struct sequence seq;
	int base, lo, hi;
};

// keys_of is one past the last position that a span's queries see.
DEVICE int keys_of(struct attention_shape s, struct span x) {
	(void)s;
	return FULL ? x.seq.own : LOOKS_AHEAD ? end_seen(s, x.seq, x.hi - 1) : x.hi;
}

// step_of is the step of a span's rows from position `row` on.
DEVICE struct step step_of(struct attention_shape s, struct span x, int row, int by_keys) {
	struct step step;
	step.row = row;
	step.window = window_of(s);
	step.by_keys = by_keys;
#if FULL
	step.keys = keys_of(s, x);
#else
	(void)x;
#endif
	return step;
}

// see_ahead sets what the queries of a step see: those at positions from `first` on, of which lo to hi exist. It waits for
// the other lanes, before and after.
INLINE void see_ahead(struct step s, struct attention_shape shape, struct sequence seq, int first, int lo, int hi) {
#if LOOKS_AHEAD
	const int i = (int)threadIdx.x % WARP, n = first + i;
	meet();
	if (i < STEP) {
		s.seen[i].from = (int)first_seen(shape, n);
		s.seen[i].end = n >= lo && n < hi ? end_seen(shape, seq, n) : 0;
	}
	meet();
#endif
	(void)s, (void)shape, (void)seq, (void)first, (void)lo, (void)hi;
}

// next_span finds the first span that begins at row i or later, before row end. A span begins at multiples of `rows`
// positions, and with a sequence. It returns the span's row, or end.
DEVICE int next_span(struct packing p, int i, int end, int rows, struct span *s) {
	while (i < end) {
		const long j = last_at_most(p.offsets, p.S, i);
		s->seq = sequence_of(p, j, group_of(p, j));
		const int n = s->seq.prefix + i - s->seq.first, after = n / rows * rows + rows, last = s->seq.prefix + s->seq.own;
		s->base = n / STEP * STEP;
		s->lo = n;
		s->hi = after < last ? after : last;
		if (n % rows == 0 || i == s->seq.first) return i;
		i += s->hi - n;
	}
	return end;
}

// The statistics of a query and head: the maximum that scores were subtracted from,
// one over the sum of the powers, and the lane sum of dout·out.
struct query {
	float m, inverse, delta;
};

// keep_stats sets the stats of a row and head: m, where a zero is +0, and 1/l.
DEVICE void keep_stats(float *stats, long at, float m, float inverse) {
	stats[2 * at] = m + 0.0f;
	stats[2 * at + 1] = inverse;
}

DEVICE struct query query_of(const struct matrix_attention_backward_args *a, struct sequence seq, long n, long lo, long hi, long h) {
	struct query q;
	q.m = q.inverse = q.delta = 0;
	if (n < lo || n >= hi) return q;
	const long at = row_of(seq, n) * a->s.H + h;
	q.m = a->stats[2 * at];
	q.inverse = a->stats[2 * at + 1];
	q.delta = a->delta[at];
	return q;
}

// gradient turns the product z of a query and a key, and dp of the query's gradient and the value,
// into the probability, in z, and the gradient of the product, in dp. Scores have caps if `capping` is set.
INLINE void gradient(struct attention_shape s, int capping, struct query q, float *z, float *dp) {
	float w = *z * s.scale, y = 0;
	if (capping) w = capped(w, s.cap, s.inverse_cap, &y);
	*z = exp_down(w - q.m) * q.inverse;
	*dp = *z * (*dp - q.delta);
	if (capping) *dp = *dp * (1 - y * y);
	*dp = *dp * s.scale;
}

#endif

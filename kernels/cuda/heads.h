// heads.h computes attention on tensor cores, a warp for 16 rows of a head: their products with 16
// positions at a time. What a lane holds of the first product, it turns into its part of a factor of
// the second. Positions count from a sequence's start, so steps of 16 begin at multiples of 16.
#ifndef EXP_CUDA_HEADS_H
#define EXP_CUDA_HEADS_H

#include "matrix.h"
#include "sequence.h"

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

// Rows of an array of bf16: an element is at[offset + d·step]. A negative offset is a row of zeros.
struct rows {
	const uint16_t *at;
	long step;
};

DEVICE struct rows rows_in(struct operand x, long step) {
	struct rows r;
	r.at = (const uint16_t *)x.at;
	r.step = step;
	return r;
}

// two returns elements d and d+1 of a row, those from D on as zeros.
DEVICE uint32_t two(struct rows x, long offset, long d, long D) {
	if (offset < 0 || d >= D) return 0;
	const uint32_t first = x.at[offset + d * x.step];
	return d + 1 < D ? first | (uint32_t)x.at[offset + (d + 1) * x.step] << 16 : first;
}

// dot sets z to the products of 16 rows and 16 positions over D channels. left holds the offsets of
// the lane's rows (quad, quad+8), right the offsets of its columns (quad, quad+8).
INLINE void dot(float z[2][4], struct rows x, const long *left, struct rows y, const long *right, long D) {
	EACH_SCORE(j, e) z[j][e] = 0;
	ROLLED for (long d = 0; d < D; d += STEP) {
		const long at = d + 2 * pair();
		const uint32_t a[] = {two(x, left[0], at, D), two(x, left[1], at, D), two(x, left[0], at + 8, D), two(x, left[1], at + 8, D)};
		UNROLL for (int j = 0; j < 2; j++) {
			const uint32_t b[] = {two(y, right[j], at, D), two(y, right[j], at + 8, D)};
			multiply(z[j], a, b);
		}
	}
}

// The weights of 16 rows and 16 positions. If by_keys is set, rows are keys and positions queries.
struct step {
	long row, position, window;
	int by_keys;
};

// sees reports whether the query of an element sees the key: not whether they exist.
DEVICE int sees(struct step s, int row, int position) {
	const long query = s.by_keys ? s.position + position : s.row + row, key = s.by_keys ? s.row + row : s.position + position;
	return key <= query && (s.window == 0 || query - key < s.window);
}

// is_partial reports whether some element does not count.
DEVICE int is_partial(struct step s) {
	return !sees(s, 0, STEP - 1) || !sees(s, STEP - 1, 0) || !sees(s, 0, 0) || !sees(s, STEP - 1, STEP - 1);
}

// has_special reports whether one of two factors is infinite or NaN.
DEVICE int has_special(uint32_t w) { return (w & 0x7f80) == 0x7f80 || (w & 0x7f800000) == 0x7f800000; }

// load_columns sets b to the lane's part of eight channels from d on: offset holds the offsets of
// positions 2·pair, +1, +8 and +9.
DEVICE void load_columns(uint32_t *b, struct rows x, const long *offset, long d, long D) {
	const long c = d + quad();
	UNROLL for (int w = 0; w < 2; w++) {
		b[w] = 0;
		if (c < D && offset[2 * w] >= 0) b[w] = x.at[offset[2 * w] + c];
		if (c < D && offset[2 * w + 1] >= 0) b[w] |= (uint32_t)x.at[offset[2 * w + 1] + c] << 16;
	}
}

// sees_special reports whether a row does not see a position with a factor that is infinite or NaN.
DEVICE int sees_special(struct rows x, const long *offset, long d, long end, long D, struct step s) {
	int special = 0;
	if (!is_partial(s)) return 0;
	ROLLED for (; d < end && d < D; d += 8) {
		uint32_t b[2];
		load_columns(b, x, offset, d, D);
		special |= has_special(b[0]) || has_special(b[1]);
	}
	return any(special);
}

// add_seen is add_weighted where sees_special: not even the products with weight 0 count. Each row
// has products of its own.
INLINE void add_seen(float sum[][4], int tiles, const uint32_t *weights, struct rows x, const long *offset, long d, long D,
	struct step s) {
	ROLLED for (int r = 0; r < 16; r++) {
		uint32_t mask[2];
		UNROLL for (int w = 0; w < 2; w++) {
			const int k = 2 * pair() + 8 * w;
			mask[w] = (sees(s, r, k) ? 0xffff : 0) | (sees(s, r, k + 1) ? 0xffff0000 : 0);
		}
		UNROLL for (int i = 0; i < tiles; i++) {
			uint32_t b[2];
			float one[] = {sum[i][0], sum[i][1], sum[i][2], sum[i][3]};
			load_columns(b, x, offset, d + i * 8, D);
			b[0] &= mask[0];
			b[1] &= mask[1];
			multiply(one, weights, b);
			UNROLL for (int e = 0; e < 4; e++) sum[i][e] = row_in_tile(e) == r ? one[e] : sum[i][e];
		}
	}
}

// add_weighted adds to sums [16, tiles·8] the products of weights, as dot's z, and rows of channels
// from d on.
INLINE void add_weighted(float sum[][4], int tiles, float z[2][4], struct rows x, const long *offset, long d, long D, struct step s) {
	const uint32_t weights[] = {both(z[0][0], z[0][1]), both(z[0][2], z[0][3]), both(z[1][0], z[1][1]), both(z[1][2], z[1][3])};
	if (sees_special(x, offset, d, d + tiles * 8, D, s)) {
		add_seen(sum, tiles, weights, x, offset, d, D, s);
		return;
	}
	UNROLL for (int i = 0; i < tiles; i++) {
		if (d + i * 8 >= D) continue;
		uint32_t b[2];
		load_columns(b, x, offset, d + i * 8, D);
		multiply(sum[i], weights, b);
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

// The rows that a warp works on: 16 positions of a sequence from `base` on, those from `lo` to `hi`.
struct span {
	struct sequence seq;
	long base, lo, hi;
};

// next_span finds the first span that begins at row i or later, before row end. A span begins at
// multiples of 16, and with a sequence. It returns the span's row, or end.
DEVICE long next_span(struct packing p, long i, long end, struct span *s) {
	for (; i < end; i++) {
		const long j = last_at_most(p.offsets, p.S, i);
		s->seq = sequence_of(p, j, group_of(p, j));
		const long n = s->seq.prefix + i - s->seq.first;
		if (n % STEP && i > s->seq.first) continue;
		s->base = n / STEP * STEP;
		s->lo = n;
		s->hi = s->base + STEP < s->seq.prefix + s->seq.own ? s->base + STEP : s->seq.prefix + s->seq.own;
		return i;
	}
	return end;
}

#endif

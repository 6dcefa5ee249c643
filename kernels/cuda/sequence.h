// sequence.h locates the rows of packed sequences, and scores keys.
#ifndef EXP_CUDA_SEQUENCE_H
#define EXP_CUDA_SEQUENCE_H

#include "softmax.h"
#include "sum.h"

// The rows of a sequence: its prefix's, if it has one, then its own.
struct sequence {
	int prefix_row, prefix, first, own;
};

// last_at_most returns the last of x[0..n] ascending from 0 that is at most v. Where several are
// equal, all but the last are of empty ranges.
DEVICE long last_at_most(const int *x, long n, long v) {
	long lo = 0, hi = n;
	while (lo < hi) {
		const long mid = (lo + hi + 1) / 2;
		if (x[mid] <= v) lo = mid;
		else hi = mid - 1;
	}
	return lo;
}

// sequence_of describes sequence j of group g.
DEVICE struct sequence sequence_of(struct packing p, long j, long g) {
	struct sequence s;
	s.first = p.offsets[j];
	s.own = p.offsets[j + 1] - p.offsets[j];
	s.prefix = s.prefix_row = 0;
	if (p.G && p.groups[g] < j) {
		s.prefix_row = p.offsets[p.groups[g]];
		s.prefix = p.offsets[p.groups[g] + 1] - s.prefix_row;
	}
	return s;
}

DEVICE long group_of(struct packing p, long j) { return p.G ? last_at_most(p.groups, p.G, j) : 0; }

// row_of returns the row of a sequence's position t.
DEVICE long row_of(struct sequence s, long t) { return t < s.prefix ? s.prefix_row + t : s.first + t - s.prefix; }

// first_seen returns the first position that a query at position n sees.
DEVICE long first_seen(struct attention_shape s, long n) {
	return s.window > 0 && n + 1 > s.window ? n + 1 - s.window : 0;
}

// end_seen returns one past the last position that position n of a sequence, one of its own, sees where rows see
// those behind them: with blocks of rows up to its block's last one, without up to the sequence's.
DEVICE int end_seen(struct attention_shape s, struct sequence seq, int n) {
	return s.ahead ? n + 1 + s.ahead[row_of(seq, n)] : seq.prefix + seq.own;
}

// first_seeing returns the first of a sequence's own positions that sees position t, where end_seen says what they
// see: no end is before the one of the position before.
DEVICE int first_seeing(struct attention_shape s, struct sequence seq, int t) {
	int lo = seq.prefix, hi = t > lo ? t : lo;
	while (lo < hi) {
		const int mid = lo + (hi - lo) / 2;
		if (end_seen(s, seq, mid) > t) hi = mid;
		else lo = mid + 1;
	}
	return lo;
}

// end_in_pages returns one past the last position that a row of pages sees.
DEVICE int end_in_pages(const struct paged_attention_args *a, long row) {
	return a->pos[row] + 1 + (a->s.ahead ? a->s.ahead[row] : 0);
}

// stride is the number of elements in a row of queries, keys and values. query_at, key_at and
// value_at are the offsets of heads of row m.
DEVICE long stride(struct attention_shape s) { return (s.H + 2 * s.K) * s.D; }
DEVICE long query_at(struct attention_shape s, long m, long h) { return m * stride(s) + h * s.D; }
DEVICE long key_at(struct attention_shape s, long m, long k) { return m * stride(s) + (s.H + k) * s.D; }
DEVICE long value_at(struct attention_shape s, long m, long k) { return m * stride(s) + (s.H + s.K + k) * s.D; }

// score turns the sum of q·k into a score.
DEVICE float score(struct attention_shape s, float dot, float *y) {
	return capped(dot * s.scale, s.cap, s.inverse_cap, y);
}

#endif

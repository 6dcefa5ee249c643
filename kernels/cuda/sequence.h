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

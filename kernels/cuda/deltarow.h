// deltarow.h has what the recurrence of linear attention and its gradients share: rows in shared memory, and a
// thread's column of the state.
#ifndef EXP_CUDA_DELTAROW_H
#define EXP_CUDA_DELTAROW_H

#include "delta.h"
#include "warp.h"

// FAR is how far elements of a column lie apart in memory: a constant where states lie in registers.
#define FAR(a, n) ((n) == DELTA_KEY ? DELTA_THREADS : (a)->columns)

// A thread's column of a value head's state [key_dim][columns]. Some have none.
struct column {
	int vh, kh; // value and key head
	int at;     // the column in the state; in its tile it is the thread's
	int live;
};

// column_of returns the thread's column; all have one of a state in registers.
INLINE struct column column_of(struct delta_shape s, long vh, long first, long columns, const long n) {
	const long left = s.value_dim - first;
	struct column c;
	c.vh = (int)vh;
	c.kh = (int)(vh / shared_by(s));
	c.live = n == DELTA_KEY || threadIdx.x < (left < columns ? left : columns);
	c.at = (int)first + (c.live ? (int)threadIdx.x : 0);
	return c;
}

// scaled_row is element i of row m's scaled query and key [2·key_dim].
DEVICE float scaled_row(struct operand u, const float *lengths, struct delta_shape s, const int scan, float scale, long m,
	long kh, long i) {
	const int key = i >= s.key_dim;
	const long head = key ? s.keys + kh : kh;
	const float x = load(u, m * s.mixed + head_column(s, scan, head) + (key ? i - s.key_dim : i)) * lengths[m * 2 * s.keys + head];
	return key ? x : x * scale;
}

// mixed_value is the offset of a column's value in mixed rows, keep_at that of what its head keeps in gates.
DEVICE long mixed_value(struct delta_shape s, const int scan, long m, struct column c) {
	return m * s.mixed + (scan ? 0 : 2 * s.keys * s.key_dim) + c.vh * s.value_dim + c.at;
}
DEVICE long keep_at(struct delta_shape s, const int scan, long m, struct column c) {
	return m * (scan ? 3 : 2) * s.values + c.vh;
}

// EACH_PART goes over n elements a part at a time, DELTA_KEY of them unrolled: of other keys some are behind the end.
#define EACH_PART(i, part, n) \
	for (long base = 0; base < (n); base += DELTA_KEY) \
		UNROLL for (long i = base; i < base + DELTA_KEY; i += (part))

// Where a state lies in registers it leaves room for little else. So a row is read from shared memory again for each
// use, and not much earlier: what is read at an address plus after(x, 0) waits for x, as no compiler knows that zero is 0.
DEVICE int after(float x, int zero) { return (int)bits_of(x) & zero; }

// four sets v to elements i to i+4 of a row, as many as are left of n.
INLINE void four(float *v, const float *row, long i, const long n) {
	if (n == DELTA_KEY) {
		const wide w = *(const volatile wide *)(row + i);
		UNROLL for (int j = 0; j < 4; j++) v[j] = float_of(w[j]);
	} else {
		UNROLL for (int j = 0; j < 4; j++) v[j] = i + j < n ? row[i + j] : 0;
	}
}

#endif

// wide.h reads and writes 8 elements of a row at once.
#ifndef EXP_CUDA_WIDE_H
#define EXP_CUDA_WIDE_H

#include "num.h"

enum { WIDE = 8 };
#define EACH_WIDE(j) UNROLL for (int j = 0; j < WIDE; j++)

// Four words that one instruction moves. A structure would not do: the compiler splits it.
typedef uint32_t wide __attribute__((vector_size(16), may_alias));

// wide_at returns the address of elements i… of x, null if they have to be moved one by one: fewer than 8 are left, or
// they are not aligned.
DEVICE wide *wide_at(struct operand x, long i, long left) {
	char *const at = (char *)x.at + i * (x.bf16 ? 2 : 4);
	return left >= WIDE && ((uint64_t)at & 15) == 0 ? (wide *)at : 0;
}

// load_wide sets v to elements i… of x, and to 0 where none are left.
INLINE void load_wide(float *v, struct operand x, long i, long left) {
	const wide *at = wide_at(x, i, left);
	if (!at) {
		EACH_WIDE(j) v[j] = j < left ? load(x, i + j) : 0;
	} else if (x.bf16) {
		const wide w = *at;
		EACH_WIDE(j) v[j] = float_of(j % 2 ? w[j / 2] & 0xffff0000 : w[j / 2] << 16);
	} else {
		const wide low = at[0], high = at[1];
		EACH_WIDE(j) v[j] = float_of(j < 4 ? low[j % 4] : high[j % 4]);
	}
}

// store_wide sets elements i… of x, as many as are left, to v, rounded to the array's type.
INLINE void store_wide(struct operand x, long i, long left, const float *v) {
	wide *at = wide_at(x, i, left), low, high;
	if (!at) {
		EACH_WIDE(j) if (j < left) store(x, i + j, v[j]);
	} else if (x.bf16) {
		UNROLL for (int j = 0; j < 4; j++) low[j] = (uint32_t)round_bf16(v[2 * j + 1]) << 16 | round_bf16(v[2 * j]);
		*at = low;
	} else {
		UNROLL for (int j = 0; j < 4; j++) low[j] = bits_of(v[j]), high[j] = bits_of(v[j + 4]);
		at[0] = low;
		at[1] = high;
	}
}

// bf16s is an array of bf16 as an operand.
DEVICE struct operand bf16s(const void *at) {
	struct operand x;
	x.at = (void *)at;
	x.bf16 = 1;
	return x;
}

// wides is the number of threads that a row of n elements takes.
DEVICE long wides(long n) { return (n + WIDE - 1) / WIDE; }

#endif

#include "wide.h"

// Conversions of kernels.Memory's Copy.

// Two float64 that one instruction moves.
typedef double pair __attribute__((vector_size(16), may_alias));

KERNEL(f32_to_f64) {
	const long i = WIDE * element();
	double *to = (double *)a.dst + i;
	float v[WIDE];
	if (i >= a.n) return;
	load_wide(v, floats((const float *)a.src), i, a.n - i);
	if (a.n - i >= WIDE && ((uint64_t)to & 15) == 0) {
		UNROLL for (int j = 0; j < WIDE; j += 2) {
			const pair p = {(double)v[j], (double)v[j + 1]};
			*(pair *)(to + j) = p;
		}
	} else {
		EACH_WIDE(j) if (j < a.n - i) to[j] = (double)v[j];
	}
}

KERNEL(f64_to_f32) {
	const long i = WIDE * element();
	const double *from = (const double *)a.src + i;
	float v[WIDE];
	if (i >= a.n) return;
	if (a.n - i >= WIDE && ((uint64_t)from & 15) == 0) {
		UNROLL for (int j = 0; j < WIDE; j += 2) {
			const pair p = *(const pair *)(from + j);
			v[j] = (float)p[0], v[j + 1] = (float)p[1];
		}
	} else {
		EACH_WIDE(j) v[j] = j < a.n - i ? (float)from[j] : 0;
	}
	store_wide(floats((const float *)a.dst), i, a.n - i, v);
}

// convert sets dst to src.
INLINE void convert(struct operand dst, struct operand src, long n) {
	const long i = WIDE * element();
	float v[WIDE];
	if (i >= n) return;
	load_wide(v, src, i, n - i);
	store_wide(dst, i, n - i, v);
}

KERNEL(bf16_to_f32) { convert(floats((const float *)a.dst), bf16s(a.src), a.n); }
KERNEL(f32_to_bf16) { convert(bf16s(a.dst), floats((const float *)a.src), a.n); }

// flush_bf16 replaces subnormals by zero, as class cpu/bf16 reads weights.
KERNEL(flush_bf16) { convert(bf16s(a.dst), bf16s(a.src), a.n); }

#include "wide.h"

// Conversions of kernels.Memory's Copy.

KERNEL(f32_to_f64) {
	const long i = element();
	if (i < a.n) ((double *)a.dst)[i] = (double)((const float *)a.src)[i];
}

KERNEL(f64_to_f32) {
	const long i = element();
	if (i < a.n) ((float *)a.dst)[i] = (float)((const double *)a.src)[i];
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

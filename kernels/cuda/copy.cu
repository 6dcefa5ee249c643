#include "num.h"

// Conversions of kernels.Memory's Copy.

KERNEL(f32_to_f64) {
	const long i = element();
	if (i < a.n) ((double *)a.dst)[i] = (double)((const float *)a.src)[i];
}

KERNEL(f64_to_f32) {
	const long i = element();
	if (i < a.n) ((float *)a.dst)[i] = (float)((const double *)a.src)[i];
}

KERNEL(bf16_to_f32) {
	const long i = element();
	if (i < a.n) ((float *)a.dst)[i] = float_of((uint32_t)((const uint16_t *)a.src)[i] << 16);
}

KERNEL(f32_to_bf16) {
	const long i = element();
	if (i < a.n) ((uint16_t *)a.dst)[i] = round_bf16(((const float *)a.src)[i]);
}

// flush_bf16 replaces subnormals by zero, as class cpu/bf16 reads weights.
KERNEL(flush_bf16) {
	const long i = element();
	if (i < a.n) ((uint16_t *)a.dst)[i] = round_bf16(float_of((uint32_t)((const uint16_t *)a.src)[i] << 16));
}

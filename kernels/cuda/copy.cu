#include "gpu.h"

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

// round_bf16 is Round of kernels/ref: to the nearest, ties to even; subnormals become zero, and
// a NaN stays one.
DEVICE uint16_t round_bf16(float x) {
	const uint32_t u = bits_of(x);
	if ((u & 0x7fffffff) > 0x7f800000) return (uint16_t)(u >> 16 | 0x40);
	if ((u & 0x7f800000) == 0) return (uint16_t)(u >> 16 & 0x8000);
	return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

KERNEL(f32_to_bf16) {
	const long i = element();
	if (i < a.n) ((uint16_t *)a.dst)[i] = round_bf16(((const float *)a.src)[i]);
}

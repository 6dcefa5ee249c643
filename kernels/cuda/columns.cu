#include "gpu.h"

KERNEL(take_columns) {
	const long i = element(), m = i / a.n, j = i % a.n;
	if (m < a.M) a.dst[i] = a.scale * a.src[m * a.stride + a.offset + j];
}

KERNEL(add_columns) {
	const long i = element(), m = i / a.n, j = i % a.n, at = m * a.stride + a.offset + j;
	if (m < a.M) a.dst[at] = fmaf(a.scale, a.src[i], a.dst[at]);
}

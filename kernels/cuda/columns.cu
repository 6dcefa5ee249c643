#include "num.h"

KERNEL(take_columns) {
	const long i = element(), m = i / a.n, j = i % a.n;
	if (m < a.M) store(a.dst, i, a.scale * load(a.src, m * a.stride + a.offset + j));
}

KERNEL(add_columns) {
	const long i = element(), m = i / a.n, j = i % a.n, at = m * a.stride + a.offset + j;
	if (m < a.M) store(a.dst, at, fmaf(a.scale, load(a.src, i), load(a.dst, at)));
}

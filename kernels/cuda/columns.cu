#include "wide.h"

KERNEL(take_columns) {
	const long i = element(), m = i / wides(a.n), c = i % wides(a.n) * WIDE;
	float v[WIDE];
	if (m >= a.M) return;
	load_wide(v, a.src, m * a.stride + a.offset + c, a.n - c);
	EACH_WIDE(j) v[j] = a.scale * v[j];
	store_wide(a.dst, m * a.n + c, a.n - c, v);
}

KERNEL(add_columns) {
	const long i = element(), m = i / wides(a.n), c = i % wides(a.n) * WIDE, at = m * a.stride + a.offset + c;
	float v[WIDE], sum[WIDE];
	if (m >= a.M) return;
	load_wide(v, a.src, m * a.n + c, a.n - c);
	load_wide(sum, a.dst, at, a.n - c);
	EACH_WIDE(j) sum[j] = fmaf(a.scale, v[j], sum[j]);
	store_wide(a.dst, at, a.n - c, sum);
}

#include "wide.h"

KERNEL(gather_rows) {
	const long i = element(), r = i / wides(a.C), c = i % wides(a.C) * WIDE;
	float v[WIDE];
	if (r >= a.R) return;
	load_wide(v, a.src, a.rows[r] * a.C + c, a.C - c);
	store_wide(a.dst, r * a.C + c, a.C - c, v);
}

// R is the number of segments, and rows holds the bounds of each.
KERNEL(segment_mean) {
	const long i = element(), k = i / wides(a.C), c = i % wides(a.C) * WIDE;
	float v[WIDE], sum[WIDE] = {0};
	if (k >= a.R) return;
	const long lo = a.rows[2 * k], hi = a.rows[2 * k + 1];
	for (long m = lo; m < hi; m++) {
		load_wide(v, a.src, m * a.C + c, a.C - c);
		EACH_WIDE(j) sum[j] += v[j];
	}
	EACH_WIDE(j) sum[j] = lo == hi ? 0 : sum[j] / (float)(hi - lo);
	store_wide(a.dst, k * a.C + c, a.C - c, sum);
}

// A row adds the segments that it is in, in order: they may overlap. M is the number of rows.
KERNEL(segment_mean_backward) {
	const long i = element(), m = i / wides(a.C), c = i % wides(a.C) * WIDE;
	float v[WIDE], sum[WIDE];
	if (m >= a.M) return;
	load_wide(sum, a.dst, m * a.C + c, a.C - c);
	for (long k = 0; k < a.R; k++) {
		const long lo = a.rows[2 * k], hi = a.rows[2 * k + 1];
		if (m < lo || m >= hi) continue;
		load_wide(v, a.src, k * a.C + c, a.C - c);
		EACH_WIDE(j) sum[j] += v[j] / (float)(hi - lo);
	}
	store_wide(a.dst, m * a.C + c, a.C - c, sum);
}

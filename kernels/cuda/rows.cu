#include "num.h"

KERNEL(gather_rows) {
	const long i = element(), r = i / a.C, c = i % a.C;
	if (r < a.R) store(a.dst, i, load(a.src, a.rows[r] * a.C + c));
}

// R is the number of segments, and rows holds the bounds of each.
KERNEL(segment_mean) {
	const long i = element(), j = i / a.C, c = i % a.C;
	if (j >= a.R) return;
	const long lo = a.rows[2 * j], hi = a.rows[2 * j + 1];
	float sum = 0;
	for (long m = lo; m < hi; m++) sum += load(a.src, m * a.C + c);
	store(a.dst, i, lo == hi ? 0 : sum / (float)(hi - lo));
}

// A thread for each column adds the segments in order: they may overlap.
KERNEL(segment_mean_backward) {
	const long c = element();
	if (c >= a.C) return;
	for (long j = 0; j < a.R; j++) {
		const long lo = a.rows[2 * j], hi = a.rows[2 * j + 1];
		for (long at = lo * a.C + c; at < hi * a.C; at += a.C)
			store(a.dst, at, load(a.dst, at) + load(a.src, j * a.C + c) / (float)(hi - lo));
	}
}

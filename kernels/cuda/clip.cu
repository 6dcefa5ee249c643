#include "wide.h"

// A thread for each 8 elements.
KERNEL(clip) {
	const long i = element() * WIDE;
	if (i >= a.n) return;
	float x[WIDE];
	load_wide(x, a.x, i, a.n - i);
	EACH_WIDE(j) x[j] = x[j] > a.limit ? a.limit : x[j] < -a.limit ? -a.limit : x[j];
	store_wide(a.out, i, a.n - i, x);
}

KERNEL(clip_backward) {
	const long i = element() * WIDE;
	if (i >= a.n) return;
	float x[WIDE], d[WIDE];
	load_wide(x, a.x, i, a.n - i);
	load_wide(d, a.dout, i, a.n - i);
	EACH_WIDE(j) d[j] = x[j] > a.limit || x[j] < -a.limit ? 0 : d[j];
	store_wide(a.out, i, a.n - i, d);
}

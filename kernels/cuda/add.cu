#include "wide.h"

// add adds src to dst (kernels.Memory).
KERNEL(add) {
	const long i = WIDE * element(), left = a.n - i;
	if (left <= 0) return;
	float x[WIDE], y[WIDE];
	load_wide(x, floats(a.dst), i, left);
	load_wide(y, floats(a.src), i, left);
	EACH_WIDE(j) x[j] = x[j] + y[j];
	store_wide(floats(a.dst), i, left, x);
}

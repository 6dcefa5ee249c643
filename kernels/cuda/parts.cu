#include "gpu.h"

// add_parts adds the sums of gradient blocks to a gradient, in order.
KERNEL(add_parts) {
	const long i = element();
	if (i >= a.n) return;
	float sum = a.dst[i];
	for (long b = 0; b < a.B; b++) sum += a.parts[b * a.n + i];
	a.dst[i] = sum;
}

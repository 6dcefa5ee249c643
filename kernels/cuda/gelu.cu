#include "num.h"

KERNEL(gelu) {
	const long i = element();
	if (i < a.n) a.out[i] = gelu_exact(a.x[i]).value;
}

KERNEL(gelu_backward) {
	const long i = element();
	if (i < a.n) a.dx[i] = a.dout[i] * gelu_exact(a.x[i]).slope;
}

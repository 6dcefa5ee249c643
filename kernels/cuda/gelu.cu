#include "num.h"

KERNEL(gelu) {
	const long i = element();
	if (i < a.n) a.out[i] = (float)((double)a.x[i] * gaussian(a.x[i]).cdf);
}

KERNEL(gelu_backward) {
	const long i = element();
	if (i >= a.n) return;
	const double x = a.x[i];
	const struct normal y = gaussian(x);
	a.dx[i] = a.dout[i] * (float)(y.cdf + x * y.pdf);
}

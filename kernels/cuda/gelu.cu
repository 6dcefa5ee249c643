#include "num.h"

// A pair of the standard normal density and distribution function.
struct normal {
	double pdf, cdf;
};

// gaussian is gaussian of kernels/ref.
DEVICE struct normal gaussian(double x) {
	const double terms[] = {0.09973557009844201, 0.09973557021882096, 0.09350209384594217, 0.08103519469221665,
		0.06350320438266296, 0.043244298312919115, 0.023432445677962738, 0.006801599475307911, -0.0003322974200197988,
		-0.02046130846541813, 0.04772104882031563, -0.1550478122928355, 0.35341440825232057, -0.6152447995386304,
		0.8375498375970393, -0.8510633209935692, 0.6214794612129552, -0.31606903447983875, 0.10661860138120374,
		-0.021533383658753184, 0.001978622880956145};
	const double e = exp64(-0.5 * (x * x)), t = 4 / (4 + fabs(x)), tt = t * t;
	double even = terms[20], odd = terms[19];
	for (int k = 18; k > 0; k -= 2) {
		even = fma(even, tt, terms[k]);
		odd = fma(odd, tt, terms[k - 1]);
	}
	even = fma(even, tt, terms[0]);
	const double tail = e * (t * fma(odd, t, even));
	struct normal y;
	y.pdf = e * 0.39894228040143267794;
	y.cdf = x < 0 ? tail : 1 - tail;
	return y;
}

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

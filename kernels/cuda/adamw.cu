#include "gpu.h"

KERNEL(adamw) {
	const long i = element();
	if (i >= a.n) return;
	const float g = a.g[i] * a.grad_scale;
	const float m = fmaf(a.one_minus1, g, a.beta1 * a.m[i]), v = fmaf(a.one_minus2 * g, g, a.beta2 * a.v[i]);
	const float d = sqrtf(v) * a.c2 + a.eps;
	a.m[i] = m;
	a.v[i] = v;
	a.p[i] = fmaf(-a.step_size, m / d, a.p[i] * a.keep_weight);
}

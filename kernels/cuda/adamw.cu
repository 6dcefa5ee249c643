#include "wide.h"

KERNEL(adamw) {
	const long i = WIDE * element(), left = a.n - i;
	if (left <= 0) return;
	float p[WIDE], m[WIDE], v[WIDE], g[WIDE];
	load_wide(g, floats(a.g), i, left);
	load_wide(m, floats(a.m), i, left);
	load_wide(v, floats(a.v), i, left);
	load_wide(p, floats(a.p), i, left);
	EACH_WIDE(j) {
		const float grad = g[j] * a.grad_scale;
		m[j] = fmaf(a.one_minus1, grad, a.beta1 * m[j]);
		v[j] = fmaf(a.one_minus2 * grad, grad, a.beta2 * v[j]);
		const float d = sqrtf(v[j]) * a.c2 + a.eps;
		p[j] = fmaf(-a.step_size, m[j] / d, p[j] * a.keep_weight);
	}
	store_wide(floats(a.m), i, left, m);
	store_wide(floats(a.v), i, left, v);
	store_wide(floats(a.p), i, left, p);
}

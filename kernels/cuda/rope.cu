#include "sequence.h"

// A thread for each pair of a query or key head.
KERNEL(rope) {
	const long t = element(), heads = a.s.H + a.s.K;
	const long i = t % a.half, h = t / a.half % heads, m = t / a.half / heads;
	if (m >= a.M) return;
	float *x = a.qkv + m * stride(a.s) + h * a.s.D + i;
	const float c = a.cos[a.pos[m] * a.half + i], sine = a.sin[a.pos[m] * a.half + i], sn = a.inverse ? -sine : sine;
	const float p = x[0], q = x[a.half];
	x[0] = fmaf(p, c, -(q * sn));
	x[a.half] = fmaf(q, c, p * sn);
}

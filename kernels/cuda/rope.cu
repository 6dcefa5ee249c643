#include "sequence.h"

// A thread for each pair of a query or key head.
KERNEL(rope) {
	const long t = element(), heads = a.s.H + a.s.K;
	const long i = t % a.half, h = t / a.half % heads, m = t / a.half / heads;
	if (m >= a.M) return;
	const long at = m * stride(a.s) + h * a.s.D + i;
	const float c = a.cos[a.pos[m] * a.half + i], sine = a.sin[a.pos[m] * a.half + i], sn = a.inverse ? -sine : sine;
	const float p = load(a.qkv, at), q = load(a.qkv, at + a.half);
	store(a.qkv, at, fmaf(p, c, -(q * sn)));
	store(a.qkv, at + a.half, fmaf(q, c, p * sn));
}

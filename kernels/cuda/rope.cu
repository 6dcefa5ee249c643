#include "sequence.h"
#include "wide.h"

// A thread for 8 pairs of a query or key head.
KERNEL(rope) {
	const long t = element(), heads = a.s.H + a.s.K, across = wides(a.half);
	const long i = t % across * WIDE, h = t / across % heads, m = t / across / heads, left = a.half - i;
	if (m >= a.M) return;
	const long at = m * stride(a.s) + h * a.s.D + i, angle = a.pos[m] * a.half + i;
	float p[WIDE], q[WIDE], c[WIDE], s[WIDE];
	load_wide(p, a.qkv, at, left);
	load_wide(q, a.qkv, at + a.half, left);
	load_wide(c, floats(a.cos), angle, left);
	load_wide(s, floats(a.sin), angle, left);
	EACH_WIDE(j) {
		const float x = p[j], y = q[j], sn = a.inverse ? -s[j] : s[j];
		p[j] = fmaf(x, c[j], -(y * sn));
		q[j] = fmaf(y, c[j], x * sn);
	}
	store_wide(a.qkv, at, left, p);
	store_wide(a.qkv, at + a.half, left, q);
}

#include "sequence.h"
#include "wide.h"

// A thread for 8 pairs of a query or key head.
KERNEL(rope) {
	const long t = element(), heads = a.s.H + a.s.K, across = wides(a.half);
	const long i = t % across * WIDE, h = t / across % heads, m = t / across / heads, left = a.half - i;
	if (m >= a.M) return;
	// Interleaved pairs are 16 neighbours, others 8 elements and 8 half a head away.
	const int neighbours = a.interleaved;
	const long at = m * stride(a.s) + h * a.s.D + (neighbours ? 2 * i : i), angle = a.pos[m] * a.half + i;
	const long to = at + (neighbours ? WIDE : a.half);
	const long here = neighbours ? 2 * left : left, there = neighbours ? 2 * left - WIDE : left;
	float p[WIDE], q[WIDE], x[WIDE], y[WIDE], c[WIDE], s[WIDE];
	load_wide(p, a.qkv, at, here);
	load_wide(q, a.qkv, to, there);
	load_wide(c, floats(a.cos), angle, left);
	load_wide(s, floats(a.sin), angle, left);
	EACH_WIDE(j) {
		const float first = neighbours ? (j < 4 ? p[2 * j % 8] : q[2 * j % 8]) : p[j];
		const float second = neighbours ? (j < 4 ? p[2 * j % 8 + 1] : q[2 * j % 8 + 1]) : q[j];
		const float sn = a.inverse ? -s[j] : s[j];
		x[j] = fmaf(first, c[j], -(second * sn));
		y[j] = fmaf(second, c[j], first * sn);
	}
	EACH_WIDE(j) {
		p[j] = neighbours ? (j % 2 ? y[j / 2] : x[j / 2]) : x[j];
		q[j] = neighbours ? (j % 2 ? y[4 + j / 2] : x[4 + j / 2]) : y[j];
	}
	store_wide(a.qkv, at, here, p);
	store_wide(a.qkv, to, there, q);
}

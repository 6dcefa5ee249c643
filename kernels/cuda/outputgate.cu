#include "sequence.h"
#include "wide.h"

// Gates of attention: in a projected row each query head is followed by its gate.

// gated_row is the first element of row m, and gate_at that of head h's gate there.
DEVICE long gated_row(struct attention_shape s, long m) { return m * (stride(s) + s.H * s.D); }
DEVICE long gate_at(struct attention_shape s, long m, long h) { return gated_row(s, m) + (2 * h + 1) * s.D; }

KERNEL(move_heads) {
	const long i = element(), d = i % wides(a.s.D) * WIDE, heads = a.s.H + 2 * a.s.K;
	const long h = i / wides(a.s.D) % heads, m = i / wides(a.s.D) / heads;
	if (m >= a.M) return;
	const long at = m * stride(a.s) + h * a.s.D + d;
	const long from = gated_row(a.s, m) + (h < a.s.H ? 2 * h : a.s.H + h) * a.s.D + d;
	float v[WIDE];
	if (a.back) {
		load_wide(v, a.qkv, at, a.s.D - d);
		store_wide(a.x, from, a.s.D - d, v);
	} else {
		load_wide(v, a.x, from, a.s.D - d);
		store_wide(a.qkv, at, a.s.D - d, v);
	}
}

KERNEL(output_gate) {
	const long i = element(), d = i % wides(a.s.D) * WIDE, v = i / wides(a.s.D), left = a.s.D - d;
	if (v >= a.M * a.s.H) return;
	float z[WIDE], x[WIDE];
	load_wide(z, a.x, gate_at(a.s, v / a.s.H, v % a.s.H) + d, left);
	load_wide(x, a.att, v * a.s.D + d, left);
	EACH_WIDE(j) x[j] = x[j] * sigmoid_of(z[j]);
	store_wide(a.out, v * a.s.D + d, left, x);
}

// datt may be dout.
KERNEL(output_gate_backward) {
	const long i = element(), d = i % wides(a.s.D) * WIDE, v = i / wides(a.s.D), left = a.s.D - d;
	if (v >= a.M * a.s.H) return;
	const long gate = gate_at(a.s, v / a.s.H, v % a.s.H) + d;
	float z[WIDE], x[WIDE], g[WIDE];
	load_wide(z, a.x, gate, left);
	load_wide(x, a.att, v * a.s.D + d, left);
	load_wide(g, a.dout, v * a.s.D + d, left);
	EACH_WIDE(j) {
		const float s = sigmoid_of(z[j]);
		x[j] = g[j] * x[j] * (s * (1 - s));
		g[j] = g[j] * s;
	}
	store_wide(a.dx, gate, left, x);
	store_wide(a.datt, v * a.s.D + d, left, g);
}

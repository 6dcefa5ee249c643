#include "wide.h"

// gelu_tanh is geluTanh of kernels/ref, rounded.
DEVICE struct activation gelu_tanh(double x) {
	const double root = 0.7978845608028654, xx = x * x, arg = 2 * root * x * fma(0.044715, xx, 1);
	const double e = exp64(arg < 0 ? arg : -arg), s = (arg < 0 ? e : 1) / (1 + e);
	const double slope = fma(x * s * (1 - s), 2 * root * fma(0.134145, xx, 1), s);
	struct activation y;
	y.value = (float)(x * s);
	y.slope = (float)slope;
	return y;
}

// clamped is gpt-oss's activation (clampedGate of kernels/ref), with its slope below the limit, and clamped_up the
// other factor less 1. A NaN stays one.
DEVICE struct activation clamped(float g) {
	const float c = g > GATE_LIMIT ? GATE_LIMIT : g, z = GATE_SLOPE * c, s = sigmoid_of(z);
	struct activation y;
	y.value = c * s;
	y.slope = s * fmaf(z, 1 - s, 1);
	return y;
}

DEVICE float clamped_up(float u) { return u > GATE_LIMIT ? GATE_LIMIT : u < -GATE_LIMIT ? -GATE_LIMIT : u; }

// positive is max(g, 0), or g if it is NaN.
DEVICE float positive(float g) { return g < 0 ? 0 : g; }

// plain is an activation of one number.
DEVICE struct activation plain(float g, int kind) {
	if (kind == PLAIN_GELU) return gelu_exact(g);
	if (kind == PLAIN_GELU_TANH) return gelu_tanh(g);
	struct activation y;
	y.value = positive(g) * positive(g);
	y.slope = positive(g) + positive(g);
	return y;
}

// A thread has some columns of a row.
KERNEL(gate) {
	const long t = element(), m = t / wides(a.F), f = t % wides(a.F) * WIDE, at = m * 2 * a.F + f, left = a.F - f;
	if (m >= a.M) return;
	float g[WIDE], u[WIDE];
	if (a.kind >= RELU2) {
		load_wide(g, a.gate_up, m * a.F + f, left);
		EACH_WIDE(j) g[j] = plain(g[j], a.kind).value;
		store_wide(a.act, m * a.F + f, left, g);
		return;
	}
	load_wide(g, a.gate_up, at, left);
	load_wide(u, a.gate_up, at + a.F, left);
	EACH_WIDE(j) {
		if (a.kind == CLAMPED) u[j] = clamped(g[j]).value * (clamped_up(u[j]) + 1);
		else u[j] = (a.kind == GELU_TANH ? gelu_tanh(g[j]).value : g[j] * sigmoid_of(g[j])) * u[j];
	}
	store_wide(a.act, m * a.F + f, left, u);
}

DEVICE struct activation silu(float g) {
	const float s = sigmoid_of(g);
	struct activation y;
	y.value = g * s;
	y.slope = s * fmaf(g, 1 - s, 1);
	return y;
}

KERNEL(gate_backward) {
	const long t = element(), m = t / wides(a.F), f = t % wides(a.F) * WIDE, at = m * 2 * a.F + f, left = a.F - f;
	if (m >= a.M) return;
	float g[WIDE], u[WIDE], d[WIDE];
	if (a.kind >= RELU2) {
		load_wide(g, a.gate_up, m * a.F + f, left);
		load_wide(d, a.dact, m * a.F + f, left);
		EACH_WIDE(j) g[j] = d[j] * plain(g[j], a.kind).slope;
		store_wide(a.dgate_up, m * a.F + f, left, g);
		return;
	}
	load_wide(g, a.gate_up, at, left);
	load_wide(u, a.gate_up, at + a.F, left);
	load_wide(d, a.dact, m * a.F + f, left);
	EACH_WIDE(j) {
		if (a.kind == CLAMPED) {
			const struct activation y = clamped(g[j]);
			const float up = clamped_up(u[j]) + 1;
			const int beyond = u[j] > GATE_LIMIT || u[j] < -GATE_LIMIT;
			u[j] = beyond ? 0 : d[j] * y.value;
			g[j] = g[j] > GATE_LIMIT ? 0 : d[j] * up * y.slope;
			continue;
		}
		const struct activation y = a.kind == GELU_TANH ? gelu_tanh(g[j]) : silu(g[j]);
		g[j] = d[j] * u[j] * y.slope;
		u[j] = d[j] * y.value;
	}
	store_wide(a.dgate_up, at, left, g);
	store_wide(a.dgate_up, at + a.F, left, u);
}

#include "num.h"

// What a gate's activation is, and its derivative.
struct activation {
	float value, slope;
};

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

KERNEL(gate) {
	const long i = element(), m = i / a.F, f = i % a.F;
	if (m >= a.M) return;
	const float g = load(a.gate_up, m * 2 * a.F + f), u = load(a.gate_up, m * 2 * a.F + a.F + f);
	store(a.act, i, (a.gelu ? gelu_tanh(g).value : g * sigmoid_of(g)) * u);
}

KERNEL(gate_backward) {
	const long i = element(), m = i / a.F, f = i % a.F, gate = m * 2 * a.F + f, up = gate + a.F;
	if (m >= a.M) return;
	const float g = load(a.gate_up, gate), u = load(a.gate_up, up), d = load(a.dact, i);
	struct activation y;
	if (a.gelu) {
		y = gelu_tanh(g);
	} else {
		const float s = sigmoid_of(g);
		y.value = g * s;
		y.slope = s * fmaf(g, 1 - s, 1);
	}
	store(a.dgate_up, gate, d * u * y.slope);
	store(a.dgate_up, up, d * y.value);
}

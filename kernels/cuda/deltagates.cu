#include "delta.h"

// What each value head of linear attention keeps and writes.

// softplus_of is Softplus.
DEVICE float softplus_of(float x) {
	if (x > 20) return x;
	const float e = exp_of(x), u = 1 + e;
	return u == 1 ? e : log_of(u) * (e / (u - 1));
}

KERNEL(delta_gates) {
	const long i = element(), H = a.s.values, m = i / H, h = i % H;
	if (m >= a.M) return;
	const float z = load(a.x, m * a.s.stride + forget_column(a.s, h)) + a.bias[h];
	a.gates[m * 2 * H + h] = exp_of(-(exp_of(a.logs[h]) * softplus_of(z)));
	a.gates[m * 2 * H + H + h] = sigmoid_of(load(a.x, m * a.s.stride + write_column(a.s, h)));
}

// A thread for each gradient block and head.
KERNEL(delta_gates_backward) {
	const long i = element(), H = a.s.values, b = i / H, h = i % H;
	if (b >= a.B) return;
	const long forget = forget_column(a.s, h), write = write_column(a.s, h);
	const float rate = exp_of(a.logs[h]);
	float logs = 0, bias = 0;
	for (long m = a.blocks[b]; m < a.blocks[b + 1]; m++) {
		const long at = m * 2 * H + h, row = m * a.s.stride;
		const float z = load(a.x, row + forget) + a.bias[h], d = a.dgates[at] * a.gates[at], w = a.gates[at + H];
		const float da = -(d * rate * (z > 20 ? 1 : sigmoid_of(z)));
		logs += d * -(rate * softplus_of(z));
		bias += da;
		store(a.dx, row + forget, da);
		store(a.dx, row + write, a.dgates[at + H] * (w * (1 - w)));
	}
	a.parts[b * H + h] = logs;
	a.parts[(a.B + b) * H + h] = bias;
}

// limited is a scan's time step. A NaN stays one.
DEVICE float limited(float w, float low, float high) { return w < low ? low : w > high ? high : w; }

KERNEL(scan_gates) {
	const long i = element(), H = a.s.values, m = i / H, h = i % H;
	if (m >= a.M) return;
	const float z = load(a.x, m * a.s.stride + forget_column(a.s, h)) + a.bias[h];
	const float w = limited(softplus_of(z), a.low, a.high);
	a.gates[m * 3 * H + h] = exp_of(-(exp_of(a.logs[h]) * w));
	a.gates[m * 3 * H + H + h] = w;
	a.gates[m * 3 * H + 2 * H + h] = a.skip[h];
}

// A thread for each gradient block and head.
KERNEL(scan_gates_backward) {
	const long i = element(), H = a.s.values, b = i / H, h = i % H, column = forget_column(a.s, h);
	if (b >= a.B) return;
	const float rate = exp_of(a.logs[h]);
	float logs = 0, bias = 0, skip = 0;
	for (long m = a.blocks[b]; m < a.blocks[b + 1]; m++) {
		const long at = m * 3 * H + h, row = m * a.s.stride;
		const float z = load(a.x, row + column) + a.bias[h], y = softplus_of(z), d = a.dgates[at] * a.gates[at];
		const int cut = y < a.low || y > a.high;
		const float da = cut ? 0 : (a.dgates[at + H] - d * rate) * (z > 20 ? 1 : sigmoid_of(z));
		logs += d * -(rate * limited(y, a.low, a.high));
		bias += da;
		skip += a.dgates[at + 2 * H];
		store(a.dx, row + column, da);
	}
	a.parts[b * H + h] = logs;
	a.parts[(a.B + b) * H + h] = bias;
	a.parts[(2 * a.B + b) * H + h] = skip;
}

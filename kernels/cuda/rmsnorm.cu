#include "num.h"

// vector_at is the offset of the v-th vector of the shape, counted row by row.
DEVICE long vector_at(struct norm_shape s, long v) {
	return v / s.heads * s.stride + s.offset + v % s.heads * s.dim;
}

DEVICE float scale_of(float weight, struct norm_shape s) { return s.unit_offset ? 1 + weight : weight; }

// A thread for each vector.
KERNEL(rmsnorm) {
	const long v = element(), at = vector_at(a.s, v);
	if (v >= a.s.M * a.s.heads) return;
	struct operand x = a.x;
	if (a.sum) {
		for (long i = at; i < at + a.s.dim; i++) a.sum[i] = load(x, i) + a.delta[i];
		x = floats(a.sum);
	}
	const float r = 1 / sqrtf(lane_dot(x, at, x, at, a.s.dim) / (float)a.s.dim + a.eps);
	a.rstd[v] = r;
	for (long i = 0; i < a.s.dim; i++) store(a.out, at + i, load(x, at + i) * r * scale_of(a.weight[i], a.s));
}

// A thread for each element of the weight.
KERNEL(rmsnorm_dw) {
	const long i = element();
	if (i >= a.s.dim) return;
	for (long b = 0; b < a.B; b++) {
		float acc = 0;
		for (long v = a.blocks[b] * a.s.heads; v < a.blocks[b + 1] * a.s.heads; v++) {
			const long at = vector_at(a.s, v) + i;
			acc = fmaf(load(a.dout, at), load(a.x, at) * a.rstd[v], acc);
		}
		a.dweight[i] += acc;
	}
}

// A thread for each vector. dx may be dout.
KERNEL(rmsnorm_backward) {
	const long v = element(), at = vector_at(a.s, v);
	if (v >= a.s.M * a.s.heads) return;
	float lane[LANES] = {0};
	for (long i = 0; i < a.s.dim; i += LANES)
		EACH_LANE(j) if (i + j < a.s.dim) {
			const float g = load(a.dout, at + i + j) * scale_of(a.weight[i + j], a.s);
			lane[j] = fmaf(g, load(a.x, at + i + j), lane[j]);
		}
	const float r = a.rstd[v], k = fold(lane) * (r * r * r) / (float)a.s.dim;
	for (long i = 0; i < a.s.dim; i++) {
		const float g = load(a.dout, at + i) * scale_of(a.weight[i], a.s), d = fmaf(-k, load(a.x, at + i), g * r);
		store(a.dx, at + i, a.set ? d : load(a.dx, at + i) + d);
	}
}

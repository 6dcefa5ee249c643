#include "delta.h"
#include "warp.h"

// The norm of linear attention's output with its gate. The threads of a half warp are the lanes of a head's sum.

// A head of a row: its first element in x, and its first gate in p.
struct head {
	long v, at, gate;
	int live;
};

DEVICE struct head head_of(struct delta_shape s, long M) {
	struct head h;
	h.v = element() / LANES;
	h.live = h.v < M * s.values;
	if (!h.live) h.v = 0;
	h.at = h.v * s.value_dim;
	h.gate = h.v / s.values * s.stride + gate_column(s, h.v % s.values);
	return h;
}

BLOCK_KERNEL(gated_norm, LANE_THREADS, 4) {
	const struct head h = head_of(a.s, a.M);
	const long n = h.live ? a.s.value_dim : 0;
	float lane = 0;
	AHEAD for (long i = threadIdx.x % LANES; i < n; i += LANES) {
		const float x = load(a.x, h.at + i);
		lane = fmaf(x, x, lane);
	}
	const float r = 1 / sqrtf(fold_lanes(lane) / (float)a.s.value_dim + a.eps);
	if (h.live && threadIdx.x % LANES == 0) a.rstd[h.v] = r;
	for (long i = threadIdx.x % LANES; i < n; i += LANES) {
		const float z = load(a.p, h.gate + i);
		store(a.out, h.at + i, load(a.x, h.at + i) * r * a.weight[i] * (z * sigmoid_of(z)));
	}
}

// dx may be dout.
BLOCK_KERNEL(gated_norm_backward, LANE_THREADS, 4) {
	const struct head h = head_of(a.s, a.M);
	const long n = h.live ? a.s.value_dim : 0;
	float lane = 0;
	for (long i = threadIdx.x % LANES; i < n; i += LANES) {
		const float z = load(a.p, h.gate + i), dn = load(a.dout, h.at + i) * (z * sigmoid_of(z));
		lane = fmaf(dn * a.weight[i], load(a.x, h.at + i), lane);
	}
	const float dot = fold_lanes(lane), r = h.live ? a.rstd[h.v] : 0;
	const float k = dot * (r * r * r) / (float)a.s.value_dim;
	for (long i = threadIdx.x % LANES; i < n; i += LANES) {
		const float z = load(a.p, h.gate + i), x = load(a.x, h.at + i), d = load(a.dout, h.at + i), g = sigmoid_of(z);
		const float norm = x * r * a.weight[i];
		store(a.dp, h.gate + i, d * norm * (g * fmaf(z, 1 - g, 1)));
		store(a.dx, h.at + i, fmaf(-k, x, d * (z * g) * a.weight[i] * r));
	}
}

// A thread for each gradient block and column.
KERNEL(gated_norm_dw) {
	const long t = element(), n = a.s.value_dim, b = t / n, i = t % n;
	if (b >= a.B) return;
	float sum = 0;
	for (long m = a.blocks[b]; m < a.blocks[b + 1]; m++) {
		AHEAD_4 for (long h = 0; h < a.s.values; h++) {
			const long v = m * a.s.values + h;
			const float z = load(a.p, m * a.s.stride + gate_column(a.s, h) + i);
			sum = fmaf(load(a.dout, v * n + i) * (z * sigmoid_of(z)), load(a.x, v * n + i) * a.rstd[v], sum);
		}
	}
	a.parts[b * n + i] = sum;
}

// The norm of a scan's output after its gate. The threads of a half warp are the lanes of a group's sum.

// group_of_row is a head with the channels of a group.
DEVICE struct head group_of_row(struct delta_shape s, long M, long n) {
	struct head h;
	h.v = element() / LANES;
	h.live = h.v < M * s.keys;
	if (!h.live) h.v = 0;
	h.at = h.v * n;
	h.gate = h.v / s.keys * s.stride + h.v % s.keys * n;
	return h;
}

DEVICE float silu_of(float z) { return z * sigmoid_of(z); }

BLOCK_KERNEL(grouped_norm, LANE_THREADS, 4) {
	const long own = shared_by(a.s) * a.s.value_dim;
	const struct head h = group_of_row(a.s, a.M, own);
	const long n = h.live ? own : 0, first = h.v % a.s.keys * own;
	float lane = 0;
	AHEAD for (long i = threadIdx.x % LANES; i < n; i += LANES) {
		const float y = load(a.x, h.at + i) * silu_of(load(a.p, h.gate + i));
		lane = fmaf(y, y, lane);
	}
	const float r = 1 / sqrtf(fold_lanes(lane) / (float)own + a.eps);
	if (h.live && threadIdx.x % LANES == 0) a.rstd[h.v] = r;
	for (long i = threadIdx.x % LANES; i < n; i += LANES)
		store(a.out, h.at + i, load(a.x, h.at + i) * silu_of(load(a.p, h.gate + i)) * r * a.weight[first + i]);
}

// dx may be dout.
BLOCK_KERNEL(grouped_norm_backward, LANE_THREADS, 4) {
	const long own = shared_by(a.s) * a.s.value_dim;
	const struct head h = group_of_row(a.s, a.M, own);
	const long n = h.live ? own : 0, first = h.v % a.s.keys * own;
	float lane = 0;
	for (long i = threadIdx.x % LANES; i < n; i += LANES) {
		const float y = load(a.x, h.at + i) * silu_of(load(a.p, h.gate + i));
		lane = fmaf(load(a.dout, h.at + i) * a.weight[first + i], y, lane);
	}
	const float dot = fold_lanes(lane), r = h.live ? a.rstd[h.v] : 0;
	const float k = dot * (r * r * r) / (float)own;
	for (long i = threadIdx.x % LANES; i < n; i += LANES) {
		const float z = load(a.p, h.gate + i), x = load(a.x, h.at + i), g = sigmoid_of(z);
		const float dy = fmaf(-k, x * (z * g), load(a.dout, h.at + i) * a.weight[first + i] * r);
		store(a.dp, h.gate + i, dy * x * (g * fmaf(z, 1 - g, 1)));
		store(a.dx, h.at + i, dy * (z * g));
	}
}

// A thread for each gradient block and column.
KERNEL(grouped_norm_dw) {
	const long t = element(), out = a.s.values * a.s.value_dim, own = shared_by(a.s) * a.s.value_dim, b = t / out, i = t % out;
	if (b >= a.B) return;
	float sum = 0;
	AHEAD_4 for (long m = a.blocks[b]; m < a.blocks[b + 1]; m++) {
		const float y = load(a.x, m * out + i) * silu_of(load(a.p, m * a.s.stride + i));
		sum = fmaf(load(a.dout, m * out + i), y * a.rstd[m * a.s.keys + i / own], sum);
	}
	a.parts[b * out + i] = sum;
}

#include "num.h"

// width returns how many logits a row has, choices how many experts it gets.
DEVICE long width(struct routing r) { return r.experts + (r.shared ? 1 : 0); }
DEVICE long choices(struct routing r) { return r.top + (r.shared ? 1 : 0); }

// precedes orders experts: p descending, NaN last, then number ascending.
DEVICE int precedes(const float *p, long i, long j) {
	const int nan_i = p[i] != p[i], nan_j = p[j] != p[j];
	if (nan_i != nan_j) return nan_j;
	if (p[i] > p[j]) return 1;
	return !(p[i] < p[j]) && i < j;
}

// A thread for each row. An expert is chosen if fewer than top precede it.
KERNEL(route) {
	const struct routing r = a.r;
	const long m = element();
	if (m >= r.M) return;
	const float *z = a.logits + m * width(r);
	float largest = -INFINITE, lane[LANES] = {0}, sum = 0, *p = a.probs + m * r.experts, *w = a.weight + m * choices(r);
	int *chosen = a.choice + m * choices(r);
	for (long e = 0; e < r.experts; e++)
		if (z[e] > largest) largest = z[e];
	for (long e = 0; e < r.experts; e += LANES)
		EACH_LANE(j) if (e + j < r.experts) {
			p[e + j] = exp_of(z[e + j] - largest);
			lane[j] += p[e + j];
		}
	const float s = fold(lane);
	for (long e = 0; e < r.experts; e++) p[e] /= s;
	long n = 0;
	for (long e = 0; e < r.experts; e++) {
		long rank = 0;
		for (long o = 0; o < r.experts; o++) rank += o != e && precedes(p, o, e);
		if (rank >= r.top) continue;
		chosen[n] = (int)e;
		w[n++] = p[e];
		sum += p[e];
	}
	if (r.renorm)
		for (long j = 0; j < r.top; j++) w[j] /= sum;
	if (r.shared) {
		chosen[r.top] = (int)r.experts;
		w[r.top] = sigmoid_of(z[r.experts]);
	}
}

// A thread for each row. dlogits holds the gradients of p first.
KERNEL(route_backward) {
	const struct routing r = a.r;
	const long m = element();
	if (m >= r.M) return;
	const float *p = a.probs + m * r.experts, *w = a.weight + m * choices(r), *dw = a.dweight + m * choices(r);
	const int *chosen = a.choice + m * choices(r);
	float *dz = a.dlogits + m * width(r), sum = 0, t = 0;
	for (long e = 0; e < r.experts; e++) dz[e] = 0;
	for (long j = 0; j < r.top; j++) {
		sum += p[chosen[j]];
		t += dw[j] * w[j];
	}
	for (long j = 0; j < r.top; j++) dz[chosen[j]] = r.renorm ? (dw[j] - t) / sum : dw[j];
	const float u = lane_dot(floats(dz), 0, floats(p), 0, r.experts);
	for (long e = 0; e < r.experts; e++) dz[e] = p[e] * (dz[e] - u);
	if (r.shared) dz[r.experts] = dw[r.top] * (w[r.top] * (1 - w[r.top]));
}

KERNEL(combine) {
	const long i = element(), m = i / a.C, c = i % a.C;
	if (m >= a.M) return;
	float acc = 0;
	for (long j = m * a.J; j < (m + 1) * a.J; j++) acc = fmaf(a.weight[j], a.x[a.slot[j] * a.C + c], acc);
	a.out[i] = acc;
}

KERNEL(combine_dx) {
	const long i = element(), j = i / a.C, c = i % a.C;
	if (j < a.M * a.J) a.dx[a.slot[j] * a.C + c] = a.weight[j] * a.dout[j / a.J * a.C + c];
}

KERNEL(combine_dw) {
	const long j = element();
	if (j < a.M * a.J) a.dweight[j] = lane_dot(floats(a.dout), j / a.J * a.C, floats(a.x), a.slot[j] * a.C, a.C);
}

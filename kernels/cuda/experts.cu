#include "num.h"

// width returns how many logits a row has, choices how many experts it gets.
DEVICE long width(struct routing r) { return r.experts + (r.gated ? 1 : 0); }
DEVICE long choices(struct routing r) { return r.top + (r.shared ? 1 : 0); }

// precedes orders experts by scores x and y: descending, NaN last, then number ascending.
DEVICE int precedes(float x, float y, long i, long j) {
	const int nan_x = x != x, nan_y = y != y;
	if (nan_x != nan_y) return nan_y;
	if (x > y) return 1;
	return !(x < y) && i < j;
}

// score_of is what expert e is chosen by.
DEVICE float score_of(const float *p, const float *bias, long e) { return bias ? p[e] + bias[e] : p[e]; }

// group_score is what a group of experts is chosen by.
DEVICE float group_score(struct routing r, const float *p, const float *bias, long group) {
	const long size = r.experts / r.groups;
	float largest = -INFINITE, second = -INFINITE;
	for (long e = group * size; e < (group + 1) * size; e++) {
		const float c = score_of(p, bias, e);
		if (c > largest) {
			second = largest;
			largest = c;
		} else if (c > second) second = c;
	}
	return r.sigmoid ? largest + second : largest;
}

// best_groups returns the groups that a row may go to, a bit for each.
INLINE uint64_t best_groups(struct routing r, const float *p, const float *bias) {
	uint64_t groups = 0;
	if (!r.groups) return ~(uint64_t)0;
	for (long k = 0; k < r.groups; k++) {
		const float score = group_score(r, p, bias, k);
		long rank = 0;
		for (long o = 0; o < r.groups; o++) rank += o != k && precedes(group_score(r, p, bias, o), score, o, k);
		if (rank < r.top_groups) groups |= (uint64_t)1 << k;
	}
	return groups;
}

// A thread for each row. An expert is chosen if fewer than top precede it.
KERNEL(route) {
	const struct routing r = a.r;
	const long m = element();
	if (m >= r.M) return;
	const float *z = a.logits + m * width(r);
	float largest = -INFINITE, lane[LANES] = {0}, sum = 0, *p = a.probs + m * r.experts, *w = a.weight + m * choices(r);
	int *chosen = a.choice + m * choices(r);
	if (r.sigmoid) {
		for (long e = 0; e < r.experts; e++) p[e] = sigmoid_of(z[e]);
	} else {
		for (long e = 0; e < r.experts; e++)
			if (z[e] > largest) largest = z[e];
		for (long e = 0; e < r.experts; e += LANES)
			EACH_LANE(j) if (e + j < r.experts) {
				p[e + j] = exp_of(z[e + j] - largest);
				lane[j] += p[e + j];
			}
		const float s = fold(lane);
		for (long e = 0; e < r.experts; e++) p[e] /= s;
	}
	const uint64_t groups = best_groups(r, p, a.bias);
	const long size = r.groups ? r.experts / r.groups : r.experts;
	long n = 0;
	for (long e = 0; e < r.experts; e++) {
		const float score = score_of(p, a.bias, e);
		long rank = 0;
		if (!(groups >> e / size & 1)) continue;
		for (long o = 0; o < r.experts; o++)
			rank += o != e && groups >> o / size & 1 && precedes(score_of(p, a.bias, o), score, o, e);
		if (rank >= r.top) continue;
		chosen[n] = (int)e;
		w[n++] = p[e];
		sum += p[e];
	}
	if (r.sigmoid) sum += r.eps;
	for (long j = 0; j < r.top; j++) {
		if (r.renorm) w[j] /= sum;
		w[j] *= r.scale;
	}
	if (r.shared) {
		chosen[r.top] = (int)r.experts;
		w[r.top] = r.gated ? sigmoid_of(z[r.experts]) : 1;
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
	if (r.sigmoid) sum += r.eps;
	for (long j = 0; j < r.top; j++) {
		const float d = r.scale * dw[j];
		dz[chosen[j]] = r.renorm ? (d - t) / sum : d;
	}
	if (r.sigmoid) {
		for (long j = 0; j < r.top; j++) dz[chosen[j]] *= p[chosen[j]] * (1 - p[chosen[j]]);
	} else {
		const float u = lane_dot(floats(dz), 0, floats(p), 0, r.experts);
		for (long e = 0; e < r.experts; e++) dz[e] = p[e] * (dz[e] - u);
	}
	if (r.gated) dz[r.experts] = dw[r.top] * (w[r.top] * (1 - w[r.top]));
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

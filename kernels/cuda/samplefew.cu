#include "num.h"

// Sampling from rows of few logits, a thread for each row. sample.cu has long ones.

// before orders tokens: z descending, then id ascending.
DEVICE int before(const float *z, int i, int j) { return z[i] > z[j] || (z[i] == z[j] && i < j); }

// sift_down restores the heap of n below i.
DEVICE void sift_down(int *heap, const float *z, long n, long i) {
	for (long c; (c = 2 * i + 1) < n; i = c) {
		if (c + 1 < n && before(z, heap[c + 1], heap[c])) c++;
		if (!before(z, heap[c], heap[i])) return;
		const int t = heap[i];
		heap[i] = heap[c];
		heap[c] = t;
	}
}

// keep_prefix sets e to 0 past the prefix that top_k and top_p keep.
DEVICE void keep_prefix(const struct sample_args *a, const float *z, float *e, int *heap, float s) {
	long n = a->V;
	for (long v = 0; v < n; v++) heap[v] = (int)v;
	for (long i = n / 2 - 1; i >= 0; i--) sift_down(heap, z, n, i);
	double mass = 0;
	for (long kept = 1; n > 0; kept++) {
		mass += (double)e[heap[0]];
		heap[0] = heap[--n];
		sift_down(heap, z, n, 0);
		if (kept == a->top_k || (a->top_p < 1 && mass >= a->top_p * (double)s)) break;
	}
	for (long i = 0; i < n; i++) e[heap[i]] = 0;
}

// block_sum is the lane sum in float64 of the sample block at lo.
DEVICE double block_sum(const float *e, long lo, long V) {
	double lane[LANES] = {0};
	for (long v = lo; v < V && v < lo + SAMPLE_BLOCK; v += LANES)
		EACH_LANE(j) if (v + j < V) lane[j] += (double)e[v + j];
	return fold64(lane);
}

// draw returns the token that u selects from the weights e.
DEVICE int draw(const float *e, long V, float u) {
	double total = 0, sum = 0;
	for (long lo = 0; lo < V; lo += SAMPLE_BLOCK) total += block_sum(e, lo, V);
	const double x = (double)u * total;
	for (long lo = 0; lo < V; lo += SAMPLE_BLOCK) {
		const double end = sum + block_sum(e, lo, V);
		if (end > x) {
			long last = lo;
			for (long v = lo; v < V && v < lo + SAMPLE_BLOCK; v++) {
				if (e[v] > 0) last = v;
				sum += (double)e[v];
				if (sum > x) return (int)v;
			}
			return (int)last;
		}
		sum = end;
	}
	return 0;
}

KERNEL(sample_few) {
	const long r = element();
	if (r >= a.R) return;
	const float *z = a.z + r * a.V;
	float m = -INFINITE, lane[LANES] = {0}, *e = a.e + r * a.V;
	int first = 0;
	for (long v = 0; v < a.V; v++) {
		if (z[v] > m) m = z[v];
		if (z[v] > z[first]) first = (int)v;
	}
	for (long v = 0; v < a.V; v += LANES)
		EACH_LANE(j) if (v + j < a.V) {
			e[v + j] = exp_of(z[v + j] - m);
			lane[j] += e[v + j];
		}
	const float s = fold(lane);
	if (s != s) {
		a.ids[r] = 0;
		return;
	}
	if (a.greedy) {
		a.ids[r] = first;
		return;
	}
	if (a.top_k > 0 || a.top_p < 1) keep_prefix(&a, z, e, a.order + r * a.V, s);
	for (long v = 0; v < a.V; v++)
		if ((double)e[v] < a.min_p) e[v] = 0;
	a.ids[r] = draw(e, a.V, a.u[r]);
}

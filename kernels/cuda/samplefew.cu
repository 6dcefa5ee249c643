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

// make_heap orders all V tokens, and drop_first removes the first of n.
DEVICE void make_heap(int *heap, const float *z, long V) {
	for (long v = 0; v < V; v++) heap[v] = (int)v;
	for (long i = V / 2 - 1; i >= 0; i--) sift_down(heap, z, V, i);
}

DEVICE void drop_first(int *heap, const float *z, long n) {
	heap[0] = heap[n - 1];
	sift_down(heap, z, n - 1, 0);
}

// keep_prefix sets e to 0 past the prefix that top_k and top_p keep.
DEVICE void keep_prefix(const struct sample_args *a, const float *z, float *e, int *heap, float s) {
	long n = a->V;
	make_heap(heap, z, n);
	double mass = 0;
	for (long kept = 1; n > 0; kept++) {
		mass += (double)e[heap[0]];
		drop_first(heap, z, n--);
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

// The first K tokens, a thread for each row. The order of the sum is of no account: it tells only whether there is a NaN.
KERNEL(top_tokens_few) {
	const long r = element();
	if (r >= a.R) return;
	const float *z = a.z + r * a.V;
	int *ids = a.ids + r * a.K, *heap = a.order + r * a.V, known = 1;
	for (long v = 0; v < a.V; v++) known &= z[v] < INFINITE;
	for (long i = 0; i < a.K && !known; i++) ids[i] = (int)i;
	if (!known) return;
	make_heap(heap, z, a.V);
	for (long i = 0; i < a.K; i++) {
		ids[i] = heap[0];
		drop_first(heap, z, a.V - i);
	}
}

#include "row.h"
#include "softmax.h"

// Gradients of logits in rows with several targets. products.h and output.cu have rows with one.

// sum_in_order is the sum of n numbers.
DEVICE float sum_in_order(const float *x, long n) {
	float sum = x[0];
	for (long i = 1; i < n; i++) sum += x[i];
	return sum;
}

// store_gradient sets the gradient of token v in row r. With n = K it adds what the targets give; with n = 0 it leaves that out.
DEVICE void store_gradient(const struct target_gradients_args *a, long r, long v, float all, long n) {
	float y;
	const float z = logit_of(a->z[r * a->V + v], a->x, &y);
	float d = softmax_gradient(z, all, a->dentropy[r], a->entropy[r], a->lse[r]);
	for (long i = r * a->K; i < r * a->K + n; i++)
		if (a->targets[i] == v) d += a->dlogprob[i];
	store(a->dz, r * a->V + v, product_gradient(d, y, a->x));
}

// A thread for each row of few tokens.
KERNEL(target_gradients_few) {
	const long r = element();
	if (r >= a.R) return;
	const float all = sum_in_order(a.dlogprob + r * a.K, a.K);
	for (long v = 0; v < a.V; v++) store_gradient(&a, r, v, all, a.K);
}

// A block for each row: all tokens, then the targets again. Threads whose targets are equal store the same.
BLOCK_KERNEL(target_gradients, ROW_THREADS, 4) {
	const long r = blockIdx.x;
	const float all = sum_in_order(a.dlogprob + r * a.K, a.K);
	for (long v = threadIdx.x; v < a.V; v += ROW_THREADS) store_gradient(&a, r, v, all, 0);
	barrier();
	for (long i = threadIdx.x; i < a.K; i += ROW_THREADS) {
		const int v = a.targets[r * a.K + i];
		if (v >= 0) store_gradient(&a, r, v, all, a.K);
	}
}

#include "row.h"
#include "softmax.h"
#include "sum.h"

// logit is z of row r of h and token v, and the Tanh of its cap in y.
DEVICE float logit(int tile, struct operand h, long r, struct operand w, long v, long C, struct softmax x, float *y) {
	return logit_of(product_sum(tile, terms_of(h, r * C, 1), terms_of(w, v * C, 1), C, 0), x, y);
}

// A thread for each row and token.
KERNEL(logits) {
	const long i = element(), r = i / a.V, v = i % a.V;
	float y;
	if (r < a.R) a.z[i] = logit(a.tile, a.h, r, a.w, v, a.C, a.x, &y);
}

// A thread for each row of few tokens.
KERNEL(scores_few) {
	const long r = element();
	if (r >= a.R) return;
	const float *z = a.z + r * a.V;
	float m = -INFINITE, sum[LANES] = {0}, dot[LANES] = {0};
	for (long v = 0; v < a.V; v++)
		if (z[v] > m) m = z[v];
	for (long v = 0; v < a.V; v += LANES)
		EACH_LANE(j) if (v + j < a.V) {
			const float e = exp_of(z[v + j] - m);
			sum[j] += e;
			dot[j] = fmaf(e, z[v + j] - m, dot[j]);
		}
	const float s = fold(sum), log = log_of(s), lse = m + log;
	for (long i = r * a.K; i < (r + 1) * a.K; i++) a.logprob[i] = z[a.targets[i]] - lse;
	a.entropy[r] = log - fold(dot) / s;
	a.lse[r] = lse;
}

// A block for each row.
BLOCK_KERNEL(scores, ROW_THREADS, 4) {
	SHARED(struct row_room, room, 1);
	const long r = blockIdx.x;
	const float *z = a.z + r * a.V;
	const struct row_sums x = row_sums_of(room, z, a.V);
	if (threadIdx.x >= a.K) return; // there is one target, or few
	const float lse = row_scores(a.entropy, a.lse, r, x);
	for (long i = threadIdx.x; i < a.K; i += ROW_THREADS) a.logprob[r * a.K + i] = z[a.targets[r * a.K + i]] - lse;
}

// A thread for each row and token.
KERNEL(logits_backward) {
	const long i = element(), r = i / a.V, v = i % a.V;
	if (r >= a.R) return;
	float y;
	const float z = logit(a.tile, a.h, r, a.w, v, a.C, a.x, &y);
	store(a.dz, i,
		logit_gradient(z, y, v == a.targets[r], a.dlogprob[r], a.dentropy[r], a.entropy[r], a.lse[r], a.x));
}

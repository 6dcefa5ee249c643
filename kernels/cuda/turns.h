// turns.h says which queries the gradients of a span's keys and values take, in which order: PANEL at a time, of the sequences
// that see the keys, and of the heads that share the keys' head.
#ifndef EXP_CUDA_TURNS_H
#define EXP_CUDA_TURNS_H

#include "span.h"

// A panel of queries: of sequence `see` and head h, positions from t on. The last sequence is `last`.
struct turn {
	struct sequence seq;
	int see, last, h, t;
};

// end_of is where the queries of a turn's sequence end that see a span. Queries behind its window have weights 0: one step of
// them is taken, which may change the sign of a zero.
DEVICE int end_of(const struct turn *n, struct span x, int window) {
	const int T = n->seq.prefix + n->seq.own, first = (base_of(x) > n->seq.prefix ? base_of(x) : n->seq.prefix) / STEP * STEP;
	if (window == 0 || T - x.hi < window) return T;
	const int seen = (x.hi + window - 2) / STEP * STEP + 2 * STEP, end = seen > first + STEP ? seen : first + STEP;
	return end < T ? end : T;
}

// begin goes to the first queries of a sequence and head that see a span.
DEVICE void begin(struct turn *n, const struct matrix_attention_backward_args *a, struct span x) {
	n->seq = sequence_of(a->p, n->see, group_of(a->p, n->see));
	n->t = FULL ? 0 : (base_of(x) > n->seq.prefix ? base_of(x) : n->seq.prefix) / STEP * STEP;
}

// follow goes to the next panel: of the same head, of the next that shares the keys, or of the next sequence.
DEVICE void follow(struct turn *n, const struct matrix_attention_backward_args *a, struct span x) {
	const int share = (int)(a->s.H / a->s.K);
	n->t += PANEL;
	if (n->t < end_of(n, x, window_of(a->s))) return;
	if (++n->h % share == 0) {
		n->h -= share;
		do n->see++;
		while (n->see <= n->last && a->p.offsets[n->see + 1] == a->p.offsets[n->see]);
	}
	if (n->see <= n->last) begin(n, a, x);
}

// gradients_of_step turns the products of a warp's keys and 16 queries into probabilities and gradients of products. Queries
// from lo to hi exist.
INLINE void gradients_of_step(float (*z)[4], float (*dp)[4], struct attention_shape s, int capping, const struct query *query,
	int lo, int hi, struct step step) {
	UNROLL for (int j = 0; j < 2; j++) UNROLL for (int e = 0; e < 2; e++) {
		const struct query q = query[column_in_tile(j, e)];
		gradient(s, capping, q, &z[j][e], &dp[j][e]);
		gradient(s, capping, q, &z[j][e + 2], &dp[j][e + 2]);
	}
	if (is_partial(step) || step.position < lo || step.position + STEP > hi) {
		EACH_SCORE(j, e) {
			const int position = step.position + column_in_tile(j, e);
			const int there = position >= lo && position < hi;
			if (!there || !sees(step, row_in_tile(e), column_in_tile(j, e))) z[j][e] = dp[j][e] = 0;
		}
	}
}

#endif

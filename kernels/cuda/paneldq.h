// Gradients of queries on tensor cores, with factors in shared memory (panel.h): a block has the spans that begin within
// 128 rows, for one head, and a warp 32 rows of them. It is one text for
// matrixpaneldq.cu and matrixfullpaneldq.cu, which name its kernel NAME(x).
#define PARTS 2
#define STEPS 1
#include "panel.h"

// A block's queries and gradients of results, and two stages of keys and values.
#define OWN (BLOCK_ROWS * ROW)
#define STAGE (2 * PANEL * ROW)
#define ROOM (2 * OWN + 2 * STAGE)

// gradients_of_step turns the products of a warp's rows and 16 positions into the gradients of products, as weights.
INLINE void gradients_of_step(uint32_t weights[PARTS][4], struct attention_shape s, int capping, struct query row[PARTS][2],
	products_of_panel z, products_of_panel dp, struct step step) {
	EACH_OF_WARP(p) {
		struct step of_part = step;
		of_part.row = step.row + p * STEP;
		EACH_SCORE(j, e) gradient(s, capping, row[p][e / 2], &z[p][j][e], &dp[p][j][e]);
		if (is_partial(of_part)) {
			EACH_SCORE(j, e) if (!sees(of_part, row_in_tile(e), column_in_tile(j, e))) dp[p][j][e] = 0;
		}
		gradients_as_weights(weights[p], dp[p]);
	}
}

INLINE void gradient_of_queries(const struct panel_attention_dq_args *a, struct span x, address shared) {
	const int D = (int)a->s.D, h = share_of(a->p, a->s.H).head;
	const struct attention_shape s = a->s;
	const long kv = h / (s.H / s.K), width = stride(s);
	const struct head queries = head_in(a->qkv, width, query_at(s, 0, h)), keys = head_in(a->qkv, width, key_at(s, 0, kv)),
		results = head_in(a->dout, s.H * s.D, h * s.D);
	const address ring = shared + 2 * OWN;
	const int base = base_of(x) + row_of_warp(), parts = (x.hi - base + STEP - 1) / STEP;
	struct query statistics[PARTS][2];
	sums_of_panel dq;
	products_of_panel z, dp;
	struct step step = step_of(s, x, base, 0);
	const int end = keys_of(s, x), first = seen_from(step, x.lo) / PANEL * PANEL, apart = (int)(s.K * s.D);
	no_sums_in_panel(dq);
	EACH_OF_WARP(p) UNROLL for (int i = 0; i < 2; i++)
		statistics[p][i] = query_of(a, x.seq, base + p * STEP + quad() + 8 * i, x.lo, x.hi, h);
	barrier(); // none still reads a span before
	fetch_heads(shared, BLOCK_ROWS, queries, 0, D, x.seq, base_of(x), x.lo, x.hi);
	fetch_heads(shared + OWN, BLOCK_ROWS, results, 0, D, x.seq, base_of(x), x.lo, x.hi);
	fetch_heads(ring, PANEL, keys, apart, D, x.seq, first, 0, end);
	commit_copies();
	int stage = 0;
	ROLLED for (int t = first; t < end; t += PANEL, stage = 1 - stage) {
		uint32_t weights[PARTS][4];
		await_copies(0);
		barrier(); // all see this panel, and none still reads the one that is fetched next
		if (t + PANEL < end) fetch_heads(ring + (1 - stage) * STAGE, PANEL, keys, apart, D, x.seq, t + PANEL, 0, end);
		commit_copies();
		step.position = t;
		if (parts <= 0 || !some_see(step) || t + PANEL <= seen_from(step, base)) continue;
		const address from = ring + stage * STAGE;
		dot_panels(z, shared + row_of_warp() * ROW, from, D, parts, 1);
		dot_panels(dp, shared + OWN + row_of_warp() * ROW, from + PANEL * ROW, D, parts, 1);
		if (s.cap > 0) gradients_of_step(weights, s, 1, statistics, z, dp, step);
		else gradients_of_step(weights, s, 0, statistics, z, dp, step);
		add_panel(dq, weights, from, D, step, !FULL && t > base, parts);
	}
	await_copies(0);
	EACH_OF_WARP(p) UNROLL for (int e = 0; e < 4; e += 2) {
		const int n = base + p * STEP + row_in_tile(e);
		if (n >= x.lo && n < x.hi) store_sums(a->dqkv, query_at(s, row_in_span(x, n), share_of(a->p, s.H).head), dq[p], e, 1, -0.0f, D);
	}
}

BLOCK_KERNEL(NAME(attention_dq), HEAD_THREADS, 2) {
	LAUNCH_SHARED(char, shared, ROOM);
	struct span x;
	for (int i = 0; span_of_block(a.p, a.s.H, i, &x); i = row_in_span(x, x.hi)) gradient_of_queries(&a, x, address_of(shared));
}

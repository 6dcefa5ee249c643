// Gradients of queries by wgmma (ring.h), for compute capability 9.0 only and heads as in span.h. They have the bits of
// matrixpaneldq.cu. They take no cap.
//
// A block has the spans that begin within 128 rows, for one head: two warpgroups have 64 rows each, their queries and their
// results' gradients. A third copies keys and values of 64 positions to stages in shared memory. Products of both with
// own rows become gradients of scores, which stay in registers as the first factor of the product with the keys.
#define GROUPS 2
#define PANEL 64
#define STAGE (4 * PANEL_BOX) // keys and values
#define STAGES 4
#define OWN (4 * BOX) // bytes of a warpgroup's queries and gradients of results
#define OWN_ROOM (GROUPS * OWN)
#include "ring.h"

#if RING_BYTES != WGMMA_DQ_SHARED
#error "WGMMA_DQ_SHARED is not what own rows, stages and barriers take"
#endif

// fetch_span queues the copies of the keys and values that a span's queries see.
INLINE void fetch_span(struct ring *r, const struct matrix_attention_backward_args *a, struct span x, struct step step) {
	const struct attention_shape s = a->s;
	const int kv = share_of(a->p, s.H).head / (int)(s.H / s.K);
	const struct head keys = head_in(a->qkv, stride(s), key_at(s, 0, kv)), values = head_in(a->qkv, stride(s), value_at(s, 0, kv));
	ROLLED for (int t = first_panel(x, step); t < x.hi; t += PANEL) {
		await_phase(empty_of(r, r->at), r->parity ^ 1);
		fetch_head(r->stages + r->at * STAGE, PANEL, keys, (int)s.D, x.seq, t, 0, x.hi);
		fetch_head(r->stages + r->at * STAGE + 2 * PANEL_BOX, PANEL, values, (int)s.D, x.seq, t, 0, x.hi);
		end_stage(r);
	}
}

// A warpgroup's work: its own rows in shared memory, and what it knows of two rows of a lane.
struct work {
	char *own;
	struct query query[2];
	int boxes;
};

// gradients_of_scores turns the products of 16 positions into gradients of products, as weights.
INLINE void gradients_of_scores(uint32_t weights[4], float (*z)[4], float (*dp)[4], struct attention_shape s,
	const struct query *query, struct step step) {
	EACH_SCORE(j, e) gradient(s, 0, query[e / 2], &z[j][e], &dp[j][e]);
	if (is_partial(step)) {
		EACH_SCORE(j, e) if (!sees(step, row_in_tile(e), column_in_tile(j, e))) dp[j][e] = 0;
	}
	gradients_as_weights(weights, dp);
}

// add_keys adds a panel to the gradients of a warpgroup's queries. It returns with products queued, of which the
// weights are factors.
INLINE void add_keys(float (*dq)[4], uint32_t weights[PANEL / STEP][4], const char *stage, const struct work *w,
	struct attention_shape s, struct step step) {
	float z[PANEL / 8][4], dp[PANEL / 8][4];
	const uint64_t keys = descriptor(stage, PANEL_BOX);
	open_products();
	dot_head(z, PANEL / 8, w->own, stage, w->boxes);
	dot_head(dp, PANEL / 8, w->own + 2 * BOX, stage + 2 * PANEL_BOX, w->boxes);
	commit_products();
	await_products(0);
	hold_sums(z, PANEL / 8);
	hold_sums(dp, PANEL / 8);
	hold_sums(dq, 8 * w->boxes);
	UNROLL for (int i = 0; i < PANEL / STEP; i++, step.position += STEP)
		gradients_of_scores(weights[i], z + 2 * i, dp + 2 * i, s, w->query, step);
	open_products();
	UNROLL for (int i = 0; i < PANEL / STEP; i++) wgmma_rows(dq, 8 * w->boxes, weights[i], keys + i * STEP_IN(0), 0);
	commit_products();
}

// add_seen_keys does so with a panel that has infinite keys, which not all rows see: by mma.sync (add_seen), 16 positions at a
// time. It is rare.
INLINE void add_seen_keys(float (*dq)[4], const char *stage, const struct work *w, struct attention_shape s, struct step step) {
	const int first = threadIdx.x % GROUP_THREADS / WARP * STEP;
	ROLLED for (int i = 0; i < PANEL / STEP; i++, step.position += STEP) {
		float z[2][4], dp[2][4];
		uint32_t weights[4];
		dot_step(z, w->own, first, stage, i * STEP, w->boxes);
		dot_step(dp, w->own + 2 * BOX, first, stage + 2 * PANEL_BOX, i * STEP, w->boxes);
		gradients_of_scores(weights, z, dp, s, w->query, step);
		add_seen_rows(dq, weights, stage, i * STEP, w->boxes, step);
	}
}

// skip_panels takes the stages of panels from t to `end`, which no row of the warpgroup sees.
INLINE int skip_panels(struct ring *r, int t, int end) {
	ROLLED for (; t < end; t += PANEL) leave(r, take_stage(r));
	return t;
}

INLINE void gradient_of_queries(struct ring *r, const struct matrix_attention_backward_args *a, struct span x, struct step step,
	int boxes) {
	const struct attention_shape s = a->s;
	const int D = (int)s.D, h = share_of(a->p, s.H).head, group = uniform(threadIdx.x / GROUP_THREADS) - 1;
	const int base = base_of(x) + group * GROUP_ROWS, end = base >= x.hi ? 0 : base + GROUP_ROWS < x.hi ? base + GROUP_ROWS : x.hi;
	struct work w;
	float dq[CHUNKS][4];
	uint32_t weights[PANEL / STEP][4];
	int held = -1; // the stage whose keys are queued
	w.own = r->stages + STAGES * STAGE + group * OWN;
	w.boxes = boxes;
	UNROLL for (int j = 0; j < CHUNKS; j++) UNROLL for (int e = 0; e < 4; e++) dq[j][e] = 0;
	group_barrier(1 + group, GROUP_THREADS); // none still reads a span before
	fetch_head(w.own, GROUP_ROWS, head_in(a->qkv, stride(s), query_at(s, 0, h)), D, x.seq, base, x.lo, x.hi);
	fetch_head(w.own + 2 * BOX, GROUP_ROWS, head_in(a->dout, s.H * s.D, h * s.D), D, x.seq, base, x.lo, x.hi);
	commit_copies();
	step.row = base + (int)threadIdx.x % GROUP_THREADS / WARP * STEP;
	UNROLL for (int i = 0; i < 2; i++) w.query[i] = query_of(a, x.seq, step.row + quad() + 8 * i, x.lo, x.hi, h);
	await_copies(0);
	publish_writes();
	group_barrier(1 + group, GROUP_THREADS);
	int t = skip_panels(r, first_panel(x, step), end ? seen_from(step, base) / PANEL * PANEL : 0);
	ROLLED for (; t < end; t += PANEL) {
		const int at = take_stage(r);
		const char *const stage = r->stages + at * STAGE;
		step.position = t;
		if (!sees_all(step, base) && finds_special(stage, boxes * PANEL * WIDE)) {
			await_products(0);
			hold_sums(dq, 8 * boxes);
			add_seen_keys(dq, stage, &w, s, step);
			leave(r, held);
			leave(r, at);
			held = -1;
			continue;
		}
		add_keys(dq, weights, stage, &w, s, step);
		leave(r, held);
		held = at;
	}
	await_products(0);
	hold_sums(dq, 8 * boxes);
	leave(r, held);
	skip_panels(r, t, x.hi);
	UNROLL for (int e = 0; e < 4; e += 2) {
		const int n = step.row + row_in_tile(e);
		if (n >= x.lo && n < x.hi) store_sums(a->dqkv, query_at(s, row_in_span(x, n), h), dq, e, 1, -0.0f, D);
	}
}

INLINE void gradients_of_spans(const struct matrix_attention_backward_args *a, char *shared, int boxes) {
	struct ring r = open_ring(shared);
	struct step step;
	struct span x;
	step.window = window_of(a->s);
	step.by_keys = 0;
	if (threadIdx.x < GROUP_THREADS) {
		fewer_registers(40);
		EACH_SPAN(a->p, a->s.H, x) fetch_span(&r, a, x, step);
		end_stages(&r);
	} else {
		more_registers(232);
		EACH_SPAN(a->p, a->s.H, x)
			gradient_of_queries(&r, a, x, step, boxes);
	}
}

BLOCK_KERNEL(wgmma_attention_dq_64, THREADS, 1) {
	LAUNCH_SHARED(char, shared, WGMMA_DQ_SHARED);
	gradients_of_spans(&a, shared, 1);
}

BLOCK_KERNEL(wgmma_attention_dq_128, THREADS, 1) {
	LAUNCH_SHARED(char, shared, WGMMA_DQ_SHARED);
	gradients_of_spans(&a, shared, 2);
}

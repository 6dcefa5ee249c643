// Gradients of keys and values by wgmma (ring.h), for compute capability 9.0 only and heads as in span.h. They have the bits of
// matrixpaneldkv.cu. They take no cap.
//
// A block has the spans that begin within 128 rows, for one key/value head: two warpgroups have 64 keys each, and their
// values. A third copies queries, their results' gradients and their statistics to stages in shared memory, 64 rows at a
// time, in the order of turns.h. Products of own rows with 32 queries and 32 results' gradients become probabilities and gradients of
// scores, which stay in registers as first factors.
#define GROUPS 2
#define PANEL 64
#define STAGE (4 * PANEL_BOX + EIGHT_LINES) // queries, gradients of results, statistics
#define STAGES 4
#define OWN (4 * BOX) // bytes of a warpgroup's keys and values
#define OWN_ROOM (GROUPS * OWN)
#include "ring.h"
#include "turns.h"

#if RING_BYTES != WGMMA_DKV_SHARED
#error "WGMMA_DKV_SHARED is not what own rows, stages and barriers take"
#endif

// What the third warpgroup says of a stage: its queries' first position, from where to where the sequence's exist, where those
// end that see the keys, and whether the span's last panel it is.
struct queries {
	int t, lo, hi, end, last;
};

#define PART 32 // queries whose products are in registers at once

// first_turn is the first panel of queries that see a span.
DEVICE struct turn first_turn(const struct matrix_attention_backward_args *a, struct span x) {
	const int j = (int)last_at_most(a->p.offsets, a->p.S, row_in_span(x, x.lo)), group = (int)group_of(a->p, j);
	struct turn n;
	n.see = j;
	n.last = a->p.G && a->p.groups[group] == j ? a->p.groups[group + 1] - 1 : j; // a prefix is seen by its group
	n.h = share_of(a->p, a->s.K).head * (int)(a->s.H / a->s.K);
	begin(&n, a, x);
	return n;
}

// fetch_turn queues the copies of a panel of queries of a turn.
INLINE void fetch_turn(char *to, const struct matrix_attention_backward_args *a, const struct turn *n) {
	const struct attention_shape s = a->s;
	const int T = n->seq.prefix + n->seq.own, D = (int)s.D;
	struct sequence own = n->seq; // the prefix has no queries
	own.prefix_row = own.first -= own.prefix;
	own.prefix = 0;
	fetch_head(to, PANEL, head_in(a->qkv, stride(s), query_at(s, 0, n->h)), D, own, n->t, n->seq.prefix, T);
	fetch_head(to + 2 * PANEL_BOX, PANEL, head_in(a->dout, s.H * s.D, n->h * s.D), D, own, n->t, n->seq.prefix, T);
	ROLLED for (int i = threadIdx.x; i < 3 * PANEL; i += GROUP_THREADS) {
		const int position = n->t + i / 3, word = i % 3;
		const long at = (long)(position + own.first) * s.H + n->h;
		const float *from = word < 2 ? &a->stats[2 * at + word] : &a->delta[at];
		copy_word_to(address_of(to) + 4 * PANEL_BOX + i * 4, from, position >= n->seq.prefix && position < T);
	}
}

DEVICE struct queries *queries_of(const char *stage) { return (struct queries *)(stage + 4 * PANEL_BOX + 3 * 4 * PANEL); }

// fetch_span queues the copies of all queries that see a span.
INLINE void fetch_span(struct ring *r, const struct matrix_attention_backward_args *a, struct span x) {
	struct turn next = first_turn(a, x);
	ROLLED while (next.see <= next.last) {
		char *const stage = r->stages + r->at * STAGE;
		struct queries q;
		q.t = next.t;
		q.lo = next.seq.prefix;
		q.hi = q.lo + next.seq.own;
		q.end = end_of(&next, x, window_of(a->s));
		await_phase(empty_of(r, r->at), r->parity ^ 1);
		fetch_turn(stage, a, &next);
		follow(&next, a, x);
		q.last = next.see > next.last;
		if (threadIdx.x == 0) *queries_of(stage) = q;
		end_stage(r);
	}
}

// A warpgroup's work: its own rows in shared memory, and the stage that it takes.
struct work {
	char *own;
	const char *stage;
	int boxes;
};

DEVICE const struct query *statistics(const struct work *w) { return (const struct query *)(w->stage + 4 * PANEL_BOX); }

// add_part adds PART queries, from `from` on in the stage, to the gradients of a warpgroup's keys and values. It returns
// with products queued, of which the weights are factors.
INLINE void add_part(float (*dk)[4], float (*dv)[4], uint32_t weights[2][PART / STEP][4], const struct work *w, int from,
	struct attention_shape s, const struct queries *now, struct step step) {
	float z[PART / 8][4], dp[PART / 8][4];
	const char *const queries = w->stage, *const results = w->stage + 2 * PANEL_BOX;
	const uint64_t of_queries = descriptor(queries + from * LINE, PANEL_BOX), of_results = descriptor(results + from * LINE, PANEL_BOX);
	open_products();
	dot_head(z, PART / 8, w->own, queries + from * LINE, w->boxes);
	dot_head(dp, PART / 8, w->own + 2 * BOX, results + from * LINE, w->boxes);
	commit_products();
	await_products(0);
	hold_sums(z, PART / 8);
	hold_sums(dp, PART / 8);
	hold_sums(dk, 8 * w->boxes);
	hold_sums(dv, 8 * w->boxes);
	step.position = now->t + from;
	UNROLL for (int i = 0; i < PART / STEP; i++, step.position += STEP) {
		gradients_of_step(z + 2 * i, dp + 2 * i, s, 0, statistics(w) + from + i * STEP, now->lo, now->hi, step);
		gradients_as_weights(weights[0][i], z + 2 * i);
		gradients_as_weights(weights[1][i], dp + 2 * i);
	}
	open_products();
	UNROLL for (int i = 0; i < PART / STEP; i++) wgmma_rows(dv, 8 * w->boxes, weights[0][i], of_results + i * STEP_IN(0), 0);
	UNROLL for (int i = 0; i < PART / STEP; i++) wgmma_rows(dk, 8 * w->boxes, weights[1][i], of_queries + i * STEP_IN(0), 0);
	commit_products();
}

// add_seen_panel adds a panel that has infinite factors, which not all keys meet: by mma.sync (add_seen), 16 queries at a
// time. It is rare.
INLINE void add_seen_panel(float (*dk)[4], float (*dv)[4], const struct work *w, struct attention_shape s,
	const struct queries *now, struct step step) {
	const int first = threadIdx.x % GROUP_THREADS / WARP * STEP;
	const char *const results = w->stage + 2 * PANEL_BOX;
	step.position = now->t;
	ROLLED for (int i = 0; i < PANEL / STEP; i++, step.position += STEP) {
		float z[2][4], dp[2][4];
		uint32_t weights[4];
		dot_step(z, w->own, first, w->stage, i * STEP, w->boxes);
		dot_step(dp, w->own + 2 * BOX, first, results, i * STEP, w->boxes);
		gradients_of_step(z, dp, s, 0, statistics(w) + i * STEP, now->lo, now->hi, step);
		gradients_as_weights(weights, z);
		add_seen_rows(dv, weights, results, i * STEP, w->boxes, step);
		gradients_as_weights(weights, dp);
		add_seen_rows(dk, weights, w->stage, i * STEP, w->boxes, step);
	}
}

// all_see reports whether all queries of a panel see all of a warpgroup's keys, from position `base` on.
DEVICE int all_see(struct step s, int base, int t) {
	return base + GROUP_ROWS - 1 <= t && (s.window == 0 || t + PANEL - 1 - base < s.window);
}

DEVICE int before(int stage) { return (stage + STAGES - 1) % STAGES; }

INLINE void gradients_of_keys(struct ring *r, const struct matrix_attention_backward_args *a, struct span x, struct step step,
	int boxes) {
	const struct attention_shape s = a->s;
	const int D = (int)s.D, kv = share_of(a->p, s.K).head, group = uniform(threadIdx.x / GROUP_THREADS) - 1;
	struct work w;
	float dk[CHUNKS][4], dv[CHUNKS][4];
	uint32_t weights[2][PART / STEP][4];
	int held = 0, last; // whether the stage before has products queued, and whether this is the last
	w.own = r->stages + STAGES * STAGE + group * OWN;
	w.boxes = boxes;
	UNROLL for (int j = 0; j < CHUNKS; j++) UNROLL for (int e = 0; e < 4; e++) dk[j][e] = dv[j][e] = 0;
	group_barrier(1 + group, GROUP_THREADS); // none still reads a span before
	fetch_head(w.own, GROUP_ROWS, head_in(a->qkv, stride(s), key_at(s, 0, kv)), D, x.seq, base_of(x) + group * GROUP_ROWS, x.lo, x.hi);
	fetch_head(w.own + 2 * BOX, GROUP_ROWS, head_in(a->qkv, stride(s), value_at(s, 0, kv)), D, x.seq, base_of(x) + group * GROUP_ROWS, x.lo, x.hi);
	commit_copies();
	step.row = base_of(x) + group * GROUP_ROWS + (int)threadIdx.x % GROUP_THREADS / WARP * STEP;
	await_copies(0);
	publish_writes();
	group_barrier(1 + group, GROUP_THREADS);
	ROLLED do {
		const int at = uniform(take_stage(r)), base = step.row - computed_here(threadIdx.x) % GROUP_THREADS / WARP * STEP;
		w.stage = r->stages + at * STAGE;
		const struct queries *const now = queries_of(w.stage);
		const int end = now->end - now->t, unseen = base >= x.hi || now->t + PANEL <= base;
		last = now->last;
		if (unseen || (!all_see(step, base, now->t) && finds_special(w.stage, boxes * PANEL * WIDE) |
			finds_special(w.stage + 2 * PANEL_BOX, boxes * PANEL * WIDE))) {
			await_products(0);
			hold_sums(dk, 8 * boxes);
			hold_sums(dv, 8 * boxes);
			if (!unseen) add_seen_panel(dk, dv, &w, s, now, step);
			if (held) leave(r, before(at));
			leave(r, at);
			held = 0;
			continue;
		}
		ROLLED for (int from = 0; from < PANEL && from < end; from += PART) {
			add_part(dk, dv, weights, &w, from, s, now, step);
			if (held && from == 0) leave(r, before(at));
			held = 1;
		}
	} while (!last);
	await_products(0);
	hold_sums(dk, 8 * boxes);
	hold_sums(dv, 8 * boxes);
	if (held) leave(r, before(r->at));
	UNROLL for (int e = 0; e < 4; e += 2) {
		const int n = step.row + row_in_tile(e), to = row_in_span(x, n), head = share_of(a->p, s.K).head;
		if (n < x.lo || n >= x.hi) continue;
		store_sums(a->dqkv, key_at(s, to, head), dk, e, 1, -0.0f, (int)s.D);
		store_sums(a->dqkv, value_at(s, to, head), dv, e, 1, -0.0f, (int)s.D);
	}
}

INLINE void gradients_of_spans(const struct matrix_attention_backward_args *a, char *shared, int boxes) {
	struct ring r = open_ring(shared);
	struct step step;
	struct span x;
	step.window = window_of(a->s);
	step.by_keys = 1;
	if (threadIdx.x < GROUP_THREADS) {
		fewer_registers(40);
		EACH_SPAN(a->p, a->s.K, x) fetch_span(&r, a, x);
		end_stages(&r);
	} else {
		more_registers(232);
		EACH_SPAN(a->p, a->s.K, x)
			gradients_of_keys(&r, a, x, step, boxes);
	}
}

BLOCK_KERNEL(wgmma_attention_dkv_64, THREADS, 1) {
	LAUNCH_SHARED(char, shared, WGMMA_DKV_SHARED);
	gradients_of_spans(&a, shared, 1);
}

BLOCK_KERNEL(wgmma_attention_dkv_128, THREADS, 1) {
	LAUNCH_SHARED(char, shared, WGMMA_DKV_SHARED);
	gradients_of_spans(&a, shared, 2);
}

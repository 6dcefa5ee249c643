// Gradients of keys and values on tensor cores, with factors in shared memory (panel.h): a block has the spans that begin
// within 64 rows, for one key/value head, and a warp 16 keys of them. It goes over the sequences that see the keys, the
// query heads that share the head, and the query rows. It is one text for matrixpaneldkv.cu and matrixfullpaneldkv.cu,
// which name its kernel NAME(x).
#define PARTS 1
#define STEPS 2
#include "panel.h"
#include "turns.h"

// A block's keys and values, and two stages of queries, gradients of results and the queries' statistics.
#define OWN (BLOCK_ROWS * ROW)
#define STAGE (2 * PANEL * ROW + PANEL * (int)sizeof(struct query))
#define ROOM (2 * OWN + 2 * STAGE)

// fetch_turn queues the copies of a panel of queries, if there is one.
INLINE void fetch_turn(address to, const struct panel_attention_dkv_args *a, const struct turn *n) {
	const struct attention_shape s = a->s;
	const int T = n->seq.prefix + n->seq.own, i = (int)threadIdx.x / 3, word = threadIdx.x % 3, position = n->t + i;
	struct sequence own = n->seq; // the prefix has no queries
	own.prefix_row = own.first -= own.prefix;
	own.prefix = 0;
	if (n->see > n->last) return;
	fetch_heads(to, PANEL, head_in(a->qkv, stride(s), query_at(s, 0, n->h)), 0, (int)s.D, own, n->t, n->seq.prefix, T);
	fetch_heads(to + PANEL * ROW, PANEL, head_in(a->dout, s.H * s.D, n->h * s.D), 0, (int)s.D, own, n->t, n->seq.prefix, T);
	if (i >= PANEL) return;
	const long at = (long)(position + own.first) * s.H + n->h;
	const float *from = word < 2 ? &a->stats[2 * at + word] : &a->delta[at];
	copy_word_to(to + 2 * PANEL * ROW + threadIdx.x * 4, from, position >= n->seq.prefix && position < T);
}

// add_turn adds a panel of queries to the gradients of a warp's keys, from position step.row on, and values.
INLINE void add_turn(sums_of_panel dk, sums_of_panel dv, address own, address panel, const char *stage,
	struct attention_shape s, const struct turn *n, int end, struct step step) {
	const address queries = panel, results = panel + PANEL * ROW;
	const struct query *const statistics = (const struct query *)(stage + 2 * PANEL * ROW);
	const int D = (int)s.D, lo = n->seq.prefix, hi = lo + n->seq.own;
	const int first = FULL ? 0 : (step.row > n->seq.prefix ? step.row : n->seq.prefix) / STEP * STEP;
	products_of_panel z, dp;
	if (n->t + PANEL <= first) return;
	dot_panels(z, own, queries, D, 1, STEPS);
	dot_panels(dp, own + OWN, results, D, 1, STEPS);
	EACH_STEP(i) {
		uint32_t weights[PARTS][4];
		step.position = n->t + i * STEP;
		if (step.position < first || step.position >= end) continue;
		if (s.cap > 0) gradients_of_step(z[0] + 2 * i, dp[0] + 2 * i, s, 1, statistics + i * STEP, lo, hi, step);
		else gradients_of_step(z[0] + 2 * i, dp[0] + 2 * i, s, 0, statistics + i * STEP, lo, hi, step);
		gradients_as_weights(weights[0], z[0] + 2 * i);
		add_panel(dv, weights, results + i * STEP * ROW, D, step, 0, 1);
		gradients_as_weights(weights[0], dp[0] + 2 * i);
		add_panel(dk, weights, queries + i * STEP * ROW, D, step, 0, 1);
	}
}

INLINE void gradients_of_keys(const struct panel_attention_dkv_args *a, struct span x, char *memory) {
	const int kv = share_of(a->p, a->s.K).head;
	const struct attention_shape s = a->s;
	const int j = (int)last_at_most(a->p.offsets, a->p.S, row_in_span(x, x.lo)), group = (int)group_of(a->p, j);
	const address shared = address_of(memory), ring = shared + 2 * OWN;
	const int base = base_of(x) + row_of_warp();
	const struct step step = step_of(s, x, base, 1);
	struct turn next;
	sums_of_panel dk, dv;
	no_sums_in_panel(dk);
	no_sums_in_panel(dv);
	next.see = j;
	next.last = a->p.G && a->p.groups[group] == j ? a->p.groups[group + 1] - 1 : j; // a prefix is seen by its group
	next.h = kv * (int)(s.H / s.K);
	begin(&next, a, x);
	barrier(); // none still reads a span before
	fetch_heads(shared, BLOCK_ROWS, head_in(a->qkv, stride(s), key_at(s, 0, kv)), (int)(s.K * s.D), (int)s.D, x.seq, base_of(x), x.lo, x.hi);
	fetch_turn(ring, a, &next);
	commit_copies();
	ROLLED for (int stage = 0; next.see <= next.last; stage = 1 - stage) {
		const struct turn now = next;
		await_copies(0);
		barrier(); // all see this panel, and none still reads the one that is fetched next
		follow(&next, a, x);
		fetch_turn(ring + (1 - stage) * STAGE, a, &next);
		commit_copies();
		if (base < x.hi) add_turn(dk, dv, shared + row_of_warp() * ROW, ring + stage * STAGE, memory + 2 * OWN + stage * STAGE, s, &now, end_of(&now, x, step.window), step);
	}
	await_copies(0);
	UNROLL for (int e = 0; e < 4; e += 2) {
		const int n = base + row_in_tile(e), to = row_in_span(x, n);
		if (n < x.lo || n >= x.hi) continue;
		const int head = share_of(a->p, s.K).head;
		store_sums(a->dqkv, key_at(s, to, head), dk[0], e, 1, -0.0f, (int)s.D);
		store_sums(a->dqkv, value_at(s, to, head), dv[0], e, 1, -0.0f, (int)s.D);
	}
}

BLOCK_KERNEL(NAME(attention_dkv), HEAD_THREADS, 2) {
	LAUNCH_SHARED(char, shared, ROOM);
	struct span x;
	for (int i = 0; span_of_block(a.p, a.s.K, i, &x); i = row_in_span(x, x.hi)) gradients_of_keys(&a, x, shared);
}

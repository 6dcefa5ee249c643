// Attention on tensor cores with factors in shared memory (panel.h): a block has the spans that begin within 128 rows,
// for one head, and a warp 32 rows of them. A panel has the keys that the definition takes at once.
// It is one text for matrixpanel.cu and matrixfullpanel.cu, which name its kernel NAME(x).
#define PARTS 2
#define STEPS 2
#include "panel.h"

#if PANEL != KEYS
#error "a panel is not what the definition takes at once"
#endif

// A block's queries, and two stages of keys and values.
#define OWN (BLOCK_ROWS * ROW)
#define STAGE (2 * PANEL * ROW)
#define ROOM (OWN + 2 * STAGE)

// as_scores turns products into scores.
INLINE void as_scores(products_of_panel z, struct attention_shape s, struct step step) {
	float y;
	EACH_OF_WARP(p) UNROLL for (int j = 0; j < 2 * STEPS; j++) UNROLL for (int e = 0; e < 4; e++) z[p][j][e] *= s.scale;
	if (s.cap > 0) {
		EACH_OF_WARP(p) UNROLL for (int j = 0; j < 2 * STEPS; j++) UNROLL for (int e = 0; e < 4; e++)
			z[p][j][e] = capped(z[p][j][e], s.cap, s.inverse_cap, &y);
	}
	EACH_OF_WARP(p) EACH_STEP(i) {
		struct step of_part = step;
		of_part.row = step.row + p * STEP;
		of_part.position = step.position + i * STEP;
		hide(z[p] + 2 * i, of_part);
	}
}

// take_panel adds a panel of values to the sums of a warp's rows: their weights are the powers of e of the scores of its keys.
INLINE void take_panel(struct running rows[PARTS], sums_of_panel out, address own, address panel, struct attention_shape s,
	struct step step, int parts) {
	const int D = (int)s.D;
	products_of_panel z;
	uint32_t weights[STEPS][PARTS][4];
	dot_panels(z, own, panel, D, parts, FULL ? STEPS : (step.row + (parts - 1) * STEP - step.position) / STEP + 1);
	as_scores(z, s, step);
	EACH_OF_WARP(p) {
		float top[] = {-INFINITE, -INFINITE};
		UNROLL for (int j = 0; j < 2 * STEPS; j++) UNROLL for (int e = 0; e < 4; e++) top[e / 2] = larger(top[e / 2], z[p][j][e]);
		rise(&rows[p], top, out[p], CHUNKS);
		EACH_STEP(i) {
			weigh(&rows[p], z[p] + 2 * i);
			as_weights(weights[i][p], z[p] + 2 * i);
		}
	}
	EACH_STEP(i) {
		struct step at = step;
		at.position = step.position + i * STEP;
		if (some_see(at)) // else no row sees it
			add_panel(out, weights[i], panel + (PANEL + i * STEP) * ROW, D, at, !FULL && at.position > step.row, parts);
	}
}

INLINE void store_rows(const struct attention_args *a, sums_of_panel out, struct running rows[PARTS], struct span x, int base) {
	const int h = share_of(a->p, a->s.H).head;
	EACH_OF_WARP(p) {
		const float inverse[] = {1 / fold_quad(rows[p].lane[0]), 1 / fold_quad(rows[p].lane[1])};
		UNROLL for (int e = 0; e < 4; e += 2) {
			const int n = base + p * STEP + row_in_tile(e);
			const long at = row_in_span(x, n) * a->s.H + h;
			if (n < x.lo || n >= x.hi) continue;
			if (pair() == 0) keep_stats(a->stats, at, rows[p].m[e / 2], inverse[e / 2]);
			store_sums(a->out, at * a->s.D, out[p], e, inverse[e / 2], 0.0f, (int)a->s.D);
		}
	}
}

INLINE void attend(const struct panel_attention_args *a, struct span x, address shared) {
	const int D = (int)a->s.D, h = share_of(a->p, a->s.H).head;
	const struct attention_shape s = a->s;
	const long kv = h / (s.H / s.K), width = stride(s);
	const struct head queries = head_in(a->qkv, width, query_at(s, 0, h)), keys = head_in(a->qkv, width, key_at(s, 0, kv));
	const int apart = (int)(s.K * s.D);
	const address ring = shared + OWN;
	const int base = base_of(x) + row_of_warp(), parts = (x.hi - base + STEP - 1) / STEP;
	const int end = keys_of(s, x);
	struct step step = step_of(s, x, base, 0);
	struct running rows[PARTS];
	sums_of_panel out;
	no_sums_in_panel(out);
	EACH_OF_WARP(p) no_keys(&rows[p]);
	barrier(); // none still reads a span before
	fetch_heads(shared, BLOCK_ROWS, queries, 0, D, x.seq, base_of(x), x.lo, x.hi);
	fetch_heads(ring, PANEL, keys, apart, D, x.seq, first_panel(x, step), 0, end);
	commit_copies();
	ROLLED for (int t = first_panel(x, step), stage = 0; t < end; t += PANEL, stage ^= STAGE) {
		await_copies(0);
		barrier(); // all see this panel, and none still reads the one that is fetched next
		if (t + PANEL < end) fetch_heads(ring + (stage ^ STAGE), PANEL, keys, apart, D, x.seq, t + PANEL, 0, end);
		commit_copies();
		step.position = t;
		if (parts > 0 && some_see(step) && t + PANEL > seen_from(step, base))
			take_panel(rows, out, shared + row_of_warp() * ROW, ring + stage, s, step, parts);
	}
	await_copies(0);
	store_rows(a, out, rows, x, base);
}

BLOCK_KERNEL(NAME(attention), HEAD_THREADS, 2) {
	LAUNCH_SHARED(char, shared, ROOM);
	struct span x;
	for (int i = 0; span_of_block(a.p, a.s.H, i, &x); i = row_in_span(x, x.hi)) attend(&a, x, address_of(shared));
}

// Attention by wgmma (warpgroup.h), for compute capability 9.0 only and heads as in span.h. It has the bits of
// matrixpanel.cu. It takes no cap: tanh would need too many registers.
//
// A block has the spans that begin within 128 rows, for one head: two warpgroups have 64 rows each. A third copies keys and
// values of 128 positions in turns to stages in shared memory. Scores are products of factors in shared memory; their
// weights stay in registers, as the first factor of the second product. While a warpgroup weighs scores,
// its own products of the keys before go on, and so do the other warpgroup's.
#define GROUPS 2
#define PANEL 128
#define STAGE (2 * PANEL_BOX) // keys, or values
#define STAGES 4
#define OWN (2 * BOX) // bytes of a warpgroup's queries
#define OWN_ROOM (GROUPS * OWN)
#include "ring.h"

#if RING_BYTES != WGMMA_ATTENTION_SHARED
#error "WGMMA_ATTENTION_SHARED is not what queries, stages and barriers take"
#endif

// fetch_span queues the copies of the keys and values that a span's queries see.
INLINE void fetch_span(struct ring *r, const struct attention_args *a, struct span x, struct step step) {
	const struct attention_shape s = a->s;
	const int kv = share_of(a->p, s.H).head / (int)(s.H / s.K);
	struct head head = head_in(a->qkv, stride(s), key_at(s, 0, kv));
	const int apart = (int)(s.K * s.D);
	ROLLED for (int t = first_panel(x, step), values = 0; t < x.hi; t += values * PANEL, values ^= 1) {
		await_phase(empty_of(r, r->at), r->parity ^ 1);
		fetch_head(r->stages + r->at * STAGE, PANEL, head, (int)s.D, x.seq, t, 0, x.hi);
		head.first += values ? -apart : apart;
		end_stage(r);
	}
}

// dot_heads sets z to the products of a warpgroup's rows and a panel's keys. Sums that were queued before are complete then,
// too. A head takes `boxes` boxes of 64 channels.
INLINE void dot_heads(float (*z)[4], float (*out)[4], const char *own, const char *keys, int boxes) {
	open_products();
	dot_head(z, PANEL / 8, own, keys, boxes);
	commit_products();
	await_products(0);
	hold_sums(z, PANEL / 8);
	hold_sums(out, 8 * boxes);
	(void)out; // the emulator holds nothing
}

// score_heads turns the products of n keys into scores. Those of keys that a row does not see are -Inf.
INLINE void score_heads(float (*z)[4], int n, float scale, struct step step) {
	UNROLL for (int j = 0; j < n / 8; j++) UNROLL for (int e = 0; e < 4; e++) z[j][e] *= scale;
	UNROLL for (int i = 0; i < n / STEP; i++, step.position += STEP) hide(z + 2 * i, step);
}

// has_infinite reports whether one of the next panel's values is infinite or NaN.
INLINE int has_infinite(const struct ring *r, int boxes) {
	struct ring ahead = *r;
	next_stage(&ahead);
	return finds_special(r->stages + take_stage(&ahead) * STAGE, boxes * PANEL * WIDE);
}

// take_top takes n scores into a lane's largest of each row.
INLINE void take_top(float *top, float (*z)[4], int n) {
	UNROLL for (int j = 0; j < n / 8; j++) UNROLL for (int e = 0; e < 4; e++) top[e / 2] = larger(top[e / 2], z[j][e]);
}

typedef uint32_t weights_of_panel[PANEL / STEP][4];

// add_heads adds a panel of values, whose weights come from scores z, to the sums. It returns with the last products queued, of
// which the weights are factors.
INLINE void add_heads(float (*out)[4], struct running *rows, float (*z)[4], weights_of_panel weights, const char *values, int boxes) {
	const uint64_t y = descriptor(values, PANEL_BOX);
	UNROLL for (int first = 0; first < PANEL / STEP; first += KEYS / STEP) {
		float top[] = {-INFINITE, -INFINITE}, factor[2];
		take_top(top, z + 2 * first, KEYS);
		const int rose = rise_rows(rows, top, factor);
		UNROLL for (int i = first; i < first + KEYS / STEP; i++) {
			weigh(rows, z + 2 * i);
			as_weights(weights[i], z + 2 * i);
		}
		await_products(0);
		hold_sums(out, 8 * boxes);
		if (rose) scale_sums(out, 8 * boxes, factor);
		open_products();
		UNROLL for (int i = first; i < first + KEYS / STEP; i++) wgmma_rows(out, 8 * boxes, weights[i], y + i * STEP_IN(0), 0);
		commit_products();
	}
}

// add_seen_heads adds a panel that has infinite values, which not all rows see: by mma.sync (add_seen), 16 positions at a time,
// with scores that are computed twice. It is rare, and takes few registers.
INLINE void add_seen_heads(float (*out)[4], struct running *rows, const char *own, const char *keys, const char *values,
	float scale, int boxes, struct step s) {
	const int first = threadIdx.x % GROUP_THREADS / WARP * STEP;
	ROLLED for (int i = 0; i < PANEL / STEP; i++, s.position += STEP) {
		float z[2][4], top[] = {-INFINITE, -INFINITE};
		uint32_t weights[4];
		struct step at = s;
		ROLLED for (int k = i; i % (KEYS / STEP) == 0 && k < i + KEYS / STEP; k++, at.position += STEP) {
			dot_step(z, own, first, keys, k * STEP, boxes);
			score_heads(z, STEP, scale, at);
			take_top(top, z, STEP);
		}
		rise(rows, top, out, 8 * boxes);
		dot_step(z, own, first, keys, i * STEP, boxes);
		score_heads(z, STEP, scale, s);
		weigh(rows, z);
		as_weights(weights, z);
		add_seen_rows(out, weights, values, i * STEP, boxes, s);
	}
}

// skip_panels takes the stages of panels from t to `end`, which no row of the warpgroup sees.
INLINE int skip_panels(struct ring *r, int t, int end) {
	ROLLED for (; t < end; t += PANEL) UNROLL for (int i = 0; i < 2; i++) leave(r, take_stage(r));
	return t;
}

INLINE void attend(struct ring *r, const struct attention_args *a, struct span x, struct step step, int boxes) {
	const int D = (int)a->s.D, h = share_of(a->p, a->s.H).head, group = uniform(threadIdx.x / GROUP_THREADS) - 1;
	const int base = base_of(x) + group * GROUP_ROWS, end = base >= x.hi ? 0 : base + GROUP_ROWS < x.hi ? base + GROUP_ROWS : x.hi;
	char *const own = r->stages + STAGES * STAGE + group * OWN;
	float out[CHUNKS][4];
	weights_of_panel weights;
	struct running rows;
	int held = -1; // the stage whose values are queued
	UNROLL for (int j = 0; j < CHUNKS; j++) UNROLL for (int e = 0; e < 4; e++) out[j][e] = 0;
	no_keys(&rows);
	group_barrier(1 + group, GROUP_THREADS); // none still reads a span before
	fetch_head(own, GROUP_ROWS, head_in(a->qkv, stride(a->s), query_at(a->s, 0, h)), D, x.seq, base, x.lo, x.hi);
	commit_copies();
	await_copies(0);
	publish_writes();
	group_barrier(1 + group, GROUP_THREADS);
	step.row = base + (int)threadIdx.x % GROUP_THREADS / WARP * STEP;
	int t = skip_panels(r, first_panel(x, step), end ? seen_from(step, base) / PANEL * PANEL : 0);
	ROLLED while (t < end) {
		ROLLED for (; t < end; t += PANEL) {
			float z[PANEL / 8][4];
			step.position = t;
			if (!sees_all(step, base) && has_infinite(r, boxes)) break;
			const int keys = take_stage(r);
			dot_heads(z, out, own, r->stages + keys * STAGE, boxes);
			leave(r, held);
			leave(r, keys);
			score_heads(z, PANEL, a->s.scale, step);
			held = take_stage(r);
			add_heads(out, &rows, z, weights, r->stages + held * STAGE, boxes);
		}
		await_products(0);
		hold_sums(out, 8 * boxes);
		leave(r, held);
		held = -1;
		if (t >= end) break;
		const int keys = take_stage(r), values = take_stage(r);
		add_seen_heads(out, &rows, own, r->stages + keys * STAGE, r->stages + values * STAGE, a->s.scale, boxes, step);
		leave(r, keys);
		leave(r, values);
		t += PANEL;
	}
	skip_panels(r, t, x.hi);
	const float inverse[] = {1 / fold_quad(rows.lane[0]), 1 / fold_quad(rows.lane[1])};
	UNROLL for (int e = 0; e < 4; e += 2) {
		const int n = step.row + row_in_tile(e);
		const long at = row_in_span(x, n) * a->s.H + h;
		if (n < x.lo || n >= x.hi) continue;
		if (pair() == 0) keep_stats(a->stats, at, rows.m[e / 2], inverse[e / 2]);
		store_sums(a->out, at * a->s.D, out, e, inverse[e / 2], 0.0f, D);
	}
}

INLINE void attend_spans(const struct attention_args *a, char *shared, int boxes) {
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
		EACH_SPAN(a->p, a->s.H, x) attend(&r, a, x, step, boxes);
	}
}

BLOCK_KERNEL(wgmma_attention_64, THREADS, 1) {
	LAUNCH_SHARED(char, shared, WGMMA_ATTENTION_SHARED);
	attend_spans(&a, shared, 1);
}

BLOCK_KERNEL(wgmma_attention_128, THREADS, 1) {
	LAUNCH_SHARED(char, shared, WGMMA_ATTENTION_SHARED);
	attend_spans(&a, shared, 2);
}

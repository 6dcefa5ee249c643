// Paged attention on tensor cores, for heads as in panel.h: a warp has up to 16 query heads of a row that share a
// key/value head, and copies 16 positions at a time from their page to shared memory: for each KEYS positions first the
// keys, then the values.
#define PARTS 1
#define STEPS 1
#include "panel.h"

// A stage of a warp has the keys of 16 positions, two chunks of 8 positions for each channel, or their values, as in a panel.
#define STAGES 6
#define KEY (2 * (int)sizeof(struct words_16))
#define STAGE (STEP * ROW)
#define STEPS_OF_KEYS (KEYS / STEP)

// Where 16 positions are: page `page` of the table, which is `now`, from position `at` of the page on. The entry
// `after` it is loaded before it is needed.
struct place {
	int page, at, t, now, after;
};

DEVICE struct place place_of(const struct paged_attention_args *a, const int *table, int t, int n) {
	const int size = (int)a->pages.size;
	struct place p;
	p.t = t;
	p.page = p.t / size;
	p.at = p.t % size;
	p.now = table[p.page];
	p.after = n >= (p.page + 1) * size ? table[p.page + 1] : 0;
	return p;
}

DEVICE void pass(struct place *p, const struct paged_attention_args *a, const int *table, int n) {
	const int size = (int)a->pages.size;
	p->t += STEP;
	p->at += STEP;
	if (p->at < size) return;
	p->at = 0;
	p->page++;
	p->now = p->after;
	p->after = n >= (p->page + 1) * size ? table[p->page + 1] : 0;
}

// place_of_key is the byte where the positions from 8·half on of a channel begin, `channel` mod 8 its number: the channels that a
// warp reads at once are in different banks.
DEVICE int place_of_key(int channel, int half) { return (half ^ channel / 4 % 2) * (int)sizeof(struct words_16); }

// fetch_keys queues the copies of 16 positions' keys, and fetch_values of their values. What the row does not see, positions
// before `from` and after n, is zeros: their page may be no page.
INLINE void fetch_keys(address to, const struct paged_attention_args *a, struct place p, int kv, int from, int n) {
	const int D = (int)a->s.D, size = (int)a->pages.size, l = computed_here(threadIdx.x % WARP);
	const uint16_t *key = (const uint16_t *)a->pages.keys.at + ((p.now * a->s.K + kv) * D + l / 2) * size + p.at + l % 2 * 8;
	to += l / 2 * KEY + place_of_key(l / 2, l % 2);
	UNROLL for (int i = 0; i < 8 * CHUNKS; i += WARP / 2, key += size * (WARP / 2))
		if (i / GROUP_CHANNELS * GROUP_CHANNELS < D) copy_to(to + i * KEY, key, l / 2 + i < D && p.t <= n && p.t + STEP > from);
}

INLINE void fetch_values(address to, const struct paged_attention_args *a, struct place p, int kv, int from, int n) {
	const int D = (int)a->s.D, l = computed_here(threadIdx.x % WARP), r = l / CHUNKS, c = l % CHUNKS;
	const uint16_t *const values = (const uint16_t *)a->pages.values.at +
		((p.now * a->s.K + kv) * a->pages.size + p.at + r) * D + c * 8;
	if (c / 8 * GROUP_CHANNELS >= D) return;
	UNROLL for (int i = 0; i < STEP; i += WARP / CHUNKS) {
		const int t = p.t + r + i, there = t >= from && t <= n && c * 8 < D;
		copy_to(to + (r + i) * ROW + place_in_panel(r + i, c), values + i * D, there);
	}
}

// load_queries sets q to the heads from h to end, as rows of a product.
INLINE void load_queries(uint32_t q[CHUNKS / 2][4], const struct paged_attention_args *a, long row, long h, long end) {
	const uint16_t *at = (const uint16_t *)a->qkv.at;
	UNROLL for (int k = 0; k < CHUNKS / 2; k++) UNROLL for (int i = 0; i < 4; i++) {
		const long head = h + quad() + i % 2 * 8, c = k * STEP + 2 * pair() + i / 2 * 8;
		const uint16_t *from = at + query_at(a->s, row, head) + c;
		q[k][i] = head < end && c < a->s.D ? from[0] | (uint32_t)from[1] << 16 : 0;
	}
}

// dot_positions sets z to the products of queries and 16 positions.
INLINE void dot_positions(float z[2][4], uint32_t q[CHUNKS / 2][4], address keys, int D) {
	const int l = computed_here(threadIdx.x % WARP);
	EACH_SCORE(j, e) z[j][e] = 0;
	UNROLL for (int k = 0; k < CHUNKS / 2; k++) {
		uint32_t b[4];
		if (k % 4 == 0 && k * STEP >= D) break;
		if (!WANTED(k * STEP < D)) continue;
		load_at(b, keys + (k * STEP + l % 16) * KEY + place_of_key(l, l / 16), 1);
		UNROLL for (int j = 0; j < 2; j++) multiply(z[j], q[k], &b[2 * j]);
	}
}

// score_positions sets z to the scores of 16 positions from t on. Those that the row does not see are -Inf.
INLINE void score_positions(float z[2][4], const struct attention_shape *s, uint32_t q[CHUNKS / 2][4], address keys, int t, int from,
	int n) {
	float y;
	dot_positions(z, q, keys, (int)s->D);
	EACH_SCORE(j, e) z[j][e] *= s->scale;
	if (s->cap > 0) {
		EACH_SCORE(j, e) z[j][e] = capped(z[j][e], s->cap, s->inverse_cap, &y);
	}
	if (t < from || t + STEP - 1 > n) {
		EACH_SCORE(j, e) if (t + column_in_tile(j, e) < from || t + column_in_tile(j, e) > n) z[j][e] = -INFINITE;
	}
}

// A warp's stages, and what it fetches next: for each KEYS positions first keys, then values.
struct pipeline {
	address ring;
	struct place keys, values;
	int ahead, at; // stages fetched and taken
};

// fetch_stage queues the copies of the next stage, if one is left.
INLINE void fetch_stage(struct pipeline *p, const struct paged_attention_args *a, const int *table, int kv, int from, int n) {
	const address to = p->ring + p->ahead % STAGES * STAGE;
	if (p->values.t / KEYS * KEYS <= n) { // zeros, where the last KEYS positions are fewer
		if (p->ahead / STEPS_OF_KEYS % 2 == 0) {
			fetch_keys(to, a, p->keys, kv, from, n);
			pass(&p->keys, a, table, n);
		} else {
			fetch_values(to, a, p->values, kv, from, n);
			pass(&p->values, a, table, n);
		}
	}
	p->ahead++;
	commit_copies();
}

// take_stage waits for a stage, and queues the copies of another to the stage before it.
INLINE address take_stage(struct pipeline *p, const struct paged_attention_args *a, const int *table, int kv, int from, int n) {
	await_copies(STAGES - 2);
	meet(); // all lanes see this stage, and none still reads the one that is fetched next
	fetch_stage(p, a, table, kv, from, n);
	return p->ring + p->at++ % STAGES * STAGE;
}

// attend computes the heads of a part of a group, for a row.
INLINE void attend(const struct paged_attention_args *a, address ring, long row, int kv, long h, long end) {
	const struct attention_shape *s = &a->s;
	const int *table = a->table + a->seq[row] * a->table_width;
	const int n = end_in_pages(a, row) - 1, from = (int)first_seen(*s, a->pos[row]), first = from / KEYS * KEYS;
	struct step all; // every row sees every position that is there
	struct pipeline p;
	struct running rows;
	uint32_t q[CHUNKS / 2][4];
	sums_of_panel out;
	all.row = n;
	all.position = n - STEP + 1;
	all.window = all.by_keys = 0;
	p.ring = ring;
	p.keys = p.values = place_of(a, table, first, n);
	p.ahead = p.at = 0;
	no_keys(&rows);
	no_sums_in_panel(out);
	ROLLED for (int i = 0; i < STAGES - 1; i++) fetch_stage(&p, a, table, kv, from, n);
	load_queries(q, a, row, h, end);
	ROLLED for (int t = first; t <= n; t += KEYS) {
		float z[STEPS_OF_KEYS][2][4], top[] = {-INFINITE, -INFINITE};
		uint32_t weights[1][4];
		UNROLL for (int i = 0; i < STEPS_OF_KEYS; i++) {
			score_positions(z[i], s, q, take_stage(&p, a, table, kv, from, n), t + i * STEP, from, n);
			EACH_SCORE(j, e) top[e / 2] = larger(top[e / 2], z[i][j][e]);
		}
		rise(&rows, top, out[0], CHUNKS);
		UNROLL for (int i = 0; i < STEPS_OF_KEYS; i++) {
			const address values = take_stage(&p, a, table, kv, from, n);
			weigh(&rows, z[i]);
			as_weights(weights[0], z[i]);
			add_panel(out, weights, values, (int)s->D, all, 0, 1);
		}
	}
	await_copies(0);
	const float inverse[] = {1 / fold_quad(rows.lane[0]), 1 / fold_quad(rows.lane[1])};
	UNROLL for (int e = 0; e < 4; e += 2) {
		const long head = h + row_in_tile(e);
		if (head < end && a->stats && pair() == 0) keep_stats(a->stats, row * s->H + head, rows.m[e / 2], inverse[e / 2]);
		if (head < end) store_sums(a->out, (row * s->H + head) * s->D, out[0], e, inverse[e / 2], 0.0f, (int)s->D);
	}
}

BLOCK_KERNEL(panel_paged_attention, HEAD_THREADS, 2) {
	LAUNCH_SHARED(char, shared, HEAD_WARPS * STAGES * STAGE);
	const long share = a.s.H / a.s.K, parts = (share + 15) / 16, i = element() / WARP;
	const long part = i % parts, kv = i / parts % a.s.K, row = i / parts / a.s.K;
	const address ring = address_of(shared) + threadIdx.x / WARP * (STAGES * STAGE);
	if (row < a.M) attend(&a, ring, row, (int)kv, kv * share + part * 16, (kv + 1) * share);
}

// Paged attention on tensor cores, for heads as in panel.h: a warp has up to 16 query heads of a row that share a
// key/value head, and copies 16 positions at a time from their page to shared memory. It goes over them twice, first for
// the largest score. If there is room, it keeps the scores, and reads no keys the second time.
#define PARTS 1
#define STEPS 1
#include "panel.h"

// A stage of a warp has keys, two chunks of 8 positions for each channel, and values as in a panel.
#define STAGES 3
#define KEY (2 * (int)sizeof(struct words_16))
#define KEYS (8 * CHUNKS * KEY)
#define STAGE (KEYS + STEP * ROW)

// Where a warp's next 16 positions are: page `page` of the table, which is `now`, from position `at` of the page on. The entry
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

// fetch_positions queues the copies of 16 positions' keys, values, or both. Values that the row does not see, those before
// `from` and after n, are zeros.
INLINE void fetch_positions(address to, const struct paged_attention_args *a, struct place p, int kv, int from, int n, int keyed,
	int valued) {
	const int D = (int)a->s.D, size = (int)a->pages.size, l = computed_here(threadIdx.x % WARP), r = l / CHUNKS, c = l % CHUNKS;
	const long head = p.now * a->s.K + kv;
	const uint16_t *key = (const uint16_t *)a->pages.keys.at + (head * D + l / 2) * size + p.at + l % 2 * 8;
	const uint16_t *const values = (const uint16_t *)a->pages.values.at + (head * size + p.at + r) * D + c * 8;
	const address keys = to + l / 2 * KEY + place_of_key(l / 2, l % 2);
	UNROLL for (int i = 0; i < 8 * CHUNKS; i += WARP / 2, key += size * (WARP / 2))
		if (keyed && i / GROUP_CHANNELS * GROUP_CHANNELS < D) copy_to(keys + i * KEY, key, l / 2 + i < D);
	if (!valued || c / 8 * GROUP_CHANNELS >= D) return;
	to += KEYS + r * ROW;
	UNROLL for (int i = 0; i < STEP; i += WARP / CHUNKS) {
		const int t = p.t + r + i, there = t >= from && t <= n && c * 8 < D;
		copy_to(to + i * ROW + place_in_panel(r + i, c), values + i * D, there);
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

// A lane's scores of 16 positions, of the heads in the upper rows and in the lower ones, which only groups of more than 8 have.
typedef float four __attribute__((vector_size(16), may_alias));
struct scores {
	four *at;
	int both;
};

// scores_of returns the place of the calling lane's scores in the room of its warp.
DEVICE struct scores scores_of(const struct paged_attention_args *a, int both) {
	struct scores s;
	const long steps = a->table_width * a->pages.size / STEP;
	s.at = a->room ? (four *)a->room + (element() / WARP * steps * (1 + both) * WARP + threadIdx.x % WARP) : 0;
	s.both = both;
	return s;
}

INLINE void keep_scores(struct scores s, int step, float z[2][4]) {
	UNROLL for (int i = 0; i < 2; i++) {
		four w;
		if (i > s.both) break;
		w[0] = z[0][2 * i], w[1] = z[0][2 * i + 1], w[2] = z[1][2 * i], w[3] = z[1][2 * i + 1];
		s.at[(step * (1 + s.both) + i) * WARP] = w;
	}
}

INLINE void take_scores(struct scores s, int step, float z[2][4]) {
	UNROLL for (int i = 0; i < 2; i++) {
		if (i > s.both) break;
		const four w = s.at[(step * (1 + s.both) + i) * WARP];
		z[0][2 * i] = w[0], z[0][2 * i + 1] = w[1], z[1][2 * i] = w[2], z[1][2 * i + 1] = w[3];
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

// attend computes the heads of a part of a group, for a row.
INLINE void attend(const struct paged_attention_args *a, address ring, struct scores kept, long row, int kv, long h, long end) {
	const struct attention_shape *s = &a->s;
	const int *table = a->table + a->seq[row] * a->table_width;
	const int n = a->pos[row], from = (int)first_seen(*s, n), first = from / STEP * STEP, steps = (n - first) / STEP + 1;
	struct step all; // every row sees every position that is there
	struct place next = place_of(a, table, first, n);
	float m[] = {-INFINITE, -INFINITE}, lane[2][4] = {{0}}, ready[2][4] = {{0}};
	uint32_t q[CHUNKS / 2][4];
	sums_of_panel out;
	all.row = n;
	all.position = n - STEP + 1;
	all.window = all.by_keys = 0;
	load_queries(q, a, row, h, end);
	no_sums_in_panel(out);
	ROLLED for (int turn = 1 - STAGES; turn < 2 * steps; turn++) {
		const int ahead = turn + STAGES - 1, step = turn < steps ? turn : turn - steps;
		if (turn >= 0) {
			await_copies(STAGES - 2);
			meet(); // all lanes see this stage, and none still reads the one that is fetched next
		}
		if (ahead == steps) next = place_of(a, table, first, n);
		if (ahead < 2 * steps) {
			fetch_positions(ring + ahead % STAGES * STAGE, a, next, kv, from, n, ahead < steps || !kept.at, ahead >= steps);
			pass(&next, a, table, n);
		}
		commit_copies();
		if (turn < 0) continue;
		const address stage = ring + turn % STAGES * STAGE;
		float z[2][4];
		uint32_t weights[1][4];
		if (turn < steps || !kept.at) {
			score_positions(z, s, q, stage, first + step * STEP, from, n);
		} else {
			EACH_SCORE(j, e) z[j][e] = ready[j][e];
		}
		if (turn < steps) {
			EACH_SCORE(j, e) m[e / 2] = larger(m[e / 2], z[j][e]);
			if (kept.at) keep_scores(kept, step, z);
		}
		if (kept.at && turn >= steps - 1 && turn < 2 * steps - 1) take_scores(kept, turn + 1 - steps, ready); // before they are needed
		if (turn < steps) continue;
		if (turn == steps) {
			UNROLL for (int i = 0; i < 2; i++) m[i] = largest_of(m[i]) + 0.0f;
		}
		EACH_SCORE(j, e) {
			z[j][e] = exp_down(z[j][e] - m[e / 2]);
			lane[e / 2][j * 2 + e % 2] += z[j][e];
		}
		as_weights(weights[0], z);
		add_panel(out, weights, stage + KEYS, (int)s->D, all, 0, 1);
	}
	await_copies(0);
	const float inverse[] = {1 / fold_quad(lane[0]), 1 / fold_quad(lane[1])};
	UNROLL for (int e = 0; e < 4; e += 2) {
		const long head = h + row_in_tile(e);
		if (head < end) store_sums(a->out, (row * s->H + head) * s->D, out[0], e, inverse[e / 2], (int)s->D);
	}
}

// A warp goes on with other rows and heads until none is left.
BLOCK_KERNEL(panel_paged_attention, HEAD_THREADS, 2) {
	LAUNCH_SHARED(char, shared, HEAD_WARPS * STAGES * STAGE);
	const long share = a.s.H / a.s.K, parts = (share + 15) / 16;
	const address ring = address_of(shared) + threadIdx.x / WARP * (STAGES * STAGE);
	const struct scores kept = scores_of(&a, share > 8);
	ROLLED for (long i = element() / WARP; i < a.M * a.s.K * parts; i += gridDim.x * HEAD_WARPS) {
		const long part = i % parts, kv = i / parts % a.s.K, row = i / parts / a.s.K;
		attend(&a, ring, kept, row, (int)kv, kv * share + part * 16, (kv + 1) * share);
		meet(); // the ring is free
	}
}

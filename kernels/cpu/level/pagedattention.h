// pagedattention.h: attention of single rows against a paged cache.

// PAGED_CHAINS vectors of a row's scores or output are computed at once for each of
// two heads: enough chains that none waits for itself.
#if defined(LEVEL_AVX512)
#define PAGED_CHAINS 4
#elif defined(LEVEL_AVX2)
#define PAGED_CHAINS 2
#else
#define PAGED_CHAINS 1
#endif
// CHAINS loops over them unrolled; otherwise they would spill to memory.
#define CHAINS(i, n) _Pragma("GCC unroll 4") for (int i = 0; i < (n); i++)

// A unit of paged attention is one row × one key/value head. This is what it reads: for
// LANES positions from t, the keys start at element keys_at(w, t), components `page`
// apart, and the values at values_at(w, t), positions d apart.
struct paged_view {
	const int32_t *pages;
	long head, heads, d, page;
	long from, n;     // the row sees positions from to n-1
	long start, base; // from rounded down to whole vectors, and to whole steps of TERMS, where the scores begin
};

INLINE struct paged_view view_pages(const int32_t *table, long width, const int32_t *seq, const int32_t *pos, const int32_t *ahead, long u, long heads,
	long d, long page, long window) {
	const long m = u / heads, from = first_seen(pos[m], window), n = pos[m] + 1 + (ahead ? ahead[m] : 0);
	const struct paged_view w = {table + (long)seq[m] * width, u % heads, heads, d, page, from, n, from / LANES * LANES, from / TERMS * TERMS};
	return w;
}
INLINE long keys_at(const struct paged_view w, long t) {
	return ((long)w.pages[t / w.page] * w.heads + w.head) * w.d * w.page + t % w.page;
}
INLINE long values_at(const struct paged_view w, long t) {
	return (((long)w.pages[t / w.page] * w.heads + w.head) * w.page + t % w.page) * w.d;
}

// stats_at returns the stats of the i-th head from there on, null for none.
INLINE float *stats_at(float *stats, long i) { return stats ? stats + 2 * i : stats; }

// paged_scores sets V vectors of R rows of z to the chains of q [R][d] with the keys of
// positions from t. Meanwhile it prefetches the next reads: the next keys, or the first
// values.
INLINE void paged_scores(const int R, const int V, const struct attention_args *g, const float *q, const struct paged_view w, long t, float *z, long ldz) {
	vf acc[2][PAGED_CHAINS];
	const float *k[PAGED_CHAINS], *next[PAGED_CHAINS];
	const long ahead = t + V * LANES, step = ahead < w.n ? w.page : LANES;
	CHAINS(v, V) {
		const long to = ahead + v * LANES;
		k[v] = g->keys + keys_at(w, t + v * LANES);
		next[v] = ahead >= w.n ? g->values + values_at(w, w.start + v * LANES < w.n ? w.start + v * LANES : w.start) : g->keys + keys_at(w, to < w.n ? to : ahead);
		CHAINS(r, R) acc[r][v] = v_zero();
	}
	for (long i = 0; i < w.d; i++)
		CHAINS(v, V) {
			const vf x = v_load(k[v] + i * w.page);
			__builtin_prefetch(next[v] + i * step);
			CHAINS(r, R) acc[r][v] = v_fma(v_set1(q[r * w.d + i]), x, acc[r][v]);
		}
	CHAINS(v, V) CHAINS(r, R) v_store(z + r * ldz + t - w.base + v * LANES, acc[r][v]);
}

// paged_values sets V vectors of R rows of o [R][d], n columns from column c, to the
// chains of weights z over all positions, times inv. Meanwhile it prefetches the next
// values, and the first keys of the next unit.
INLINE void paged_values(const int R, const int V, const struct attention_args *g, const float *z, long ldz, const struct paged_view w,
	const struct paged_view after, long c, int n, const float *inv, float *o) {
	vf acc[2][PAGED_CHAINS];
	CHAINS(v, V) CHAINS(r, R) acc[r][v] = v_zero();
	for (long t0 = w.start; t0 < w.n; t0 += LANES) {
		const long rows = w.n - t0 < LANES ? w.n - t0 : LANES, far = t0 - w.start;
		const float *x0 = g->values + values_at(w, t0) + c, *next = t0 + LANES < w.n ? g->values + values_at(w, t0 + LANES) + c : x0;
		const float *keys = g->keys + keys_at(after, after.start + far < after.n ? after.start + far : after.start) + c * w.page;
		const float *zt = z + t0 - w.base;
		for (long t = t0 < w.from ? w.from - t0 : 0; t < rows; t++) {
			CHAINS(v, V) {
				__builtin_prefetch(next + t * w.d + v * LANES);
				if (far < PAGED_CHAINS * LANES) __builtin_prefetch(keys + (t * V + v) * w.page);
				const float *p = x0 + t * w.d + v * LANES;
				const vf x = V == 1 ? v_loadt(p, n) : v_load(p);
				CHAINS(r, R) acc[r][v] = v_fma(v_set1(zt[r * ldz + t]), x, acc[r][v]);
			}
		}
	}
	CHAINS(v, V) CHAINS(r, R) {
		float *p = o + r * w.d + c + v * LANES;
		v_storet(p, v_mul(acc[r][v], v_set1(inv[r])), V == 1 ? n : LANES);
	}
}

// paged_heads computes R heads of a unit, and their stats [R][2] unless they are null. scratch: z [R][positions from base, in whole lanes].
INLINE void paged_heads(const int R, const struct attention_args *g, const struct paged_view w, const struct paged_view after,
	const float *q, float *o, float *stats, float *z) {
	const long ldz = round_up(w.n - w.base, NR);
	float inv[2], max;
	long t = w.start, c = 0;
	for (; t + (PAGED_CHAINS - 1) * LANES < w.n; t += PAGED_CHAINS * LANES) paged_scores(R, PAGED_CHAINS, g, q, w, t, z, ldz);
	for (; t < w.n; t += LANES) paged_scores(R, 1, g, q, w, t, z, ldz);
	for (int r = 0; r < R; r++) {
		inv[r] = 1.0f / softmax_scores(z + r * ldz + w.start - w.base, NR, w.from - w.start, w.n - w.start, g->scale, g->cap, g->inv_cap, &max);
		if (stats) stats[2 * r] = max, stats[2 * r + 1] = inv[r];
	}
	for (; PAGED_CHAINS > 1 && c + PAGED_CHAINS * LANES <= w.d; c += PAGED_CHAINS * LANES)
		paged_values(R, PAGED_CHAINS, g, z, ldz, w, after, c, LANES, inv, o);
	for (; c < w.d; c += LANES) paged_values(R, 1, g, z, ldz, w, after, c, w.d - c < LANES ? (int)(w.d - c) : LANES, inv, o);
}

// paged_attention computes units lo..hi, two heads at a time. With slots it first stores the keys
// and values of each row, which the row then reads.
static void paged_attention(const struct attention_args *g, long lo, long hi, int tid) {
	const long d = g->d, group = g->h / g->kv;
	float *z = g->scratch + tid * g->scratch_len;
	for (long u = lo; u < hi; u++) {
		const struct paged_view w = view_pages(g->table, g->width, g->seq, g->pos, g->ahead, u, g->kv, d, g->page, g->window);
		const struct paged_view after = view_pages(g->table, g->width, g->seq, g->pos, g->ahead, u + 1 < hi ? u + 1 : u, g->kv, d, g->page, g->window);
		const long m = u / g->kv;
		const float *q = g->qkv + m * g->stride + w.head * group * d;
		float *o = g->out + (m * g->h + w.head * group) * d, *stats = stats_at(g->stats, m * g->h + w.head * group);
		if (g->slots)
			store_key_value((char *)g->keys, (char *)g->values, (const char *)(g->qkv + m * g->stride + (g->h + w.head) * d), g->kv * d,
				g->slots[m], g->page, g->kv, w.head, d, sizeof *g->keys);
		long h = 0;
		for (; h + 2 <= group; h += 2) paged_heads(2, g, w, after, q + h * d, o + h * d, stats_at(stats, h), z);
		if (h < group) paged_heads(1, g, w, after, q + h * d, o + h * d, stats_at(stats, h), z);
	}
}

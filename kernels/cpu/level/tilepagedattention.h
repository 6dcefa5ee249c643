// tilepagedattention.h: attention of single rows against a paged cache in class "cpu/bf16".

// tile_paged_scores sets V vectors of R rows of z to the tile sums of q [R][d], in
// float32, with the keys of positions from t; see paged_scores.
INLINE void tile_paged_scores(const int R, const int V, const struct tile_attention_args *g, const float *q, const struct paged_view w, long t, float *z, long ldz) {
	vf acc[2][PAGED_CHAINS];
	const bf16 *k[PAGED_CHAINS], *next[PAGED_CHAINS];
	const long ahead = t + V * LANES, step = ahead < w.n ? w.page : LANES;
	CHAINS(v, V) {
		const long to = ahead + v * LANES;
		k[v] = g->keys + keys_at(w, t + v * LANES);
		next[v] = ahead >= w.n ? g->values + values_at(w, w.start + v * LANES < w.n ? w.start + v * LANES : w.start) : g->keys + keys_at(w, to < w.n ? to : ahead);
		CHAINS(r, R) acc[r][v] = v_zero();
	}
	for (long s = 0; s < w.d; s += TERMS) {
		const long end = s + TERMS < w.d ? s + TERMS : w.d;
		vf lane[2][2][PAGED_CHAINS];
		CHAINS(r, R) CHAINS(v, V) lane[r][0][v] = lane[r][1][v] = v_zero();
		for (long i = s; i < end; i += 2)
#pragma GCC unroll 2
			for (int b = 0; b < 2; b++) {
				if (i + b >= end) break;
				CHAINS(v, V) {
					const vf x = h_load(k[v] + (i + b) * w.page);
					__builtin_prefetch(next[v] + (i + b) * step);
					CHAINS(r, R) lane[r][b][v] = f_fma(v_set1(q[r * w.d + i + b]), x, lane[r][b][v]);
				}
			}
		CHAINS(r, R) CHAINS(v, V) acc[r][v] = f_add(acc[r][v], f_add(lane[r][0][v], lane[r][1][v]));
	}
	CHAINS(v, V) CHAINS(r, R) v_store(z + r * ldz + t - w.base + v * LANES, acc[r][v]);
}

// tile_paged_step continues the tile sums of tile_paged_values with the step that begins at
// position s. first says that the step may have positions before those that the row sees.
INLINE void tile_paged_step(const int R, const int V, const int first, vf acc[2][PAGED_CHAINS], const struct tile_attention_args *g,
	const float *z, long ldz, const struct paged_view w, const struct paged_view after, long c, int n, long s) {
	vf lane[2][2][PAGED_CHAINS];
	CHAINS(r, R) CHAINS(v, V) lane[r][0][v] = lane[r][1][v] = v_zero();
	for (long t0 = first ? w.start : s; t0 < s + TERMS && t0 < w.n; t0 += LANES) {
		const long rows = w.n - t0 < LANES ? w.n - t0 : LANES, far = t0 - w.start;
		const bf16 *x0 = g->values + values_at(w, t0) + c, *next = t0 + LANES < w.n ? g->values + values_at(w, t0 + LANES) + c : x0;
		const bf16 *keys = g->keys + keys_at(after, after.start + far < after.n ? after.start + far : after.start) + c * w.page;
		const float *zt = z + t0 - w.base;
		for (long t = 0; t < rows; t += 2)
#pragma GCC unroll 2
			for (int b = 0; b < 2; b++) {
				if (t + b >= rows) break;
				if (first && t0 + t + b < w.from) continue;
				CHAINS(v, V) {
					const bf16 *p = x0 + (t + b) * w.d + v * LANES;
					__builtin_prefetch(next + (t + b) * w.d + v * LANES);
					if (far < PAGED_CHAINS * LANES) __builtin_prefetch(keys + ((t + b) * V + v) * w.page);
					const vf x = V == 1 && n < LANES ? h_loadn(p, n) : h_load(p);
					CHAINS(r, R) lane[r][b][v] = f_fma(v_set1(zt[r * ldz + t + b]), x, lane[r][b][v]);
				}
			}
	}
	CHAINS(r, R) CHAINS(v, V) acc[r][v] = f_add(acc[r][v], f_add(lane[r][0][v], lane[r][1][v]));
}

// tile_paged_values sets V vectors of R rows, n columns from column c, to the tile sums of
// weights z over the positions that the row sees; see paged_values. They are stored after
// the weights.
INLINE void tile_paged_values(const int R, const int V, const struct tile_attention_args *g, float *z, long ldz, const struct paged_view w,
	const struct paged_view after, long c, int n) {
	vf acc[2][PAGED_CHAINS];
	CHAINS(r, R) CHAINS(v, V) acc[r][v] = v_zero();
	long s = w.base;
	if (w.from > s) tile_paged_step(R, V, 1, acc, g, z, ldz, w, after, c, n, s), s += TERMS;
	for (; s < w.n; s += TERMS) tile_paged_step(R, V, 0, acc, g, z, ldz, w, after, c, n, s);
	CHAINS(v, V) CHAINS(r, R) v_store(z + r * ldz + round_up(w.n - w.base, NR) + c + v * LANES, acc[r][v]);
}

// tile_paged_heads computes R heads of a unit. scratch: their queries in float32, and z
// [R] of scores and of sums.
INLINE void tile_paged_heads(const int R, const struct tile_attention_args *g, const struct paged_view w, const struct paged_view after,
	const bf16 *q, bf16 *o, float *stats, float *scratch) {
	const long np = round_up(w.n - w.base, NR), ldz = np + round_up(w.d, LANES);
	float *wide = scratch, *z = scratch + round_up(R * w.d, LANES), inv[2], max;
	for (long i = 0; i < R * w.d; i += LANES) v_storet(wide + i, ld(q, i, lanes_left(R * w.d - i), 1), lanes_left(R * w.d - i));
	unsigned mode = flushing();
	long t = w.start, c = 0;
	for (; t + (PAGED_CHAINS - 1) * LANES < w.n; t += PAGED_CHAINS * LANES) tile_paged_scores(R, PAGED_CHAINS, g, wide, w, t, z, ldz);
	for (; t < w.n; t += LANES) tile_paged_scores(R, 1, g, wide, w, t, z, ldz);
	not_flushing(mode);
	for (int r = 0; r < R; r++) {
		float *zr = z + r * ldz + w.start - w.base;
		inv[r] = 1.0f / softmax_scores(zr, NR, w.from - w.start, w.n - w.start, g->scale, g->cap, g->inv_cap, &max);
		if (stats) stats[2 * r] = max, stats[2 * r + 1] = inv[r];
		for (t = w.start; t < w.n; t += LANES, zr += LANES) {
			bf16 p[LANES];
			h_store(p, v_load(zr));
			v_store(zr, h_load(p));
		}
	}
	mode = flushing();
	for (; PAGED_CHAINS > 1 && c + PAGED_CHAINS * LANES <= w.d; c += PAGED_CHAINS * LANES)
		tile_paged_values(R, PAGED_CHAINS, g, z, ldz, w, after, c, LANES);
	for (; c < w.d; c += LANES) tile_paged_values(R, 1, g, z, ldz, w, after, c, lanes_left(w.d - c));
	not_flushing(mode);
	for (int r = 0; r < R; r++)
		for (c = 0; c < w.d; c += LANES)
			st(o, r * w.d + c, v_mul(v_load(z + r * ldz + np + c), v_set1(inv[r])), lanes_left(w.d - c), 1);
}

// tile_paged_attention computes units lo..hi, a unit being one row × one key/value
// head, two heads at a time.
static void tile_paged_attention(const struct tile_attention_args *g, long lo, long hi, int tid) {
	const long d = g->d, group = g->h / g->kv;
	float *scratch = g->scratch + tid * g->scratch_len;
	for (long u = lo; u < hi; u++) {
		const struct paged_view w = view_pages(g->table, g->width, g->seq, g->pos, g->ahead, u, g->kv, d, g->page, g->window);
		const struct paged_view after = view_pages(g->table, g->width, g->seq, g->pos, g->ahead, u + 1 < hi ? u + 1 : u, g->kv, d, g->page, g->window);
		const long m = u / g->kv;
		const bf16 *q = g->qkv + m * g->stride + w.head * group * d;
		bf16 *o = g->out + (m * g->h + w.head * group) * d;
		float *stats = stats_at(g->stats, m * g->h + w.head * group);
		if (g->slots)
			store_key_value((char *)g->keys, (char *)g->values, (const char *)(g->qkv + m * g->stride + (g->h + w.head) * d), g->kv * d,
				g->slots[m], g->page, g->kv, w.head, d, sizeof *g->keys);
		long h = 0;
		for (; h + 2 <= group; h += 2) tile_paged_heads(2, g, w, after, q + h * d, o + h * d, stats_at(stats, h), scratch);
		if (h < group) tile_paged_heads(1, g, w, after, q + h * d, o + h * d, stats_at(stats, h), scratch);
	}
}

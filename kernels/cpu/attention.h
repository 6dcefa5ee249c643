// attention.h: causal attention over packed sequences forward and backward, and
// attention against a paged cache.

// softmax_row turns scores z[0:n] into e = exp(z·scale - m) in place and returns m
// and the sum of e. The row lies in pieces of NR, `panel` apart. Lanes past n in its
// last vector get values of no meaning.
INLINE float softmax_row(float *z, long panel, long n, float scale, float *max) {
	const vf sv = v_set1(scale), low = v_set1(-INFINITY);
	vf m = low, sum = v_zero();
	float *p = z;
	long t = n;
	for (; t >= NR; t -= NR, p += panel)
#pragma GCC unroll 2
		for (int j = 0; j < NV; j++) m = v_max(v_mul(v_load(p + j * LANES), sv), m);
	float *last = p;
	const int tail = (int)t;
	for (; t > 0; t -= LANES, last += LANES) {
		const vf x = v_mul(v_load(last), sv);
		m = v_max(t >= LANES ? x : v_keep(x, (int)t, low), m);
	}
	*max = v_largest(m);
	m = v_set1(*max);
	for (float *q = z; q != p; q += panel)
#pragma GCC unroll 2
		for (int j = 0; j < NV; j++) {
			const vf e = v_exp_neg(v_sub(v_mul(v_load(q + j * LANES), sv), m));
			v_store(q + j * LANES, e);
			sum = v_add(sum, e);
		}
	for (t = tail; t > 0; t -= LANES, p += LANES) {
		const vf e = v_exp_neg(v_sub(v_mul(v_load(p), sv), m));
		v_store(p, e);
		sum = v_add(sum, t >= LANES ? e : v_keep(e, (int)t, v_zero()));
	}
	return v_sum(sum);
}

INLINE void scale_row(float *x, long n, float by) {
	const vf b = v_set1(by);
	for (long i = 0; i < n; i += LANES) {
		const int w = n - i < LANES ? (int)(n - i) : LANES;
		v_storet(x + i, v_mul(v_loadt(x + i, w), b), w);
	}
}

// scores sets z, R rows in panels `panel` long, to the chains of R rows of a (in
// panels `apanel` long) with the first n columns of bt [n/NR][d][NR].
INLINE void scores(const float *a, long apanel, const float *bt, float *z, long panel, long R, long d, long n) {
	for (long j = 0; j < n; j += NR)
		scores_tiles[R](a, apanel, bt + j * d, z + j / NR * panel, d, n - j > LANES ? NR : LANES);
}

// causal_rows computes, for R rows from row i0 of a sequence, and scales,
//	c[i] = chain over t ≤ i of w[i][t]·b[t]       c [R,d], b [d/NR][T][NR]
// with w's rows in panels `panel` long. No row ever touches a key after it.
INLINE void causal_rows(const float *w, long panel, const float *b, long T, float *c, long ldc,
	long i0, long R, long d, const float *scale) {
	for (long j = 0; j < d; j += NR) {
		if (d - j >= NR) {
			causal_tiles[R](w, panel, b + j * T, c + j, ldc, i0 + 1, scale);
			continue;
		}
		float t[MR * NR];
		causal_tiles[R](w, panel, b + j * T, t, NR, i0 + 1, scale);
		copy_tile(c + j, ldc, t, NR, R, (int)(d - j));
	}
}

// attention computes units lo..hi, a unit being one sequence × one key/value head.
// scratch: keys transposed, values, MR query rows, their scores; all in panels.
static void attention(const struct attention_args *g, long lo, long hi, int tid) {
	const long d = g->d, dp = round_up(d, NR), group = g->h / g->kv, ldo = g->h * d;
	for (long u = lo; u < hi; u++) {
		const long s = g->order[u / g->kv], kv = u % g->kv;
		const long r0 = g->offsets[s], T = g->offsets[s + 1] - r0;
		if (T == 0) continue;
		const long Tp = round_up(T, NR), strips = strip_count(T);
		const float *base = g->qkv + r0 * g->stride;
		const float *k = base + (g->h + kv) * d;
		float *kt = g->scratch + tid * g->scratch_len, *v = kt + d * Tp, *q = v + dp * Tp, *z = q + dp * MR;
		put_transposed(kt, k, g->stride, T, d);
		put_panels(v, T, k + g->kv * d, g->stride, T, d);
		for (long h = kv * group; h < (kv + 1) * group; h++)
			for (long n = 0; n < strips; n++) {
				const long i0 = strip_at(T, strips, n), R = strip_at(T, strips, n + 1) - i0;
				float inv[MR];
				put_panels(q, R, base + i0 * g->stride + h * d, g->stride, R, d);
				scores(q, R * NR, kt, z, R * NR, R, d, i0 + R);
				for (long i = 0; i < R; i++) {
					float *st = g->stats + ((r0 + i0 + i) * g->h + h) * 2;
					st[1] = inv[i] = 1.0f / softmax_row(z + i * NR, R * NR, i0 + i + 1, g->scale, &st[0]);
				}
				causal_rows(z, R * NR, v, T, g->out + (r0 + i0) * ldo + h * d, ldo, i0, R, d, inv);
			}
	}
}

// QUERY_BLOCK query rows' probabilities are kept at a time in the backward pass. A
// multiple of NR, so that a tile of keys, which lies within a panel, either comes
// before a block or begins in it.
#define QUERY_BLOCK 96

// key_rows continues, for key rows t0..t0+R and queries i0..i1 of which the last key
// sees one at least,
//	c[t] = chain over i ≥ t of w[i][t]·b[i]       c [R,d], b [d/NR][QUERY_BLOCK][NR]
// with query i0 in the first row of w, in panels of QUERY_BLOCK rows, and of b.
INLINE void key_rows(const float *w, const float *b, float *c, long ldc, long t0, long R, long i0, long i1, long d,
	enum tile_init init) {
	const int causal = t0 >= i0;
	const long from = causal ? t0 - i0 : 0;
	const float *a = w + t0 / NR * QUERY_BLOCK * NR + t0 % NR + from * NR;
	for (long j = 0; j < d; j += NR) {
		const float *bj = b + (j / NR * QUERY_BLOCK + from) * NR;
		if (d - j >= NR) {
			columns_tiles[R](a, bj, c + j, ldc, i1 - i0 - from, init, causal);
			continue;
		}
		float t[MR * NR];
		if (init == FROM_C) copy_tile(t, NR, c + j, ldc, R, (int)(d - j));
		columns_tiles[R](a, bj, t, NR, i1 - i0 - from, init, causal);
		copy_tile(c + j, ldc, t, NR, R, (int)(d - j));
	}
}

// attention_backward computes units lo..hi as attention does. scratch: keys and
// values transposed, keys, QUERY_BLOCK rows of queries and of dout, p and dz; all in
// panels.
static void attention_backward(const struct attention_args *g, long lo, long hi, int tid) {
	const long d = g->d, dp = round_up(d, NR), group = g->h / g->kv, ldo = g->h * d, ld = g->stride;
	const long panel = QUERY_BLOCK * NR, key_strips = strip_count(NR);
	for (long u = lo; u < hi; u++) {
		const long s = g->order[u / g->kv], kv = u % g->kv;
		const long r0 = g->offsets[s], T = g->offsets[s + 1] - r0;
		if (T == 0) continue;
		const long Tp = round_up(T, NR);
		const float *q0 = g->qkv + r0 * ld, *k0 = q0 + (g->h + kv) * d;
		float *dq0 = g->dqkv + r0 * ld, *dk = dq0 + (g->h + kv) * d, *dv = dk + g->kv * d;
		float *kt = g->scratch + tid * g->scratch_len, *vt = kt + d * Tp, *k = vt + d * Tp;
		float *q = k + dp * Tp, *dout = q + dp * QUERY_BLOCK, *p = dout + dp * QUERY_BLOCK, *dz = p + QUERY_BLOCK * Tp;
		put_transposed(kt, k0, ld, T, d);
		put_transposed(vt, k0 + g->kv * d, ld, T, d);
		put_panels(k, T, k0, ld, T, d);
		for (long h = kv * group; h < (kv + 1) * group; h++)
			for (long b0 = 0; b0 < T; b0 += QUERY_BLOCK) {
				const long b1 = b0 + QUERY_BLOCK < T ? b0 + QUERY_BLOCK : T, strips = strip_count(b1 - b0);
				const float *dob = g->dout + (r0 + b0) * ldo + h * d, *ob = g->aout + (r0 + b0) * ldo + h * d;
				put_panels(q, QUERY_BLOCK, q0 + b0 * ld + h * d, ld, b1 - b0, d);
				put_panels(dout, QUERY_BLOCK, dob, ldo, b1 - b0, d);
				for (long i = 0; i < b1 - b0; i++) ask_row(ob, ldo, i, b1 - b0, d);
				for (long n = 0; n < strips; n++) {
					const long i0 = strip_at(b1 - b0, strips, n), R = strip_at(b1 - b0, strips, n + 1) - i0;
					scores(q + i0 * NR, panel, kt, p + i0 * NR, panel, R, d, b0 + i0 + R);
					scores(dout + i0 * NR, panel, vt, dz + i0 * NR, panel, R, d, b0 + i0 + R);
					for (long i = i0; i < i0 + R; i++) {
						const float *st = g->stats + ((r0 + b0 + i) * g->h + h) * 2;
						vf sum = v_zero();
						for (long j = 0; j < d; j += LANES) {
							const int w = d - j < LANES ? (int)(d - j) : LANES;
							sum = v_fma(v_loadt(dob + i * ldo + j, w), v_loadt(ob + i * ldo + j, w), sum);
						}
						const vf delta = v_set1(v_sum(sum)), m = v_set1(st[0]), inv = v_set1(st[1]), sc = v_set1(g->scale);
						float *pt = p + i * NR, *zt = dz + i * NR;
						for (long t = 0; t <= b0 + i; t += NR, pt += panel, zt += panel)
#pragma GCC unroll 2
							for (int j = 0; j < NR; j += LANES) { // scores past the row may be computed: nobody reads them
								const vf pv = v_mul(v_exp_neg(v_sub(v_mul(v_load(pt + j), sc), m)), inv);
								v_store(pt + j, pv);
								v_store(zt + j, v_mul(v_mul(pv, v_sub(v_load(zt + j), delta)), sc));
							}
					}
					causal_rows(dz + i0 * NR, panel, k, T, dq0 + (b0 + i0) * ld + h * d, ld, b0 + i0, R, d, 0);
				}
				for (long t = 0; t < b1; t += NR)
					for (long n = 0; n < key_strips; n++) {
						const long t0 = t + strip_at(NR, key_strips, n), t1 = t + strip_at(NR, key_strips, n + 1);
						const long R = (t1 < T ? t1 : T) - t0;
						if (R <= 0) break;
						const enum tile_init init = h == kv * group && t0 >= b0 ? FROM_ZERO : FROM_C;
						key_rows(dz, q, dk + t0 * ld, ld, t0, R, b0, b1, d, init);
						key_rows(p, dout, dv + t0 * ld, ld, t0, R, b0, b1, d, init);
					}
			}
	}
}

// PAGED_CHAINS vectors of a row's scores or output are computed side by side, for
// each of two heads: enough chains that none waits for itself.
#if defined(LEVEL_AVX512)
#define PAGED_CHAINS 4
#else
#define PAGED_CHAINS 1
#endif

// What a unit of paged attention, one row × one key/value head, reads: of LANES
// positions from t on, the keys begin at element keys_at(w, t), components page apart,
// and the values at values_at(w, t), positions d apart.
struct paged_view {
	const int32_t *pages;
	long head, heads, d, page, n; // n: positions that the row sees
};

INLINE struct paged_view view_pages(const int32_t *table, long width, const int32_t *seq, const int32_t *pos, long u, long heads, long d, long page) {
	const long m = u / heads;
	const struct paged_view w = {table + (long)seq[m] * width, u % heads, heads, d, page, pos[m] + 1};
	return w;
}
INLINE long keys_at(const struct paged_view w, long t) {
	return ((long)w.pages[t / w.page] * w.heads + w.head) * w.d * w.page + t % w.page;
}
INLINE long values_at(const struct paged_view w, long t) {
	return (((long)w.pages[t / w.page] * w.heads + w.head) * w.page + t % w.page) * w.d;
}

// paged_scores sets V vectors of R rows of z to the chains of q [R][d] with the keys of
// positions from t on. What is read next is brought closer meanwhile: the next keys, or
// the first values.
INLINE void paged_scores(const int R, const int V, const struct attention_args *g, const float *q, const struct paged_view w, long t, float *z, long ldz) {
	vf acc[2][PAGED_CHAINS];
	const float *k[PAGED_CHAINS], *next[PAGED_CHAINS];
	const long ahead = t + V * LANES, step = ahead < w.n ? w.page : LANES;
	for (int v = 0; v < V; v++) {
		const long to = ahead + v * LANES;
		k[v] = g->keys + keys_at(w, t + v * LANES);
		next[v] = ahead >= w.n ? g->values + values_at(w, v * LANES < w.n ? v * LANES : 0) : g->keys + keys_at(w, to < w.n ? to : ahead);
		for (int r = 0; r < R; r++) acc[r][v] = v_zero();
	}
	for (long i = 0; i < w.d; i++)
		for (int v = 0; v < V; v++) {
			const vf x = v_load(k[v] + i * w.page);
			__builtin_prefetch(next[v] + i * step);
			for (int r = 0; r < R; r++) acc[r][v] = v_fma(v_set1(q[r * w.d + i]), x, acc[r][v]);
		}
	for (int v = 0; v < V; v++)
		for (int r = 0; r < R; r++) v_store(z + r * ldz + t + v * LANES, acc[r][v]);
}

// paged_values sets V vectors of R rows of o [R][d], n columns from column c on, to the
// chains of weights z over all positions, times inv. The next values, and the first
// keys of the next unit, are brought closer meanwhile.
INLINE void paged_values(const int R, const int V, const struct attention_args *g, const float *z, long ldz, const struct paged_view w,
	const struct paged_view after, long c, int n, const float *inv, float *o) {
	vf acc[2][PAGED_CHAINS];
	for (int v = 0; v < V; v++)
		for (int r = 0; r < R; r++) acc[r][v] = v_zero();
	for (long t0 = 0; t0 < w.n; t0 += LANES) {
		const long rows = w.n - t0 < LANES ? w.n - t0 : LANES;
		const float *x0 = g->values + values_at(w, t0) + c, *next = t0 + LANES < w.n ? g->values + values_at(w, t0 + LANES) + c : x0;
		const float *keys = g->keys + keys_at(after, t0 < after.n ? t0 : 0) + c * w.page;
		for (long t = 0; t < rows; t++) {
			for (int v = 0; v < V; v++) {
				__builtin_prefetch(next + t * w.d + v * LANES);
				if (t0 < PAGED_CHAINS * LANES) __builtin_prefetch(keys + (t * V + v) * w.page);
				const float *p = x0 + t * w.d + v * LANES;
				const vf x = V == 1 ? v_loadt(p, n) : v_load(p);
				for (int r = 0; r < R; r++) acc[r][v] = v_fma(v_set1(z[r * ldz + t0 + t]), x, acc[r][v]);
			}
		}
	}
	for (int v = 0; v < V; v++)
		for (int r = 0; r < R; r++) {
			float *p = o + r * w.d + c + v * LANES;
			v_storet(p, v_mul(acc[r][v], v_set1(inv[r])), V == 1 ? n : LANES);
		}
}

// paged_heads computes R heads of a unit. scratch: z [R][positions, in whole lanes].
INLINE void paged_heads(const int R, const struct attention_args *g, const struct paged_view w, const struct paged_view after,
	const float *q, float *o, float *z) {
	const long ldz = round_up(w.n, NR);
	float inv[2], max;
	long t = 0, c = 0;
	for (; t + (PAGED_CHAINS - 1) * LANES < w.n; t += PAGED_CHAINS * LANES) paged_scores(R, PAGED_CHAINS, g, q, w, t, z, ldz);
	for (; t < w.n; t += LANES) paged_scores(R, 1, g, q, w, t, z, ldz);
	for (int r = 0; r < R; r++) inv[r] = 1.0f / softmax_row(z + r * ldz, NR, w.n, g->scale, &max);
	for (; PAGED_CHAINS > 1 && c + PAGED_CHAINS * LANES <= w.d; c += PAGED_CHAINS * LANES)
		paged_values(R, PAGED_CHAINS, g, z, ldz, w, after, c, LANES, inv, o);
	for (; c < w.d; c += LANES) paged_values(R, 1, g, z, ldz, w, after, c, w.d - c < LANES ? (int)(w.d - c) : LANES, inv, o);
}

// paged_attention computes units lo..hi, two heads at a time.
static void paged_attention(const struct attention_args *g, long lo, long hi, int tid) {
	const long d = g->d, group = g->h / g->kv;
	float *z = g->scratch + tid * g->scratch_len;
	for (long u = lo; u < hi; u++) {
		const struct paged_view w = view_pages(g->table, g->width, g->seq, g->pos, u, g->kv, d, g->page);
		const struct paged_view after = view_pages(g->table, g->width, g->seq, g->pos, u + 1 < hi ? u + 1 : u, g->kv, d, g->page);
		const long m = u / g->kv;
		const float *q = g->qkv + m * g->stride + w.head * group * d;
		float *o = g->out + (m * g->h + w.head * group) * d;
		long h = 0;
		for (; h + 2 <= group; h += 2) paged_heads(2, g, w, after, q + h * d, o + h * d, z);
		if (h < group) paged_heads(1, g, w, after, q + h * d, o + h * d, z);
	}
}

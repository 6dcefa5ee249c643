// attention.h: causal attention over packed sequences forward and backward, and
// attention against a paged cache.

INLINE long round_up(long n, long to) { return (n + to - 1) / to * to; }

// transpose sets out [d][ld] from rows x[t·stride + 0..d), t < n, zero past n.
INLINE void transpose(float *out, long ld, const float *x, long stride, long n, long d) {
	for (long t = 0; t < n; t++)
		for (long i = 0; i < d; i++) out[i * ld + t] = x[t * stride + i];
	for (long i = 0; i < d; i++)
		for (long t = n; t < ld; t++) out[i * ld + t] = 0.0f;
}

// softmax_row turns scores z[0:n] into e = exp(z·scale - m) in place and returns
// m and the sum of e.
INLINE float softmax_row(float *z, long n, float scale, float *max) {
	const vf sv = v_set1(scale);
	for (long t = 0; t < n; t += LANES) {
		const int w = n - t < LANES ? (int)(n - t) : LANES;
		v_storet(z + t, v_mul(v_loadt(z + t, w), sv), w);
	}
	const float m = row_max(z, n);
	const vf mv = v_set1(m);
	vf sum = v_zero();
	long t = 0;
	for (; t + LANES <= n; t += LANES) {
		const vf e = v_exp(v_sub(v_load(z + t), mv));
		v_store(z + t, e);
		sum = v_add(sum, e);
	}
	if (t < n) {
		const int w = (int)(n - t);
		v_storen(z + t, v_exp(v_sub(v_loadn(z + t, w), mv)), w);
		sum = v_add(sum, v_loadn(z + t, w));
	}
	*max = m;
	return v_sum(sum);
}

INLINE void scale_row(float *x, long n, float by) {
	const vf b = v_set1(by);
	for (long i = 0; i < n; i += LANES) {
		const int w = n - i < LANES ? (int)(n - i) : LANES;
		v_storet(x + i, v_mul(v_loadt(x + i, w), b), w);
	}
}

// causal_rows computes, for rows i0..i1 (at most MR) of a sequence,
//	c[i] = chain over t ≤ i of w[i][t]·b[t]       c [·,d]
// with w row i at w + (i-i0)·ldw. Keys that all rows see go through one tile, the
// rest row by row, so that no row ever touches a key after it.
INLINE void causal_rows(const float *w, long ldw, const float *b, long ldb, float *c, long ldc,
	long i0, long i1, long d) {
	block(w, ldw, 1, b, ldb, c, ldc, i1 - i0, i0 + 1, d, FROM_ZERO, 0);
	for (long i = i0 + 1; i < i1; i++)
		block(w + (i - i0) * ldw + i0 + 1, ldw, 1, b + (i0 + 1) * ldb, ldb, c + (i - i0) * ldc, ldc,
			1, i - i0, d, FROM_C, 0);
}

// attention computes units lo..hi, a unit being one sequence × one key/value head.
// scratch: keys transposed [d][T], scores [MR][T].
static void attention(const struct attention_args *g, long lo, long hi, int tid) {
	const long d = g->d, group = g->h / g->kv, ldo = g->h * d;
	for (long u = lo; u < hi; u++) {
		const long s = u / g->kv, kv = u % g->kv;
		const long r0 = g->offsets[s], T = g->offsets[s + 1] - r0;
		if (T == 0) continue;
		const long Tp = round_up(T, LANES);
		const float *base = g->qkv + r0 * g->stride;
		const float *k = base + (g->h + kv) * d, *v = k + g->kv * d;
		float *kt = g->scratch + tid * g->scratch_len, *z = kt + d * Tp;
		transpose(kt, Tp, k, g->stride, T, d);
		for (long h = kv * group; h < (kv + 1) * group; h++)
			for (long i0 = 0; i0 < T; i0 += MR) {
				const long i1 = i0 + MR < T ? i0 + MR : T;
				block(base + i0 * g->stride + h * d, g->stride, 1, kt, Tp, z, Tp, i1 - i0, d,
					round_up(i1, LANES), FROM_ZERO, 0);
				for (long i = i0; i < i1; i++) {
					float *st = g->stats + ((r0 + i) * g->h + h) * 2;
					st[1] = 1.0f / softmax_row(z + (i - i0) * Tp, i + 1, g->scale, &st[0]);
				}
				float *o = g->out + (r0 + i0) * ldo + h * d;
				causal_rows(z, Tp, v, g->stride, o, ldo, i0, i1, d);
				for (long i = i0; i < i1; i++)
					scale_row(o + (i - i0) * ldo, d, g->stats[((r0 + i) * g->h + h) * 2 + 1]);
			}
	}
}

#define QUERY_BLOCK 32 // query rows whose probabilities are kept at a time in the backward pass

// reverse_rows continues, for key rows t0..t1 (at most MR) and queries i0..i1,
//	c[t] = chain over i ≥ t of w[i][t]·b[i]
// with w's row of query i at w + (i-i0)·ldw, and b's at b + i·ldb.
INLINE void reverse_rows(const float *w, long ldw, const float *b, long ldb, float *c, long ldc,
	long t0, long t1, long i0, long i1, long d) {
	const long common = t1 - 1 > i0 ? t1 - 1 : i0; // from here on every row of the tile takes part
	for (long t = t0; t < t1; t++) {
		const long from = t > i0 ? t : i0, to = common < i1 ? common : i1;
		if (from < to)
			block(w + (from - i0) * ldw + t, 1, ldw, b + from * ldb, ldb, c + (t - t0) * ldc, ldc,
				1, to - from, d, FROM_C, 0);
	}
	if (common < i1)
		block(w + (common - i0) * ldw + t0, 1, ldw, b + common * ldb, ldb, c, ldc,
			t1 - t0, i1 - common, d, FROM_C, 0);
}

// attention_backward computes units lo..hi as attention does. scratch: keys and
// values transposed [d][T] each, p and dz [QUERY_BLOCK][T] each.
static void attention_backward(const struct attention_args *g, long lo, long hi, int tid) {
	const long d = g->d, group = g->h / g->kv, ldo = g->h * d, ld = g->stride;
	for (long u = lo; u < hi; u++) {
		const long s = u / g->kv, kv = u % g->kv;
		const long r0 = g->offsets[s], T = g->offsets[s + 1] - r0;
		if (T == 0) continue;
		const long Tp = round_up(T, LANES);
		const float *q0 = g->qkv + r0 * ld;
		const float *k = q0 + (g->h + kv) * d, *v = k + g->kv * d;
		float *dq0 = g->dqkv + r0 * ld;
		float *dk = dq0 + (g->h + kv) * d, *dv = dk + g->kv * d;
		float *kt = g->scratch + tid * g->scratch_len, *vt = kt + d * Tp;
		float *p = vt + d * Tp, *dz = p + QUERY_BLOCK * Tp;
		transpose(kt, Tp, k, ld, T, d);
		transpose(vt, Tp, v, ld, T, d);
		for (long t = 0; t < T; t++) {
			memset(dk + t * ld, 0, sizeof(float) * d);
			memset(dv + t * ld, 0, sizeof(float) * d);
		}
		for (long h = kv * group; h < (kv + 1) * group; h++) {
			const float *q = q0 + h * d, *dout = g->dout + r0 * ldo + h * d, *o = g->aout + r0 * ldo + h * d;
			for (long i0 = 0; i0 < T; i0 += QUERY_BLOCK) {
				const long i1 = i0 + QUERY_BLOCK < T ? i0 + QUERY_BLOCK : T, cols = round_up(i1, LANES);
				block(q + i0 * ld, ld, 1, kt, Tp, p, Tp, i1 - i0, d, cols, FROM_ZERO, 0);
				block(dout + i0 * ldo, ldo, 1, vt, Tp, dz, Tp, i1 - i0, d, cols, FROM_ZERO, 0);
				for (long i = i0; i < i1; i++) {
					const float *st = g->stats + ((r0 + i) * g->h + h) * 2;
					float *pi = p + (i - i0) * Tp, *zi = dz + (i - i0) * Tp;
					vf sum = v_zero();
					for (long j = 0; j < d; j += LANES) {
						const int w = d - j < LANES ? (int)(d - j) : LANES;
						sum = v_fma(v_loadt(dout + i * ldo + j, w), v_loadt(o + i * ldo + j, w), sum);
					}
					const vf delta = v_set1(v_sum(sum)), m = v_set1(st[0]), inv = v_set1(st[1]), sc = v_set1(g->scale);
					for (long t = 0; t <= i; t += LANES) {
						const int w = i + 1 - t < LANES ? (int)(i + 1 - t) : LANES;
						const vf pv = v_mul(v_exp(v_sub(v_mul(v_loadt(pi + t, w), sc), m)), inv);
						v_storet(pi + t, pv, w);
						v_storet(zi + t, v_mul(v_mul(pv, v_sub(v_loadt(zi + t, w), delta)), sc), w);
					}
				}
				for (long i = i0; i < i1; i += MR)
					causal_rows(dz + (i - i0) * Tp, Tp, k, ld, dq0 + i * ld + h * d, ld, i, i + MR < i1 ? i + MR : i1, d);
				for (long t = 0; t < i1; t += MR) {
					const long t1 = t + MR < T ? t + MR : T;
					reverse_rows(dz, Tp, q, ld, dk + t * ld, ld, t, t1, i0, i1, d);
					reverse_rows(p, Tp, dout, ldo, dv + t * ld, ld, t, t1, i0, i1, d);
				}
			}
		}
	}
}

// paged_attention computes units lo..hi, a unit being one row × one key/value
// head. scratch: scores [H/K][T].
static void paged_attention(const struct attention_args *g, long lo, long hi, int tid) {
	const long d = g->d, P = g->page, group = g->h / g->kv;
	for (long u = lo; u < hi; u++) {
		const long m = u / g->kv, kv = u % g->kv, n = g->pos[m] + 1, Tp = round_up(n, P);
		const int32_t *pages = g->table + (long)g->seq[m] * g->width;
		const float *q = g->qkv + m * g->stride + kv * group * d;
		float *z = g->scratch + tid * g->scratch_len, *o = g->out + (m * g->h + kv * group) * d;
		for (long t = 0; t < n; t += P)
			block(q, d, 1, g->keys + ((long)pages[t / P] * g->kv + kv) * d * P, P, z + t, Tp, group, d, P, FROM_ZERO, 0);
		float inv[group];
		for (long h = 0; h < group; h++) {
			float max;
			inv[h] = 1.0f / softmax_row(z + h * Tp, n, g->scale, &max);
		}
		for (long t = 0; t < n; t += P)
			block(z + t, Tp, 1, g->values + ((long)pages[t / P] * g->kv + kv) * P * d, d, o, d, group,
				n - t < P ? n - t : P, d, t == 0 ? FROM_ZERO : FROM_C, 0);
		for (long h = 0; h < group; h++) scale_row(o + h * d, d, inv[h]);
	}
}

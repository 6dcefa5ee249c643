// tileattention.h: attention of class "cpu/bf16": causal over packed sequences,
// forward and backward, and against a paged cache.
//
// Query rows go BLOCK at a time against BLOCK keys at a time. What a row must not see
// is multiplied by 0, which changes no sum as long as it is finite; sequences with
// other values in them take attention_rare, one row at a time.

// all_finite reports whether rows of d elements, ld apart, are free of NaN and Inf.
INLINE int all_finite(const bf16 *x, long ld_, long rows, long d) {
	const bf16 exponent = 0x7f80;
	int ok = 1;
	for (long r = 0; r < rows; r++, x += ld_) {
		long i = 0;
#if defined(LEVEL_AVX512)
		const __m512i all = _mm512_set1_epi16((short)exponent);
		for (; i + TERMS <= d; i += TERMS) ok &= _mm512_cmpeq_epi16_mask(_mm512_and_si512(_mm512_loadu_si512(x + i), all), all) == 0;
#endif
		for (; i < d; i++) ok &= (x[i] & exponent) != exponent;
	}
	return ok;
}

// tile_sum1 continues acc with the terms from..n-1 of a[i]·b[i·ldb], one at a time.
INLINE float flush_one(float x) { return (float_bits(x) & 0x7f800000u) == 0 ? bits_float(float_bits(x) & 0x80000000u) : x; }
static float tile_sum1(const float *a, const bf16 *b, long ldb, long from, long n, float acc) {
	for (long s = from / TERMS * TERMS; s < n; s += TERMS) {
		float lane[2] = {0, 0};
		for (long i = s < from ? from : s; i < n && i < s + TERMS; i++)
			lane[i & 1] = flush_one(fmaf(widen(round1(a[i])), widen(b[i * ldb]), lane[i & 1]));
		acc = flush_one(flush_one(acc) + flush_one(lane[0] + lane[1]));
	}
	return acc;
}

// dot1 is the tile sum of two rows of d BF16.
static float dot1(const bf16 *a, const bf16 *b, long d) {
	float acc = 0;
	for (long s = 0; s < d; s += TERMS) {
		float lane[2] = {0, 0};
		for (long i = s; i < d && i < s + TERMS; i++) lane[i & 1] = flush_one(fmaf(widen(a[i]), widen(b[i]), lane[i & 1]));
		acc = flush_one(acc + flush_one(lane[0] + lane[1]));
	}
	return acc;
}

// What a unit, one sequence × one key/value head, works on.
struct head_view {
	const bf16 *q, *k, *v; // of the sequence's first row; q of the group's first head
	long r0, T, head;      // first row, rows, first query head
};

INLINE struct head_view view_head(const struct tile_attention_args *g, long u) {
	struct head_view w;
	const long s = g->order[u / g->kv], kv = u % g->kv;
	w.r0 = g->offsets[s];
	w.T = g->offsets[s + 1] - w.r0;
	w.head = kv * (g->h / g->kv);
	w.q = g->qkv + w.r0 * g->stride + w.head * g->d;
	w.k = g->qkv + w.r0 * g->stride + (g->h + kv) * g->d;
	w.v = w.k + g->kv * g->d;
	return w;
}

// attention_rare is the unit in plain loops. scratch: z [T].
static void attention_rare(const struct tile_attention_args *g, const struct head_view w, float *z) {
	const long d = g->d, ldo = g->h * d;
	for (long h = 0; h < g->h / g->kv; h++)
		for (long i = 0; i < w.T; i++) {
			for (long t = 0; t <= i; t++) z[t] = dot1(w.q + i * g->stride + h * d, w.k + t * g->stride, d);
			float *st = g->stats + ((w.r0 + i) * g->h + w.head + h) * 2;
			st[1] = 1.0f / softmax_row(z, NR, i + 1, g->scale, &st[0]);
			for (long c = 0; c < d; c++)
				g->out[(w.r0 + i) * ldo + (w.head + h) * d + c] = round1(tile_sum1(z, w.v + c, g->stride, 0, i + 1, 0) * st[1]);
		}
}

// tile_attention computes units lo..hi. scratch: tiles of keys and values, a block of
// queries and of probabilities, and scores [BLOCK][T].
static void tile_attention(const struct tile_attention_args *g, long lo, long hi, int tid) {
	const long d = g->d, ldo = g->h * d, ds = steps_of(d);
	float out[BLOCK * BLOCK] __attribute__((aligned(64)));
	tiles_begin();
	for (long u = lo; u < hi; u++) {
		const struct head_view w = view_head(g, u);
		const long T = w.T, ts = steps_of(T), Tp = ts * TERMS;
		if (T == 0) continue;
		float *z = g->scratch + tid * g->scratch_len;
		bf16 *kc = (bf16 *)(z + BLOCK * Tp), *vp = kc + ts * ds * STEP, *q = vp + ts * ds * STEP, *p = q + ds * STEP;
		if (!all_finite(w.v, g->stride, T, d)) {
			attention_rare(g, w, z);
			continue;
		}
		for (long t = 0; t < T; t += BLOCK) cols32(kc + t / BLOCK * ds * STEP, w.k, t * g->stride, g->stride, T - t, d, 1);
		for (long c = 0; c < d; c += BLOCK) pairs32(vp + c / BLOCK * ts * STEP, w.v, c, g->stride, T, d - c, 1);
		for (long h = 0; h < g->h / g->kv; h++)
			for (long i0 = 0; i0 < T; i0 += BLOCK) {
				const long n = T - i0 < BLOCK ? T - i0 : BLOCK, keys = (i0 / BLOCK + 1) * BLOCK;
				rows32(q, w.q, i0 * g->stride + h * d, g->stride, n, d, 1);
				for (long t = 0; t < keys; t += BLOCK)
					block_sums(q, kc + t / BLOCK * ds * STEP, z + t, Tp, ds, n, T - t, 1);
				for (long i = 0; i < n; i++) {
					float *zi = z + i * Tp, *st = g->stats + ((w.r0 + i0 + i) * g->h + w.head + h) * 2;
					st[1] = 1.0f / softmax_row(zi, NR, i0 + i + 1, g->scale, &st[0]);
					for (long t = i0 + i + 1; t < keys; t++) zi[t] = 0;
				}
				rows32(p, z, 0, Tp, n, keys, 0);
				for (long c = 0; c < d; c += BLOCK) {
					block_sums(p, vp + c / BLOCK * ts * STEP, out, BLOCK, keys / BLOCK, n, d - c, 1);
					for (long i = 0; i < n; i++) {
						const vf inv = v_set1(g->stats[((w.r0 + i0 + i) * g->h + w.head + h) * 2 + 1]);
						for (long j = c; j < d && j < c + BLOCK; j += LANES)
							st(g->out, (w.r0 + i0 + i) * ldo + (w.head + h) * d + j,
								v_mul(v_load(out + i * BLOCK + j - c), inv), lanes_left(d - j), 1);
					}
				}
			}
	}
	tiles_end();
}

// row_delta is the lane sum of dout·out for row i of head h.
INLINE float row_delta(const struct tile_attention_args *g, long at) {
	vf sum = v_zero();
	for (long j = 0; j < g->d; j += LANES) {
		const int n = lanes_left(g->d - j);
		sum = v_fma(ld(g->dout, at + j, n, 1), ld(g->aout, at + j, n, 1), sum);
	}
	return v_sum(sum);
}

// grads sets p and dz from scores and dp, a vector of keys.
INLINE void grads(vf *p, vf *dz, vf z, vf dp, const float *st, float delta, float scale) {
	const vf sc = v_set1(scale);
	*p = v_mul(v_exp(v_sub(v_mul(z, sc), v_set1(st[0]))), v_set1(st[1]));
	*dz = v_mul(v_mul(*p, v_sub(dp, v_set1(delta))), sc);
}

// attention_backward_rare is the unit in plain loops. scratch: p and dz [T].
static void attention_backward_rare(const struct tile_attention_args *g, const struct head_view w, float *p, float *dk) {
	const long d = g->d, ld_ = g->stride, ldo = g->h * d, T = w.T, Tp = steps_of(T) * TERMS;
	float *dz = p + Tp, *dv = dk + T * d;
	memset(dk, 0, 2 * T * d * sizeof(float));
	for (long h = 0; h < g->h / g->kv; h++) {
		const bf16 *q = w.q + h * d, *dout = g->dout + w.r0 * ldo + (w.head + h) * d;
		for (long i = 0; i < T; i++) {
			const float *st = g->stats + ((w.r0 + i) * g->h + w.head + h) * 2;
			const float delta = row_delta(g, (w.r0 + i) * ldo + (w.head + h) * d);
			for (long t = 0; t <= i; t++) {
				vf a, b;
				float x[LANES];
				grads(&a, &b, v_set1(dot1(q + i * ld_, w.k + t * ld_, d)), v_set1(dot1(dout + i * ldo, w.v + t * ld_, d)), st, delta, g->scale);
				v_store(x, b);
				dz[t] = x[0];
			}
			for (long c = 0; c < d; c++)
				g->dqkv[(w.r0 + i) * ld_ + (w.head + h) * d + c] = round1(tile_sum1(dz, w.k + c, ld_, 0, i + 1, 0));
		}
		for (long t = 0; t < T; t++) {
			for (long i = t; i < T; i++) {
				const float *st = g->stats + ((w.r0 + i) * g->h + w.head + h) * 2;
				const float delta = row_delta(g, (w.r0 + i) * ldo + (w.head + h) * d);
				vf a, b;
				float x[LANES];
				grads(&a, &b, v_set1(dot1(q + i * ld_, w.k + t * ld_, d)), v_set1(dot1(dout + i * ldo, w.v + t * ld_, d)), st, delta, g->scale);
				v_store(x, a);
				p[i] = x[0];
				v_store(x, b);
				dz[i] = x[0];
			}
			for (long c = 0; c < d; c++) {
				dk[t * d + c] = tile_sum1(dz, q + c, ld_, t, T, dk[t * d + c]);
				dv[t * d + c] = tile_sum1(p, dout + c, ldo, t, T, dv[t * d + c]);
			}
		}
	}
	bf16 *out = g->dqkv + w.r0 * ld_ + (w.k - (g->qkv + w.r0 * ld_));
	for (long t = 0; t < T; t++)
		for (long c = 0; c < d; c++) {
			out[t * ld_ + c] = round1(dk[t * d + c]);
			out[t * ld_ + g->kv * d + c] = round1(dv[t * d + c]);
		}
}

// score_gradients turns the scores z and the products dp of a block of rows and keys into
// the scores' gradients and the probabilities: 0 for what a row does not see, past the
// diagonal, and in rows from n on. Rows of stats lie line apart.
INLINE void score_gradients(float *z, float *dp, const float *stats, long line, const float *delta, float scale, long n, int diagonal) {
	for (long i = 0; i < BLOCK; i++, z += BLOCK, dp += BLOCK) {
		const long seen = i >= n ? 0 : diagonal ? i + 1 : BLOCK;
		for (long j = 0; j < BLOCK; j += LANES) {
			vf a = v_zero(), b = v_zero();
			if (j < seen) {
				grads(&a, &b, v_load(z + j), v_load(dp + j), stats + i * line, delta[i], scale);
				if (seen - j < LANES) a = v_keep(a, (int)(seen - j), v_zero()), b = v_keep(b, (int)(seen - j), v_zero());
			}
			v_store(z + j, b);
			v_store(dp + j, a);
		}
	}
}

// tile_attention_backward computes units lo..hi. Query rows go QUERY_BLOCKS blocks at a
// time, so that the gradients of a block of keys and values are read and written once for
// all of them. scratch: gradients of keys and values [T][D], and of a block of queries,
// tiles of keys (both ways) and of values, of blocks of queries and output gradients (both
// ways), and of the scores' gradients (both ways) and probabilities.
static void tile_attention_backward(const struct tile_attention_args *g, long lo, long hi, int tid) {
	const long d = g->d, ld_ = g->stride, ldo = g->h * d, ds = steps_of(d), Dp = ds * TERMS, G = QUERY_BLOCKS;
	float z[BLOCK * BLOCK] __attribute__((aligned(64))), dp[BLOCK * BLOCK] __attribute__((aligned(64)));
	tiles_begin();
	for (long u = lo; u < hi; u++) {
		const struct head_view w = view_head(g, u);
		const long T = w.T, ts = steps_of(T), Tp = ts * TERMS;
		if (T == 0) continue;
		float *dk = g->scratch + tid * g->scratch_len, *dv = dk + Tp * Dp, *dq = dv + Tp * Dp;
		bf16 *kc = (bf16 *)(dq + BLOCK * Dp), *kp = kc + ts * ds * STEP, *vc = kp + ts * ds * STEP;
		bf16 *qr = vc + ts * ds * STEP, *qp = qr + G * ds * STEP, *dor = qp + G * ds * STEP, *dop = dor + G * ds * STEP;
		bf16 *dzr = dop + G * ds * STEP, *dzt = dzr + G * ts * STEP, *pt = dzt + G * STEP;
		int ok = all_finite(w.k, ld_, T, d);
		for (long h = 0; h < g->h / g->kv; h++)
			ok = ok && all_finite(w.q + h * d, ld_, T, d) && all_finite(g->dout + w.r0 * ldo + (w.head + h) * d, ldo, T, d);
		if (!ok) {
			attention_backward_rare(g, w, (float *)kc, dk);
			continue;
		}
		for (long t = 0; t < T; t += BLOCK) {
			cols32(kc + t / BLOCK * ds * STEP, w.k, t * ld_, ld_, T - t, d, 1);
			cols32(vc + t / BLOCK * ds * STEP, w.v, t * ld_, ld_, T - t, d, 1);
		}
		for (long c = 0; c < d; c += BLOCK) pairs32(kp + c / BLOCK * ts * STEP, w.k, c, ld_, T, d - c, 1);
		memset(dk, 0, 2 * Tp * Dp * sizeof(float));
		for (long h = 0; h < g->h / g->kv; h++)
			for (long b0 = 0; b0 < ts; b0 += G) {
				const long b1 = b0 + G < ts ? b0 + G : ts, r0 = w.r0 + b0 * BLOCK;
				const bf16 *q = w.q + h * d + b0 * BLOCK * ld_, *dout = g->dout + r0 * ldo + (w.head + h) * d;
				const float *stats = g->stats + (r0 * g->h + w.head + h) * 2;
				float delta[QUERY_BLOCKS * BLOCK];
				for (long b = 0; b < b1 - b0; b++) {
					const long i0 = b * BLOCK, left = T - b0 * BLOCK - i0, n = left < BLOCK ? left : BLOCK;
					for (long i = i0; i < i0 + n; i++) delta[i] = row_delta(g, (r0 + i) * ldo + (w.head + h) * d);
					rows32(qr + b * ds * STEP, q, i0 * ld_, ld_, n, d, 1);
					rows32(dor + b * ds * STEP, dout, i0 * ldo, ldo, n, d, 1);
					for (long c = 0; c < d; c += BLOCK) {
						pairs32(qp + (c / BLOCK * G + b) * STEP, q, i0 * ld_ + c, ld_, n, d - c, 1);
						pairs32(dop + (c / BLOCK * G + b) * STEP, dout, i0 * ldo + c, ldo, n, d - c, 1);
					}
				}
				for (long tb = 0; tb < b1; tb++) {
					const long keys = T - tb * BLOCK < BLOCK ? T - tb * BLOCK : BLOCK, first = tb > b0 ? tb - b0 : 0;
					for (long b = first; b < b1 - b0; b++) {
						const long left = T - (b0 + b) * BLOCK, n = left < BLOCK ? left : BLOCK;
						block_sums(qr + b * ds * STEP, kc + tb * ds * STEP, z, BLOCK, ds, n, keys, 1);
						block_sums(dor + b * ds * STEP, vc + tb * ds * STEP, dp, BLOCK, ds, n, keys, 1);
						score_gradients(z, dp, stats + b * BLOCK * g->h * 2, g->h * 2, delta + b * BLOCK, g->scale, n, tb == b0 + b);
						// From here on z holds dz and dp holds p.
						rows32(dzr + (b * ts + tb) * STEP, z, 0, BLOCK, BLOCK, BLOCK, 0);
						column_rows32(dzt + b * STEP, z, 0, BLOCK, BLOCK, keys, 0);
						column_rows32(pt + b * STEP, dp, 0, BLOCK, BLOCK, keys, 0);
					}
					for (long c = 0; c < d; c += BLOCK) {
						const long at = tb * BLOCK * Dp + c, from = c / BLOCK * G + first;
						block_sums(dzt + first * STEP, qp + from * STEP, dk + at, Dp, b1 - b0 - first, keys, d - c, 0);
						block_sums(pt + first * STEP, dop + from * STEP, dv + at, Dp, b1 - b0 - first, keys, d - c, 0);
					}
				}
				for (long b = 0; b < b1 - b0; b++) {
					const long left = T - (b0 + b) * BLOCK, n = left < BLOCK ? left : BLOCK;
					for (long c = 0; c < d; c += BLOCK)
						block_sums(dzr + b * ts * STEP, kp + c / BLOCK * ts * STEP, dq + c, Dp, b0 + b + 1, n, d - c, 1);
					for (long i = 0; i < n; i++)
						for (long j = 0; j < d; j += LANES)
							st(g->dqkv, (r0 + b * BLOCK + i) * ld_ + (w.head + h) * d + j, v_load(dq + i * Dp + j), lanes_left(d - j), 1);
				}
			}
		const long at = w.r0 * ld_ + (w.k - (g->qkv + w.r0 * ld_));
		for (long t = 0; t < T; t++)
			for (long j = 0; j < d; j += LANES) {
				st(g->dqkv, at + t * ld_ + j, v_load(dk + t * Dp + j), lanes_left(d - j), 1);
				st(g->dqkv, at + t * ld_ + g->kv * d + j, v_load(dv + t * Dp + j), lanes_left(d - j), 1);
			}
	}
	tiles_end();
}

// tile_paged_scores sets V vectors of R rows of z to the tile sums of q [R][d], in
// float32, with the keys of positions from t on; see paged_scores.
INLINE void tile_paged_scores(const int R, const int V, const struct tile_attention_args *g, const float *q, const struct paged_view w, long t, float *z, long ldz) {
	vf acc[2][PAGED_CHAINS];
	const bf16 *k[PAGED_CHAINS], *next[PAGED_CHAINS];
	const long ahead = t + V * LANES, step = ahead < w.n ? w.page : LANES;
	for (int v = 0; v < V; v++) {
		const long to = ahead + v * LANES;
		k[v] = g->keys + keys_at(w, t + v * LANES);
		next[v] = ahead >= w.n ? g->values + values_at(w, v * LANES < w.n ? v * LANES : 0) : g->keys + keys_at(w, to < w.n ? to : ahead);
		for (int r = 0; r < R; r++) acc[r][v] = v_zero();
	}
	for (long s = 0; s < w.d; s += TERMS) {
		const long end = s + TERMS < w.d ? s + TERMS : w.d;
		vf lane[2][2][PAGED_CHAINS];
		for (int r = 0; r < R; r++)
			for (int v = 0; v < V; v++) lane[r][0][v] = lane[r][1][v] = v_zero();
		for (long i = s; i < end; i += 2)
#pragma GCC unroll 2
			for (int b = 0; b < 2; b++) {
				if (i + b >= end) break;
				for (int v = 0; v < V; v++) {
					const vf x = h_load(k[v] + (i + b) * w.page);
					__builtin_prefetch(next[v] + (i + b) * step);
					for (int r = 0; r < R; r++) lane[r][b][v] = f_fma(v_set1(q[r * w.d + i + b]), x, lane[r][b][v]);
				}
			}
		for (int r = 0; r < R; r++)
			for (int v = 0; v < V; v++) acc[r][v] = f_add(acc[r][v], f_add(lane[r][0][v], lane[r][1][v]));
	}
	for (int v = 0; v < V; v++)
		for (int r = 0; r < R; r++) v_store(z + r * ldz + t + v * LANES, acc[r][v]);
}

// tile_paged_values sets V vectors of R rows, n columns from column c on, to the tile
// sums of weights z over all positions; see paged_values. They go behind the weights.
INLINE void tile_paged_values(const int R, const int V, const struct tile_attention_args *g, float *z, long ldz, const struct paged_view w,
	const struct paged_view after, long c, int n) {
	vf acc[2][PAGED_CHAINS];
	for (int r = 0; r < R; r++)
		for (int v = 0; v < V; v++) acc[r][v] = v_zero();
	for (long s = 0; s < w.n; s += TERMS) {
		vf lane[2][2][PAGED_CHAINS];
		for (int r = 0; r < R; r++)
			for (int v = 0; v < V; v++) lane[r][0][v] = lane[r][1][v] = v_zero();
		for (long t0 = s; t0 < s + TERMS && t0 < w.n; t0 += LANES) {
			const long rows = w.n - t0 < LANES ? w.n - t0 : LANES;
			const bf16 *x0 = g->values + values_at(w, t0) + c, *next = t0 + LANES < w.n ? g->values + values_at(w, t0 + LANES) + c : x0;
			const bf16 *keys = g->keys + keys_at(after, t0 < after.n ? t0 : 0) + c * w.page;
			for (long t = 0; t < rows; t += 2)
#pragma GCC unroll 2
				for (int b = 0; b < 2; b++) {
					if (t + b >= rows) break;
					for (int v = 0; v < V; v++) {
						const bf16 *p = x0 + (t + b) * w.d + v * LANES;
						__builtin_prefetch(next + (t + b) * w.d + v * LANES);
						if (t0 < PAGED_CHAINS * LANES) __builtin_prefetch(keys + ((t + b) * V + v) * w.page);
						const vf x = V == 1 && n < LANES ? h_loadn(p, n) : h_load(p);
						for (int r = 0; r < R; r++) lane[r][b][v] = f_fma(v_set1(z[r * ldz + t0 + t + b]), x, lane[r][b][v]);
					}
				}
		}
		for (int r = 0; r < R; r++)
			for (int v = 0; v < V; v++) acc[r][v] = f_add(acc[r][v], f_add(lane[r][0][v], lane[r][1][v]));
	}
	for (int v = 0; v < V; v++)
		for (int r = 0; r < R; r++) v_store(z + r * ldz + round_up(w.n, NR) + c + v * LANES, acc[r][v]);
}

// tile_paged_heads computes R heads of a unit. scratch: their queries in float32, and z
// [R] of scores and of sums.
INLINE void tile_paged_heads(const int R, const struct tile_attention_args *g, const struct paged_view w, const struct paged_view after,
	const bf16 *q, bf16 *o, float *scratch) {
	const long np = round_up(w.n, NR), ldz = np + round_up(w.d, LANES);
	float *wide = scratch, *z = scratch + round_up(R * w.d, LANES), inv[2], max;
	for (long i = 0; i < R * w.d; i++) wide[i] = widen(q[i]);
	unsigned mode = flushing();
	long t = 0, c = 0;
	for (; t + (PAGED_CHAINS - 1) * LANES < w.n; t += PAGED_CHAINS * LANES) tile_paged_scores(R, PAGED_CHAINS, g, wide, w, t, z, ldz);
	for (; t < w.n; t += LANES) tile_paged_scores(R, 1, g, wide, w, t, z, ldz);
	not_flushing(mode);
	for (int r = 0; r < R; r++) {
		inv[r] = 1.0f / softmax_row(z + r * ldz, NR, w.n, g->scale, &max);
		for (t = 0; t < w.n; t += LANES) {
			bf16 p[LANES];
			h_store(p, v_load(z + r * ldz + t));
			v_store(z + r * ldz + t, h_load(p));
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
		const struct paged_view w = view_pages(g->table, g->width, g->seq, g->pos, u, g->kv, d, g->page);
		const struct paged_view after = view_pages(g->table, g->width, g->seq, g->pos, u + 1 < hi ? u + 1 : u, g->kv, d, g->page);
		const long m = u / g->kv;
		const bf16 *q = g->qkv + m * g->stride + w.head * group * d;
		bf16 *o = g->out + (m * g->h + w.head * group) * d;
		long h = 0;
		for (; h + 2 <= group; h += 2) tile_paged_heads(2, g, w, after, q + h * d, o + h * d, scratch);
		if (h < group) tile_paged_heads(1, g, w, after, q + h * d, o + h * d, scratch);
	}
}

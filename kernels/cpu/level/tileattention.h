// tileattention.h: attention over packed sequences in class "cpu/bf16", forward
// and backward.
//
// BLOCK query rows go against BLOCK keys at a time. Keys that a row must not see are
// multiplied by 0. While they are finite, that may change the sign of a sum that is 0 and
// nothing else: see weigh_block. Sequences with NaN or Inf take attention_rare, one row at
// a time. Blocks of keys that no row of a block sees are skipped.

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

// tile_sum1 continues acc with the terms from..n-1 of a[i]·b[i·ldb], one at a time, and products +0 up to
// end-1; the first `shared` elements of b are at prefix.
static float tile_sum1(const float *a, const bf16 *prefix, long shared, const bf16 *b, long ldb, long from, long n, long end, float acc) {
#if !defined(LEVEL_BF16)
	if (in_matrix) return matrix_sum1(a, prefix, shared, b, ldb, from, n, acc);
#endif
	for (long s = from / TERMS * TERMS; s < end; s += TERMS) {
		float lane[2] = {0, 0};
		for (long i = s < from ? from : s; i < end && i < s + TERMS; i++)
			lane[i & 1] = i < n ? fma_one(widen(round1(a[i])), widen((i < shared ? prefix : b)[i * ldb]), lane[i & 1]) : lane[i & 1] + 0.0f;
		acc = flush_one(flush_one(acc) + flush_one(lane[0] + lane[1]));
	}
	return acc;
}

// dot1 is the tile sum of two rows of d BF16.
static float dot1(const bf16 *a, const bf16 *b, long d) {
#if !defined(LEVEL_BF16)
	if (in_matrix) return matrix_dot1(a, b, d);
#endif
	float acc = 0;
	for (long s = 0; s < d; s += TERMS) {
		float lane[2] = {0, 0};
		for (long i = s; i < d && i < s + TERMS; i++) lane[i & 1] = fma_one(widen(a[i]), widen(b[i]), lane[i & 1]);
		acc = flush_one(acc + flush_one(lane[0] + lane[1]));
	}
	return acc;
}

// any_negative_zero reports whether a -0 is among the first `cols` columns, or those up to a whole vector, of rows of c.
INLINE int any_negative_zero(const float *c, long ldc, long rows, long cols) {
	const uint32_t zero = 0x80000000u;
	uint32_t any = 0;
	for (long i = 0; i < rows; i++)
		for (long j = 0; j < cols; j += LANES) {
			uint32_t found = 0;
#if defined(LEVEL_AVX512)
			found = _mm512_cmpeq_epi32_mask(_mm512_castps_si512(v_load(c + i * ldc + j)), _mm512_set1_epi32((int)zero));
#else
			for (int l = 0; l < LANES; l++) found |= float_bits(c[i * ldc + j + l]) == zero;
#endif
			any |= found;
		}
	return any != 0;
}

// tile_sum_of continues acc with the first n terms of row r of tiles of rows and column c of tiles of columns, and products +0 up to term end-1.
static float tile_sum_of(const bf16 *rows, const bf16 *columns, long r, long c, long n, long end, float acc) {
	rows += r * TERMS; // a block's two tiles follow one another
	for (long s = 0; s < end; s += TERMS, rows += STEP, columns += STEP) {
		bf16 x[TERMS], y[TERMS];
		float lane[2] = {0, 0};
		load_terms(x, rows);
		take_column(y, columns, c);
		for (int i = 0; i < TERMS && s + i < end; i++) lane[i & 1] = s + i < n ? fma_one(widen(x[i]), widen(y[i]), lane[i & 1]) : lane[i & 1] + 0.0f;
		acc = flush_one(acc + flush_one(lane[0] + lane[1]));
	}
	return acc;
}

// weigh_block is block_sums from 0 of n rows of weights, whose terms are keys: row i has those before ends[i], and the first is t0. Where
// others follow in the last step, their weights are 0 and the products zeros of either sign. These change a sum only if it was -0 before the
// step, which is rare: it must have been so small that it was flushed. Then sums that became +0 are computed again without them. Rows with
// more steps of keys, or fewer, get sums that nobody reads.
static void weigh_block(const bf16 *rows, const bf16 *columns, float *c, long ldc, long steps, long n, long cols, const long *ends, long t0) {
	int rare = 0;
	if (cols > BLOCK) cols = BLOCK;
	if (steps > 1) {
		block_sums(rows, columns, c, ldc, steps - 1, n, cols, 1);
		rare = any_negative_zero(c, ldc, n, cols);
	}
	block_sums(rows + (steps - 1) * STEP, columns + (steps - 1) * STEP, c, ldc, 1, n, cols, steps == 1);
#if !defined(LEVEL_BF16)
	if (in_matrix) return; // its sums are never -0
#endif
	for (long i = 0; rare && i < n; i++)
		for (long j = 0; j < cols; j++)
			if (float_bits(c[i * ldc + j]) == 0) c[i * ldc + j] = tile_sum_of(rows, columns, i, j, ends[i] - t0, ends[i] - t0, 0);
}

// A sequence of a unit, a group of sequences × a key/value head: pointers to row 0 of the
// sequence and of its prefix.
struct head_view {
	const bf16 *q, *k, *v, *prefix_k, *prefix_v; // q: first of the heads that share k
	long prefix, T, at, head;                    // see sequence_view; first query head
	const int32_t *ahead;                        // see ahead_of
};

INLINE struct head_view view_head(const struct tile_attention_args *g, const struct group_view u, long s) {
	const struct sequence_view x = view_sequence(u, g->offsets, s);
	const bf16 *keys = g->qkv + (g->h + u.kv) * g->d, *values = keys + g->kv * g->d;
	const long own = x.at * g->stride, first = g->offsets[u.first] * g->stride, head = u.kv * (g->h / g->kv);
	const struct head_view w = {g->qkv + own + head * g->d, keys + own, values + own, keys + first, values + first, x.prefix, x.T, x.at, head, ahead_of(g->ahead, x.at)};
	return w;
}

INLINE const bf16 *key_row(const struct head_view w, long t, long stride) { return (t < w.prefix ? w.prefix_k : w.k) + t * stride; }
INLINE const bf16 *value_row(const struct head_view w, long t, long stride) { return (t < w.prefix ? w.prefix_v : w.v) + t * stride; }

// key_block returns at most BLOCK rows of keys or values from t0, ld_ apart: in place, or copied
// to stage if the block has rows of both the prefix and the sequence.
INLINE const bf16 *key_block(const bf16 *prefix, const bf16 *own, long shared, long t0, long T, long d, long *ld_, bf16 *stage) {
	if (t0 >= shared) return own + t0 * *ld_;
	const long end = t0 + BLOCK < T ? t0 + BLOCK : T;
	if (end <= shared) return prefix + t0 * *ld_;
	for (long t = t0; t < end; t++) memcpy(stage + (t - t0) * d, (t < shared ? prefix : own) + t * *ld_, d * sizeof(bf16));
	*ld_ = d;
	return stage;
}

// attention_rare computes a sequence of a unit in plain loops. scratch: z [T].
static void attention_rare(const struct tile_attention_args *g, const struct head_view w, float *z) {
	const long d = g->d, ldo = g->h * d, ld_ = g->stride;
	for (long h = 0; h < g->h / g->kv; h++)
		for (long i = w.prefix; i < w.T; i++) {
			const long from = first_seen(i, g->window), end = end_seen(i, w.T, g->full, w.ahead);
			for (long t = from; t < end; t++) z[t] = dot1(w.q + i * ld_ + h * d, key_row(w, t, ld_), d);
			float *st = g->stats + ((w.at + i) * g->h + w.head + h) * 2;
			st[1] = 1.0f / softmax_scores(z, NR, from, end, g->scale, g->cap, g->inv_cap, &st[0]);
			for (long c = 0; c < d; c++)
				g->out[(w.at + i) * ldo + (w.head + h) * d + c] = round1(tile_sum1(z, w.prefix_v + c, w.prefix, w.v + c, ld_, from, end, end, 0) * st[1]);
		}
}

// pack_keys_values fills the tiles of a sequence's keys and values, ts steps of keys each, from the block of row `filled` on.
static void pack_keys_values(const struct tile_attention_args *g, const struct head_view w, bf16 *kc, bf16 *vp, long ts, long filled, bf16 *stage) {
	const long d = g->d, ds = steps_of(d), T = w.T;
	for (long t = filled / BLOCK * BLOCK; t < T; t += BLOCK) {
		long ldk = g->stride, ldv = g->stride;
		const bf16 *k = key_block(w.prefix_k, w.k, w.prefix, t, T, d, &ldk, stage);
		cols32(kc + t / BLOCK * ds * STEP, k, 0, ldk, T - t, d, 1);
		const bf16 *v = key_block(w.prefix_v, w.v, w.prefix, t, T, d, &ldv, stage);
		for (long c = 0; c < d; c += BLOCK) pairs32(vp + (c / BLOCK * ts + t / BLOCK) * STEP, v, c, ldv, T - t < BLOCK ? T - t : BLOCK, d - c, 1);
	}
}

// tile_attention computes units lo..hi. scratch: scores [BLOCK][T] of the keys from base, tiles of
// keys and values, and a block each of queries, probabilities and rows.
static void tile_attention(const struct tile_attention_args *g, long lo, long hi, int tid) {
	const long d = g->d, ldo = g->h * d, ds = steps_of(d);
	float out[BLOCK * BLOCK] __attribute__((aligned(64)));
	tiles_begin();
	for (long u = lo; u < hi; u++) {
		const struct group_view group = view_group(g->offsets, g->groups, g->order, g->kv, u);
		const long ts = steps_of(group.longest), Tp = ts * TERMS, most = round_up(g->window, BLOCK) + BLOCK;
		const long Zp = most < Tp && !g->ahead ? most : Tp; // scores of a row
		float *z = g->scratch + tid * g->scratch_len;
		bf16 *kc = (bf16 *)(z + BLOCK * Tp), *vp = kc + ts * ds * STEP, *q = vp + ts * ds * STEP, *p = q + ds * STEP, *stage = p + ts * STEP;
		long filled = 0; // rows of the prefix that the tiles hold
		for (long s = group.first; s < group.end; s++) {
			const struct head_view w = view_head(g, group, s);
			const long T = w.T, own = T - w.prefix;
			if (own == 0) continue;
			if (!all_finite(w.v + w.prefix * g->stride, g->stride, own, d) || !all_finite(w.prefix_v, g->stride, w.prefix, d)) {
				attention_rare(g, w, z);
				continue;
			}
			pack_keys_values(g, w, kc, vp, ts, filled, stage);
			filled = group.prefix;
			for (long h = 0; h < g->h / g->kv; h++)
				for (long i0 = w.prefix, n; i0 < T; i0 += n) { // rows of a block see as many steps of keys
					const long alike = run_end(i0, T, g->full, w.ahead), last = round_up(i0 + 1, BLOCK);
					n = alike < last ? alike - i0 : last - i0;
					const long base = first_seen(i0, g->window) / BLOCK * BLOCK;
					const long keys = round_up(end_seen(i0 + n - 1, T, g->full, w.ahead), BLOCK);
					long ends[BLOCK]; // see end_seen
					for (long i = 0; i < n; i++) ends[i] = end_seen(i0 + i, T, g->full, w.ahead);
					rows32(q, w.q, i0 * g->stride + h * d, g->stride, n, d, 1);
					for (long t = base; t < keys; t += BLOCK)
						block_sums(q, kc + t / BLOCK * ds * STEP, z + t - base, Zp, ds, n, T - t, 1);
					for (long i = 0; i < n; i++) {
						float *zi = z + i * Zp, *st = g->stats + ((w.at + i0 + i) * g->h + w.head + h) * 2;
						const long from = first_seen(i0 + i, g->window) - base, end = ends[i] - base;
						st[1] = 1.0f / softmax_scores(zi, NR, from, end, g->scale, g->cap, g->inv_cap, &st[0]);
						memset(zi, 0, from / NR * NR * sizeof *zi);
						for (long t = end; t < keys - base; t++) zi[t] = 0;
					}
					rows32(p, z, 0, Zp, n, keys - base, 0);
					for (long c = 0; c < d; c += BLOCK) {
						weigh_block(p, vp + (c / BLOCK * ts + base / BLOCK) * STEP, out, BLOCK, (keys - base) / BLOCK, n, d - c, ends, base);
						for (long i = 0; i < n; i++) {
							const vf inv = v_set1(g->stats[((w.at + i0 + i) * g->h + w.head + h) * 2 + 1]);
							for (long j = c; j < d && j < c + BLOCK; j += LANES)
								st(g->out, (w.at + i0 + i) * ldo + (w.head + h) * d + j,
									v_mul(v_load(out + i * BLOCK + j - c), inv), lanes_left(d - j), 1);
						}
					}
				}
		}
	}
	tiles_end();
}

// row_delta is the lane sum of dout·out for row i of head h.
ONE_COPY float row_delta(const struct tile_attention_args *g, long at) {
	vf sum = v_zero();
	for (long j = 0; j < g->d; j += LANES) {
		const int n = lanes_left(g->d - j);
		sum = v_fma(ld(g->dout, at + j, n, 1), ld(g->aout, at + j, n, 1), sum);
	}
	return v_sum(sum);
}

// grads sets p and dz from scores and dp, for a vector of keys. capped says whether there is a cap.
struct scaling { float scale, cap, inv_cap; };
INLINE void grads(vf *p, vf *dz, vf z, vf dp, const struct scaling by, const float *st, float delta, const int capped) {
	const vf sc = v_set1(by.scale);
	vf s = v_mul(z, sc), y = s;
	if (capped) y = v_tanh(v_mul(s, v_set1(by.inv_cap))), s = v_mul(v_set1(by.cap), y);
	*p = v_mul(v_exp(v_sub(s, v_set1(st[0]))), v_set1(st[1]));
	vf x = v_mul(*p, v_sub(dp, v_set1(delta)));
	if (capped) x = v_mul(x, v_sub(v_set1(1.0f), v_mul(y, y)));
	*dz = v_mul(x, sc);
}

// grads1 is grads for query row i of a head and key t.
INLINE void grads1(float *p, float *dz, const struct tile_attention_args *g, const struct head_view w, long h, long i, long t, float delta) {
	const float *st = g->stats + ((w.at + i) * g->h + w.head + h) * 2;
	const bf16 *q = w.q + i * g->stride + h * g->d, *dout = g->dout + ((w.at + i) * g->h + w.head + h) * g->d;
	const vf z = v_set1(dot1(q, key_row(w, t, g->stride), g->d)), dp = v_set1(dot1(dout, value_row(w, t, g->stride), g->d));
	const struct scaling by = {g->scale, g->cap, g->inv_cap};
	vf a, b;
	float x[LANES];
	if (g->cap > 0) grads(&a, &b, z, dp, by, st, delta, 1);
	else grads(&a, &b, z, dp, by, st, delta, 0);
	v_store(x, a);
	*p = x[0];
	v_store(x, b);
	*dz = x[0];
}

// last_step returns the first query of a sequence's last step.
INLINE long last_step(const struct head_view w) {
	const long step = (w.T - 1) / TERMS * TERMS;
	return step > w.prefix ? step : w.prefix;
}

// add_zero_steps ends the tile sums of the gradients of keys and values, rows line apart, after
// one query head of a sequence. Steps of queries that do not see a key were skipped, but their
// zeros turn a sum of -0 into +0. Keys of a prefix that it does not touch are +0 already.
ONE_COPY void add_zero_steps(const struct tile_attention_args *g, const struct head_view w, float *dk, float *dv, long line) {
	const long from = first_seen(w.prefix, g->window) - TERMS, end = last_step(w) - g->window + 1;
	for (long t = from > 0 ? from : 0; t < end && t < w.T; t++)
		for (long j = 0; j < g->d; j += LANES) {
			v_store(dk + t * line + j, v_add(v_load(dk + t * line + j), v_zero()));
			v_store(dv + t * line + j, v_add(v_load(dv + t * line + j), v_zero()));
		}
}

// late_step is a sequence's last step of the gradients of a block of keys, rows line apart: rows and columns are tiles of `terms` queries, those
// of channel c apart·(c/BLOCK) elements on. Key i of from..end-1 has a window that ends before term seen+i. The products of the others are +0 by definition, and
// here zeros of either sign. That matters only for a sum of -0 before and after the step, which is computed again. was: room for end-from rows.
static void late_step(const bf16 *rows, const bf16 *columns, long apart, float *grads, float *was, long line, long keys, long d, long from, long end,
	long seen, long terms) {
	const int rare = any_negative_zero(grads + from * line, line, end - from, d);
	if (rare) memcpy(was, grads + from * line, (end - from) * line * sizeof *was);
	for (long c = 0; c < d; c += BLOCK) block_sums(rows, columns + c / BLOCK * apart, grads + c, line, 1, keys, d - c, 0);
	for (long i = from; rare && i < end; i++)
		for (long c = 0; c < d; c++) {
			float *x = grads + i * line + c;
			if (float_bits(was[(i - from) * line + c]) == 0x80000000u && float_bits(*x) == 0x80000000u)
				*x = tile_sum_of(rows, columns + c / BLOCK * apart, i, c % BLOCK, seen + i, terms, -0.0f);
		}
}

// attention_backward_rare computes a sequence of a unit in plain loops and adds to dk and dv,
// rows line apart. scratch: p and dz [T].
static void attention_backward_rare(const struct tile_attention_args *g, const struct head_view w, float *p, float *dk, float *dv, long line) {
	const long d = g->d, ld_ = g->stride, ldo = g->h * d;
	float *dz = p + steps_of(w.T) * TERMS;
	for (long h = 0; h < g->h / g->kv; h++) {
		const bf16 *q = w.q + h * d, *dout = g->dout + w.at * ldo + (w.head + h) * d;
		for (long i = w.prefix; i < w.T; i++) {
			const long from = first_seen(i, g->window), end = end_seen(i, w.T, g->full, w.ahead);
			const float delta = row_delta(g, (w.at + i) * ldo + (w.head + h) * d);
			for (long t = from; t < end; t++) grads1(p + t, dz + t, g, w, h, i, t, delta);
			for (long c = 0; c < d; c++)
				g->dqkv[(w.at + i) * ld_ + (w.head + h) * d + c] = round1(tile_sum1(dz, w.prefix_k + c, w.prefix, w.k + c, ld_, from, end, end, 0));
		}
		for (long t = 0; t < w.T; t++) {
			const long first = first_seeing(t, w.prefix, g->full, w.ahead), end = w.T - t < g->window ? w.T : t + g->window;
			const int early = first_seeing(t / TERMS * TERMS, w.prefix, g->full, w.ahead) / TERMS < first / TERMS; // a step of zeros comes first
			for (long i = first; i < end; i++) grads1(p + i, dz + i, g, w, h, i, t, row_delta(g, (w.at + i) * ldo + (w.head + h) * d));
			for (long c = 0; c < d; c++) {
				if (early) dk[t * line + c] += 0.0f, dv[t * line + c] += 0.0f;
				dk[t * line + c] = tile_sum1(dz, 0, 0, q + c, ld_, first, end, w.T, dk[t * line + c]);
				dv[t * line + c] = tile_sum1(p, 0, 0, dout + c, ldo, first, end, w.T, dv[t * line + c]);
			}
		}
		add_zero_steps(g, w, dk, dv, line);
	}
}

// score_gradients turns the scores z and the products dp of a block of rows and keys into
// the scores' gradients and the probabilities. They are 0 for keys that a row does not see, past
// `keys`, from the row's end on (ends), or before key `unseen` (for row 0), which all count from the
// block's first key but ends, whose key t0 that is, and in rows before `from`. Rows from n on are no
// terms (tilesum.h). Rows of stats are line apart.
INLINE void score_gradients(float *z, float *dp, const struct scaling by, const float *stats, long line, const float *delta,
	long from, long n, const long *ends, long t0, long keys, long unseen, const int capped) {
	for (long i = 0; i < BLOCK; i++, z += BLOCK, dp += BLOCK) {
		const long last = i < from || i >= n ? 0 : ends[i] - t0, seen = last < keys ? last : keys, hidden = unseen + i;
		const vf unseen_row = v_set1(i < n ? 0.0f : -0.0f);
		for (long j = 0; j < BLOCK; j += LANES) {
			vf a = unseen_row, b = unseen_row;
			if (j < seen && hidden < j + LANES) {
				grads(&a, &b, v_load(z + j), v_load(dp + j), by, stats + i * line, delta[i], capped);
				if (seen - j < LANES) a = v_keep(a, (int)(seen - j), v_zero()), b = v_keep(b, (int)(seen - j), v_zero());
				if (hidden > j) a = v_keep(v_zero(), (int)(hidden - j), a), b = v_keep(v_zero(), (int)(hidden - j), b);
			}
			v_store(z + j, b);
			v_store(dp + j, a);
		}
	}
}

// put_tile_gradients stores rows t0..t1 of the gradients of keys and values; row 0 of the
// keys' goes to element `at` of dqkv.
ONE_COPY void put_tile_gradients(const struct tile_attention_args *g, long at, const float *dk, const float *dv, long line, long t0, long t1) {
	for (long t = t0; t < t1; t++)
		for (long j = 0; j < g->d; j += LANES) {
			st(g->dqkv, at + t * g->stride + j, v_load(dk + t * line + j), lanes_left(g->d - j), 1);
			st(g->dqkv, at + t * g->stride + g->kv * g->d + j, v_load(dv + t * line + j), lanes_left(g->d - j), 1);
		}
}

// own_rows returns a block of rows whose rows from..n are a sequence's own: in place, or, with
// zeros before them, in stage.
INLINE const bf16 *own_rows(const bf16 *x, long from, long n, long d, long *ld_, bf16 *stage) {
	if (from == 0) return x;
	memset(stage, 0, from * d * sizeof(bf16));
	for (long i = from; i < n; i++) memcpy(stage + i * d, x + i * *ld_, d * sizeof(bf16));
	*ld_ = d;
	return stage;
}

// tile_attention_backward computes units lo..hi. It takes QUERY_BLOCKS blocks of query rows
// at a time, so that it reads and writes the gradients of a block of keys and values once
// for all of them. scratch: gradients of keys and values [T][D], and of a block of queries,
// p and dz of attention_backward_rare, tiles of keys (both ways) and of values, of blocks of
// queries and output gradients (both ways), and of the scores' gradients (both ways) and
// probabilities, and a block of rows.
static void tile_attention_backward(const struct tile_attention_args *g, long lo, long hi, int tid) {
	const long d = g->d, ld_ = g->stride, ldo = g->h * d, ds = steps_of(d), Dp = ds * TERMS, G = QUERY_BLOCKS;
	float z[BLOCK * BLOCK] __attribute__((aligned(64))), dp[BLOCK * BLOCK] __attribute__((aligned(64)));
	const struct scaling by = {g->scale, g->cap, g->inv_cap};
	tiles_begin();
	for (long u = lo; u < hi; u++) {
		const struct group_view group = view_group(g->offsets, g->groups, g->order, g->kv, u);
		const long ts = steps_of(group.longest), Tp = ts * TERMS;
		float *dk = g->scratch + tid * g->scratch_len, *dv = dk + Tp * Dp, *dq = dv + Tp * Dp, *rare = dq + BLOCK * Dp;
		bf16 *kc = (bf16 *)(rare + 2 * Tp), *kp = kc + ts * ds * STEP, *vc = kp + ts * ds * STEP;
		bf16 *qr = vc + ts * ds * STEP, *qp = qr + G * ds * STEP, *dor = qp + G * ds * STEP, *dop = dor + G * ds * STEP;
		bf16 *dzr = dop + G * ds * STEP, *dzt = dzr + G * ts * STEP, *pt = dzt + G * STEP, *stage = pt + G * STEP;
		long filled = 0; // rows of the prefix that the tiles hold
		memset(dk, 0, 2 * Tp * Dp * sizeof(float));
		for (long s = group.first; s < group.end; s++) {
			const struct head_view w = view_head(g, group, s);
			const long T = w.T, P = w.prefix, own = T - P, qs = steps_of(T);
			if (own == 0) continue;
			int ok = all_finite(w.k + P * ld_, ld_, own, d) && all_finite(w.prefix_k, ld_, P, d);
			for (long h = 0; h < g->h / g->kv; h++)
				ok = ok && all_finite(w.q + P * ld_ + h * d, ld_, own, d) && all_finite(g->dout + (w.at + P) * ldo + (w.head + h) * d, ldo, own, d);
			if (!ok) attention_backward_rare(g, w, rare, dk, dv, Dp);
			for (long t = ok ? filled / BLOCK * BLOCK : T; t < T; t += BLOCK) {
				long ldk = ld_, ldv = ld_;
				const bf16 *k = key_block(w.prefix_k, w.k, P, t, T, d, &ldk, stage);
				cols32(kc + t / BLOCK * ds * STEP, k, 0, ldk, T - t, d, 1);
				for (long c = 0; c < d; c += BLOCK) pairs32(kp + (c / BLOCK * ts + t / BLOCK) * STEP, k, c, ldk, T - t < BLOCK ? T - t : BLOCK, d - c, 1);
				const bf16 *v = key_block(w.prefix_v, w.v, P, t, T, d, &ldv, stage);
				cols32(vc + t / BLOCK * ds * STEP, v, 0, ldv, T - t, d, 1);
			}
			if (ok) filled = group.prefix;
			for (long h = 0; ok && h < g->h / g->kv; h++)
				for (long b0 = P / BLOCK; b0 < qs; b0 += G) {
					const long b1 = b0 + G < qs ? b0 + G : qs, i00 = b0 * BLOCK, r0 = w.at + i00, from = i00 < P ? P - i00 : 0;
					const bf16 *q = w.q + h * d + i00 * ld_, *dout = g->dout + r0 * ldo + (w.head + h) * d;
					const float *stats = g->stats + (r0 * g->h + w.head + h) * 2;
					float delta[QUERY_BLOCKS * BLOCK];
					long ends[QUERY_BLOCKS * BLOCK] = {0}; // see end_seen
					for (long b = 0; b < b1 - b0; b++) {
						const long i0 = b * BLOCK, left = T - i00 - i0, n = left < BLOCK ? left : BLOCK, before = b == 0 ? from : 0;
						for (long i = i0 + before; i < i0 + n; i++) {
							delta[i] = row_delta(g, (r0 + i) * ldo + (w.head + h) * d);
							ends[i] = end_seen(i00 + i, T, g->full, w.ahead);
						}
						long ldq = ld_, ldd = ldo;
						const bf16 *x = own_rows(q + i0 * ld_, before, n, d, &ldq, stage);
						rows32(qr + b * ds * STEP, x, 0, ldq, n, d, 1);
						for (long c = 0; c < d; c += BLOCK) pairs32(qp + (c / BLOCK * G + b) * STEP, x, c, ldq, n, d - c, 1);
						x = own_rows(dout + i0 * ldo, before, n, d, &ldd, stage);
						rows32(dor + b * ds * STEP, x, 0, ldd, n, d, 1);
						for (long c = 0; c < d; c += BLOCK) pairs32(dop + (c / BLOCK * G + b) * STEP, x, c, ldd, n, d - c, 1);
					}
					// Rows of block b see keys from block first_block[b] up to block end_block[b].
					long first_block[QUERY_BLOCKS], end_block[QUERY_BLOCKS];
					for (long b = 0; b < b1 - b0; b++) {
						const long last = T - i00 < (b + 1) * BLOCK ? T - i00 : (b + 1) * BLOCK;
						first_block[b] = first_seen(i00 + b * BLOCK + (b == 0 ? from : 0), g->window) / BLOCK;
						end_block[b] = steps_of(ends[last - 1]);
					}
					for (long tb = first_block[0]; tb < end_block[b1 - b0 - 1]; tb++) {
						const long keys = T - tb * BLOCK < BLOCK ? T - tb * BLOCK : BLOCK;
						long first = 0;
						while (end_block[first] <= tb) first++;
						long end = first;
						for (; end < b1 - b0 && first_block[end] <= tb; end++) {
							const long b = end, left = T - i00 - b * BLOCK, n = left < BLOCK ? left : BLOCK;
							const long unseen = i00 + b * BLOCK + 1 - g->window - tb * BLOCK;
							block_sums(qr + b * ds * STEP, kc + tb * ds * STEP, z, BLOCK, ds, n, keys, 1);
							block_sums(dor + b * ds * STEP, vc + tb * ds * STEP, dp, BLOCK, ds, n, keys, 1);
							if (g->cap > 0) score_gradients(z, dp, by, stats + b * BLOCK * g->h * 2, g->h * 2, delta + b * BLOCK, b == 0 ? from : 0, n, ends + b * BLOCK, tb * BLOCK, keys, unseen, 1);
							else score_gradients(z, dp, by, stats + b * BLOCK * g->h * 2, g->h * 2, delta + b * BLOCK, b == 0 ? from : 0, n, ends + b * BLOCK, tb * BLOCK, keys, unseen, 0);
							// Now z holds dz and dp holds p.
							rows32(dzr + (b * ts + tb - first_block[0]) * STEP, z, 0, BLOCK, BLOCK, BLOCK, 0);
							column_rows32(dzt + b * STEP, z, 0, BLOCK, BLOCK, keys, 0);
							column_rows32(pt + b * STEP, dp, 0, BLOCK, BLOCK, keys, 0);
						}
						// Keys late..late_end-1 of the block have windows that end within the sequence's last step.
						const long t0 = tb * BLOCK, step = (qs - 1) * BLOCK - t0, behind = last_step(w) - g->window + 1 - t0, ended = T - g->window - t0;
						const long late = behind > 0 ? behind : 0, late_end = ended < keys ? ended : keys;
						const int ends_late = b1 == qs && end == b1 - b0 && late < late_end;
						const long whole = ends_late ? end - 1 : end; // steps
						for (long c = 0; c < d && whole > first; c += BLOCK) {
							const long at = t0 * Dp + c, panel = c / BLOCK * G + first;
							block_sums(dzt + first * STEP, qp + panel * STEP, dk + at, Dp, whole - first, keys, d - c, 0);
							block_sums(pt + first * STEP, dop + panel * STEP, dv + at, Dp, whole - first, keys, d - c, 0);
						}
						if (ends_late) {
							late_step(dzt + whole * STEP, qp + whole * STEP, G * STEP, dk + t0 * Dp, dq, Dp, keys, d, late, late_end, g->window - step, T - t0 - step);
							late_step(pt + whole * STEP, dop + whole * STEP, G * STEP, dv + t0 * Dp, dq, Dp, keys, d, late, late_end, g->window - step, T - t0 - step);
						}
					}
					for (long b = 0; b < b1 - b0; b++) {
						const long left = T - i00 - b * BLOCK, n = left < BLOCK ? left : BLOCK, tb = first_block[b];
						const long *own = ends + b * BLOCK;
						for (long i = b == 0 ? from : 0, steps = 0; i < n; i++) {
							for (long c = 0; c < d && steps_of(own[i]) != steps; c += BLOCK) // rows with as many steps follow one another
								weigh_block(dzr + (b * ts + tb - first_block[0]) * STEP, kp + (c / BLOCK * ts + tb) * STEP, dq + c, Dp, steps_of(own[i]) - tb, n, d - c, own, tb * BLOCK);
							steps = steps_of(own[i]);
							for (long j = 0; j < d; j += LANES)
								st(g->dqkv, (r0 + b * BLOCK + i) * ld_ + (w.head + h) * d + j, v_load(dq + i * Dp + j), lanes_left(d - j), 1);
						}
					}
					if (b1 == qs) add_zero_steps(g, w, dk, dv, Dp);
				}
			if (s == group.first) continue;
			put_tile_gradients(g, w.k - g->qkv, dk, dv, Dp, P, T);
			memset(dk + P * Dp, 0, (Tp - P) * Dp * sizeof(float));
			memset(dv + P * Dp, 0, (Tp - P) * Dp * sizeof(float));
		}
		put_tile_gradients(g, g->offsets[group.first] * ld_ + (g->h + group.kv) * d, dk, dv, Dp, 0, group.prefix);
	}
	tiles_end();
}

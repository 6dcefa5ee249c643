// attention.h: attention over packed sequences, forward and backward.

// cap_scores turns n scores, laid out as in softmax_row, into cap·Tanh(z·scale/cap). Lanes past n
// in the last vector get undefined values.
INLINE void cap_scores(float *z, long panel, long n, float scale, float cap, float inv_cap) {
	const vf sv = v_set1(scale), c = v_set1(cap), inv = v_set1(inv_cap);
	for (; n > 0; n -= NR, z += panel)
		for (long j = 0; j < NR && j < n; j += LANES) v_store(z + j, v_mul(c, v_tanh(v_mul(v_mul(v_load(z + j), sv), inv))));
}

// softmax_row turns scores z[from:n], from < NR, into e = exp(z·scale - m) in place, earlier
// scores into 0, sets *max to m and returns the sum of e. The row is in pieces of NR, `panel`
// apart. Lanes past n in its last vector get undefined values.
INLINE float softmax_row(float *z, long panel, long from, long n, float scale, float *max) {
	const vf sv = v_set1(scale), low = v_set1(-INFINITY);
	vf m = low, sum = v_zero();
	float *p = z;
	long t = n;
	if (from > 0) { // the first piece
		for (long j = 0; j < NR && j < n; j += LANES) m = v_max(v_between(v_mul(v_load(p + j), sv), from - j, n - j, low), m);
		t -= NR, p += panel;
	}
	float *const whole = p;
	for (; t >= NR; t -= NR, p += panel)
#pragma GCC unroll 2
		for (int j = 0; j < NV; j++) m = v_max(v_mul(v_load(p + j * LANES), sv), m);
	float *last = p;
	const int tail = (int)t;
	for (; t > 0; t -= LANES, last += LANES) {
		const vf x = v_mul(v_load(last), sv);
		m = v_max(t >= LANES ? x : v_keep(x, (int)t, low), m);
	}
	*max = v_largest(m) + 0.0f; // -0 becomes +0
	m = v_set1(*max);
	if (from > 0)
		for (long j = 0; j < NR && j < n; j += LANES) {
			const vf e = v_between(v_exp_neg(v_sub(v_mul(v_load(z + j), sv), m)), from - j, n - j, v_zero());
			v_store(z + j, e);
			sum = v_add(sum, e);
		}
	for (float *q = whole; q != p; q += panel)
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

// softmax_scores is softmax_row of scores that may have a cap, with any `from`.
BY_O3 ONE_COPY float softmax_scores(float *z, long panel, long from, long n, float scale, float cap, float inv_cap, float *max) {
	const long skip = from / NR;
	z += skip * panel, from -= skip * NR, n -= skip * NR;
	if (cap > 0) cap_scores(z, panel, n, scale, cap, inv_cap), scale = 1;
	return softmax_row(z, panel, from, n, scale, max);
}

ONE_COPY void scale_row(float *x, long n, float by) {
	const vf b = v_set1(by);
	for (long i = 0; i < n; i += LANES) {
		const int w = n - i < LANES ? (int)(n - i) : LANES;
		v_storet(x + i, v_mul(v_loadt(x + i, w), b), w);
	}
}

// scores sets z, R rows in panels `panel` long, to the chains of R rows of a (in
// panels `apanel` long) with the first n columns of bt [n/NR][d][NR].
ONE_COPY void scores(const float *a, long apanel, const float *bt, float *z, long panel, long R, long d, long n) {
	for (long j = 0; j < n; j += NR)
		scores_tiles[R](a, apanel, bt + j * d, z + j / NR * panel, d, n - j > LANES ? NR : LANES);
}

// seen_rows computes and scales, for R ≤ window rows from row i0 of a sequence that see alike,
//	c[i] = chain over t ≤ i, i-t < window, of w[i][t]·b[t]       c [R,d], b [d/NR][T][NR]
// with w's rows in panels `panel` long. If row i0 sees up to end-1 > i0, so do all others. A row
// never reads a key that it does not see.
ONE_COPY void seen_rows(const float *w, long panel, const float *b, long T, float *c, long ldc,
	long i0, long R, long end, long d, long window, const float *scale) {
	const long from = first_seen(i0, window);
	const int lead = (int)(first_seen(i0 + R - 1, window) - from), causal = end == i0 + 1;
	for (long j = 0; j < d; j += NR) {
		float t[MR * NR], *cj = d - j >= NR ? c + j : t;
		const long ld = d - j >= NR ? ldc : NR;
		if (from + lead > 0 || causal)
			window_tiles[R](w + from / NR * panel + from % NR, panel, b + j * T + from * NR, cj, ld, from, end, lead, causal, scale);
		else rows_tiles[R](w, panel, b + j * T, cj, ld, end, FROM_ZERO, 0, 0, 0, 0, 0);
		if (d - j < NR) copy_tile(c + j, ldc, t, NR, R, (int)(d - j));
	}
	if (from + lead == 0 && !causal)
		for (long i = 0; scale && i < R; i++) scale_row(c + i * ldc, d, scale[i]);
}

// A unit of attention is a group of sequences × one key/value head. The rows of the
// group's first sequence are the prefix of the others, its branches, and come before their
// own rows: row t of a branch is row t of the group if t < prefix, else row at + t.
struct group_view {
	long first, end;      // sequences
	long prefix, longest; // rows of the first sequence and of the longest, prefix included
	long kv;              // key/value head
};

INLINE struct group_view view_group(const int32_t *offsets, const int32_t *groups, const int32_t *order, long kv, long u) {
	const long g = order[u / kv];
	struct group_view w = {g, g + 1, 0, 0, u % kv};
	if (groups) w.first = groups[g], w.end = groups[g + 1];
	if (w.first == w.end) return w;
	w.longest = w.prefix = offsets[w.first + 1] - offsets[w.first];
	for (long s = w.first + 1; s < w.end; s++) {
		const long T = w.prefix + offsets[s + 1] - offsets[s];
		if (T > w.longest) w.longest = T;
	}
	return w;
}

// A sequence of a group: rows prefix..T are its own; its row t is row at + t.
struct sequence_view { long prefix, T, at; };

// ahead_of returns what ahead says of a sequence's row 0; its own rows have it.
INLINE const int32_t *ahead_of(const int32_t *ahead, long at) { return ahead ? ahead + at : ahead; }

INLINE struct sequence_view view_sequence(const struct group_view w, const int32_t *offsets, long s) {
	const long prefix = s > w.first ? w.prefix : 0;
	const struct sequence_view v = {prefix, prefix + offsets[s + 1] - offsets[s], offsets[s] - prefix};
	return v;
}

// put_branch_transposed appends a branch's own rows to its prefix, which put_transposed
// has stored in out. prefix and own point to row 0 of each; own's rows count from the
// start of the prefix. stage: NR rows.
ONE_COPY void put_branch_transposed(float *out, const float *prefix, const float *own, long ld, const struct sequence_view q, long d, float *stage) {
	const long panel = q.prefix / NR * NR, shared = q.prefix - panel;
	long t = q.prefix;
	if (shared > 0) { // a panel with rows of both
		const long end = panel + NR < q.T ? panel + NR : q.T;
		copy_tile(stage, d, prefix + panel * ld, ld, shared, (int)d);
		copy_tile(stage + shared * d, d, own + t * ld, ld, end - t, (int)d);
		put_transposed(out + panel * d, stage, d, end - panel, d);
		t = end;
	}
	if (t < q.T) put_transposed(out + t * d, own + t * ld, ld, q.T - t, d);
}

// attention computes units lo..hi. scratch: keys transposed, values, MR query rows, their
// scores from the first panel that any of them sees, NR keys; all but the last in panels.
static void attention(const struct attention_args *g, long lo, long hi, int tid) {
	const long d = g->d, dp = round_up(d, NR), group = g->h / g->kv, ldo = g->h * d, ld = g->stride;
	for (long u = lo; u < hi; u++) {
		const struct group_view w = view_group(g->offsets, g->groups, g->order, g->kv, u);
		const long T = w.longest, Tp = round_up(T, NR);
		float *kt = g->scratch + tid * g->scratch_len, *v = kt + d * Tp, *q = v + dp * Tp, *z = q + dp * MR, *stage = z + MR * Tp;
		const float *heads = g->qkv + (g->h + w.kv) * d, *prefix = heads + g->offsets[w.first] * ld;
		for (long s = w.first; s < w.end; s++) {
			const struct sequence_view x = view_sequence(w, g->offsets, s);
			const int32_t *ahead = ahead_of(g->ahead, x.at);
			const long own = x.T - x.prefix;
			if (own == 0) continue;
			const float *rows = g->qkv + x.at * ld, *k = heads + x.at * ld;
			if (s == w.first) put_transposed(kt, k, ld, x.T, d);
			else put_branch_transposed(kt, prefix, k, ld, x, d, stage);
			put_panels(v + x.prefix * NR, T, k + x.prefix * ld + g->kv * d, ld, own, d);
			for (long h = w.kv * group; h < (w.kv + 1) * group; h++)
				for (long r0 = x.prefix, r1; r0 < x.T; r0 = r1) { // rows r0..r1 see alike
					r1 = run_end(r0, x.T, g->full, ahead);
					const long strips = window_strips(r1 - r0, g->window);
					for (long n = 0; n < strips; n++) {
						const long i0 = r0 + strip_at(r1 - r0, strips, n), R = r0 + strip_at(r1 - r0, strips, n + 1) - i0;
						const long base = first_seen(i0, g->window) / NR * NR; // positions count from here
						float inv[MR];
						put_panels(q, R, rows + i0 * ld + h * d, ld, R, d);
						scores(q, R * NR, kt + base * d, z, R * NR, R, d, end_seen(i0 + R - 1, x.T, g->full, ahead) - base);
						for (long i = 0; i < R; i++) {
							float *st = g->stats + ((x.at + i0 + i) * g->h + h) * 2;
							st[1] = inv[i] = 1.0f / softmax_scores(z + i * NR, R * NR, first_seen(i0 + i, g->window) - base,
								end_seen(i0 + i, x.T, g->full, ahead) - base, g->scale, g->cap, g->inv_cap, &st[0]);
						}
						seen_rows(z, R * NR, v + base * NR, T, g->out + (x.at + i0) * ldo + h * d, ldo, i0 - base, R,
							end_seen(i0, x.T, g->full, ahead) - base, d, g->window, inv);
					}
				}
		}
	}
}

// The backward pass keeps the probabilities of QUERY_BLOCK query rows at a time.
#define QUERY_BLOCK 96

// key_rows continues, for R ≤ window key rows t0..t0+R and queries i0..i1; at least one query
// sees the last key; if block, every one sees the keys behind it, too.
//	c[t] = chain over i ≥ t, i-t < window, of w[i][t]·b[i]       c [R,d], b [d/NR][QUERY_BLOCK][NR]
// with query i0 in the first row of w and b, w in panels of QUERY_BLOCK rows.
ONE_COPY void key_rows(const float *w, const float *b, float *c, long ldc, long t0, long R, long i0, long i1, long d,
	long window, int block, enum tile_init init) {
	const int causal = t0 >= i0 && !block;
	const long from = causal ? t0 - i0 : 0, first = i0 + from;
	const float *a = w + t0 / NR * QUERY_BLOCK * NR + t0 % NR + from * NR;
	// Queries before `seen` see the first key, queries before `last` the last one.
	const long seen = t0 + window < i1 ? t0 + window : i1, last = t0 + R - 1 + window < i1 ? t0 + R - 1 + window : i1;
	const long k = seen > first ? seen - first : 0;
	const int ended = (int)(first + k + 1 - window - t0); // keys that query first + k does not see
	for (long j = 0; j < d; j += NR) {
		const float *bj = b + (j / NR * QUERY_BLOCK + from) * NR;
		float t[MR * NR], *cj = d - j >= NR ? c + j : t;
		const long ld = d - j >= NR ? ldc : NR;
		if (d - j < NR && init == FROM_C) copy_tile(t, NR, c + j, ldc, R, (int)(d - j));
		window_columns_tiles[R](a, bj, cj, ld, k, init, causal, ended, last - first - k);
		if (d - j < NR) copy_tile(c + j, ldc, t, NR, R, (int)(d - j));
	}
}

// put_gradients copies rows t0..t1 of the gradients of keys and values to out, where row 0
// of the keys' goes; the values' go `apart` elements further on.
ONE_COPY void put_gradients(float *out, long ld, long apart, const float *dk, const float *dv, long d, long t0, long t1) {
	for (long t = t0; t < t1; t++) {
		copy_tile(out + t * ld, ld, dk + t * d, d, 1, (int)d);
		copy_tile(out + t * ld + apart, ld, dv + t * d, d, 1, (int)d);
	}
}

// key_tile_end returns where the tile of keys that starts at t0 ends: within its panel, after at
// most window keys, and either entirely before the block of queries b0..b1 or in it.
INLINE long key_tile_end(long t0, long b0, long b1, long window) {
	const long strips = strip_count(NR), panel = t0 / NR * NR;
	long n = 1;
	while (panel + strip_at(NR, strips, n) <= t0) n++;
	const long strip = panel + strip_at(NR, strips, n), end = strip - t0 < window ? strip : t0 + window, edge = t0 < b0 ? b0 : b1;
	return end < edge ? end : edge;
}

// score_gradients_row turns scores and products dp of one row, in pieces `panel` apart, into
// probabilities and gradients of the scores, starting at the panel of `from`. capped says whether
// there is a cap.
INLINE void score_gradients_row(float *p, float *dz, long panel, long from, long n, const struct attention_args *g,
	const float *stats, float delta_, const int capped) {
	const vf delta = v_set1(delta_), m = v_set1(stats[0]), inv = v_set1(stats[1]), sc = v_set1(g->scale);
	const vf cap = v_set1(g->cap), inv_cap = v_set1(g->inv_cap), one = v_set1(1.0f);
	p += from / NR * panel, dz += from / NR * panel;
	for (long t = from / NR * NR; t < n; t += NR, p += panel, dz += panel)
#pragma GCC unroll 2
		for (int j = 0; j < NR; j += LANES) { // computes some scores that the row does not see; nothing reads them
			vf z = v_mul(v_load(p + j), sc), y = z;
			if (capped) y = v_tanh(v_mul(z, inv_cap)), z = v_mul(cap, y);
			const vf pv = v_mul(v_exp_neg(v_sub(z, m)), inv);
			v_store(p + j, pv);
			vf dv = v_mul(pv, v_sub(v_load(dz + j), delta));
			if (capped) dv = v_mul(dv, v_sub(one, v_mul(y, y)));
			v_store(dz + j, v_mul(dv, sc));
		}
}

// attention_backward computes units lo..hi, the same units as attention. scratch: keys
// and values transposed, keys, QUERY_BLOCK rows of queries and of dout, p and dz, all in
// panels; with groups, also gradients of keys and values, in rows, and NR rows.
static void attention_backward(const struct attention_args *g, long lo, long hi, int tid) {
	const long d = g->d, dp = round_up(d, NR), group = g->h / g->kv, ldo = g->h * d, ld = g->stride;
	const long panel = QUERY_BLOCK * NR;
	for (long u = lo; u < hi; u++) {
		const struct group_view w = view_group(g->offsets, g->groups, g->order, g->kv, u);
		const long longest = w.longest, Tp = round_up(longest, NR);
		float *kt = g->scratch + tid * g->scratch_len, *vt = kt + d * Tp, *k = vt + d * Tp;
		float *q = k + dp * Tp, *dout = q + dp * QUERY_BLOCK, *p = dout + dp * QUERY_BLOCK, *dz = p + QUERY_BLOCK * Tp;
		float *sums = dz + QUERY_BLOCK * Tp, *stage = sums + 2 * longest * d;
		const long heads = (g->h + w.kv) * d, alone = w.end - w.first == 1;
		const float *prefix = g->qkv + heads + g->offsets[w.first] * ld;
		for (long s = w.first; s < w.end; s++) {
			const struct sequence_view x = view_sequence(w, g->offsets, s);
			const int32_t *ahead = ahead_of(g->ahead, x.at);
			const long P = x.prefix, T = x.T;
			if (T == P) continue;
			const float *q0 = g->qkv + x.at * ld, *k0 = q0 + heads;
			float *dq0 = g->dqkv + x.at * ld, *dk = dq0 + heads, *dv = dk + g->kv * d;
			long ldk = ld;
			if (!alone) dk = sums, dv = sums + longest * d, ldk = d;
			if (s == w.first) {
				put_transposed(kt, k0, ld, T, d);
				put_transposed(vt, k0 + g->kv * d, ld, T, d);
			} else {
				put_branch_transposed(kt, prefix, k0, ld, x, d, stage);
				put_branch_transposed(vt, prefix + g->kv * d, k0 + g->kv * d, ld, x, d, stage);
			}
			put_panels(k + P * NR, longest, k0 + P * ld, ld, T - P, d);
			for (long h = w.kv * group; h < (w.kv + 1) * group; h++)
				for (long r0 = P, r1 = P, b0 = P, b1; b0 < T; b0 = b1) {
					if (b0 == r1) r0 = b0, r1 = run_end(r0, T, g->full, ahead); // rows r0..r1 see alike
					const int block = end_seen(r0, T, g->full, ahead) > r0 + 1;
					b1 = b0 + QUERY_BLOCK < r1 ? b0 + QUERY_BLOCK : r1;
					const long strips = window_strips(b1 - b0, g->window);
					const long seen = first_seen(b0, g->window), base = seen / NR * NR; // first key of p and dz
					const float *dob = g->dout + (x.at + b0) * ldo + h * d, *ob = g->aout + (x.at + b0) * ldo + h * d;
					put_panels(q, QUERY_BLOCK, q0 + b0 * ld + h * d, ld, b1 - b0, d);
					put_panels(dout, QUERY_BLOCK, dob, ldo, b1 - b0, d);
					for (long i = 0; i < b1 - b0; i++) ask_row(ob, ldo, i, b1 - b0, d);
					for (long n = 0; n < strips; n++) {
						const long i0 = strip_at(b1 - b0, strips, n), R = strip_at(b1 - b0, strips, n + 1) - i0;
						const long first = first_seen(b0 + i0, g->window) / NR * NR, at = (first - base) * QUERY_BLOCK + i0 * NR;
						const long keys = end_seen(b0 + i0 + R - 1, T, g->full, ahead) - first;
						scores(q + i0 * NR, panel, kt + first * d, p + at, panel, R, d, keys);
						scores(dout + i0 * NR, panel, vt + first * d, dz + at, panel, R, d, keys);
						for (long i = i0; i < i0 + R; i++) {
							const float *st = g->stats + ((x.at + b0 + i) * g->h + h) * 2;
							const long from = first_seen(b0 + i, g->window) - base, n = end_seen(b0 + i, T, g->full, ahead) - base;
							vf sum = v_zero();
							for (long j = 0; j < d; j += LANES) {
								const int n = d - j < LANES ? (int)(d - j) : LANES;
								sum = v_fma(v_loadt(dob + i * ldo + j, n), v_loadt(ob + i * ldo + j, n), sum);
							}
							if (g->cap > 0) score_gradients_row(p + i * NR, dz + i * NR, panel, from, n, g, st, v_sum(sum), 1);
							else score_gradients_row(p + i * NR, dz + i * NR, panel, from, n, g, st, v_sum(sum), 0);
						}
						seen_rows(dz + i0 * NR, panel, k + base * NR, longest, dq0 + (b0 + i0) * ld + h * d, ld, b0 + i0 - base, R,
							end_seen(b0 + i0, T, g->full, ahead) - base, d, g->window, 0);
					}
					const long edge = !block ? b0 : b0 == r0 ? r0 : r1; // no earlier queries see keys from there on
					for (long t0 = seen, t1, end = end_seen(b1 - 1, T, g->full, ahead); t0 < end; t0 = t1) {
						t1 = key_tile_end(t0, edge, end, g->window);
						const enum tile_init init = h == w.kv * group && t0 >= edge ? FROM_ZERO : FROM_C;
						key_rows(dz, q, dk + t0 * ldk, ldk, t0 - base, t1 - t0, b0 - base, b1 - base, d, g->window, block, init);
						key_rows(p, dout, dv + t0 * ldk, ldk, t0 - base, t1 - t0, b0 - base, b1 - base, d, g->window, block, init);
					}
				}
			if (s > w.first) put_gradients(dq0 + heads, ld, g->kv * d, dk, dv, d, P, T);
		}
		if (!alone) put_gradients(g->dqkv + heads + g->offsets[w.first] * ld, ld, g->kv * d, sums, sums + longest * d, d, 0, w.prefix);
	}
}

// matrixattention.h: attention forward in class "matrix/16x25", over the keys once with a maximum that may rise
// (kernels/ref's byKeys).

#define MATRIX_KEYS BLOCK
#define MATRIX_RISE 8.0f

// running is a row's state between blocks of keys.
struct running { float lane[LANES], max; };

INLINE void start_running(struct running *s) {
	v_store(s->lane, v_zero());
	s->max = -0x1.fffffep127f;
}

// take_keys turns a row's scores z [MATRIX_KEYS] into powers. The row sees keys from..end-1; the others get 0. If the
// maximum rises, it rescales the row's d sums o.
INLINE void take_keys(struct running *s, float *z, float *o, long d, long from, long end, const struct tile_attention_args *g) {
	const vf low = v_set1(-INFINITY), scale = v_set1(g->scale);
	vf x[MATRIX_KEYS / LANES], top = low;
#pragma GCC unroll 2
	for (int j = 0; j < MATRIX_KEYS / LANES; j++) {
		x[j] = v_mul(v_load(z + j * LANES), scale);
		if (g->cap > 0) x[j] = v_mul(v_set1(g->cap), v_tanh(v_mul(x[j], v_set1(g->inv_cap))));
		top = v_max(v_between(x[j], from - j * LANES, end - j * LANES, low), top);
	}
	const float most = v_largest(top);
	if (most > s->max + MATRIX_RISE) {
		float by[LANES];
		v_store(by, v_exp(v_set1(s->max - most)));
		v_store(s->lane, v_mul(v_load(s->lane), v_set1(by[0])));
		for (long j = 0; j < d; j += LANES) v_storet(o + j, v_mul(v_loadt(o + j, lanes_left(d - j)), v_set1(by[0])), lanes_left(d - j));
		s->max = most;
	}
	vf lane = v_load(s->lane);
#pragma GCC unroll 2
	for (int j = 0; j < MATRIX_KEYS / LANES; j++) {
		x[j] = v_between(v_exp(v_sub(x[j], v_set1(s->max))), from - j * LANES, end - j * LANES, v_zero());
		lane = v_add(lane, x[j]);
		v_store(z + j * LANES, x[j]);
	}
	v_store(s->lane, lane);
}

// end_running sets n values of out to o·(1/l) + 0, and the row's stats unless they are null.
INLINE void end_running(const struct running *s, bf16 *out, const float *o, long n, float *stats) {
	const float inv = 1.0f / v_sum(v_load(s->lane));
	if (stats) stats[0] = s->max + 0.0f, stats[1] = inv;
	for (long j = 0; j < n; j += LANES)
		st(out, j, v_add(v_mul(v_loadt(o + j, lanes_left(n - j)), v_set1(inv)), v_zero()), lanes_left(n - j), 1);
}

// matrix_attention_rare computes a sequence of a unit in plain loops. scratch: o [d].
static void matrix_attention_rare(const struct tile_attention_args *g, const struct head_view w, float *o) {
	const long d = g->d, ldo = g->h * d, ld_ = g->stride;
	float z[MATRIX_KEYS];
	for (long h = 0; h < g->h / g->kv; h++)
		for (long i = w.prefix; i < w.T; i++) {
			struct running s;
			start_running(&s);
			memset(o, 0, d * sizeof *o);
			const long last = end_seen(i, w.T, g->full, w.ahead);
			for (long from = first_seen(i, g->window), t0 = from / MATRIX_KEYS * MATRIX_KEYS; t0 < last; t0 += MATRIX_KEYS) {
				const long first = from > t0 ? from - t0 : 0, end = last - t0 < MATRIX_KEYS ? last - t0 : MATRIX_KEYS;
				memset(z, 0, sizeof z);
				for (long t = first; t < end; t++) z[t] = matrix_dot1(w.q + i * ld_ + h * d, key_row(w, t0 + t, ld_), d);
				take_keys(&s, z, o, d, first, end, g);
				for (long c = 0; c < d; c++)
					o[c] = matrix_sum1(z, w.prefix_v + t0 * ld_ + c, w.prefix - t0, w.v + t0 * ld_ + c, ld_, first, end, o[c]);
			}
			end_running(&s, g->out + (w.at + i) * ldo + (w.head + h) * d, o, d, g->stats + ((w.at + i) * g->h + w.head + h) * 2);
		}
}

// matrix_attention computes units lo..hi. scratch: values [BLOCK][D], tiles of keys and values, and a block each of
// queries, powers and rows.
static void matrix_attention(const struct tile_attention_args *g, long lo, long hi, int tid) {
	const long d = g->d, ldo = g->h * d, ds = steps_of(d), Dp = ds * TERMS;
	float z[BLOCK * MATRIX_KEYS] __attribute__((aligned(64)));
	bf16 p[STEP] __attribute__((aligned(64)));
	struct running rows[BLOCK];
	for (long u = lo; u < hi; u++) {
		const struct group_view group = view_group(g->offsets, g->groups, g->order, g->kv, u);
		const long ts = steps_of(group.longest);
		float *o = g->scratch + tid * g->scratch_len;
		bf16 *kc = (bf16 *)(o + BLOCK * Dp), *vp = kc + ts * ds * STEP, *q = vp + ts * ds * STEP, *stage = q + ds * STEP;
		long filled = 0; // rows of the prefix that the tiles hold
		for (long s = group.first; s < group.end; s++) {
			const struct head_view w = view_head(g, group, s);
			const long T = w.T, own = T - w.prefix;
			if (own == 0) continue;
			if (!all_finite(w.v + w.prefix * g->stride, g->stride, own, d) || !all_finite(w.prefix_v, g->stride, w.prefix, d)) {
				matrix_attention_rare(g, w, o);
				continue;
			}
			pack_keys_values(g, w, kc, vp, ts, filled, stage);
			filled = group.prefix;
			for (long h = 0; h < g->h / g->kv; h++)
				for (long i0 = w.prefix, n; i0 < T; i0 += n) {
					const long last = round_up(i0 + 1, BLOCK), base = first_seen(i0, g->window) / BLOCK * BLOCK;
					n = T < last ? T - i0 : last - i0;
					const long keys = end_seen(i0 + n - 1, T, g->full, w.ahead);
					rows32(q, w.q, i0 * g->stride + h * d, g->stride, n, d, 1);
					for (long i = 0; i < n; i++) start_running(&rows[i]);
					memset(o, 0, BLOCK * Dp * sizeof *o);
					for (long t = base; t < keys; t += MATRIX_KEYS) {
						matrix_sums(q, kc + t / BLOCK * ds * STEP, z, MATRIX_KEYS, ds, n, BLOCK, 1);
						for (long i = 0; i < n; i++)
							take_keys(&rows[i], z + i * MATRIX_KEYS, o + i * Dp, d, first_seen(i0 + i, g->window) - t, end_seen(i0 + i, T, g->full, w.ahead) - t, g);
						rows32(p, z, 0, MATRIX_KEYS, n, MATRIX_KEYS, 0);
						for (long c = 0; c < d; c += BLOCK)
							matrix_sums(p, vp + (c / BLOCK * ts + t / BLOCK) * STEP, o + c, Dp, 1, n, d - c, 0);
					}
					for (long i = 0; i < n; i++)
						end_running(&rows[i], g->out + (w.at + i0 + i) * ldo + (w.head + h) * d, o + i * Dp, d,
							g->stats + ((w.at + i0 + i) * g->h + w.head + h) * 2);
				}
		}
	}
}

// matrix_paged_attention computes units lo..hi, a unit being one row × one key/value head. scratch: values
// [BLOCK][D], tiles of queries, keys and values, and keys or values of MATRIX_KEYS positions.
static void matrix_paged_attention(const struct tile_attention_args *g, long lo, long hi, int tid) {
	const long d = g->d, ds = steps_of(d), Dp = ds * TERMS, group = g->h / g->kv;
	float z[BLOCK * MATRIX_KEYS] __attribute__((aligned(64)));
	bf16 p[STEP] __attribute__((aligned(64)));
	struct running rows[BLOCK];
	float *o = g->scratch + tid * g->scratch_len;
	bf16 *q = (bf16 *)(o + BLOCK * Dp), *kc = q + ds * STEP, *vp = kc + ds * STEP, *stage = vp + ds * STEP;
	for (long u = lo; u < hi; u++) {
		const struct paged_view w = view_pages(g->table, g->width, g->seq, g->pos, g->ahead, u, g->kv, d, g->page, g->window);
		const long m = u / g->kv;
		if (g->slots)
			store_key_value((char *)g->keys, (char *)g->values, (const char *)(g->qkv + m * g->stride + (g->h + w.head) * d), g->kv * d,
				g->slots[m], g->page, g->kv, w.head, d, sizeof *g->keys);
		for (long h = w.head * group, n; h < (w.head + 1) * group; h += n) {
			n = (w.head + 1) * group - h < BLOCK ? (w.head + 1) * group - h : BLOCK;
			rows32(q, g->qkv, m * g->stride + h * d, d, n, d, 1);
			for (long i = 0; i < n; i++) start_running(&rows[i]);
			memset(o, 0, BLOCK * Dp * sizeof *o);
			for (long t0 = w.base; t0 < w.n; t0 += MATRIX_KEYS) {
				const long first = w.from > t0 ? w.from - t0 : 0, end = w.n - t0 < MATRIX_KEYS ? w.n - t0 : MATRIX_KEYS;
				memset(stage, 0, MATRIX_KEYS * d * sizeof *stage);
				for (long t = first; t < end; t++)
					for (long c = 0; c < d; c++) stage[c * MATRIX_KEYS + t] = g->keys[keys_at(w, t0 + t) + c * w.page];
				pairs32(kc, stage, 0, MATRIX_KEYS, d, MATRIX_KEYS, 1);
				memset(stage, 0, MATRIX_KEYS * d * sizeof *stage);
				for (long t = first; t < end; t++) memcpy(stage + t * d, g->values + values_at(w, t0 + t), d * sizeof *stage);
				for (long c = 0; c < d; c += BLOCK) pairs32(vp + c / BLOCK * STEP, stage, c, d, MATRIX_KEYS, d - c, 1);
				matrix_sums(q, kc, z, MATRIX_KEYS, ds, n, MATRIX_KEYS, 1);
				for (long i = 0; i < n; i++) take_keys(&rows[i], z + i * MATRIX_KEYS, o + i * Dp, d, first, end, g);
				rows32(p, z, 0, MATRIX_KEYS, n, MATRIX_KEYS, 0);
				for (long c = 0; c < d; c += BLOCK) matrix_sums(p, vp + c / BLOCK * STEP, o + c, Dp, 1, n, d - c, 0);
			}
			for (long i = 0; i < n; i++)
				end_running(&rows[i], g->out + (m * g->h + h + i) * d, o + i * Dp, d, stats_at(g->stats, m * g->h + h + i));
		}
	}
}

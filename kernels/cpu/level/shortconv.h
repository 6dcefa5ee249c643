// shortconv.h: the short convolution of linear attention, the gated one of LFM2, and their gradients.
// The constant h says whether rows are BF16 (bf16.h), and gated which convolution it is: a gated one reads products
// of two columns, which its slots keep as floats, and multiplies by a third instead of an activation.

#define CONV_AHEAD 6 // rows from which prefetches are made

// A sequence of a run list: its prefix's rows come before its own.
struct run { long prefix_row, prefix, first, own; };

// run_at returns sequence j of the group whose first sequence is lead.
INLINE struct run run_at(const struct run_list *r, long j, long lead) {
	struct run q = {r->offsets[lead], 0, r->offsets[j], r->offsets[j + 1] - r->offsets[j]};
	if (j > lead) q.prefix = r->offsets[lead + 1] - r->offsets[lead];
	return q;
}
INLINE long run_row(const struct run *q, long t) { return t < q->prefix ? q->prefix_row + t : q->first + t - q->prefix; }

// group_from and group_to return the sequences of a group.
INLINE long group_from(const struct run_list *r, long g) { return r->groups ? r->groups[g] : g; }
INLINE long group_to(const struct run_list *r, long g) { return r->groups ? r->groups[g + 1] : g + 1; }

// conv_read returns n channels of a row of x, from element i.
INLINE vf conv_read(const struct conv_args *g, long i, int n, const int h, const int gated) {
	const vf x = ld(g->x, i, n, h);
	return gated ? v_mul(x, ld(g->x, i + 2 * g->mixed, n, h)) : x;
}

// conv_input returns n channels of position t of a sequence, from column `at` of x or channel c of
// its tail, which is null without one.
INLINE vf conv_input(const struct conv_args *g, const struct run *q, const char *tail, long t, long at, long c, int n, const int h,
	const int gated) {
	if (t >= 0) return conv_read(g, run_row(q, t) * g->stride + at, n, h, gated);
	return tail ? ld(tail, (g->taps - 1 + t) * g->mixed + c, n, h && !gated) : v_zero();
}

// A strip of channels, and its weights by vector and tap; after the taps the bias.
struct conv_strip {
	long c, at, n; // first mixed channel, first projected column, channels
	vf w[CONV_VECTORS][CONV_TAPS + 1];
};

INLINE void conv_strip_at(const struct conv_args *g, long u, struct conv_strip *s) {
	s->c = g->strip[3 * u], s->at = g->strip[3 * u + 1], s->n = g->strip[3 * u + 2];
	for (long i = 0; i < s->n; i += LANES) {
		for (long j = 0; j < g->taps; j++) {
			float t[LANES] = {0};
			for (int k = 0; k < lanes_left(s->n - i); k++) t[k] = g->weight[(s->c + i + k) * g->taps + j];
			s->w[i / LANES][j] = v_load(t);
		}
		s->w[i / LANES][g->taps] = g->bias ? v_loadt(g->bias + s->c + i, lanes_left(s->n - i)) : v_zero();
	}
}

// conv_ahead fetches n elements of the row CONV_AHEAD rows after the one at element i: a strip's lines lie a
// row apart, where the processor looks for none.
INLINE void conv_ahead(const void *x, long i, long stride, long n, const int write, const int h) {
	const char *p = (const char *)x + (i + CONV_AHEAD * stride) * (h ? 2 : 4);
	for (long k = 0; k < n * (h ? 2 : 4); k += 64) {
		if (write) __builtin_prefetch(p + k, 1); // clang wants a literal
		else __builtin_prefetch(p + k);
	}
}

// conv_inside says whether all inputs of position t are rows one after another.
INLINE int conv_inside(const struct run *q, long t, long taps) { return t - (taps - 1) >= q->prefix; }

// conv_sum returns the convolution at position t, row m. taps, a constant or g->taps, are unrolled if few.
INLINE vf conv_sum(const struct conv_args *g, const struct run *q, const char *tail, const vf *w, long t, long m, int inside, long at, long c,
	int n, long taps, const int h, const int gated) {
	vf y = w[taps];
	if (inside) {
		const long x = (m - (taps - 1)) * g->stride + at;
#pragma GCC unroll 4
		for (long j = 0; j < taps; j++) y = v_fma(w[j], conv_read(g, x + j * g->stride, n, h, gated), y);
		return y;
	}
	for (long j = 0; j < taps; j++) y = v_fma(w[j], conv_input(g, q, tail, t - (taps - 1) + j, at, c, n, h, gated), y);
	return y;
}

// conv_run computes a strip of a sequence's own rows, and what it leaves in its slot.
INLINE void conv_run(const struct conv_args *g, const struct run *q, char *slot, const char *tail, const struct conv_strip *s, long taps,
	const int h, const int gated) {
	const long last = q->prefix + q->own;
	for (long t = q->prefix; t < last; t++) {
		const long m = q->first + t - q->prefix;
		const int inside = conv_inside(q, t, taps);
		conv_ahead(g->x, m * g->stride + s->at, g->stride, s->n, 0, h);
		conv_ahead(g->u, m * g->mixed + s->c, g->mixed, s->n, 1, h);
		for (long i = 0; i < s->n; i += LANES) {
			const int n = lanes_left(s->n - i);
			const long at = s->at + i;
			const vf y = conv_sum(g, q, tail, s->w[i / LANES], t, m, inside, at, s->c + i, n, taps, h, gated);
			const vf factor = gated ? ld(g->x, m * g->stride + at + g->mixed, n, h) : v_sigmoid(y);
			st(g->u, m * g->mixed + s->c + i, v_mul(y, factor), n, h);
		}
	}
	for (long i = 0; slot && i < s->n; i += LANES) {
		const int n = lanes_left(s->n - i);
		vf end[CONV_TAPS];
		for (long k = 0; k < taps - 1; k++)
			end[k] = conv_input(g, q, tail, last - (taps - 1) + k, s->at + i, s->c + i, n, h, gated);
		for (long k = 0; k < taps - 1; k++) st(slot, k * g->mixed + s->c + i, end[k], n, h && !gated);
	}
}

// conv_run_any is conv_run with any taps, which models rarely have: compiled once for all of h and gated.
ONE_COPY void conv_run_any(const struct conv_args *g, const struct run *q, char *slot, const char *tail, const struct conv_strip *s, int h,
	int gated) {
	conv_run(g, q, slot, tail, s, g->taps, h, gated);
}

// conv_units computes units lo..hi: a group of sequences × a strip of channels.
INLINE void conv_units(const struct conv_args *g, long lo, long hi, const int h, const int gated) {
	for (long u = lo; u < hi; u++) {
		const long group = u / g->strips, lead = group_from(&g->runs, group), to = group_to(&g->runs, group);
		struct conv_strip strip;
		conv_strip_at(g, u % g->strips, &strip);
		for (long j = lead; j < to; j++) {
			const struct run q = run_at(&g->runs, j, lead);
			char *slot = 0, *tail = 0;
			if (g->runs.slots) {
				const long s = g->runs.slots[j];
				slot = (char *)g->tails + (s < 0 ? -1 - s : s) * (g->taps - 1) * g->mixed * (h && !gated ? 2 : 4);
				if (s >= 0) tail = slot;
			}
			if (g->taps == (gated ? 3 : 4)) conv_run(g, &q, slot, tail, &strip, gated ? 3 : 4, h, gated);
			else conv_run_any(g, &q, slot, tail, &strip, h, gated);
		}
	}
}

static void short_conv(const struct conv_args *g, long lo, long hi, int tid) {
	(void)tid;
	if (g->bf16) conv_units(g, lo, hi, 1, 0);
	else conv_units(g, lo, hi, 0, 0);
}

static void gated_conv(const struct conv_args *g, long lo, long hi, int tid) {
	(void)tid;
	if (g->bf16) conv_units(g, lo, hi, 1, 1);
	else conv_units(g, lo, hi, 0, 1);
}

// conv_slopes sets dy [rows][CONV_STRIP] to the gradients before the activation of sequences lead..to, or before the
// last factor, whose gradients it stores.
INLINE void conv_slopes(const struct conv_args *g, const struct conv_strip *s, float *dy, long lead, long to, long taps, const int h,
	const int gated) {
	const vf one = v_set1(1.0f);
	for (long j = lead; j < to; j++) {
		const struct run q = run_at(&g->runs, j, lead);
		for (long t = q.prefix, m = q.first; m < q.first + q.own; t++, m++, dy += CONV_STRIP) {
			const int inside = conv_inside(&q, t, taps);
			conv_ahead(g->x, m * g->stride + s->at, g->stride, s->n, 0, h);
			conv_ahead(g->du, m * g->mixed + s->c, g->mixed, s->n, 0, h);
			for (long i = 0; i < s->n; i += LANES) {
				const int n = lanes_left(s->n - i);
				const vf y = conv_sum(g, &q, 0, s->w[i / LANES], t, m, inside, s->at + i, s->c + i, n, taps, h, gated);
				const vf d = ld(g->du, m * g->mixed + s->c + i, n, h);
				if (gated) {
					const long after = m * g->stride + s->at + i + g->mixed;
					st(g->dx, after, v_mul(d, y), n, h);
					v_store(dy + i, v_mul(d, ld(g->x, after, n, h)));
					continue;
				}
				const vf sg = v_sigmoid(y);
				v_store(dy + i, v_mul(d, v_mul(sg, v_fma(y, v_sub(one, sg), one))));
			}
		}
	}
}

// conv_add adds the sums of a gradient block to dweight and dbias, and clears them.
INLINE void conv_add(const struct conv_args *g, const struct conv_strip *s, vf acc[CONV_VECTORS][CONV_TAPS + 1]) {
	for (long i = 0; i < s->n; i += LANES) {
		const int n = lanes_left(s->n - i);
		vf *sums = acc[i / LANES];
		for (long k = 0; k < g->taps; k++) {
			float sum[LANES];
			v_store(sum, sums[k]);
			for (int j = 0; j < n; j++) g->dweight[(s->c + i + j) * g->taps + k] += sum[j];
			sums[k] = v_zero();
		}
		if (g->bias) v_storet(g->dbias + s->c + i, v_add(v_loadt(g->dbias + s->c + i, n), sums[g->taps]), n);
		sums[g->taps] = v_zero();
	}
}

// conv_shared continues the chain x of the gradient of a prefix's row, `after` rows before the prefix's end,
// over the sequences lead+1..to. dy is the prefix's end.
INLINE vf conv_shared(const struct conv_args *g, const vf *w, const float *dy, long after, long lead, long to, long taps, vf x) {
	for (long j = lead + 1; j < to; j++) {
		const long own = g->runs.offsets[j + 1] - g->runs.offsets[j];
		for (long r = 0; r < own && after + r < taps; r++) x = v_fma(w[taps - 1 - after - r], v_load(dy + r * CONV_STRIP), x);
		dy += own * CONV_STRIP;
	}
	return x;
}

// conv_rows sets dx of sequences lead..to and adds to the sums of dweight, which it empties where a
// gradient block ends.
INLINE void conv_rows(const struct conv_args *g, const struct conv_strip *s, const float *dy, vf acc[CONV_VECTORS][CONV_TAPS + 1], long *block,
	long lead, long to, long taps, const int h, const int gated) {
	for (long j = lead; j < to; j++) {
		const struct run q = run_at(&g->runs, j, lead);
		const long last = q.first + q.own;
		for (long t = q.prefix, m = q.first; m < last; t++, m++, dy += CONV_STRIP) {
			const int inside = conv_inside(&q, t, taps);
			const long seen = last - m < taps ? last - m : taps;
			conv_ahead(g->dx, m * g->stride + s->at, g->stride, s->n, 1, h);
			for (long i = 0; i < s->n; i += LANES) {
				const int n = lanes_left(s->n - i);
				const vf *w = s->w[i / LANES], d = v_load(dy + i);
				vf x = v_zero(), *sum = acc[i / LANES];
				sum[taps] = v_add(sum[taps], d);
				if (inside && seen == taps) {
					const long at = (m - (taps - 1)) * g->stride + s->at + i;
#pragma GCC unroll 4
					for (long k = 0; k < taps; k++) x = v_fma(w[taps - 1 - k], v_load(dy + k * CONV_STRIP + i), x);
#pragma GCC unroll 4
					for (long k = 0; k < taps; k++) sum[k] = v_fma(d, conv_read(g, at + k * g->stride, n, h, gated), sum[k]);
				} else {
					for (long k = 0; k < seen; k++) x = v_fma(w[taps - 1 - k], v_load(dy + k * CONV_STRIP + i), x);
					if (j == lead && seen < taps) x = conv_shared(g, w, dy + (last - m) * CONV_STRIP + i, last - m, lead, to, taps, x);
					for (long k = 0; k < taps; k++)
						sum[k] = v_fma(d, conv_input(g, &q, 0, t - (taps - 1) + k, s->at + i, s->c + i, n, h, gated), sum[k]);
				}
				const long at = m * g->stride + s->at + i, other = at + 2 * g->mixed;
				if (gated) st(g->dx, other, v_mul(x, ld(g->x, at, n, h)), n, h);
				st(g->dx, at, gated ? v_mul(x, ld(g->x, other, n, h)) : x, n, h);
			}
			if (m + 1 < g->block[*block + 1]) continue;
			++*block;
			conv_add(g, s, acc);
		}
	}
}

// conv_back computes the gradients of a strip.
INLINE void conv_back(const struct conv_args *g, float *dy, const struct conv_strip *s, long taps, const int h, const int gated) {
	vf acc[CONV_VECTORS][CONV_TAPS + 1];
	for (long i = 0; i < CONV_VECTORS; i++)
		for (long k = 0; k <= taps; k++) acc[i][k] = v_zero();
	for (long group = 0, block = 0; group < g->runs.count; group++) {
		const long lead = group_from(&g->runs, group), to = group_to(&g->runs, group);
		conv_slopes(g, s, dy, lead, to, taps, h, gated);
		conv_rows(g, s, dy, acc, &block, lead, to, taps, h, gated);
	}
}

// conv_back_any is conv_back with any taps, as conv_run_any is conv_run.
ONE_COPY void conv_back_any(const struct conv_args *g, float *dy, const struct conv_strip *s, int h, int gated) {
	conv_back(g, dy, s, g->taps, h, gated);
}

// conv_strips_back computes strips lo..hi. scratch: [rows of a group][CONV_STRIP].
INLINE void conv_strips_back(const struct conv_args *g, long lo, long hi, int tid, const int h, const int gated) {
	float *scratch = g->scratch + tid * g->scratch_len;
	for (long u = lo; u < hi; u++) {
		struct conv_strip s;
		conv_strip_at(g, u, &s);
		if (g->taps == (gated ? 3 : 4)) conv_back(g, scratch, &s, gated ? 3 : 4, h, gated);
		else conv_back_any(g, scratch, &s, h, gated);
	}
}

static void short_conv_backward(const struct conv_args *g, long lo, long hi, int tid) {
	if (g->bf16) conv_strips_back(g, lo, hi, tid, 1, 0);
	else conv_strips_back(g, lo, hi, tid, 0, 0);
}

static void gated_conv_backward(const struct conv_args *g, long lo, long hi, int tid) {
	if (g->bf16) conv_strips_back(g, lo, hi, tid, 1, 1);
	else conv_strips_back(g, lo, hi, tid, 0, 1);
}

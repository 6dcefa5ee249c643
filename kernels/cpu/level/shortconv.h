// shortconv.h: the short convolution of linear attention, and its gradients.
// The constant h says whether rows are BF16 (bf16.h).

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

// conv_input returns n channels of position t of a sequence, from column `at` of x or channel c of
// its tail, which is null without one.
INLINE vf conv_input(const struct conv_args *g, const struct run *q, const char *tail, long t, long at, long c, int n, const int h) {
	if (t >= 0) return ld(g->x, run_row(q, t) * g->stride + at, n, h);
	return tail ? ld(tail, (g->taps - 1 + t) * g->mixed + c, n, h) : v_zero();
}

// A strip of channels, and its weights by vector and tap.
struct conv_strip {
	long c, at, n; // first mixed channel, first projected column, channels
	vf w[CONV_VECTORS][CONV_TAPS];
};

INLINE void conv_strip_at(const struct conv_args *g, long u, struct conv_strip *s) {
	s->c = g->strip[3 * u], s->at = g->strip[3 * u + 1], s->n = g->strip[3 * u + 2];
	for (long i = 0; i < s->n; i += LANES)
		for (long j = 0; j < g->taps; j++) {
			float t[LANES] = {0};
			for (int k = 0; k < lanes_left(s->n - i); k++) t[k] = g->weight[(s->c + i + k) * g->taps + j];
			s->w[i / LANES][j] = v_load(t);
		}
}

INLINE vf conv_sum(const struct conv_args *g, const struct run *q, const char *tail, const vf *w, long t, long at, long c, int n, const int h) {
	vf y = v_zero();
	for (long j = 0; j < g->taps; j++) y = v_fma(w[j], conv_input(g, q, tail, t - (g->taps - 1) + j, at, c, n, h), y);
	return y;
}

// conv_run computes a strip of a sequence's own rows, and what it leaves in its slot.
INLINE void conv_run(const struct conv_args *g, const struct run *q, char *slot, const char *tail, const struct conv_strip *s, const int h) {
	const long last = q->prefix + q->own;
	for (long t = q->prefix; t < last; t++)
		for (long i = 0; i < s->n; i += LANES) {
			const int n = lanes_left(s->n - i);
			const vf y = conv_sum(g, q, tail, s->w[i / LANES], t, s->at + i, s->c + i, n, h);
			st(g->u, run_row(q, t) * g->mixed + s->c + i, v_mul(y, v_sigmoid(y)), n, h);
		}
	for (long i = 0; slot && i < s->n; i += LANES) {
		const int n = lanes_left(s->n - i);
		vf end[CONV_TAPS];
		for (long k = 0; k < g->taps - 1; k++)
			end[k] = conv_input(g, q, tail, last - (g->taps - 1) + k, s->at + i, s->c + i, n, h);
		for (long k = 0; k < g->taps - 1; k++) st(slot, k * g->mixed + s->c + i, end[k], n, h);
	}
}

// conv_units computes units lo..hi: a group of sequences × a strip of channels.
INLINE void conv_units(const struct conv_args *g, long lo, long hi, const int h) {
	for (long u = lo; u < hi; u++) {
		const long group = u / g->strips, lead = group_from(&g->runs, group), to = group_to(&g->runs, group);
		struct conv_strip strip;
		conv_strip_at(g, u % g->strips, &strip);
		for (long j = lead; j < to; j++) {
			const struct run q = run_at(&g->runs, j, lead);
			char *slot = 0, *tail = 0;
			if (g->runs.slots) {
				const long s = g->runs.slots[j];
				slot = (char *)g->tails + (s < 0 ? -1 - s : s) * (g->taps - 1) * g->mixed * (h ? 2 : 4);
				if (s >= 0) tail = slot;
			}
			conv_run(g, &q, slot, tail, &strip, h);
		}
	}
}

static void short_conv(const struct conv_args *g, long lo, long hi, int tid) {
	(void)tid;
	if (g->bf16) conv_units(g, lo, hi, 1);
	else conv_units(g, lo, hi, 0);
}

// conv_slopes sets dy [rows][CONV_STRIP] to the gradients before the activation, and clears dx.
INLINE void conv_slopes(const struct conv_args *g, const struct conv_strip *s, float *dy, float *dx, const int h) {
	const vf one = v_set1(1.0f);
	for (long group = 0; group < g->runs.count; group++) {
		const long lead = group_from(&g->runs, group);
		for (long j = lead; j < group_to(&g->runs, group); j++) {
			const struct run q = run_at(&g->runs, j, lead);
			for (long t = q.prefix; t < q.prefix + q.own; t++) {
				const long m = run_row(&q, t);
				for (long i = 0; i < s->n; i += LANES) {
					const int n = lanes_left(s->n - i);
					const vf y = conv_sum(g, &q, 0, s->w[i / LANES], t, s->at + i, s->c + i, n, h), sg = v_sigmoid(y);
					const vf d = ld(g->du, m * g->mixed + s->c + i, n, h);
					v_store(dy + m * CONV_STRIP + i, v_mul(d, v_mul(sg, v_fma(y, v_sub(one, sg), one))));
					v_store(dx + m * CONV_STRIP + i, v_zero());
				}
			}
		}
	}
}

// conv_add adds the sums of a gradient block to dweight, and clears them.
INLINE void conv_add(const struct conv_args *g, const struct conv_strip *s, vf acc[CONV_VECTORS][CONV_TAPS]) {
	for (long i = 0; i < s->n; i += LANES)
		for (long k = 0; k < g->taps; k++) {
			float sum[LANES];
			v_store(sum, acc[i / LANES][k]);
			for (int j = 0; j < lanes_left(s->n - i); j++) g->dweight[(s->c + i + j) * g->taps + k] += sum[j];
			acc[i / LANES][k] = v_zero();
		}
}

// conv_back computes the gradients of a strip.
INLINE void conv_back(const struct conv_args *g, float *scratch, const struct conv_strip *s, const int h) {
	float *dy = scratch, *dx = scratch + g->m * CONV_STRIP;
	vf acc[CONV_VECTORS][CONV_TAPS];
	conv_slopes(g, s, dy, dx, h);
	long block = 0;
	for (long i = 0; i < CONV_VECTORS; i++)
		for (long k = 0; k < g->taps; k++) acc[i][k] = v_zero();
	for (long group = 0; group < g->runs.count; group++) {
		const long lead = group_from(&g->runs, group);
		for (long j = lead; j < group_to(&g->runs, group); j++) {
			const struct run q = run_at(&g->runs, j, lead);
			for (long t = q.prefix; t < q.prefix + q.own; t++) {
				const long m = run_row(&q, t);
				for (long k = 0; k < g->taps; k++) {
					const long from = t - (g->taps - 1) + k;
					float *p = from >= 0 ? dx + run_row(&q, from) * CONV_STRIP : 0;
					for (long i = 0; i < s->n; i += LANES) {
						const vf d = v_load(dy + m * CONV_STRIP + i);
						vf *sum = &acc[i / LANES][k];
						if (p) v_store(p + i, v_fma(s->w[i / LANES][k], d, v_load(p + i)));
						*sum = v_fma(d, conv_input(g, &q, 0, from, s->at + i, s->c + i, lanes_left(s->n - i), h), *sum);
					}
				}
				if (m + 1 < g->block[block + 1]) continue;
				block++;
				conv_add(g, s, acc);
			}
		}
	}
	for (long m = 0; m < g->m; m++)
		for (long i = 0; i < s->n; i += LANES)
			st(g->dx, m * g->stride + s->at + i, v_load(dx + m * CONV_STRIP + i), lanes_left(s->n - i), h);
}

// short_conv_backward computes strips lo..hi. scratch: [2][rows][CONV_STRIP].
static void short_conv_backward(const struct conv_args *g, long lo, long hi, int tid) {
	float *scratch = g->scratch + tid * g->scratch_len;
	for (long u = lo; u < hi; u++) {
		struct conv_strip s;
		conv_strip_at(g, u, &s);
		if (g->bf16) conv_back(g, scratch, &s, 1);
		else conv_back(g, scratch, &s, 0);
	}
}

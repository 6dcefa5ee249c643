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

// conv_weights sets w [taps] to the weights of n channels.
INLINE void conv_weights(const struct conv_args *g, long c, int n, vf w[CONV_TAPS]) {
	for (long j = 0; j < g->taps; j++) {
		float t[LANES] = {0};
		for (int i = 0; i < n; i++) t[i] = g->weight[(c + i) * g->taps + j];
		w[j] = v_load(t);
	}
}

INLINE vf conv_sum(const struct conv_args *g, const struct run *q, const char *tail, const vf *w, long t, long at, long c, int n, const int h) {
	vf y = v_zero();
	for (long j = 0; j < g->taps; j++) y = v_fma(w[j], conv_input(g, q, tail, t - (g->taps - 1) + j, at, c, n, h), y);
	return y;
}

// conv_run computes n channels of a sequence's own rows, and what it leaves in its slot.
INLINE void conv_run(const struct conv_args *g, const struct run *q, char *slot, const char *tail, long at, long c, int n, const int h) {
	vf w[CONV_TAPS], end[CONV_TAPS];
	conv_weights(g, c, n, w);
	const long last = q->prefix + q->own;
	for (long t = q->prefix; t < last; t++) {
		const vf y = conv_sum(g, q, tail, w, t, at, c, n, h);
		st(g->u, run_row(q, t) * g->mixed + c, v_mul(y, v_sigmoid(y)), n, h);
	}
	if (!slot) return;
	for (long k = 0; k < g->taps - 1; k++) end[k] = conv_input(g, q, tail, last - (g->taps - 1) + k, at, c, n, h);
	for (long k = 0; k < g->taps - 1; k++) st(slot, k * g->mixed + c, end[k], n, h);
}

// conv_units computes units lo..hi: a group of sequences × a strip of channels.
INLINE void conv_units(const struct conv_args *g, long lo, long hi, const int h) {
	for (long u = lo; u < hi; u++) {
		const long group = u / g->strips, lead = group_from(&g->runs, group), to = group_to(&g->runs, group);
		const int32_t *strip = g->strip + 3 * (u % g->strips);
		for (long j = lead; j < to; j++) {
			const struct run q = run_at(&g->runs, j, lead);
			char *slot = 0, *tail = 0;
			if (g->runs.slots) {
				const long s = g->runs.slots[j];
				slot = (char *)g->tails + (s < 0 ? -1 - s : s) * (g->taps - 1) * g->mixed * (h ? 2 : 4);
				if (s >= 0) tail = slot;
			}
			for (long i = 0; i < strip[2]; i += LANES)
				conv_run(g, &q, slot, tail, strip[1] + i, strip[0] + i, lanes_left(strip[2] - i), h);
		}
	}
}

static void short_conv(const struct conv_args *g, long lo, long hi, int tid) {
	(void)tid;
	if (g->bf16) conv_units(g, lo, hi, 1);
	else conv_units(g, lo, hi, 0);
}

// conv_slopes sets dy [rows][LANES] to the gradients before the activation, and clears dx.
INLINE void conv_slopes(const struct conv_args *g, const vf *w, float *dy, float *dx, long at, long c, int n, const int h) {
	const vf one = v_set1(1.0f);
	for (long group = 0; group < g->runs.count; group++) {
		const long lead = group_from(&g->runs, group);
		for (long j = lead; j < group_to(&g->runs, group); j++) {
			const struct run q = run_at(&g->runs, j, lead);
			for (long t = q.prefix; t < q.prefix + q.own; t++) {
				const long m = run_row(&q, t);
				const vf y = conv_sum(g, &q, 0, w, t, at, c, n, h), s = v_sigmoid(y);
				v_store(dy + m * LANES, v_mul(ld(g->du, m * g->mixed + c, n, h), v_mul(s, v_fma(y, v_sub(one, s), one))));
				v_store(dx + m * LANES, v_zero());
			}
		}
	}
}

// conv_back computes the gradients of n channels.
INLINE void conv_back(const struct conv_args *g, float *scratch, long at, long c, int n, const int h) {
	float *dy = scratch, *dx = scratch + g->m * LANES;
	vf w[CONV_TAPS], acc[CONV_TAPS];
	conv_weights(g, c, n, w);
	conv_slopes(g, w, dy, dx, at, c, n, h);
	long block = 0;
	for (long k = 0; k < g->taps; k++) acc[k] = v_zero();
	for (long group = 0; group < g->runs.count; group++) {
		const long lead = group_from(&g->runs, group);
		for (long j = lead; j < group_to(&g->runs, group); j++) {
			const struct run q = run_at(&g->runs, j, lead);
			for (long t = q.prefix; t < q.prefix + q.own; t++) {
				const long m = run_row(&q, t);
				const vf d = v_load(dy + m * LANES);
				for (long k = 0; k < g->taps; k++) {
					const long from = t - (g->taps - 1) + k;
					if (from >= 0) {
						float *p = dx + run_row(&q, from) * LANES;
						v_store(p, v_fma(w[k], d, v_load(p)));
					}
					acc[k] = v_fma(d, conv_input(g, &q, 0, from, at, c, n, h), acc[k]);
				}
				if (m + 1 < g->block[block + 1]) continue;
				block++;
				for (long k = 0; k < g->taps; k++) {
					float sum[LANES];
					v_store(sum, acc[k]);
					for (int i = 0; i < n; i++) g->dweight[(c + i) * g->taps + k] += sum[i];
					acc[k] = v_zero();
				}
			}
		}
	}
	for (long m = 0; m < g->m; m++) st(g->dx, m * g->stride + at, v_load(dx + m * LANES), n, h);
}

// short_conv_backward computes strips lo..hi. scratch: [2][rows][LANES].
static void short_conv_backward(const struct conv_args *g, long lo, long hi, int tid) {
	float *scratch = g->scratch + tid * g->scratch_len;
	for (long u = lo; u < hi; u++) {
		const int32_t *strip = g->strip + 3 * u;
		for (long i = 0; i < strip[2]; i += LANES) {
			const int n = lanes_left(strip[2] - i);
			if (g->bf16) conv_back(g, scratch, strip[1] + i, strip[0] + i, n, 1);
			else conv_back(g, scratch, strip[1] + i, strip[0] + i, n, 0);
		}
	}
}

// sink.h: one more key of attention, whose value is zeros, and its gradients.

// keys_share returns how much attention the keys get and the sink does not. v numbers rows and their heads.
INLINE float keys_share(const struct sink_args *g, long v) {
	float x[LANES];
	v_store(x, v_exp(v_set1(g->sinks[v % g->h] - g->stats[2 * v])));
	return 1.0f / (1.0f + x[0] * g->stats[2 * v + 1]);
}

INLINE void sink_rows(const struct sink_args *g, long lo, long hi, const int h) {
	for (long v = lo * g->h; v < hi * g->h; v++) {
		const vf share = v_set1(keys_share(g, v));
		for (long i = 0; i < g->d; i += LANES) {
			const int n = lanes_left(g->d - i);
			st(g->out, v * g->d + i, v_mul(ld(g->att, v * g->d + i, n, h), share), n, h);
		}
	}
}

static void sink(const struct sink_args *g, long lo, long hi, int tid) {
	(void)tid;
	if (g->bf16) sink_rows(g, lo, hi, 1);
	else sink_rows(g, lo, hi, 0);
}

// sink_block computes datt of rows lo..hi, as out, and adds the sums of dsinks to `sums`.
INLINE void sink_block(const struct sink_args *g, long lo, long hi, float *sums, const int h) {
	for (long v = lo * g->h; v < hi * g->h; v++) {
		const float share = keys_share(g, v);
		vf dot = v_zero();
		for (long i = 0; i < g->d; i += LANES) {
			const int n = lanes_left(g->d - i);
			const vf d = ld(g->dout, v * g->d + i, n, h);
			const vf next = v_fma(d, ld(g->att, v * g->d + i, n, h), dot);
			dot = n < LANES ? v_keep(next, n, dot) : next;
			st(g->out, v * g->d + i, v_mul(d, v_set1(share)), n, h);
		}
		sums[v % g->h] -= v_sum(dot) * (1.0f - share);
	}
}

// sink_backward computes gradient blocks lo..hi and their parts [blocks][h] of dsinks, which rmsnorm_dweight adds up.
static void sink_backward(const struct sink_args *g, long lo, long hi, int tid) {
	(void)tid;
	for (long b = lo; b < hi; b++) {
		float *sums = g->parts + b * g->h;
		memset(sums, 0, g->h * sizeof *sums);
		if (g->bf16) sink_block(g, g->block[b], g->block[b + 1], sums, 1);
		else sink_block(g, g->block[b], g->block[b + 1], sums, 0);
	}
}

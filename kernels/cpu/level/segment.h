// segment.h: means of runs of rows, and their gradients.

INLINE void segment_means(const struct segment_args *g, long lo, long hi, const int h) {
	for (long s = lo; s < hi; s++) {
		const long from = g->segments[2 * s], to = g->segments[2 * s + 1];
		const vf count = v_set1((float)(to - from));
		for (long i = 0; i < g->c; i += LANES) {
			const int n = lanes_left(g->c - i);
			vf sum = v_zero();
			for (long m = from; m < to; m++) sum = v_add(sum, ld(g->x, m * g->c + i, n, h));
			v_storet(g->out + s * g->c + i, from == to ? sum : v_div(sum, count), n);
		}
	}
}

// segment_mean sets out for segments lo..hi.
static void segment_mean(const struct segment_args *g, long lo, long hi, int tid) {
	(void)tid;
	if (g->x_bf16) segment_means(g, lo, hi, 1);
	else segment_means(g, lo, hi, 0);
}

// segment_mean_backward adds to dx, passed as out, in units of LANES columns, because segments
// may overlap.
static void segment_mean_backward(const struct segment_args *g, long lo, long hi, int tid) {
	(void)tid;
	for (long j = lo * LANES; j < hi * LANES; j += LANES) {
		const int n = lanes_left(g->c - j);
		for (long s = 0; s < g->count; s++) {
			const long from = g->segments[2 * s], to = g->segments[2 * s + 1];
			const vf share = v_div(v_loadt((const float *)g->x + s * g->c + j, n), v_set1((float)(to - from)));
			for (long m = from; m < to; m++) {
				float *dx = g->out + m * g->c + j;
				v_storet(dx, v_add(v_loadt(dx, n), share), n);
			}
		}
	}
}

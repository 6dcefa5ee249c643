// vector.h: element-wise updates and sums over whole buffers.

// add adds src to dst, elements lo..hi in units of VECTOR_UNIT.
#define VECTOR_UNIT 4096

static void add(const struct vector_args *g, long lo, long hi, int tid) {
	(void)tid;
	const long end = hi * VECTOR_UNIT < g->n ? hi * VECTOR_UNIT : g->n;
	for (long i = lo * VECTOR_UNIT; i < end; i += LANES) {
		const int n = end - i < LANES ? (int)(end - i) : LANES;
		v_storet(g->dst + i, v_add(v_loadt(g->dst + i, n), v_loadt(g->src + i, n)), n);
	}
}

// adamw is kernels.Backend's AdamW, element by element.
static void adamw(const struct adamw_args *g, long lo, long hi, int tid) {
	(void)tid;
	const long end = hi * VECTOR_UNIT < g->n ? hi * VECTOR_UNIT : g->n;
	const vf scale = v_set1(g->scale), b1 = v_set1(g->b1), omb1 = v_set1(g->omb1), b2 = v_set1(g->b2),
		omb2 = v_set1(g->omb2), c2 = v_set1(g->c2), eps = v_set1(g->eps), step = v_set1(g->neg_lr_c1),
		decay = v_set1(g->decay);
	for (long i = lo * VECTOR_UNIT; i < end; i += LANES) {
		const int n = end - i < LANES ? (int)(end - i) : LANES;
		const vf d = v_mul(v_loadt(g->g + i, n), scale);
		const vf m = v_fma(omb1, d, v_mul(b1, v_loadt(g->m + i, n)));
		const vf v = v_fma(v_mul(omb2, d), d, v_mul(b2, v_loadt(g->v + i, n)));
		const vf den = v_add(v_mul(v_sqrt(v), c2), eps);
		v_storet(g->m + i, m, n);
		v_storet(g->v + i, v, n);
		v_storet(g->p + i, v_fma(step, v_div(m, den), v_mul(v_loadt(g->p + i, n), decay)), n);
	}
}

// sum_squares sets partial[u] for blocks u of VECTOR_UNIT elements: LANES float64
// sums in the fixed tree. The product of two float32 is exact in float64.
static void sum_squares(const struct vector_args *g, long lo, long hi, int tid) {
	(void)tid;
	for (long u = lo; u < hi; u++) {
		const long i0 = u * VECTOR_UNIT, i1 = i0 + VECTOR_UNIT < g->n ? i0 + VECTOR_UNIT : g->n;
		double lane[LANES] = {0};
		long i = i0;
		for (; i + LANES <= i1; i += LANES)
			for (int j = 0; j < LANES; j++) {
				const double x = g->src[i + j];
				lane[j] += x * x;
			}
		for (int j = 0; i + j < i1; j++) {
			const double x = g->src[i + j];
			lane[j] += x * x;
		}
		for (int s = LANES / 2; s > 0; s /= 2)
			for (int j = 0; j < s; j++) lane[j] += lane[j + s];
		g->partial[u] = lane[0];
	}
}

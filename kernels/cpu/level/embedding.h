// embedding.h: token embedding.

// embed copies rows lo..hi.
static void embed(const struct embed_args *g, long lo, long hi, int tid) {
	(void)tid;
	for (long i = lo; i < hi; i++)
		memcpy((char *)g->out + i * g->c * g->size, (const char *)g->weight + (long)g->ids[i] * g->c * g->size, g->c * g->size);
}

// embed_frozen sets rows lo..hi of out to scale times the ids' rows of the weight, which are
// columns if it is in packed panels [·][c][NR].
static void embed_frozen(const struct embed_frozen_args *g, long lo, long hi, int tid) {
	(void)tid;
	const vf scale = v_set1(g->scale);
	for (long i = lo; i < hi; i++) {
		const long id = g->ids[i], c = g->c;
		float *out = g->out + i * c;
		if (!g->packed)
			for (long j = 0; j < c; j += LANES) st(out, j, v_mul(scale, ld((const void *)g->weight, id * c + j, lanes_left(c - j), g->bf16)), lanes_left(c - j), 0);
		else if (g->bf16)
			for (long j = 0; j < c; j++) out[j] = g->scale * widen(((const bf16 *)g->weight)[(id / NR * c + j) * NR + PAIRED(id % NR)]);
		else
			for (long j = 0; j < c; j++) out[j] = g->scale * ((const float *)g->weight)[(id / NR * c + j) * NR + id % NR];
	}
}

// embed_scaled is embed in float32, times scale.
static void embed_scaled(const struct embed_args *g, long lo, long hi, int tid) {
	(void)tid;
	const vf by = v_set1(g->scale);
	for (long i = lo; i < hi; i++) {
		const float *w = (const float *)g->weight + (long)g->ids[i] * g->c;
		float *out = (float *)g->out + i * g->c;
		for (long j = 0; j < g->c; j += LANES) {
			const int n = lanes_left(g->c - j);
			v_storet(out + j, v_mul(by, v_loadt(w + j, n)), n);
		}
	}
}

// add_embeddings adds, for columns from lo·LANES, every row of out (the gradient), times scale
// if scaled, to its token's row of weight. Dividing by columns keeps the rows in order.
INLINE void add_embeddings(const struct embed_args *g, long lo, long hi, const int scaled) {
	const vf by = v_set1(g->scale);
	float *dw = (float *)g->weight;
	const long j0 = lo * LANES, j1 = hi * LANES < g->c ? hi * LANES : g->c;
	for (long i = 0; i < g->m; i++) {
		float *w = dw + (long)g->ids[i] * g->c;
		const float *d = (const float *)g->out + i * g->c;
		for (long j = j0; j < j1; j += LANES) {
			const int n = j1 - j < LANES ? (int)(j1 - j) : LANES;
			const vf x = v_loadt(d + j, n);
			v_storet(w + j, v_add(v_loadt(w + j, n), scaled ? v_mul(by, x) : x), n);
		}
	}
}

static void embed_backward(const struct embed_args *g, long lo, long hi, int tid) {
	(void)tid;
	add_embeddings(g, lo, hi, 0);
}

static void embed_scaled_backward(const struct embed_args *g, long lo, long hi, int tid) {
	(void)tid;
	add_embeddings(g, lo, hi, 1);
}

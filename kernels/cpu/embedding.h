// embedding.h: token embedding.

// embed copies rows lo..hi.
static void embed(const struct embed_args *g, long lo, long hi, int tid) {
	(void)tid;
	for (long i = lo; i < hi; i++)
		memcpy((char *)g->out + i * g->c * g->size, (const char *)g->weight + (long)g->ids[i] * g->c * g->size, g->c * g->size);
}

// embed_backward adds, for columns lo·LANES.., every row of out (the gradient) to
// its token's row of weight. Splitting by columns keeps the rows in order.
static void embed_backward(const struct embed_args *g, long lo, long hi, int tid) {
	(void)tid;
	float *dw = (float *)g->weight;
	const long j0 = lo * LANES, j1 = hi * LANES < g->c ? hi * LANES : g->c;
	for (long i = 0; i < g->m; i++) {
		float *w = dw + (long)g->ids[i] * g->c;
		const float *d = (const float *)g->out + i * g->c;
		for (long j = j0; j < j1; j += LANES) {
			const int n = j1 - j < LANES ? (int)(j1 - j) : LANES;
			v_storet(w + j, v_add(v_loadt(w + j, n), v_loadt(d + j, n)), n);
		}
	}
}

// columns.h: reads and updates of column ranges. The constants sh and dh say which buffers are
// BF16 (bf16.h).

INLINE void take_column_rows(const struct columns_args *g, long lo, long hi, const int sh, const int dh) {
	const vf by = v_set1(g->scale);
	for (long m = lo; m < hi; m++)
		for (long j = 0; j < g->n; j += LANES) {
			const int n = lanes_left(g->n - j);
			st(g->dst, m * g->n + j, v_mul(by, ld(g->src, m * g->stride + g->offset + j, n, sh)), n, dh);
		}
}

INLINE void add_column_rows(const struct columns_args *g, long lo, long hi, const int sh, const int dh) {
	const vf by = v_set1(g->scale);
	for (long m = lo; m < hi; m++)
		for (long j = 0; j < g->n; j += LANES) {
			const int n = lanes_left(g->n - j);
			const long at = m * g->stride + g->offset + j;
			st(g->dst, at, v_fma(by, ld(g->src, m * g->n + j, n, sh), ld(g->dst, at, n, dh)), n, dh);
		}
}

static void take_columns(const struct columns_args *g, long lo, long hi, int tid) {
	(void)tid;
	switch (g->src_bf16 * 2 + g->dst_bf16) {
	case 0: take_column_rows(g, lo, hi, 0, 0); return;
	case 1: take_column_rows(g, lo, hi, 0, 1); return;
	case 2: take_column_rows(g, lo, hi, 1, 0); return;
	case 3: take_column_rows(g, lo, hi, 1, 1); return;
	}
}

static void add_columns(const struct columns_args *g, long lo, long hi, int tid) {
	(void)tid;
	switch (g->src_bf16 * 2 + g->dst_bf16) {
	case 0: add_column_rows(g, lo, hi, 0, 0); return;
	case 1: add_column_rows(g, lo, hi, 0, 1); return;
	case 2: add_column_rows(g, lo, hi, 1, 0); return;
	case 3: add_column_rows(g, lo, hi, 1, 1); return;
	}
}

// rope.h: rotary embedding. The constant h says whether the rows are BF16 (bf16.h).

INLINE void rope_rows(const struct rope_args *g, long lo, long hi, const int h) {
	const long half = g->half;
	for (long m = lo; m < hi; m++) {
		const float *cs = g->cos + g->pos[m] * half, *sn = g->sin + g->pos[m] * half;
		for (long head = 0; head < g->heads; head++) {
			const long x = m * g->stride + head * g->d, y = x + half;
			for (long i = 0; i < half; i += LANES) {
				const int n = lanes_left(half - i);
				const vf c = v_loadt(cs + i, n);
				vf s = v_loadt(sn + i, n);
				if (g->inverse) s = v_neg(s);
				const vf a = ld(g->qkv, x + i, n, h), b = ld(g->qkv, y + i, n, h);
				st(g->qkv, x + i, v_fma(a, c, v_neg(v_mul(b, s))), n, h);
				st(g->qkv, y + i, v_fma(b, c, v_mul(a, s)), n, h);
			}
		}
	}
}

// rope rotates the first `heads` heads of rows lo..hi.
static void rope(const struct rope_args *g, long lo, long hi, int tid) {
	(void)tid;
	if (g->bf16) rope_rows(g, lo, hi, 1);
	else rope_rows(g, lo, hi, 0);
}

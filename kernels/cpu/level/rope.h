// rope.h: rotary embedding. The constant h says whether the rows are BF16 (bf16.h).

// load_pairs sets a and b to the even and the odd ones of the 2n elements from i on.
INLINE void load_pairs(vf *a, vf *b, const void *x, long i, int n, const int h) {
	float both[2 * LANES], even[LANES], odd[LANES];
	v_store(both, ld(x, i, n < LANES / 2 ? 2 * n : LANES, h));
	v_store(both + LANES, n > LANES / 2 ? ld(x, i + LANES, 2 * n - LANES, h) : v_zero());
	for (int k = 0; k < LANES; k++) even[k] = both[2 * k], odd[k] = both[2 * k + 1];
	*a = v_load(even);
	*b = v_load(odd);
}

// store_pairs is its inverse.
INLINE void store_pairs(void *x, long i, vf a, vf b, int n, const int h) {
	float both[2 * LANES], even[LANES], odd[LANES];
	v_store(even, a);
	v_store(odd, b);
	for (int k = 0; k < LANES; k++) both[2 * k] = even[k], both[2 * k + 1] = odd[k];
	st(x, i, v_load(both), n < LANES / 2 ? 2 * n : LANES, h);
	if (n > LANES / 2) st(x, i + LANES, v_load(both + LANES), 2 * n - LANES, h);
}

INLINE void rope_rows(const struct rope_args *g, long lo, long hi, const int interleaved, const int h) {
	const long half = g->half;
	for (long m = lo; m < hi; m++) {
		const float *cs = g->cos + g->pos[m] * half, *sn = g->sin + g->pos[m] * half;
		for (long head = 0; head < g->heads; head++) {
			const long x = m * g->stride + head * g->d, y = x + half;
			for (long i = 0; i < half; i += LANES) {
				const int n = lanes_left(half - i);
				const vf c = v_loadt(cs + i, n);
				vf s = v_loadt(sn + i, n), a, b;
				if (g->inverse) s = v_neg(s);
				if (interleaved) load_pairs(&a, &b, g->qkv, x + 2 * i, n, h);
				else a = ld(g->qkv, x + i, n, h), b = ld(g->qkv, y + i, n, h);
				const vf p = v_fma(a, c, v_neg(v_mul(b, s))), q = v_fma(b, c, v_mul(a, s));
				if (interleaved) {
					store_pairs(g->qkv, x + 2 * i, p, q, n, h);
					continue;
				}
				st(g->qkv, x + i, p, n, h);
				st(g->qkv, y + i, q, n, h);
			}
		}
	}
}

// rope rotates the first `heads` heads of rows lo..hi.
static void rope(const struct rope_args *g, long lo, long hi, int tid) {
	(void)tid;
	if (g->interleaved && g->bf16) rope_rows(g, lo, hi, 1, 1);
	else if (g->interleaved) rope_rows(g, lo, hi, 1, 0);
	else if (g->bf16) rope_rows(g, lo, hi, 0, 1);
	else rope_rows(g, lo, hi, 0, 0);
}

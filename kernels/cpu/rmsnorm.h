// rmsnorm.h: root-mean-square norm of row vectors, with residual, and gradients.
// The constants xh, oh and h say which buffers are BF16 (bf16.h).

// norm_vector normalises the dim elements of x and out from element at on.
INLINE void norm_vector(void *out, float *rstd, const void *x, long at, const float *weight, long dim, float eps,
	const int xh, const int oh) {
	vf ss = v_zero();
	for (long i = 0; i < dim; i += LANES) {
		const vf v = ld(x, at + i, lanes_left(dim - i), xh);
		ss = v_fma(v, v, ss);
	}
	const float r = 1.0f / sqrtf(v_sum(ss) / (float)dim + eps);
	*rstd = r;
	const vf rv = v_set1(r);
	for (long i = 0; i < dim; i += LANES) {
		const int n = lanes_left(dim - i);
		st(out, at + i, v_mul(v_mul(ld(x, at + i, n, xh), rv), v_loadt(weight + i, n)), n, oh);
	}
}

INLINE void rmsnorm_rows(const struct norm_args *g, long lo, long hi, const int xh, const int oh) {
	for (long m = lo; m < hi; m++)
		for (long h = 0; h < g->heads; h++)
			norm_vector(g->out, g->rstd + m * g->heads + h, g->x, m * g->stride + g->offset + h * g->dim,
				g->weight, g->dim, g->eps, xh, oh);
}

static void rmsnorm(const struct norm_args *g, long lo, long hi, int tid) {
	(void)tid;
	if (g->x_bf16) rmsnorm_rows(g, lo, hi, 1, 1);
	else if (g->out_bf16) rmsnorm_rows(g, lo, hi, 0, 1);
	else rmsnorm_rows(g, lo, hi, 0, 0);
}

INLINE void add_rmsnorm_rows(const struct norm_args *g, long lo, long hi, const int oh) {
	const long c = g->dim;
	for (long m = lo; m < hi; m++) {
		float *s = g->sum + m * c;
		const float *x = (const float *)g->x + m * c, *d = g->delta + m * c;
		for (long i = 0; i < c; i += LANES) {
			const int n = lanes_left(c - i);
			v_storet(s + i, v_add(v_loadt(x + i, n), v_loadt(d + i, n)), n);
		}
		norm_vector(g->out, g->rstd + m, g->sum, m * c, g->weight, c, g->eps, 0, oh);
	}
}

static void add_rmsnorm(const struct norm_args *g, long lo, long hi, int tid) {
	(void)tid;
	if (g->out_bf16) add_rmsnorm_rows(g, lo, hi, 1);
	else add_rmsnorm_rows(g, lo, hi, 0);
}

INLINE void rmsnorm_dx_rows(const struct norm_back_args *g, long lo, long hi, const int h) {
	const long dim = g->dim;
	for (long m = lo; m < hi; m++)
		for (long head = 0; head < g->heads; head++) {
			const long at = m * g->stride + g->offset + head * dim;
			const float *w = g->weight;
			const float r = g->rstd[m * g->heads + head];
			vf s = v_zero();
			for (long i = 0; i < dim; i += LANES) {
				const int n = lanes_left(dim - i);
				s = v_fma(v_mul(ld(g->dout, at + i, n, h), v_loadt(w + i, n)), ld(g->x, at + i, n, h), s);
			}
			const float a = v_sum(s) * ((r * r) * r) / (float)dim;
			const vf na = v_set1(-a), rv = v_set1(r);
			for (long i = 0; i < dim; i += LANES) {
				const int n = lanes_left(dim - i);
				const vf gi = v_mul(ld(g->dout, at + i, n, h), v_loadt(w + i, n));
				vf d = v_fma(na, ld(g->x, at + i, n, h), v_mul(gi, rv));
				if (!g->set) d = v_add(ld(g->dx, at + i, n, h), d);
				st(g->dx, at + i, d, n, h);
			}
		}
}

// rmsnorm_dx works on rows lo..hi.
static void rmsnorm_dx(const struct norm_back_args *g, long lo, long hi, int tid) {
	(void)tid;
	if (g->bf16) rmsnorm_dx_rows(g, lo, hi, 1);
	else rmsnorm_dx_rows(g, lo, hi, 0);
}

INLINE void rmsnorm_dw_columns(const struct norm_back_args *g, long lo, long hi, const int h) {
	for (long u = lo; u < hi; u++) {
		const long j = u * LANES;
		const int n = lanes_left(g->dim - j);
		vf sum = v_loadt(g->dweight + j, n);
		for (long b = 0; b < g->blocks; b++) {
			vf acc = v_zero();
			for (long m = g->block[b]; m < g->block[b + 1]; m++)
				for (long head = 0; head < g->heads; head++) {
					const long at = m * g->stride + g->offset + head * g->dim + j;
					const vf xh = v_mul(ld(g->x, at, n, h), v_set1(g->rstd[m * g->heads + head]));
					acc = v_fma(ld(g->dout, at, n, h), xh, acc);
				}
			sum = v_add(sum, acc);
		}
		v_storet(g->dweight + j, sum, n);
	}
}

// rmsnorm_dw works on columns in units of LANES, so that each sum runs over the
// rows in order. Rows are contiguous: stride·rows from offset.
static void rmsnorm_dw(const struct norm_back_args *g, long lo, long hi, int tid) {
	(void)tid;
	if (g->bf16) rmsnorm_dw_columns(g, lo, hi, 1);
	else rmsnorm_dw_columns(g, lo, hi, 0);
}

// rmsnorm.h: root-mean-square norm of row vectors, with residual, and gradients.

INLINE void norm_vector(float *out, float *rstd, const float *x, const float *weight, long dim, float eps) {
	vf ss = v_zero();
	long i = 0;
	for (; i + LANES <= dim; i += LANES) { const vf v = v_load(x + i); ss = v_fma(v, v, ss); }
	if (i < dim) { const vf v = v_loadn(x + i, (int)(dim - i)); ss = v_fma(v, v, ss); }
	const float r = 1.0f / sqrtf(v_sum(ss) / (float)dim + eps);
	*rstd = r;
	const vf rv = v_set1(r);
	for (i = 0; i + LANES <= dim; i += LANES)
		v_store(out + i, v_mul(v_mul(v_load(x + i), rv), v_load(weight + i)));
	if (i < dim) {
		const int n = (int)(dim - i);
		v_storen(out + i, v_mul(v_mul(v_loadn(x + i, n), rv), v_loadn(weight + i, n)), n);
	}
}

static void rmsnorm(const struct norm_args *g, long lo, long hi, int tid) {
	(void)tid;
	for (long m = lo; m < hi; m++)
		for (long h = 0; h < g->heads; h++) {
			const long at = m * g->stride + g->offset + h * g->dim;
			norm_vector(g->out + at, g->rstd + m * g->heads + h, g->x + at, g->weight, g->dim, g->eps);
		}
}

static void add_rmsnorm(const struct norm_args *g, long lo, long hi, int tid) {
	(void)tid;
	const long c = g->dim;
	for (long m = lo; m < hi; m++) {
		float *s = g->sum + m * c;
		const float *x = g->x + m * c, *d = g->delta + m * c;
		for (long i = 0; i < c; i += LANES) {
			const int n = c - i < LANES ? (int)(c - i) : LANES;
			v_storet(s + i, v_add(v_loadt(x + i, n), v_loadt(d + i, n)), n);
		}
		norm_vector(g->out + m * c, g->rstd + m, s, g->weight, c, g->eps);
	}
}

// rmsnorm_dx works on rows lo..hi.
static void rmsnorm_dx(const struct norm_back_args *g, long lo, long hi, int tid) {
	(void)tid;
	const long dim = g->dim;
	for (long m = lo; m < hi; m++)
		for (long h = 0; h < g->heads; h++) {
			const long at = m * g->stride + g->offset + h * dim;
			const float *x = g->x + at, *dout = g->dout + at, *w = g->weight;
			float *dx = g->dx + at;
			const float r = g->rstd[m * g->heads + h];
			vf s = v_zero();
			for (long i = 0; i < dim; i += LANES) {
				const int n = dim - i < LANES ? (int)(dim - i) : LANES;
				s = v_fma(v_mul(v_loadt(dout + i, n), v_loadt(w + i, n)), v_loadt(x + i, n), s);
			}
			const float a = v_sum(s) * ((r * r) * r) / (float)dim;
			const vf na = v_set1(-a), rv = v_set1(r);
			for (long i = 0; i < dim; i += LANES) {
				const int n = dim - i < LANES ? (int)(dim - i) : LANES;
				const vf gi = v_mul(v_loadt(dout + i, n), v_loadt(w + i, n));
				vf d = v_fma(na, v_loadt(x + i, n), v_mul(gi, rv));
				if (!g->set) d = v_add(v_loadt(dx + i, n), d);
				v_storet(dx + i, d, n);
			}
		}
}

// rmsnorm_dw works on columns in units of LANES, so that each sum runs over the
// rows in order. Rows are contiguous: stride·rows from offset.
static void rmsnorm_dw(const struct norm_back_args *g, long lo, long hi, int tid) {
	(void)tid;
	for (long u = lo; u < hi; u++) {
		const long j = u * LANES;
		const int n = g->dim - j < LANES ? (int)(g->dim - j) : LANES;
		vf sum = v_loadt(g->dweight + j, n);
		for (long b = 0; b < g->blocks; b++) {
			vf acc = v_zero();
			for (long m = g->block[b]; m < g->block[b + 1]; m++)
				for (long h = 0; h < g->heads; h++) {
					const long at = m * g->stride + g->offset + h * g->dim + j;
					const vf xh = v_mul(v_loadt(g->x + at, n), v_set1(g->rstd[m * g->heads + h]));
					acc = v_fma(v_loadt(g->dout + at, n), xh, acc);
				}
			sum = v_add(sum, acc);
		}
		v_storet(g->dweight + j, sum, n);
	}
}

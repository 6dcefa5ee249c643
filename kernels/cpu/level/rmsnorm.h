// rmsnorm.h: root-mean-square norm of row vectors, also with a residual, and gradients.
// The constants xh, oh and h say which buffers are BF16 (bf16.h).

// norm_scale returns min(n, 16) elements of a weight, plus 1 with unit.
INLINE vf norm_scale(const float *weight, int n, int unit) {
	const vf w = v_loadt(weight, n);
	return unit ? v_add(v_set1(1.0f), w) : w;
}

// scale_vector normalises dim elements of x into out, both from element `at`; squares holds the
// lane sums of x·x.
INLINE void scale_vector(void *out, float *rstd, const void *x, long at, const float *weight, long dim, float eps, vf squares,
	const int xh, const int oh, const int unit) {
	const float r = 1.0f / sqrtf(v_sum(squares) / (float)dim + eps);
	*rstd = r;
	const vf rv = v_set1(r);
	for (long i = 0; i < dim; i += LANES) {
		const int n = lanes_left(dim - i);
		st(out, at + i, v_mul(v_mul(ld(x, at + i, n, xh), rv), norm_scale(weight + i, n, unit)), n, oh);
	}
}

// norm_vector normalises dim elements of x into out, both from element `at`.
INLINE void norm_vector(void *out, float *rstd, const void *x, long at, const float *weight, long dim, float eps,
	const int xh, const int oh, const int unit) {
	vf squares = v_zero();
	for (long i = 0; i < dim; i += LANES) {
		const vf v = ld(x, at + i, lanes_left(dim - i), xh);
		squares = v_fma(v, v, squares);
	}
	scale_vector(out, rstd, x, at, weight, dim, eps, squares, xh, oh, unit);
}

INLINE void rmsnorm_rows(const struct norm_args *g, long lo, long hi, const int xh, const int oh, const int unit) {
	for (long m = lo; m < hi; m++)
		for (long h = 0; h < g->heads; h++)
			norm_vector(g->out, g->rstd + m * g->heads + h, g->x, m * g->stride + g->offset + h * g->dim,
				g->weight, g->dim, g->eps, xh, oh, unit);
}

static void rmsnorm(const struct norm_args *g, long lo, long hi, int tid) {
	(void)tid;
	switch (g->x_bf16 * 4 + g->out_bf16 * 2 + g->unit) {
	case 0: rmsnorm_rows(g, lo, hi, 0, 0, 0); return;
	case 1: rmsnorm_rows(g, lo, hi, 0, 0, 1); return;
	case 2: rmsnorm_rows(g, lo, hi, 0, 1, 0); return;
	case 3: rmsnorm_rows(g, lo, hi, 0, 1, 1); return;
	case 6: rmsnorm_rows(g, lo, hi, 1, 1, 0); return;
	case 7: rmsnorm_rows(g, lo, hi, 1, 1, 1); return;
	}
}

INLINE void add_rmsnorm_rows(const struct norm_args *g, long lo, long hi, const int oh, const int unit) {
	const long c = g->dim;
	for (long m = lo; m < hi; m++) {
		float *s = g->sum + m * c;
		const float *x = (const float *)g->x + m * c, *d = g->delta + m * c;
		vf squares = v_zero();
		for (long i = 0; i < c; i += LANES) {
			const int n = lanes_left(c - i);
			const vf v = v_add(v_loadt(x + i, n), v_loadt(d + i, n));
			v_storet(s + i, v, n);
			squares = v_fma(v, v, squares);
		}
		scale_vector(g->out, g->rstd + m, g->sum, m * c, g->weight, c, g->eps, squares, 0, oh, unit);
	}
}

static void add_rmsnorm(const struct norm_args *g, long lo, long hi, int tid) {
	(void)tid;
	switch (g->out_bf16 * 2 + g->unit) {
	case 0: add_rmsnorm_rows(g, lo, hi, 0, 0); return;
	case 1: add_rmsnorm_rows(g, lo, hi, 0, 1); return;
	case 2: add_rmsnorm_rows(g, lo, hi, 1, 0); return;
	case 3: add_rmsnorm_rows(g, lo, hi, 1, 1); return;
	}
}

// norm_back_dw sets V vectors of out, from column j, to the chains of dout·x·rstd over
// the vectors of rows r0..r1; n columns are left.
INLINE void norm_back_dw(const struct norm_back_args *g, const int V, long r0, long r1, long j, int n, float *out, const int h) {
	vf acc[8];
	for (int v = 0; v < V; v++) acc[v] = v_zero();
	for (long m = r0; m < r1; m++)
		for (long head = 0; head < g->heads; head++) {
			const long at = m * g->stride + g->offset + head * g->dim + j;
			const vf r = v_set1(g->rstd[m * g->heads + head]);
#pragma GCC unroll 8
			for (int v = 0; v < V; v++) {
				const vf xh = v_mul(ld(g->x, at + v * LANES, n, h), r);
				acc[v] = v_fma(ld(g->dout, at + v * LANES, n, h), xh, acc[v]);
			}
		}
	for (int v = 0; v < V; v++) v_storet(out + j + v * LANES, acc[v], n);
}

// norm_back_mean returns the negated factor of x in a row's dx: rstd³ times the mean of
// dout·weight·x, whose lane sums are s.
INLINE vf norm_back_mean(vf s, float r, long dim) {
	const float a = v_sum(s) * ((r * r) * r) / (float)dim;
	return v_set1(-a);
}

// norm_back_put sets n elements of dx from element `at`, or adds to them; dw is dout·weight.
INLINE void norm_back_put(const struct norm_back_args *g, long at, int n, vf dw, vf x, vf mean, vf r, const int h) {
	vf d = v_fma(mean, x, v_mul(dw, r));
	if (!g->set) d = v_add(ld(g->dx, at, n, h), d);
	st(g->dx, at, d, n, h);
}

// norm_back_dx sets dx of row m, or adds to it.
INLINE void norm_back_dx(const struct norm_back_args *g, long m, const int h, int unit) {
	const long dim = g->dim;
	for (long head = 0; head < g->heads; head++) {
		const long at = m * g->stride + g->offset + head * dim;
		const float *w = g->weight;
		const float r = g->rstd[m * g->heads + head];
		vf s = v_zero();
		for (long i = 0; i < dim; i += LANES) {
			const int n = lanes_left(dim - i);
			s = v_fma(v_mul(ld(g->dout, at + i, n, h), norm_scale(w + i, n, unit)), ld(g->x, at + i, n, h), s);
		}
		const vf mean = norm_back_mean(s, r, dim), rv = v_set1(r);
		for (long i = 0; i < dim; i += LANES) {
			const int n = lanes_left(dim - i);
			norm_back_put(g, at + i, n, v_mul(ld(g->dout, at + i, n, h), norm_scale(w + i, n, unit)), ld(g->x, at + i, n, h), mean, rv, h);
		}
	}
}

// norm_back_whole does norm_back_dx and norm_back_dw for rows r0..r1 of V whole vectors
// each. It reads the rows once and keeps the sums in registers.
INLINE void norm_back_whole(const struct norm_back_args *g, const int V, long r0, long r1, float *part, const int h, const int unit) {
	vf sums[8];
	for (int v = 0; v < V; v++) sums[v] = v_zero();
	for (long m = r0; m < r1; m++)
		for (long head = 0; head < g->heads; head++) {
			const long at = m * g->stride + g->offset + head * V * LANES;
			const float r = g->rstd[m * g->heads + head];
			vf dout[8], x[8], s = v_zero();
#pragma GCC unroll 8
			for (int v = 0; v < V; v++) {
				dout[v] = ld(g->dout, at + v * LANES, LANES, h), x[v] = ld(g->x, at + v * LANES, LANES, h);
				s = v_fma(v_mul(dout[v], norm_scale(g->weight + v * LANES, LANES, unit)), x[v], s);
			}
			const vf mean = norm_back_mean(s, r, g->dim), rv = v_set1(r);
#pragma GCC unroll 8
			for (int v = 0; v < V; v++) {
				sums[v] = v_fma(dout[v], v_mul(x[v], rv), sums[v]);
				norm_back_put(g, at + v * LANES, LANES, v_mul(dout[v], norm_scale(g->weight + v * LANES, LANES, unit)), x[v], mean, rv, h);
			}
		}
	for (int v = 0; v < V; v++) v_store(part + v * LANES, sums[v]);
}

// norm_back_long does norm_back_dw for rows r0..r1, then norm_back_dx: in this order, since dx may
// overwrite dout.
INLINE void norm_back_long(const struct norm_back_args *g, long r0, long r1, float *part, const int h) {
	long j = 0;
	for (; j + 8 * LANES <= g->dim; j += 8 * LANES) norm_back_dw(g, 8, r0, r1, j, LANES, part, h);
	for (; j < g->dim; j += LANES) norm_back_dw(g, 1, r0, r1, j, lanes_left(g->dim - j), part, h);
	for (long m = r0; m < r1; m++) norm_back_dx(g, m, h, g->unit);
}
ONE_COPY void norm_back_f32(const struct norm_back_args *g, long r0, long r1, float *part) { norm_back_long(g, r0, r1, part, 0); }
ONE_COPY void norm_back_bf16(const struct norm_back_args *g, long r0, long r1, float *part) { norm_back_long(g, r0, r1, part, 1); }

// NORM_WHOLE is the most vectors of a row that fit in registers three times, which
// norm_back_whole needs.
#if defined(LEVEL_AVX512)
#define NORM_WHOLE 8
#else
#define NORM_WHOLE 1
#endif

// norm_back_blocks computes blocks lo..hi: the weight's gradient first,
// then dx while the rows are in the second-level cache; for short rows both at once.
INLINE void norm_back_blocks(const struct norm_back_args *g, long lo, long hi, const int h, const int unit) {
	for (long b = lo; b < hi; b++) {
		const long r0 = g->block[b], r1 = g->block[b + 1];
		float *part = g->parts + b * g->dim;
		switch (g->dim % LANES == 0 && g->dim <= NORM_WHOLE * LANES ? g->dim / LANES : 0) {
		case 8: norm_back_whole(g, 8, r0, r1, part, h, unit); continue;
		case 4: norm_back_whole(g, 4, r0, r1, part, h, unit); continue;
		case 2: norm_back_whole(g, 2, r0, r1, part, h, unit); continue;
		case 1: norm_back_whole(g, 1, r0, r1, part, h, unit); continue;
		}
		if (h) norm_back_bf16(g, r0, r1, part);
		else norm_back_f32(g, r0, r1, part);
	}
}

// rmsnorm_backward sets dx and the parts [blocks][dim] of dweight for gradient blocks
// lo..hi.
static void rmsnorm_backward(const struct norm_back_args *g, long lo, long hi, int tid) {
	(void)tid;
	switch (g->bf16 * 2 + g->unit) {
	case 0: norm_back_blocks(g, lo, hi, 0, 0); return;
	case 1: norm_back_blocks(g, lo, hi, 0, 1); return;
	case 2: norm_back_blocks(g, lo, hi, 1, 0); return;
	case 3: norm_back_blocks(g, lo, hi, 1, 1); return;
	}
}

// rmsnorm_dweight adds up the blocks' parts in order, in units of LANES columns.
static void rmsnorm_dweight(const struct norm_back_args *g, long lo, long hi, int tid) {
	(void)tid;
	for (long u = lo; u < hi; u++) {
		const long j = u * LANES;
		const int n = lanes_left(g->dim - j);
		vf sum = v_loadt(g->dweight + j, n);
		for (long b = 0; b < g->blocks; b++) sum = v_add(sum, v_loadt(g->parts + b * g->dim + j, n));
		v_storet(g->dweight + j, sum, n);
	}
}

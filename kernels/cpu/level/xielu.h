// xielu.h: Apertus's activation and its gradients, in float64 and rounded once, as in kernels/ref. The compiler
// vectorises the loops over LANES elements; no sum runs along them.

#define EACH_LANE for (int i = 0; i < LANES; i++)

// xielus are an activation's value and its derivatives: in x, and in the parameters of the positive and negative part.
struct xielus {
	float value[LANES], slope[LANES], positive[LANES], negative[LANES];
};

// xielu_lanes computes the values of LANES elements, or with back, a constant, the derivatives.
INLINE void xielu_lanes(struct xielus *y, const float *x, const struct xielu_args *a, const int back) {
	static const double exp_terms[] = {1, 1, 0.5, 0.16666666666666666, 0.041666666666666664, 0.008333333333333333,
		0.001388888888888889, 0.0001984126984126984, 2.48015873015873e-05, 2.7557319223985893e-06, 2.755731922398589e-07,
		2.505210838544172e-08, 2.08767569878681e-09, 1.6059043836821613e-10};
	const double log2e = 1.44269504088896338700, ln2hi = 6.93147180369123816490e-01, ln2lo = 1.90821492927058770002e-10;
	const double positive = a->positive, negative = a->negative, beta = a->beta, eps = a->eps;
	const double d_positive = a->d_positive, d_negative = a->d_negative;
	double g[LANES], n[LANES], r[LANES], e[LANES];
	EACH_LANE {
		g[i] = x[i];
		const double below = g[i] < eps ? g[i] : eps, low = below < -1000 ? -1000 : below; // exp underflows to 0 there
		n[i] = __builtin_rint(low * log2e);
		r[i] = __builtin_fma(n[i], -ln2lo, __builtin_fma(n[i], -ln2hi, low));
		e[i] = exp_terms[13];
	}
#pragma GCC unroll 13
	for (int k = 12; k >= 0; k--) EACH_LANE e[i] = __builtin_fma(e[i], r[i], exp_terms[k]);
	EACH_LANE {
		// 2ⁿ in two factors: it may be too small for one.
		const double part = n[i] < -1000 ? -600 : 0;
		union { int64_t bits; double x; } s, t;
		s.bits = ((int64_t)(n[i] - part) + 1023) << 52, t.bits = ((int64_t)part + 1023) << 52;
		e[i] = e[i] * s.x * t.x;
		const double gg = g[i] * g[i], m = e[i] - 1 - g[i], rise = (g[i] < eps ? e[i] : 0) - 1;
		const int above = g[i] > 0;
		if (!back) {
			y->value[i] = (float)__builtin_fma(beta, g[i], above ? positive * gg : negative * m);
			continue;
		}
		y->slope[i] = (float)__builtin_fma(above ? 2 * positive : negative, above ? g[i] : rise, beta);
		y->positive[i] = above ? (float)(d_positive * gg) : 0;
		y->negative[i] = above ? 0 : (float)(d_negative * m);
	}
}
#undef EACH_LANE

// xielu_rows computes act of parts u0..u1 of rows.
INLINE void xielu_rows(const struct xielu_args *a, long u0, long u1, const int h) {
	for (long u = u0; u < u1; u++) {
		const long m = u / a->parts, from = u % a->parts * GATE_PART, to = a->f - from < GATE_PART ? a->f : from + GATE_PART;
		for (long j = from; j < to; j += LANES) {
			const int n = lanes_left(to - j);
			float x[LANES];
			struct xielus y;
			v_store(x, ld(a->x, m * a->f + j, n, h));
			xielu_lanes(&y, x, a, 0);
			st(a->act, m * a->f + j, v_load(y.value), n, h);
		}
	}
}

VECTORISED static void xielu(const struct xielu_args *a, long u0, long u1, int tid) {
	(void)tid;
	if (a->bf16) xielu_rows(a, u0, u1, 1);
	else xielu_rows(a, u0, u1, 0);
}

// xielu_back_rows computes dx of rows lo..hi, as act, and their terms [rows][2] of dalpha.
INLINE void xielu_back_rows(const struct xielu_args *a, long lo, long hi, const int h) {
	for (long m = lo; m < hi; m++) {
		vf sum[2] = {v_zero(), v_zero()};
		for (long j = 0; j < a->f; j += LANES) {
			const int n = lanes_left(a->f - j);
			const long at = m * a->f + j;
			const vf d = ld(a->dact, at, n, h);
			float x[LANES];
			struct xielus y;
			v_store(x, ld(a->x, at, n, h));
			xielu_lanes(&y, x, a, 1);
			const vf p = v_fma(d, v_load(y.positive), sum[0]), q = v_fma(d, v_load(y.negative), sum[1]);
			sum[0] = n < LANES ? v_keep(p, n, sum[0]) : p;
			sum[1] = n < LANES ? v_keep(q, n, sum[1]) : q;
			st(a->act, at, v_mul(d, v_load(y.slope)), n, h);
		}
		a->terms[2 * m] = v_sum(sum[0]), a->terms[2 * m + 1] = v_sum(sum[1]);
	}
}

VECTORISED static void xielu_backward(const struct xielu_args *a, long lo, long hi, int tid) {
	(void)tid;
	if (a->bf16) xielu_back_rows(a, lo, hi, 1);
	else xielu_back_rows(a, lo, hi, 0);
}

// xielu_parts adds up the terms of gradient blocks lo..hi, which rmsnorm_dweight adds to dalpha.
static void xielu_parts(const struct xielu_args *a, long lo, long hi, int tid) {
	(void)tid;
	for (long b = lo; b < hi; b++) {
		float p = 0, q = 0;
		for (long m = a->block[b]; m < a->block[b + 1]; m++) p += a->terms[2 * m], q += a->terms[2 * m + 1];
		a->sums[2 * b] = p, a->sums[2 * b + 1] = q;
	}
}

// gelu.h: GELU and its gradient as kernels/ref has them: float64, rounded once. The loops
// over LANES elements are the compiler's to vectorise; no sum runs along them.

#define EACH_LANE for (int i = 0; i < LANES; i++)

// over returns x/k, correctly rounded, with one_k = 1/k for a small whole number k: the
// first correction leaves less than a unit in the last place, with which the second is
// exact (Markstein, IBM J. Res. Dev. 34, 1990). A division takes ten times as long.
INLINE double over(double x, double k, double one_k) {
	double q = x * one_k;
	q = __builtin_fma(__builtin_fma(-q, k, x), one_k, q);
	return __builtin_fma(__builtin_fma(-q, k, x), one_k, q);
}

// normal_tail returns 1-Φ(x) for x > 3, with pdf = φ(x).
INLINE double normal_tail(double x, double pdf) {
	double d = x;
	for (double k = 40; k > 0; k--) d = x + k / d;
	return pdf / d;
}

// normal sets pdf = φ(x) and cdf = Φ(x) of LANES elements.
INLINE void normal(double *restrict pdf, double *restrict cdf, const double *restrict x) {
	const double log2e = 1.44269504088896338700, ln2hi = 6.93147180369123816490e-01, ln2lo = 1.90821492927058770002e-10;
	double xx[LANES], n[LANES], r[LANES], p[LANES];
	EACH_LANE xx[i] = x[i] * x[i];
	EACH_LANE {
		const double e = -0.5 * xx[i] < -1000 ? -1000 : -0.5 * xx[i]; // the exponential is 0 as a float64 there
		n[i] = __builtin_rint(e * log2e);
		r[i] = __builtin_fma(n[i], -ln2lo, __builtin_fma(n[i], -ln2hi, e));
		p[i] = 1;
	}
	for (double k = 14; k > 0; k--) {
		const double one_k = 1 / k;
		EACH_LANE p[i] = __builtin_fma(p[i], over(r[i], k, one_k), 1);
	}
	EACH_LANE {
		// 2ⁿ in two factors, for it may be too small for one.
		const double half = n[i] < -1000 ? -600 : 0;
		union { int64_t bits; double x; } a, b;
		a.bits = ((int64_t)(n[i] - half) + 1023) << 52, b.bits = ((int64_t)half + 1023) << 52;
		pdf[i] = p[i] * a.x * b.x * 0.39894228040143267794;
	}
	double term[LANES], sum[LANES], before[LANES];
	EACH_LANE term[i] = sum[i] = x[i];
	int more = 1, tails = 0;
	for (double first = 3; more && first < 101; first += 14) {
		for (double k = first; k < first + 14; k += 2) { // terms after the last that counts change nothing
			const double one_k = 1 / k;
			EACH_LANE {
				before[i] = sum[i];
				term[i] = over(term[i] * xx[i], k, one_k);
				sum[i] += term[i];
			}
		}
		more = 0;
		EACH_LANE more |= sum[i] != before[i] && xx[i] <= 9;
	}
	EACH_LANE tails |= xx[i] > 9;
	EACH_LANE cdf[i] = 0.5 + sum[i] * pdf[i];
	for (int i = 0; tails && i < LANES; i++) {
		if (x[i] < -3) cdf[i] = normal_tail(-x[i], pdf[i]);
		if (x[i] > 3) cdf[i] = 1 - normal_tail(x[i], pdf[i]);
	}
}

// normal_at sets x to elements at.. of g->x, as many as there are and 0 for the rest, and
// pdf and cdf to theirs. It returns how many there are.
INLINE long normal_at(const struct gelu_args *g, long at, double *restrict x, double *restrict pdf, double *restrict cdf) {
	const long n = g->n - at < LANES ? g->n - at : LANES;
	EACH_LANE x[i] = i < n ? g->x[at + i] : 0;
	normal(pdf, cdf, x);
	return n;
}

static void gelu(const struct gelu_args *g, long u0, long u1, int tid) {
	(void)tid;
	double x[LANES], pdf[LANES], cdf[LANES];
	for (long at = u0 * LANES; at < u1 * LANES; at += LANES) {
		const long n = normal_at(g, at, x, pdf, cdf);
		for (long i = 0; i < n; i++) g->out[at + i] = (float)(x[i] * cdf[i]);
	}
}

static void gelu_backward(const struct gelu_args *g, long u0, long u1, int tid) {
	(void)tid;
	double x[LANES], pdf[LANES], cdf[LANES];
	for (long at = u0 * LANES; at < u1 * LANES; at += LANES) {
		const long n = normal_at(g, at, x, pdf, cdf);
		for (long i = 0; i < n; i++) g->out[at + i] = g->dout[at + i] * (float)(cdf[i] + x[i] * pdf[i]);
	}
}
#undef EACH_LANE

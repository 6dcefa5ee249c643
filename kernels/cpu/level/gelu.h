// gelu.h: GELU and its gradient, in float64 and rounded once, as in kernels/ref. The compiler
// vectorises the loops over LANES elements; no sum runs along them. gcc does so by -O3, five times as fast
// as by -O2.
#if defined(__clang__) || defined(LEVEL_PORTABLE)
#define VECTORISED
#else
#define VECTORISED __attribute__((optimize("O3")))
#endif

#define EACH_LANE for (int i = 0; i < LANES; i++)

// gaussian sets pdf = φ(x) and cdf = Φ(x) of LANES elements.
INLINE void gaussian(double *restrict pdf, double *restrict cdf, const double *restrict x) {
	static const double exp_terms[] = {1, 1, 0.5, 0.16666666666666666, 0.041666666666666664, 0.008333333333333333,
		0.001388888888888889, 0.0001984126984126984, 2.48015873015873e-05, 2.7557319223985893e-06, 2.755731922398589e-07,
		2.505210838544172e-08, 2.08767569878681e-09, 1.6059043836821613e-10};
	static const double tail_terms[] = {0.09973557009844201, 0.09973557021882096, 0.09350209384594217, 0.08103519469221665,
		0.06350320438266296, 0.043244298312919115, 0.023432445677962738, 0.006801599475307911, -0.0003322974200197988,
		-0.02046130846541813, 0.04772104882031563, -0.1550478122928355, 0.35341440825232057, -0.6152447995386304,
		0.8375498375970393, -0.8510633209935692, 0.6214794612129552, -0.31606903447983875, 0.10661860138120374,
		-0.021533383658753184, 0.001978622880956145};
	const double log2e = 1.44269504088896338700, ln2hi = 6.93147180369123816490e-01, ln2lo = 1.90821492927058770002e-10;
	double n[LANES], r[LANES], e[LANES], t[LANES], tt[LANES], even[LANES], odd[LANES];
	EACH_LANE {
		const double half = -0.5 * (x[i] * x[i]), low = half < -1000 ? -1000 : half; // exp underflows to 0 there
		n[i] = __builtin_rint(low * log2e);
		r[i] = __builtin_fma(n[i], -ln2lo, __builtin_fma(n[i], -ln2hi, low));
		e[i] = exp_terms[13];
		t[i] = 4 / (4 + __builtin_fabs(x[i]));
		tt[i] = t[i] * t[i];
		even[i] = tail_terms[20], odd[i] = tail_terms[19];
	}
	// Three chains at once, so that none waits for itself.
#pragma GCC unroll 13
	for (int k = 12; k >= 0; k--) EACH_LANE {
		e[i] = __builtin_fma(e[i], r[i], exp_terms[k]);
		if (k < 4) continue;
		even[i] = __builtin_fma(even[i], tt[i], tail_terms[2 * k - 6]);
		odd[i] = __builtin_fma(odd[i], tt[i], tail_terms[2 * k - 7]);
	}
	EACH_LANE {
		// 2ⁿ in two factors: it may be too small for one.
		const double part = n[i] < -1000 ? -600 : 0;
		union { int64_t bits; double x; } a, b;
		a.bits = ((int64_t)(n[i] - part) + 1023) << 52, b.bits = ((int64_t)part + 1023) << 52;
		const double exponential = e[i] * a.x * b.x;
		const double tail = exponential * (t[i] * __builtin_fma(odd[i], t[i], __builtin_fma(even[i], tt[i], tail_terms[0])));
		pdf[i] = exponential * 0.39894228040143267794;
		cdf[i] = x[i] < 0 ? tail : 1 - tail;
	}
}

// gelu_lanes sets n ≤ LANES elements of out to GELU(x), or to its gradient given dout.
VECTORISED ONE_COPY void gelu_lanes(float *out, const float *dout, const float *x, long n, int back) {
	double wide[LANES], pdf[LANES], cdf[LANES];
	float in[LANES] = {0}, d[LANES] = {0}, y[LANES];
	memcpy(in, x, n * sizeof *x);
	EACH_LANE wide[i] = in[i];
	gaussian(pdf, cdf, wide);
	if (back) {
		memcpy(d, dout, n * sizeof *dout);
		EACH_LANE y[i] = d[i] * (float)(cdf[i] + wide[i] * pdf[i]);
	} else
		EACH_LANE y[i] = (float)(wide[i] * cdf[i]);
	memcpy(out, y, n * sizeof *out);
}

// gelu_units computes units u0..u1 of LANES elements each; the last unit may have fewer.
INLINE void gelu_units(const struct gelu_args *g, long u0, long u1, const int back) {
	const long whole = u1 * LANES <= g->n ? u1 : g->n / LANES;
	for (long at = u0 * LANES; at < whole * LANES; at += LANES) gelu_lanes(g->out + at, back ? g->dout + at : 0, g->x + at, LANES, back);
	const long at = whole * LANES;
	if (whole < u1) gelu_lanes(g->out + at, back ? g->dout + at : 0, g->x + at, g->n - at, back);
}

static void gelu(const struct gelu_args *g, long u0, long u1, int tid) {
	(void)tid;
	gelu_units(g, u0, u1, 0);
}

static void gelu_backward(const struct gelu_args *g, long u0, long u1, int tid) {
	(void)tid;
	gelu_units(g, u0, u1, 1);
}
#undef EACH_LANE

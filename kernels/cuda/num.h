// num.h has the functions of kernels/ref that kernels share, with its bits.
#ifndef EXP_CUDA_NUM_H
#define EXP_CUDA_NUM_H

#include "gpu.h"

#define INFINITE float_of(0x7f800000)

// round_bf16 is Round of kernels/ref: to the nearest, ties to even; subnormals become zero, and
// a NaN stays one.
DEVICE uint16_t round_bf16(float x) {
	const uint32_t u = bits_of(x);
	if ((u & 0x7fffffff) > 0x7f800000) return (uint16_t)(u >> 16 | 0x40);
	if ((u & 0x7f800000) == 0) return (uint16_t)(u >> 16 & 0x8000);
	return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

// rounded is round_bf16 as a float.
DEVICE float rounded(float x) { return float_of((uint32_t)round_bf16(x) << 16); }

// load returns an element, and store sets one, rounded to the array's type.
DEVICE float load(struct operand x, long i) {
	if (x.bf16) return float_of((uint32_t)((const uint16_t *)x.at)[i] << 16);
	return ((const float *)x.at)[i];
}

DEVICE void store(struct operand x, long i, float v) {
	if (x.bf16) ((uint16_t *)x.at)[i] = round_bf16(v);
	else ((float *)x.at)[i] = v;
}

// floats is an array of float32 as an operand.
DEVICE struct operand floats(const float *at) {
	struct operand x;
	x.at = (void *)at;
	x.bf16 = 0;
	return x;
}

// pow2 returns 2ⁿ for a normal result.
DEVICE float pow2(int n) { return float_of((uint32_t)(n + 127) << 23); }

// exp_of is Exp.
DEVICE float exp_of(float x) {
	if (x != x) return x;
	if (x > 88.72283172607422f) return INFINITE;
	if (x < -87.33654022216797f) return 0;
	const float n = rintf(x * 1.44269504088896341f);
	float r = fmaf(n, -0.693359375f, x);
	r = fmaf(n, 2.12194440e-4f, r);
	float p = 0.001381459878757596f;
	p = fmaf(p, r, 0.008368716575205326f);
	p = fmaf(p, r, 0.04166838899254799f);
	p = fmaf(p, r, 0.1666652113199234f);
	p = fmaf(p, r, 0.4999999403953552f);
	const float y = fmaf(p, r * r, r) + 1;
	const int h = (int)n >> 1;
	return y * pow2(h) * pow2((int)n - h);
}

// exp_down is Exp of x ≤ 16, or of NaN. A sum with 1.5·2²³ is rounded to a whole number, whose low bits are the exponent.
// The smallest result is normal, so one product with a power of 2 is as exact as two.
DEVICE float exp_down(float x) {
	const float shifted = x * 1.44269504088896341f + 12582912.0f, n = shifted - 12582912.0f;
	float r = fmaf(n, -0.693359375f, x);
	r = fmaf(n, 2.12194440e-4f, r);
	float p = 0.001381459878757596f;
	p = fmaf(p, r, 0.008368716575205326f);
	p = fmaf(p, r, 0.04166838899254799f);
	p = fmaf(p, r, 0.1666652113199234f);
	p = fmaf(p, r, 0.4999999403953552f);
	const float y = (fmaf(p, r * r, r) + 1) * float_of((bits_of(shifted) << 23) + 0x3f800000);
	return x < -87.33654022216797f ? 0 : y;
}

// larger is the larger of two numbers, or the other one of a NaN.
#if defined(EMULATED)
DEVICE float larger(float x, float y) { return x > y || y != y ? x : y; }
#else
DEVICE float larger(float x, float y) { return __nvvm_fmax_f(x, y); }
#endif

// log_of is Log.
DEVICE float log_of(float x) {
	if (x != x || x == INFINITE) return x;
	if (x < 0) return float_of(0x7fc00000);
	if (x == 0) return -INFINITE;
	float e = 0;
	if (x < 0x1p-126f) x *= 0x1p25f, e = -25;
	const uint32_t u = bits_of(x);
	const int k = (int)(u - 0x3f3504f3) >> 23;
	const float r = float_of(u - ((uint32_t)k << 23)) - 1;
	e += (float)k;
	float p = 0.06746647506952286f;
	p = fmaf(p, r, -0.11676054447889328f);
	p = fmaf(p, r, 0.11888375133275986f);
	p = fmaf(p, r, -0.12405543029308319f);
	p = fmaf(p, r, 0.1421951949596405f);
	p = fmaf(p, r, -0.1666799634695053f);
	p = fmaf(p, r, 0.20002120733261108f);
	p = fmaf(p, r, -0.25000008940696716f);
	p = fmaf(p, r, 0.3333331346511841f);
	const float q = r * r;
	float t = p * r * q;
	t = fmaf(-0.5f, q, t);
	t = fmaf(e, -2.12194440e-4f, t);
	return fmaf(e, 0.693359375f, r + t);
}

// sigmoid_of is Sigmoid, and tanh_of Tanh.
DEVICE float sigmoid_of(float x) { return 1 / (1 + exp_of(-x)); }

DEVICE float tanh_of(float x) {
	const float e = exp_of(-2 * (x < 0 ? -x : x));
	const float y = (1 - e) / (1 + e);
	return x < 0 ? -y : y;
}

// fold adds up 16 lanes, the upper half to the lower half until one is left.
DEVICE float fold(float *lane) {
	UNROLL for (int w = LANES / 2; w > 0; w /= 2) {
		UNROLL for (int j = 0; j < w; j++) lane[j] += lane[j + w];
	}
	return lane[0];
}

// fold64 is fold in float64.
DEVICE double fold64(double *lane) {
	UNROLL for (int w = LANES / 2; w > 0; w /= 2) {
		UNROLL for (int j = 0; j < w; j++) lane[j] += lane[j + w];
	}
	return lane[0];
}

// add_to_lane adds x to lane t mod LANES.
DEVICE void add_to_lane(float *lane, long t, float x) {
	EACH_LANE(j) lane[j] = j == t % LANES ? lane[j] + x : lane[j];
}

// lane_dot is LaneDot of n elements of x from `at` and of y from `by`.
DEVICE float lane_dot(struct operand x, long at, struct operand y, long by, long n) {
	float lane[LANES] = {0};
	for (long i = 0; i < n; i += LANES)
		EACH_LANE(j) if (i + j < n) lane[j] = fmaf(load(x, at + i + j), load(y, by + i + j), lane[j]);
	return fold(lane);
}

// exp64 is eˣ in float64 for x ≤ 700.
DEVICE double exp64(double x) {
	const double terms[] = {1, 1, 0.5, 0.16666666666666666, 0.041666666666666664, 0.008333333333333333,
		0.001388888888888889, 0.0001984126984126984, 2.48015873015873e-05, 2.7557319223985893e-06, 2.755731922398589e-07,
		2.505210838544172e-08, 2.08767569878681e-09, 1.6059043836821613e-10};
	if (x < -1000) return 0;
	const double n = rint(x * 1.44269504088896338700);
	const double r = fma(n, -1.90821492927058770002e-10, fma(n, -6.93147180369123816490e-01, x));
	double p = terms[13];
	for (int k = 12; k >= 0; k--) p = fma(p, r, terms[k]);
	// 2ⁿ in two factors: it may be too small for one.
	const double part = n < -1000 ? -600 : 0;
	union { int64_t bits; double x; } a, b;
	a.bits = ((int64_t)(n - part) + 1023) << 52;
	b.bits = ((int64_t)part + 1023) << 52;
	return p * a.x * b.x;
}

// A pair of the standard normal density and distribution function.
struct normal {
	double pdf, cdf;
};

// gaussian is gaussian of kernels/ref.
DEVICE struct normal gaussian(double x) {
	const double terms[] = {0.09973557009844201, 0.09973557021882096, 0.09350209384594217, 0.08103519469221665,
		0.06350320438266296, 0.043244298312919115, 0.023432445677962738, 0.006801599475307911, -0.0003322974200197988,
		-0.02046130846541813, 0.04772104882031563, -0.1550478122928355, 0.35341440825232057, -0.6152447995386304,
		0.8375498375970393, -0.8510633209935692, 0.6214794612129552, -0.31606903447983875, 0.10661860138120374,
		-0.021533383658753184, 0.001978622880956145};
	const double e = exp64(-0.5 * (x * x)), t = 4 / (4 + fabs(x)), tt = t * t;
	double even = terms[20], odd = terms[19];
	for (int k = 18; k > 0; k -= 2) {
		even = fma(even, tt, terms[k]);
		odd = fma(odd, tt, terms[k - 1]);
	}
	even = fma(even, tt, terms[0]);
	const double tail = e * (t * fma(odd, t, even));
	struct normal y;
	y.pdf = e * 0.39894228040143267794;
	y.cdf = x < 0 ? tail : 1 - tail;
	return y;
}

// What a gate's activation is, and its derivative.
struct activation {
	float value, slope;
};

// gelu_exact is GELU of kernels/ref and its derivative, rounded.
DEVICE struct activation gelu_exact(double x) {
	const struct normal n = gaussian(x);
	struct activation y;
	y.value = (float)(x * n.cdf);
	y.slope = (float)(n.cdf + x * n.pdf);
	return y;
}

#endif

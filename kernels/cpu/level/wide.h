// wide.h: vectors of 16 float64 at one instruction level, like vec.h for float32, for results
// computed in float64 and rounded once.

#if defined(LEVEL_AVX512)

typedef struct { __m512d x[2]; } vd;
#define EACH_PART(expr) vd r; _Pragma("GCC unroll 2") for (int i = 0; i < 2; i++) r.x[i] = (expr); return r

INLINE vd d_widen(vf a) {
	vd r = {{_mm512_cvtps_pd(_mm512_castps512_ps256(a)), _mm512_cvtps_pd(_mm512_extractf32x8_ps(a, 1))}};
	return r;
}
INLINE vf d_round(vd a) { // to float32
	return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(a.x[0])), _mm512_cvtpd_ps(a.x[1]), 1);
}
INLINE vd d_set1(double x) { EACH_PART(_mm512_set1_pd(x)); }
INLINE vd d_add(vd a, vd b) { EACH_PART(_mm512_add_pd(a.x[i], b.x[i])); }
INLINE vd d_sub(vd a, vd b) { EACH_PART(_mm512_sub_pd(a.x[i], b.x[i])); }
INLINE vd d_mul(vd a, vd b) { EACH_PART(_mm512_mul_pd(a.x[i], b.x[i])); }
INLINE vd d_div(vd a, vd b) { EACH_PART(_mm512_div_pd(a.x[i], b.x[i])); }
INLINE vd d_fma(vd a, vd b, vd c) { EACH_PART(_mm512_fmadd_pd(a.x[i], b.x[i], c.x[i])); }
INLINE vd d_rint(vd a) { EACH_PART(_mm512_roundscale_pd(a.x[i], _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)); }
INLINE vd d_neg_abs(vd a) { EACH_PART(_mm512_or_pd(a.x[i], _mm512_set1_pd(-0.0))); }
// d_at_least returns max(a, least); a NaN stays.
INLINE vd d_at_least(vd a, double least) { EACH_PART(_mm512_max_pd(_mm512_set1_pd(least), a.x[i])); }
// d_where_neg returns a where x < 0, else b.
INLINE vd d_where_neg(vd x, vd a, vd b) {
	EACH_PART(_mm512_mask_mov_pd(b.x[i], _mm512_cmp_pd_mask(x.x[i], _mm512_setzero_pd(), _CMP_LT_OQ), a.x[i]));
}
// d_scale returns a·2ⁿ rounded once, for whole -1500 ≤ n ≤ 0 and a between 0.5 and 2.
INLINE vd d_scale(vd a, vd n) { EACH_PART(_mm512_scalef_pd(a.x[i], n.x[i])); }

#elif defined(LEVEL_AVX2)

typedef struct { __m256d x[4]; } vd;
#define EACH_PART(expr) vd r; _Pragma("GCC unroll 4") for (int i = 0; i < 4; i++) r.x[i] = (expr); return r

INLINE vd d_widen(vf a) {
	vd r = {{_mm256_cvtps_pd(_mm256_castps256_ps128(a.a)), _mm256_cvtps_pd(_mm256_extractf128_ps(a.a, 1)),
		_mm256_cvtps_pd(_mm256_castps256_ps128(a.b)), _mm256_cvtps_pd(_mm256_extractf128_ps(a.b, 1))}};
	return r;
}
INLINE vf d_round(vd a) {
	return v_of(_mm256_set_m128(_mm256_cvtpd_ps(a.x[1]), _mm256_cvtpd_ps(a.x[0])),
		_mm256_set_m128(_mm256_cvtpd_ps(a.x[3]), _mm256_cvtpd_ps(a.x[2])));
}
INLINE vd d_set1(double x) { EACH_PART(_mm256_set1_pd(x)); }
INLINE vd d_add(vd a, vd b) { EACH_PART(_mm256_add_pd(a.x[i], b.x[i])); }
INLINE vd d_sub(vd a, vd b) { EACH_PART(_mm256_sub_pd(a.x[i], b.x[i])); }
INLINE vd d_mul(vd a, vd b) { EACH_PART(_mm256_mul_pd(a.x[i], b.x[i])); }
INLINE vd d_div(vd a, vd b) { EACH_PART(_mm256_div_pd(a.x[i], b.x[i])); }
INLINE vd d_fma(vd a, vd b, vd c) { EACH_PART(_mm256_fmadd_pd(a.x[i], b.x[i], c.x[i])); }
INLINE vd d_rint(vd a) { EACH_PART(_mm256_round_pd(a.x[i], _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)); }
INLINE vd d_neg_abs(vd a) { EACH_PART(_mm256_or_pd(a.x[i], _mm256_set1_pd(-0.0))); }
INLINE vd d_at_least(vd a, double least) { EACH_PART(_mm256_max_pd(_mm256_set1_pd(least), a.x[i])); }
INLINE vd d_where_neg(vd x, vd a, vd b) {
	EACH_PART(_mm256_blendv_pd(b.x[i], a.x[i], _mm256_cmp_pd(x.x[i], _mm256_setzero_pd(), _CMP_LT_OQ)));
}
// power returns 2ⁿ for a normal result. A sum with 1.5·2⁵² has the integer in its low bits.
INLINE __m256d power(__m256d n) {
	return _mm256_castsi256_pd(_mm256_slli_epi64(_mm256_castpd_si256(_mm256_add_pd(n, _mm256_set1_pd(6755399441055744.0 + 1023))), 52));
}
INLINE __m256d scale4(__m256d a, __m256d n) { // in two factors: 2ⁿ may be too small for one
	const __m256d part = _mm256_and_pd(_mm256_cmp_pd(n, _mm256_set1_pd(-1000), _CMP_LT_OQ), _mm256_set1_pd(-600));
	return _mm256_mul_pd(_mm256_mul_pd(a, power(_mm256_sub_pd(n, part))), power(part));
}
INLINE vd d_scale(vd a, vd n) { EACH_PART(scale4(a.x[i], n.x[i])); }

#else // LEVEL_PORTABLE

typedef double vd __attribute__((vector_size(8 * LANES)));
typedef int64_t vl __attribute__((vector_size(8 * LANES)));
#define EACH_PART(expr) vd r; for (int i = 0; i < LANES; i++) r[i] = (expr); return r

INLINE vd d_widen(vf a) { return __builtin_convertvector(a, vd); }
INLINE vf d_round(vd a) { return __builtin_convertvector(a, vf); }
INLINE vd d_set1(double x) { EACH_PART(x); }
INLINE vd d_add(vd a, vd b) { return a + b; }
INLINE vd d_sub(vd a, vd b) { return a - b; }
INLINE vd d_mul(vd a, vd b) { return a * b; }
INLINE vd d_div(vd a, vd b) { return a / b; }
FUSED vd d_fma(vd a, vd b, vd c) { EACH_PART(__builtin_fma(a[i], b[i], c[i])); }
OUTLINE vd d_rint(vd a) { EACH_PART(__builtin_rint(a[i])); }
INLINE vd d_neg_abs(vd a) { EACH_PART(-__builtin_fabs(a[i])); }
INLINE vd d_pick(vl mask, vd a, vd b) { return (vd)(((vl)a & mask) | ((vl)b & ~mask)); }
INLINE vd d_at_least(vd a, double least) { return d_pick(a < least, d_set1(least), a); }
INLINE vd d_where_neg(vd x, vd a, vd b) { return d_pick(x < 0, a, b); }
INLINE double power(double n) {
	union { uint64_t bits; double x; } p;
	p.x = n + (6755399441055744.0 + 1023);
	p.bits <<= 52;
	return p.x;
}
INLINE double scale1(double a, double n) { // in two factors: 2ⁿ may be too small for one
	const double part = n < -1000 ? -600 : 0;
	return a * power(n - part) * power(part);
}
OUTLINE vd d_scale(vd a, vd n) { EACH_PART(scale1(a[i], n[i])); }

#endif
#undef EACH_PART

// vec.h: vectors of 16 float32 at one instruction level.
//
// Each level's C file defines LEVEL_AVX512, LEVEL_AVX2 or LEVEL_PORTABLE and includes this
// once. Every function gives the same bits at every level: always 16 lanes, sums of lanes
// in the fixed tree 8, 4, 2, 1, and fma only where written.
#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(LEVEL_AVX512) || defined(LEVEL_AVX2)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

#define LANES 16
// Products and sums stay separate unless fma is written. gcc fuses them only in its
// GNU dialects, clang unless told not to here.
#if !defined(__STRICT_ANSI__)
#error "compile with -std=c11: in GNU C, products and sums are fused"
#endif
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif

#define INLINE static inline __attribute__((always_inline))

// Constants of kernels/ref/scalar.go.
#define LOG2E 1.44269504088896341f
#define LN2HI 0.693359375f
#define LN2LO -2.12194440e-4f
#define EXP0 0.4999999403953552f
#define EXP1 0.1666652113199234f
#define EXP2 0.04166838899254799f
#define EXP3 0.008368716575205326f
#define EXP4 0.001381459878757596f
#define EXPMAX 88.72283172607422f
#define EXPMIN -87.33654022216797f

INLINE float bits_float(uint32_t u) { float f; memcpy(&f, &u, 4); return f; }
INLINE uint32_t float_bits(float f) { uint32_t u; memcpy(&u, &f, 4); return u; }

#if defined(LEVEL_AVX512)

typedef __m512 vf;
#define MR 14 // rows of a register tile: 14·2 accumulators, 2 columns of B, 1 broadcast: 31 of 32 registers
#define NV 2

INLINE vf v_zero(void) { return _mm512_setzero_ps(); }
INLINE vf v_set1(float x) { return _mm512_set1_ps(x); }
INLINE vf v_load(const float *p) { return _mm512_loadu_ps(p); }
INLINE vf v_loadn(const float *p, int n) { return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p); }
INLINE void v_store(float *p, vf a) { _mm512_storeu_ps(p, a); }
INLINE void v_storen(float *p, vf a, int n) { _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), a); }
INLINE void v_stream(float *p, vf a) { _mm512_stream_ps(p, a); }
INLINE vf v_add(vf a, vf b) { return _mm512_add_ps(a, b); }
INLINE vf v_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
INLINE vf v_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
INLINE vf v_div(vf a, vf b) { return _mm512_div_ps(a, b); }
INLINE vf v_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
INLINE vf v_max(vf a, vf b) { return _mm512_max_ps(a, b); }
INLINE vf v_above(vf a, vf limit, vf yes, vf no) { return _mm512_mask_mov_ps(no, _mm512_cmp_ps_mask(a, limit, _CMP_GT_OQ), yes); } // no for a NaN
INLINE vf v_sqrt(vf a) { return _mm512_sqrt_ps(a); }
INLINE vf v_neg(vf a) { return _mm512_xor_ps(a, _mm512_set1_ps(-0.0f)); }

INLINE vf v_abs(vf a) { return _mm512_abs_ps(a); }
INLINE vf v_signed(vf a, vf by) { // -a where by < 0
	return _mm512_mask_xor_ps(a, _mm512_cmp_ps_mask(by, _mm512_setzero_ps(), _CMP_LT_OQ), a, _mm512_set1_ps(-0.0f));
}

INLINE float v_sum(vf a) {
	__m256 x = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
	__m128 y = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
	y = _mm_add_ps(y, _mm_movehl_ps(y, y));
	y = _mm_add_ss(y, _mm_movehdup_ps(y));
	return _mm_cvtss_f32(y);
}

// exp_mantissa returns eˣ / 2ⁿ and sets *n, a whole number.
INLINE vf exp_mantissa(vf x, vf *n) {
	*n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(LOG2E)), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
	vf r = _mm512_fmadd_ps(*n, _mm512_set1_ps(-(LN2HI)), x);
	r = _mm512_fmadd_ps(*n, _mm512_set1_ps(-(LN2LO)), r);
	vf p = _mm512_set1_ps(EXP4);
	p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(EXP3));
	p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(EXP2));
	p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(EXP1));
	p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(EXP0));
	return _mm512_add_ps(_mm512_fmadd_ps(p, _mm512_mul_ps(r, r), r), _mm512_set1_ps(1.0f));
}

INLINE vf v_exp(vf x) {
	const __mmask16 over = _mm512_cmp_ps_mask(x, _mm512_set1_ps(EXPMAX), _CMP_GT_OQ);
	const __mmask16 under = _mm512_cmp_ps_mask(x, _mm512_set1_ps(EXPMIN), _CMP_LT_OQ);
	vf n, y = exp_mantissa(x, &n);
	y = _mm512_scalef_ps(y, n); // exact: results that are kept are normal
	y = _mm512_mask_mov_ps(y, over, _mm512_set1_ps(INFINITY));
	return _mm512_mask_mov_ps(y, under, _mm512_setzero_ps());
}

// v_exp_neg is v_exp for x ≤ 0 or NaN.
INLINE vf v_exp_neg(vf x) {
	const __mmask16 keep = _mm512_cmp_ps_mask(x, _mm512_set1_ps(EXPMIN), _CMP_NLT_UQ);
	vf n, y = exp_mantissa(x, &n);
	return _mm512_maskz_scalef_ps(keep, y, n);
}

INLINE vf v_keep(vf a, int n, vf rest) { return _mm512_mask_mov_ps(rest, (__mmask16)((1u << n) - 1), a); }
INLINE float v_largest(vf a) { return _mm512_reduce_max_ps(a); }

// v_transpose turns 16 rows into 16 columns: quarters of rows within 128-bit
// lanes first, then the lanes.
INLINE void v_transpose(vf r[16]) {
	vf t[16];
#pragma GCC unroll 4
	for (int i = 0; i < 16; i += 4) {
		const vf a = _mm512_unpacklo_ps(r[i], r[i + 1]), b = _mm512_unpackhi_ps(r[i], r[i + 1]);
		const vf c = _mm512_unpacklo_ps(r[i + 2], r[i + 3]), d = _mm512_unpackhi_ps(r[i + 2], r[i + 3]);
		t[i] = _mm512_shuffle_ps(a, c, 0x44);
		t[i + 1] = _mm512_shuffle_ps(a, c, 0xee);
		t[i + 2] = _mm512_shuffle_ps(b, d, 0x44);
		t[i + 3] = _mm512_shuffle_ps(b, d, 0xee);
	}
#pragma GCC unroll 4
	for (int i = 0; i < 4; i++) {
		const vf a = _mm512_shuffle_f32x4(t[i], t[i + 4], 0x88), b = _mm512_shuffle_f32x4(t[i], t[i + 4], 0xdd);
		const vf c = _mm512_shuffle_f32x4(t[i + 8], t[i + 12], 0x88), d = _mm512_shuffle_f32x4(t[i + 8], t[i + 12], 0xdd);
		r[i] = _mm512_shuffle_f32x4(a, c, 0x88);
		r[i + 8] = _mm512_shuffle_f32x4(a, c, 0xdd);
		r[i + 4] = _mm512_shuffle_f32x4(b, d, 0x88);
		r[i + 12] = _mm512_shuffle_f32x4(b, d, 0xdd);
	}
}

#elif defined(LEVEL_AVX2)

typedef struct { __m256 a, b; } vf;
#define MR 6 // 6·2 ymm accumulators, 2 of B, 1 broadcast: 15 of 16 registers
#define NV 1

INLINE vf v_of(__m256 a, __m256 b) { vf v = {a, b}; return v; }
INLINE __m256i v_mask8(int n) {
	return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
INLINE vf v_zero(void) { return v_of(_mm256_setzero_ps(), _mm256_setzero_ps()); }
INLINE vf v_set1(float x) { __m256 v = _mm256_set1_ps(x); return v_of(v, v); }
INLINE vf v_load(const float *p) { return v_of(_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)); }
INLINE vf v_loadn(const float *p, int n) {
	return v_of(_mm256_maskload_ps(p, v_mask8(n)), _mm256_maskload_ps(p + 8, v_mask8(n - 8)));
}
INLINE void v_store(float *p, vf v) { _mm256_storeu_ps(p, v.a); _mm256_storeu_ps(p + 8, v.b); }
INLINE void v_storen(float *p, vf v, int n) {
	_mm256_maskstore_ps(p, v_mask8(n), v.a);
	_mm256_maskstore_ps(p + 8, v_mask8(n - 8), v.b);
}
INLINE void v_stream(float *p, vf v) { _mm256_stream_ps(p, v.a); _mm256_stream_ps(p + 8, v.b); }
INLINE vf v_add(vf x, vf y) { return v_of(_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)); }
INLINE vf v_sub(vf x, vf y) { return v_of(_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)); }
INLINE vf v_mul(vf x, vf y) { return v_of(_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)); }
INLINE vf v_div(vf x, vf y) { return v_of(_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)); }
INLINE vf v_fma(vf x, vf y, vf z) { return v_of(_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)); }
INLINE vf v_max(vf x, vf y) { return v_of(_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)); }
INLINE __m256 v_above8(__m256 x, __m256 limit, __m256 yes, __m256 no) { return _mm256_blendv_ps(no, yes, _mm256_cmp_ps(x, limit, _CMP_GT_OQ)); }
INLINE vf v_above(vf x, vf limit, vf yes, vf no) { return v_of(v_above8(x.a, limit.a, yes.a, no.a), v_above8(x.b, limit.b, yes.b, no.b)); } // no for a NaN
INLINE vf v_sqrt(vf x) { return v_of(_mm256_sqrt_ps(x.a), _mm256_sqrt_ps(x.b)); }
INLINE vf v_neg(vf x) {
	const __m256 s = _mm256_set1_ps(-0.0f);
	return v_of(_mm256_xor_ps(x.a, s), _mm256_xor_ps(x.b, s));
}

INLINE vf v_abs(vf x) {
	const __m256 s = _mm256_set1_ps(-0.0f);
	return v_of(_mm256_andnot_ps(s, x.a), _mm256_andnot_ps(s, x.b));
}
INLINE __m256 v_signed8(__m256 x, __m256 by) {
	return _mm256_xor_ps(x, _mm256_and_ps(_mm256_cmp_ps(by, _mm256_setzero_ps(), _CMP_LT_OQ), _mm256_set1_ps(-0.0f)));
}
INLINE vf v_signed(vf x, vf by) { return v_of(v_signed8(x.a, by.a), v_signed8(x.b, by.b)); } // -x where by < 0

INLINE float v_sum(vf v) {
	__m256 x = _mm256_add_ps(v.a, v.b);
	__m128 y = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
	y = _mm_add_ps(y, _mm_movehl_ps(y, y));
	y = _mm_add_ss(y, _mm_movehdup_ps(y));
	return _mm_cvtss_f32(y);
}

INLINE __m256 v_exp8(__m256 x) {
	const __m256 over = _mm256_cmp_ps(x, _mm256_set1_ps(EXPMAX), _CMP_GT_OQ);
	const __m256 under = _mm256_cmp_ps(x, _mm256_set1_ps(EXPMIN), _CMP_LT_OQ);
	__m256 n = _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(LOG2E)), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
	__m256 r = _mm256_fmadd_ps(n, _mm256_set1_ps(-(LN2HI)), x);
	r = _mm256_fmadd_ps(n, _mm256_set1_ps(-(LN2LO)), r);
	__m256 p = _mm256_set1_ps(EXP4);
	p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP3));
	p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP2));
	p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP1));
	p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP0));
	__m256 y = _mm256_add_ps(_mm256_fmadd_ps(p, _mm256_mul_ps(r, r), r), _mm256_set1_ps(1.0f));
	// 2^n in two steps, since n = 128 exceeds the float32 exponents.
	__m256i k = _mm256_cvtps_epi32(n);
	__m256i h = _mm256_srai_epi32(k, 1);
	const __m256i bias = _mm256_set1_epi32(127);
	y = _mm256_mul_ps(y, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(h, bias), 23)));
	y = _mm256_mul_ps(y, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(k, h), bias), 23)));
	y = _mm256_blendv_ps(y, _mm256_set1_ps(INFINITY), over);
	return _mm256_blendv_ps(y, _mm256_setzero_ps(), under);
}
INLINE vf v_exp(vf x) { return v_of(v_exp8(x.a), v_exp8(x.b)); }
INLINE vf v_exp_neg(vf x) { return v_exp(x); }

// transpose8 turns 8 rows into 8 columns.
INLINE void transpose8(__m256 r[8]) {
	__m256 t[8];
#pragma GCC unroll 2
	for (int i = 0; i < 8; i += 4) {
		const __m256 a = _mm256_unpacklo_ps(r[i], r[i + 1]), b = _mm256_unpackhi_ps(r[i], r[i + 1]);
		const __m256 c = _mm256_unpacklo_ps(r[i + 2], r[i + 3]), d = _mm256_unpackhi_ps(r[i + 2], r[i + 3]);
		t[i] = _mm256_shuffle_ps(a, c, 0x44), t[i + 1] = _mm256_shuffle_ps(a, c, 0xee);
		t[i + 2] = _mm256_shuffle_ps(b, d, 0x44), t[i + 3] = _mm256_shuffle_ps(b, d, 0xee);
	}
#pragma GCC unroll 4
	for (int i = 0; i < 4; i++) {
		r[i] = _mm256_permute2f128_ps(t[i], t[i + 4], 0x20);
		r[i + 4] = _mm256_permute2f128_ps(t[i], t[i + 4], 0x31);
	}
}
INLINE void v_transpose(vf r[16]) {
	__m256 a[8], b[8];
	for (int half = 0; half < 2; half++) {
#pragma GCC unroll 8
		for (int i = 0; i < 8; i++) a[i] = r[i + 8 * half].a, b[i] = r[i + 8 * half].b;
		transpose8(a), transpose8(b);
#pragma GCC unroll 8
		for (int i = 0; i < 8; i++) r[i + 8 * half] = v_of(a[i], b[i]);
	}
	for (int i = 0; i < 8; i++) { // the quarters off the diagonal change places
		const __m256 t = r[i].b;
		r[i].b = r[i + 8].a, r[i + 8].a = t;
	}
}
INLINE vf v_keep(vf x, int n, vf rest) {
	return v_of(_mm256_blendv_ps(rest.a, x.a, _mm256_castsi256_ps(v_mask8(n))),
		_mm256_blendv_ps(rest.b, x.b, _mm256_castsi256_ps(v_mask8(n - 8))));
}

#else // LEVEL_PORTABLE

// A vector of the compiler's own: arrays in structs compile for twice as long.
typedef float vf __attribute__((vector_size(4 * LANES)));
typedef int32_t vi __attribute__((vector_size(4 * LANES)));
#define MR 4
#define NV 1

// OUTLINE marks what takes a branch or a call of the C library for each lane; in line it would
// take a third of this level's compiling and run no faster. FUSED marks what does so only
// where the processor has no fused multiply-add.
#define OUTLINE static __attribute__((noinline))
#if defined(__FP_FAST_FMAF)
#define FUSED INLINE
#else
#define FUSED OUTLINE
#endif

#define EACH(expr) vf r; for (int i = 0; i < LANES; i++) r[i] = (expr); return r

INLINE vf v_zero(void) { return (vf){0}; }
INLINE vf v_set1(float x) { EACH(x); }
INLINE vf v_load(const float *p) { vf r; memcpy(&r, p, sizeof r); return r; }
OUTLINE vf v_loadn(const float *p, int n) { EACH(i < n ? p[i] : 0.0f); }
INLINE void v_store(float *p, vf a) { memcpy(p, &a, sizeof a); }
OUTLINE void v_storen(float *p, vf a, int n) { for (int i = 0; i < LANES; i++) if (i < n) p[i] = a[i]; }
INLINE void v_stream(float *p, vf a) { v_store(p, a); }
INLINE vf v_add(vf a, vf b) { return a + b; }
INLINE vf v_sub(vf a, vf b) { return a - b; }
INLINE vf v_mul(vf a, vf b) { return a * b; }
INLINE vf v_div(vf a, vf b) { return a / b; }
#if defined(__SSE2__) && !defined(__FP_FAST_FMAF)
// fma4 is the product of a and b plus c in double, which holds the product, as floats. They are
// right but where a sum lies between two floats, or is subnormal as a float and not 0; odd is set
// there.
INLINE __m128 fma4(__m128 a, __m128 b, __m128 c, __m128i *odd) {
	const __m128d lo = _mm_add_pd(_mm_mul_pd(_mm_cvtps_pd(a), _mm_cvtps_pd(b)), _mm_cvtps_pd(c));
	a = _mm_movehl_ps(a, a), b = _mm_movehl_ps(b, b), c = _mm_movehl_ps(c, c);
	const __m128d hi = _mm_add_pd(_mm_mul_pd(_mm_cvtps_pd(a), _mm_cvtps_pd(b)), _mm_cvtps_pd(c));
	const __m128 x = _mm_castpd_ps(lo), y = _mm_castpd_ps(hi);
	const __m128i lower = _mm_castps_si128(_mm_shuffle_ps(x, y, 0x88));
	const __m128i upper = _mm_castps_si128(_mm_shuffle_ps(x, y, 0xdd));
	const __m128i tie = _mm_cmpeq_epi32(_mm_slli_epi32(lower, 3), _mm_set1_epi32(INT32_MIN));
	const __m128i size = _mm_and_si128(upper, _mm_set1_epi32(INT32_MAX));
	const __m128i tiny = _mm_andnot_si128(_mm_cmpeq_epi32(_mm_or_si128(size, lower), _mm_setzero_si128()),
		_mm_cmplt_epi32(size, _mm_set1_epi32((1023 - 126) << 20)));
	*odd = _mm_or_si128(*odd, _mm_or_si128(tie, tiny));
	return _mm_movelh_ps(_mm_cvtpd_ps(lo), _mm_cvtpd_ps(hi));
}
FUSED vf v_fma(vf a, vf b, vf c) {
	vf r;
	__m128i odd = _mm_setzero_si128();
	for (int i = 0; i < LANES; i += 4) {
		const __m128 x = _mm_loadu_ps((float *)&a + i), y = _mm_loadu_ps((float *)&b + i);
		_mm_storeu_ps((float *)&r + i, fma4(x, y, _mm_loadu_ps((float *)&c + i), &odd));
	}
	if (_mm_movemask_epi8(odd))
		for (int i = 0; i < LANES; i++) r[i] = fmaf(a[i], b[i], c[i]);
	return r;
}
#else
FUSED vf v_fma(vf a, vf b, vf c) { EACH(fmaf(a[i], b[i], c[i])); }
#endif
INLINE vf v_pick(vi mask, vf a, vf b) { return (vf)(((vi)a & mask) | ((vi)b & ~mask)); }
INLINE vf v_max(vf a, vf b) { return v_pick(a > b, a, b); }
INLINE vf v_above(vf a, vf limit, vf yes, vf no) { return v_pick(a > limit, yes, no); } // no for a NaN
OUTLINE vf v_sqrt(vf a) { EACH(sqrtf(a[i])); }
INLINE vf v_neg(vf a) { return -a; }
INLINE vf v_abs(vf a) { EACH(fabsf(a[i])); }
INLINE vf v_signed(vf a, vf by) { return v_pick(by < 0, -a, a); }

INLINE float v_sum(vf a) {
	float x[LANES];
	v_store(x, a);
	for (int s = LANES / 2; s > 0; s /= 2)
		for (int i = 0; i < s; i++) x[i] += x[i + s];
	return x[0];
}

INLINE float exp1(float x) {
	if (x != x) return x;
	if (x > EXPMAX) return INFINITY;
	if (x < EXPMIN) return 0.0f;
	float n = rintf(x * LOG2E);
	float r = fmaf(n, -(LN2HI), x);
	r = fmaf(n, -(LN2LO), r);
	float p = EXP4;
	p = fmaf(p, r, EXP3);
	p = fmaf(p, r, EXP2);
	p = fmaf(p, r, EXP1);
	p = fmaf(p, r, EXP0);
	float y = fmaf(p, r * r, r) + 1.0f;
	// 2^n in two steps, since n = 128 exceeds the float32 exponents. >> is an arithmetic
	// shift in every compiler.
	int32_t k = (int32_t)n, h = k >> 1;
	y *= bits_float((uint32_t)(h + 127) << 23);
	return y * bits_float((uint32_t)(k - h + 127) << 23);
}
OUTLINE vf v_exp(vf x) { EACH(exp1(x[i])); }
INLINE vf v_exp_neg(vf x) { return v_exp(x); }
OUTLINE vf v_keep(vf a, int n, vf rest) { EACH(i < n ? a[i] : rest[i]); }

#endif

// v_between returns lanes from..n-1 of a and the others of rest.
INLINE vf v_between(vf a, long from, long n, vf rest) {
	if (n < LANES) a = v_keep(a, n > 0 ? (int)n : 0, rest);
	return from > 0 ? v_keep(rest, from < LANES ? (int)from : LANES, a) : a;
}

#define NR (NV * LANES) // columns of a register tile and of a packed panel

#if !defined(LEVEL_AVX512)
INLINE float v_largest(vf a) {
	float t[LANES];
	v_store(t, a);
	for (int s = LANES / 2; s > 0; s /= 2)
		for (int i = 0; i < s; i++) t[i] = t[i] > t[i + s] ? t[i] : t[i + s];
	return t[0];
}
#endif

#if defined(LEVEL_PORTABLE)
INLINE void v_transpose(vf r[LANES]) {
	float t[LANES][LANES], u[LANES];
	for (int i = 0; i < LANES; i++) v_store(t[i], r[i]);
	for (int j = 0; j < LANES; j++) {
		for (int i = 0; i < LANES; i++) u[i] = t[i][j];
		r[j] = v_load(u);
	}
}
#endif

// v_tanh is Tanh of kernels/ref/scalar.go.
INLINE vf v_tanh(vf x) {
	const vf one = v_set1(1.0f), e = v_exp_neg(v_mul(v_set1(-2.0f), v_abs(x)));
	return v_signed(v_div(v_sub(one, e), v_add(one, e)), x);
}

// v_stream stores 16 lanes, on a cache line, past the caches; v_streamed waits until
// other threads see them.
INLINE void v_streamed(void) {
#if defined(LEVEL_AVX512) || defined(LEVEL_AVX2)
	_mm_sfence();
#endif
}

// v_loadt loads min(n, 16) lanes, the rest 0.
INLINE vf v_loadt(const float *p, int n) { return n >= LANES ? v_load(p) : v_loadn(p, n); }
INLINE void v_storet(float *p, vf a, int n) { if (n >= LANES) v_store(p, a); else v_storen(p, a, n); }

// row_max returns the largest of x[0:n], n ≥ 1. It may skip a NaN, which shows in the
// sum that always follows.
INLINE float row_max(const float *x, long n) {
	vf m = v_set1(x[0]);
	long i = 0;
	for (; i + LANES <= n; i += LANES) m = v_max(m, v_load(x + i));
	float t[LANES];
	v_store(t, m);
	float best = t[0];
	for (int j = 1; j < LANES; j++) if (t[j] > best) best = t[j];
	for (; i < n; i++) if (x[i] > best) best = x[i];
	return best;
}

// log of kernels/ref/scalar.go.
INLINE float log1(float x) {
	if (x != x || x == INFINITY) return x;
	if (x < 0) return NAN;
	if (x == 0) return -INFINITY;
	float e = 0;
	if (x < 0x1p-126f) { x *= 0x1p25f; e = -25; }
	uint32_t u = float_bits(x);
	int32_t k = (int32_t)(u - 0x3f3504f3u) >> 23;
	float r = bits_float(u - ((uint32_t)k << 23)) - 1.0f;
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
	float q = r * r, t = p * r;
	t = t * q;
	t = fmaf(-0.5f, q, t);
	t = fmaf(e, LN2LO, t);
	return fmaf(e, LN2HI, r + t);
}

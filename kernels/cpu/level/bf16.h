// bf16.h: loads and stores of BF16, the upper half of a float32, and vectors of
// pairs. Rounding matches kernels/ref's Round at every level: to nearest even,
// subnormals to zero of their sign, NaN to NaN.

typedef uint16_t bf16;

#define TILE 16               // rows or columns of a tile
#define TERMS 32              // terms in a step of a tile sum
#define TILE_LEN (TILE * TERMS) // elements in a tile of factors

INLINE float widen(bf16 h) { return bits_float((uint32_t)h << 16); }
INLINE bf16 round1(float x) {
	const uint32_t u = float_bits(x);
	if (x != x) return (bf16)(u >> 16 | 0x40);
	if ((u & 0x7f800000u) == 0) return (bf16)(u >> 16 & 0x8000);
	return (bf16)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

#if defined(LEVEL_AVX512)

INLINE vf v_widen(__m256i h) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16)); }
INLINE __m512i v_round32(vf v) { // the rounded upper half in the lower half of each lane
	const __m512i u = _mm512_castps_si512(v), up = _mm512_srli_epi32(u, 16);
	const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
	const __mmask16 small = _mm512_testn_epi32_mask(u, _mm512_set1_epi32(0x7f800000));
	__m512i r = _mm512_add_epi32(u, _mm512_add_epi32(_mm512_set1_epi32(0x7fff), _mm512_and_epi32(up, _mm512_set1_epi32(1))));
	r = _mm512_srli_epi32(r, 16);
	r = _mm512_mask_or_epi32(r, nan, up, _mm512_set1_epi32(0x40));
	return _mm512_mask_and_epi32(r, small, up, _mm512_set1_epi32(0x8000));
}
#if defined(LEVEL_BF16) // one instruction, which rounds the same way
INLINE __m256i v_narrow(vf v) { return (__m256i)_mm512_cvtneps_pbh(v); }
INLINE __m512i v_narrow2(vf lo, vf hi) { return (__m512i)_mm512_cvtne2ps_pbh(hi, lo); }
#else
INLINE __m256i v_narrow(vf v) { return _mm512_cvtepi32_epi16(v_round32(v)); }
INLINE __m512i v_narrow2(vf lo, vf hi) { return _mm512_inserti64x4(_mm512_castsi256_si512(v_narrow(lo)), v_narrow(hi), 1); }
#endif
INLINE vf v_rounded(vf v) { return v_widen(v_narrow(v)); }
INLINE vf h_load(const bf16 *p) { return v_widen(_mm256_loadu_si256((const __m256i *)p)); }
INLINE vf h_loadn(const bf16 *p, int n) { return v_widen(_mm256_maskz_loadu_epi16((__mmask16)((1u << n) - 1), p)); }
INLINE void h_store(bf16 *p, vf v) { _mm256_storeu_si256((__m256i *)p, v_narrow(v)); }
INLINE void h_storen(bf16 *p, vf v, int n) { _mm256_mask_storeu_epi16(p, (__mmask16)((1u << n) - 1), v_narrow(v)); }
// h_load2 returns 32 elements from element i of x, BF16 if h is set, else rounded.
INLINE __m512i h_load2(const void *x, long i, const int h) {
	if (h) return _mm512_loadu_si512((const bf16 *)x + i);
	return v_narrow2(v_load((const float *)x + i), v_load((const float *)x + i + LANES));
}
// The even and the odd elements of 16 pairs.
INLINE vf h_even(const bf16 *p) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_loadu_si512(p), 16)); }
INLINE vf h_odd(const bf16 *p) {
	return _mm512_castsi512_ps(_mm512_and_epi32(_mm512_loadu_si512(p), _mm512_set1_epi32((int)0xffff0000)));
}

#elif defined(LEVEL_AVX2)

INLINE __m256 v_widen8(__m128i h) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16)); }
INLINE __m256i v_round8(__m256 v) {
	const __m256i u = _mm256_castps_si256(v), up = _mm256_srli_epi32(u, 16);
	const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
	const __m256i small = _mm256_cmpeq_epi32(_mm256_and_si256(u, _mm256_set1_epi32(0x7f800000)), _mm256_setzero_si256());
	__m256i r = _mm256_add_epi32(u, _mm256_add_epi32(_mm256_set1_epi32(0x7fff), _mm256_and_si256(up, _mm256_set1_epi32(1))));
	r = _mm256_srli_epi32(r, 16);
	r = _mm256_blendv_epi8(r, _mm256_or_si256(up, _mm256_set1_epi32(0x40)), nan);
	return _mm256_blendv_epi8(r, _mm256_and_si256(up, _mm256_set1_epi32(0x8000)), small);
}
INLINE vf h_load(const bf16 *p) {
	return v_of(v_widen8(_mm_loadu_si128((const __m128i *)p)), v_widen8(_mm_loadu_si128((const __m128i *)(p + 8))));
}
INLINE __m256i v_narrow(vf v) { return _mm256_permute4x64_epi64(_mm256_packus_epi32(v_round8(v.a), v_round8(v.b)), 0xd8); }
INLINE void h_store(bf16 *p, vf v) { _mm256_storeu_si256((__m256i *)p, v_narrow(v)); }
INLINE __m256i u_load(const bf16 *p) { return _mm256_loadu_si256((const __m256i *)p); }
// h_load16 returns 16 elements from element i of x, BF16 if h is set, else rounded.
INLINE __m256i h_load16(const void *x, long i, const int h) {
	return h ? u_load((const bf16 *)x + i) : v_narrow(v_load((const float *)x + i));
}
INLINE vf h_even(const bf16 *p) {
	return v_of(_mm256_castsi256_ps(_mm256_slli_epi32(u_load(p), 16)), _mm256_castsi256_ps(_mm256_slli_epi32(u_load(p + 16), 16)));
}
INLINE vf h_odd(const bf16 *p) {
	const __m256i m = _mm256_set1_epi32((int)0xffff0000);
	return v_of(_mm256_castsi256_ps(_mm256_and_si256(u_load(p), m)), _mm256_castsi256_ps(_mm256_and_si256(u_load(p + 16), m)));
}

#else // LEVEL_PORTABLE

INLINE vf h_load(const bf16 *p) { EACH(widen(p[i])); }
INLINE void h_store(bf16 *p, vf v) { for (int i = 0; i < LANES; i++) p[i] = round1(v[i]); }
INLINE vf h_even(const bf16 *p) { EACH(widen(p[2 * i])); }
INLINE vf h_odd(const bf16 *p) { EACH(widen(p[2 * i + 1])); }

#endif

#if !defined(LEVEL_AVX512)
INLINE vf h_loadn(const bf16 *p, int n) {
	bf16 t[LANES];
	for (int i = 0; i < LANES; i++) t[i] = i < n ? p[i] : 0;
	return h_load(t);
}
INLINE void h_storen(bf16 *p, vf v, int n) {
	bf16 t[LANES];
	h_store(t, v);
	for (int i = 0; i < LANES; i++) if (i < n) p[i] = t[i];
}
#endif

#if defined(LEVEL_AVX2)
INLINE vf v_rounded(vf v) { // to BF16 and back
	return v_of(_mm256_castsi256_ps(_mm256_slli_epi32(v_round8(v.a), 16)), _mm256_castsi256_ps(_mm256_slli_epi32(v_round8(v.b), 16)));
}
#elif defined(LEVEL_PORTABLE)
INLINE vf v_rounded(vf v) {
	bf16 t[LANES];
	h_store(t, v);
	return h_load(t);
}
#endif

// A row of a packed BF16 panel is in pairs: column j next to column j + NR/2, so that one load
// gives both halves of the columns without a shuffle. PAIRED is the position of column j.
#define PAIRED(j) ((j) % (NR / 2) * 2 + (j) / (NR / 2))

// h_columns widens the NR columns of such a row.
INLINE void h_columns(vf out[NV], const bf16 *p) {
#if defined(LEVEL_AVX512)
	out[0] = h_even(p), out[1] = h_odd(p);
#elif defined(LEVEL_AVX2)
	const __m256i x = u_load(p);
	out[0] = v_of(_mm256_castsi256_ps(_mm256_slli_epi32(x, 16)), _mm256_castsi256_ps(_mm256_and_si256(x, _mm256_set1_epi32((int)0xffff0000))));
#else
	for (int j = 0; j < NR; j++) out[0][j] = widen(p[PAIRED(j)]);
#endif
}

// ld and st read and write min(n, 16) elements from element i, BF16 if h is set, else
// float32. h is a constant in every use, so one formula serves both types.
INLINE vf ld(const void *p, long i, int n, const int h) {
	if (h) return n >= LANES ? h_load((const bf16 *)p + i) : h_loadn((const bf16 *)p + i, n);
	return v_loadt((const float *)p + i, n);
}
INLINE void st(void *p, long i, vf v, int n, const int h) {
	if (!h) v_storet((float *)p + i, v, n);
	else if (n >= LANES) h_store((bf16 *)p + i, v);
	else h_storen((bf16 *)p + i, v, n);
}
INLINE int lanes_left(long n) { return n < LANES ? (int)n : LANES; }


// dropout.h: dropout by the counters of kernels.Philox.

// A vector of words. u_mul returns the lower halves of the products with m and sets *upper to
// the upper halves.
#if defined(LEVEL_AVX512)
typedef __m512i vu;
INLINE vu u_set1(uint32_t x) { return _mm512_set1_epi32((int)x); }
INLINE vu u_xor(vu a, vu b) { return _mm512_xor_si512(a, b); }
INLINE vu u_mul(vu a, uint32_t m, vu *upper) {
	const vu even = _mm512_mul_epu32(a, u_set1(m)), odd = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), u_set1(m));
	*upper = _mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd);
	return _mm512_mask_blend_epi32(0xaaaa, even, _mm512_slli_epi64(odd, 32));
}
#elif defined(LEVEL_AVX2)
typedef struct { __m256i a, b; } vu;
INLINE vu u_set1(uint32_t x) { const __m256i v = _mm256_set1_epi32((int)x); return (vu){v, v}; }
INLINE vu u_xor(vu x, vu y) { return (vu){_mm256_xor_si256(x.a, y.a), _mm256_xor_si256(x.b, y.b)}; }
INLINE __m256i u_mul8(__m256i a, __m256i m, __m256i *upper) {
	const __m256i even = _mm256_mul_epu32(a, m), odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), m);
	*upper = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
	return _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
}
INLINE vu u_mul(vu x, uint32_t m, vu *upper) {
	const __m256i v = _mm256_set1_epi32((int)m);
	x.a = u_mul8(x.a, v, &upper->a);
	x.b = u_mul8(x.b, v, &upper->b);
	return x;
}
#else
typedef struct { uint32_t x[LANES]; } vu;
INLINE vu u_set1(uint32_t x) { vu r; for (int i = 0; i < LANES; i++) r.x[i] = x; return r; }
INLINE vu u_xor(vu a, vu b) { for (int i = 0; i < LANES; i++) a.x[i] ^= b.x[i]; return a; }
INLINE vu u_mul(vu a, uint32_t m, vu *upper) {
	for (int i = 0; i < LANES; i++) {
		const uint64_t p = (uint64_t)m * a.x[i];
		a.x[i] = (uint32_t)p, upper->x[i] = (uint32_t)(p >> 32);
	}
	return a;
}
#endif

// u_counters returns first+4q+l in lane 4l+q; u_rows turns vectors of the counters' first, second,
// third and fourth words into vectors of four counters each, a counter's words in sequence.
#if defined(LEVEL_AVX512)
INLINE vu u_counters(uint32_t first) {
	return _mm512_add_epi32(u_set1(first), _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
}
INLINE void u_rows(vu w[4]) {
	const vu a = _mm512_unpacklo_epi32(w[0], w[1]), b = _mm512_unpackhi_epi32(w[0], w[1]);
	const vu c = _mm512_unpacklo_epi32(w[2], w[3]), d = _mm512_unpackhi_epi32(w[2], w[3]);
	w[0] = _mm512_unpacklo_epi64(a, c), w[1] = _mm512_unpackhi_epi64(a, c);
	w[2] = _mm512_unpacklo_epi64(b, d), w[3] = _mm512_unpackhi_epi64(b, d);
}
#elif defined(LEVEL_AVX2)
INLINE vu u_counters(uint32_t first) {
	const __m256i v = _mm256_set1_epi32((int)first);
	return (vu){_mm256_add_epi32(v, _mm256_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13)),
		_mm256_add_epi32(v, _mm256_setr_epi32(2, 6, 10, 14, 3, 7, 11, 15))};
}
INLINE void u_rows8(__m256i *w0, __m256i *w1, __m256i *w2, __m256i *w3) {
	const __m256i a = _mm256_unpacklo_epi32(*w0, *w1), b = _mm256_unpackhi_epi32(*w0, *w1);
	const __m256i c = _mm256_unpacklo_epi32(*w2, *w3), d = _mm256_unpackhi_epi32(*w2, *w3);
	*w0 = _mm256_unpacklo_epi64(a, c), *w1 = _mm256_unpackhi_epi64(a, c);
	*w2 = _mm256_unpacklo_epi64(b, d), *w3 = _mm256_unpackhi_epi64(b, d);
}
INLINE void u_rows(vu w[4]) {
	u_rows8(&w[0].a, &w[1].a, &w[2].a, &w[3].a);
	u_rows8(&w[0].b, &w[1].b, &w[2].b, &w[3].b);
}
#else
INLINE vu u_counters(uint32_t first) {
	vu r;
	for (int i = 0; i < LANES; i++) r.x[i] = first + (uint32_t)(4 * (i % 4) + i / 4);
	return r;
}
INLINE void u_rows(vu w[4]) {
	vu r[4];
	for (int q = 0; q < 4; q++)
		for (int i = 0; i < LANES; i++) r[q].x[i] = w[i % 4].x[i / 4 * 4 + q];
	memcpy(w, r, sizeof r);
}
#endif

// philox_words sets the words of counters {first+i, layer, 0, 0}, i = 0..LANES-1, the four words
// of each counter in sequence.
INLINE void philox_words(vu w[4], uint32_t key0, uint32_t key1, uint32_t first, uint32_t layer) {
	w[0] = u_counters(first), w[1] = u_set1(layer), w[2] = w[3] = u_set1(0);
	for (int round = 0; round < 10; round++, key0 += 0x9E3779B9u, key1 += 0xBB67AE85u) {
		vu up0, up2;
		const vu low0 = u_mul(w[0], 0xD2511F53u, &up0), low2 = u_mul(w[2], 0xCD9E8D57u, &up2);
		w[0] = u_xor(u_xor(up2, w[1]), u_set1(key0));
		w[2] = u_xor(u_xor(up0, w[3]), u_set1(key1));
		w[1] = low2, w[3] = low0;
	}
	u_rows(w);
}

// v_keep_above returns 0 in lanes whose word's upper 24 bits are below limit, and x in the others.
INLINE vf v_keep_above(vf x, vu words, uint32_t limit) {
#if defined(LEVEL_AVX512)
	return _mm512_maskz_mov_ps(_mm512_cmpge_epu32_mask(_mm512_srli_epi32(words, 8), u_set1(limit)), x);
#elif defined(LEVEL_AVX2) // signed comparisons are fine for 24-bit words
	const __m256i l = _mm256_set1_epi32((int)limit);
	const __m256i a = _mm256_cmpgt_epi32(l, _mm256_srli_epi32(words.a, 8)), b = _mm256_cmpgt_epi32(l, _mm256_srli_epi32(words.b, 8));
	return v_of(_mm256_andnot_ps(_mm256_castsi256_ps(a), x.a), _mm256_andnot_ps(_mm256_castsi256_ps(b), x.b));
#else
	for (int i = 0; i < LANES; i++) x[i] = words.x[i] >> 8 < limit ? 0 : x[i];
	return x;
#endif
}

// dropout computes rows lo..hi. It drops an element if the upper 24 bits of its word are below
// limit.
static void dropout(const struct dropout_args *g, long lo, long hi, int tid) {
	(void)tid;
	const uint32_t limit = g->limit, layer = g->layer;
	const vf scale = v_set1(g->scale);
	const long c = g->c;
	vu words[4];
	for (long m = lo; m < hi; m++) {
		const float *x = g->x + m * c;
		float *out = g->out + m * c;
		for (long i = 0; i < c; i += LANES) {
			const int q = (int)(i / LANES % 4), n = lanes_left(c - i);
			if (q == 0) philox_words(words, (uint32_t)g->keys[2 * m], (uint32_t)g->keys[2 * m + 1], (uint32_t)(i / 4), layer);
			v_storet(out + i, v_keep_above(v_mul(v_loadt(x + i, n), scale), words[q], limit), n);
		}
	}
}

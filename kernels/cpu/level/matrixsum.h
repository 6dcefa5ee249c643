// matrixsum.h: the sums of class "matrix/16x25" (kernels/ref's MatrixSum), in integers.
//
// A step adds 16 products and the sum so far at once: each is shifted to 25 places below the largest exponent
// and cut, the integers are added, and their sum is cut to a float32. Vectors run along 16 columns. Steps with
// infinite, NaN or enormous numbers take matrix_step1, one column at a time.

// in_matrix says that this thread computes an operation of class "matrix/16x25".
static _Thread_local int in_matrix __attribute__((tls_model("initial-exec")));

#define MATRIX_TERMS 16
#define MATRIX_LEAST (-133) // the least exponent of a step's largest addend
#define MATRIX_MOST 112     // the largest that vectors take: the factors of scale are float32
#define NO_EXPONENT (-20000) // of 0
#define NO_NUMBER 40000      // of infinity and NaN: above MATRIX_MOST even next to a 0

// matrix_cut returns m·2^unit cut towards zero to a float32; a sum that is 0, or cut to 0, is +0.
INLINE float matrix_cut(int64_t sum, int unit) {
	uint64_t m = sum < 0 ? -(uint64_t)sum : (uint64_t)sum;
	if (m == 0) return 0;
	const int exponent = 63 - __builtin_clzll(m) + unit, last = exponent - 23 > -149 ? exponent - 23 : -149, drop = last - unit;
	m = drop <= 0 ? m << -drop : drop < 64 ? m >> drop : 0;
	if (m == 0) return 0;
	const uint32_t sign = sum < 0 ? 0x80000000u : 0;
	if (exponent > 127) return bits_float(sign | 0x7f800000u);
	return bits_float(sign | (exponent < -126 ? (uint32_t)m : (uint32_t)(exponent + 127) << 23 | ((uint32_t)m & 0x7fffff)));
}

// normal returns x, or 0 of its sign if it is subnormal.
INLINE float normal(bf16 x) { return widen(x & 0x7f80 ? x : x & 0x8000); }

// matrix_step1 returns acc plus 16 products as one step. Subnormal factors are 0.
static float matrix_step1(const bf16 *a, const bf16 *b, float acc) {
	int64_t m[MATRIX_TERMS + 1];
	int e[MATRIX_TERMS + 1], top = MATRIX_LEAST, special = 0;
	const uint32_t u = float_bits(acc);
	const int field = u >> 23 & 0xff;
	m[MATRIX_TERMS] = ((int64_t)(u & 0x7fffff) | (field ? 1 << 23 : 0)) << 2, e[MATRIX_TERMS] = (field ? field : 1) - 127;
	special = field == 0xff;
	if (u >> 31) m[MATRIX_TERMS] = -m[MATRIX_TERMS];
	for (int i = 0; i < MATRIX_TERMS; i++) {
		const int x = a[i] >> 7 & 0xff, y = b[i] >> 7 & 0xff;
		special |= x == 0xff || y == 0xff;
		m[i] = x && y ? (int64_t)((a[i] & 0x7f) | 0x80) * ((b[i] & 0x7f) | 0x80) << 11 : 0, e[i] = x + y - 254;
		if ((a[i] ^ b[i]) >> 15) m[i] = -m[i];
	}
	if (special) {
		double sum = acc;
		for (int i = 0; i < MATRIX_TERMS; i++) sum += (double)normal(a[i]) * (double)normal(b[i]);
		return (float)sum;
	}
	for (int i = 0; i <= MATRIX_TERMS; i++)
		if (m[i] && e[i] > top) top = e[i];
	int64_t sum = 0;
	for (int i = 0; i <= MATRIX_TERMS; i++) {
		if (m[i] == 0) continue; // its exponent may exceed top
		const int by = top - e[i] < 63 ? top - e[i] : 63;
		sum += m[i] < 0 ? -(-m[i] >> by) : m[i] >> by;
	}
	return matrix_cut(sum, top - 25);
}

// matrix_sum1 is tile_sum1 of class "matrix/16x25", matrix_dot1 is dot1.
static float matrix_sum1(const float *a, const bf16 *prefix, long shared, const bf16 *b, long ldb, long from, long n, float acc) {
	for (long s = from / MATRIX_TERMS * MATRIX_TERMS; s < n; s += MATRIX_TERMS) {
		bf16 x[MATRIX_TERMS] = {0}, y[MATRIX_TERMS] = {0};
		for (long i = s < from ? from : s; i < n && i < s + MATRIX_TERMS; i++) x[i - s] = round1(a[i]), y[i - s] = (i < shared ? prefix : b)[i * ldb];
		acc = matrix_step1(x, y, acc);
	}
	return acc;
}
static float matrix_dot1(const bf16 *a, const bf16 *b, long d) {
	float acc = 0;
	for (long s = 0; s < d; s += MATRIX_TERMS) {
		bf16 x[MATRIX_TERMS] = {0}, y[MATRIX_TERMS] = {0};
		for (long i = s; i < d && i < s + MATRIX_TERMS; i++) x[i - s] = a[i], y[i - s] = b[i];
		acc = matrix_step1(x, y, acc);
	}
	return acc;
}

// matrix_columns continues n columns of c, from column `from` of a tile, by one step.
static void matrix_columns(const bf16 *a, const bf16 *b, float *c, int from, int n) {
	for (int i = from; i < from + n; i++) {
		bf16 column[MATRIX_TERMS];
		for (int k = 0; k < MATRIX_TERMS; k++) column[k] = b[(k / 2 * TILE + i) * 2 + k % 2];
		c[i] = matrix_step1(a, column, c[i]);
	}
}

// Factors of a step, apart: m is a signed integer of 16 bits, e the exponent. An integer of a row times one of a
// column has at most 27 bits; the leading one is at place 25 or 26.
struct apart { int32_t m[TERMS][TILE], e[TERMS][TILE]; };

#if defined(LEVEL_AVX512)
typedef __m512i mi;
typedef __m512 mf;
#define MATRIX_LANES 16
#define MI(f) _mm512_##f
INLINE mi mi_load(const void *p) { return _mm512_loadu_si512(p); }
INLINE void mi_store(void *p, mi a) { _mm512_storeu_si512(p, a); }
INLINE mi mi_halves(const bf16 *p) { return _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p)); }
INLINE mi mi_and(mi a, mi b) { return _mm512_and_si512(a, b); }
INLINE mi mi_or(mi a, mi b) { return _mm512_or_si512(a, b); }
INLINE mi mi_xor(mi a, mi b) { return _mm512_xor_si512(a, b); }
INLINE mi mi_pick(mi a, mi is, mi b, mi yes) { return _mm512_mask_mov_epi32(a, _mm512_cmpeq_epi32_mask(b, is), yes); } // yes where b is `is`
INLINE int mi_above(mi a, mi b) { return _mm512_cmpgt_epi32_mask(a, b) != 0; }
INLINE int mi_negative(mi a) { return _mm512_movepi32_mask(a) != 0; }
INLINE mi mi_signed(mi a, mi by) { return _mm512_mask_sub_epi32(a, _mm512_movepi32_mask(by), _mm512_setzero_si512(), a); } // -a where by < 0
#define TO_ZERO (_MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)
INLINE mf mf_of(mi a) { return _mm512_cvt_roundepi32_ps(a, TO_ZERO); }
INLINE mf mf_mul(mf a, mf b) { return _mm512_mul_round_ps(a, b, TO_ZERO); }
INLINE void mf_store(float *p, mf a) { _mm512_storeu_ps(p, _mm512_add_ps(a, _mm512_setzero_ps())); } // -0 becomes +0
INLINE mf mf_bits(mi a) { return _mm512_castsi512_ps(a); }
INLINE unsigned cutting(void) { return 0; }
INLINE void not_cutting(unsigned old) { (void)old; }
#elif defined(LEVEL_AVX2)
typedef __m256i mi;
typedef __m256 mf;
#define MATRIX_LANES 8
#define MI(f) _mm256_##f
INLINE mi mi_load(const void *p) { return _mm256_loadu_si256(p); }
INLINE void mi_store(void *p, mi a) { _mm256_storeu_si256(p, a); }
INLINE mi mi_halves(const bf16 *p) { return _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p)); }
INLINE mi mi_and(mi a, mi b) { return _mm256_and_si256(a, b); }
INLINE mi mi_or(mi a, mi b) { return _mm256_or_si256(a, b); }
INLINE mi mi_xor(mi a, mi b) { return _mm256_xor_si256(a, b); }
INLINE mi mi_pick(mi a, mi is, mi b, mi yes) { return _mm256_blendv_epi8(a, yes, _mm256_cmpeq_epi32(b, is)); }
INLINE int mi_above(mi a, mi b) { return _mm256_movemask_epi8(_mm256_cmpgt_epi32(a, b)) != 0; }
INLINE int mi_negative(mi a) { return _mm256_movemask_ps(_mm256_castsi256_ps(a)) != 0; }
INLINE mi mi_signed(mi a, mi by) { return _mm256_sign_epi32(a, _mm256_or_si256(by, _mm256_set1_epi32(1))); }
INLINE mf mf_of(mi a) { return _mm256_cvtepi32_ps(a); }
INLINE mf mf_mul(mf a, mf b) { return _mm256_mul_ps(a, b); }
INLINE void mf_store(float *p, mf a) { _mm256_storeu_ps(p, _mm256_add_ps(a, _mm256_setzero_ps())); }
INLINE mf mf_bits(mi a) { return _mm256_castsi256_ps(a); }
// cutting makes float32 results round towards zero until it is undone.
INLINE unsigned cutting(void) {
	const unsigned old = _mm_getcsr();
	_mm_setcsr(old | 0x6000);
	__asm__ volatile("" ::: "memory");
	return old;
}
INLINE void not_cutting(unsigned old) {
	__asm__ volatile("" ::: "memory");
	_mm_setcsr(old);
}
#endif

#if defined(MATRIX_LANES)
// take_apart stores m, shifted by `places`, and e of BF16 numbers in the lower halves of h.
INLINE void take_apart(int32_t *m, int32_t *e, mi h, const int places) {
	const mi zero = MI(set1_epi32)(0), all = MI(set1_epi32)(0xff), field = mi_and(MI(srli_epi32)(h, 7), all);
	const mi x = MI(slli_epi32)(mi_or(mi_and(h, MI(set1_epi32)(0x7f)), MI(set1_epi32)(0x80)), places);
	const mi at = mi_pick(MI(sub_epi32)(field, MI(set1_epi32)(127)), zero, field, MI(set1_epi32)(NO_EXPONENT));
	mi_store(m, mi_and(mi_signed(mi_pick(x, zero, field, zero), MI(slli_epi32)(h, 16)), MI(set1_epi32)(0xffff)));
	mi_store(e, mi_pick(at, all, field, MI(set1_epi32)(NO_NUMBER)));
}

// matrix_step continues MATRIX_LANES columns of c by 16 products of a row's m and e with columns'. It returns 0,
// and leaves c alone, where matrix_step1 must.
INLINE int matrix_step(float *c, const int32_t *am, const int32_t *ae, const int32_t *bm, const int32_t *be) {
	const mi u = mi_load(c), mantissa = MI(set1_epi32)(0x7fffff), one = MI(set1_epi32)(1), zero = MI(set1_epi32)(0);
	const mi field = mi_and(MI(srli_epi32)(u, 23), MI(set1_epi32)(0xff));
	const mi m = mi_pick(mi_or(mi_and(u, mantissa), MI(set1_epi32)(1 << 23)), zero, field, mi_and(u, mantissa));
	const mi ec = MI(sub_epi32)(MI(max_epi32)(field, one), MI(set1_epi32)(127));
	const mi e = mi_pick(ec, zero, m, MI(set1_epi32)(MATRIX_LEAST));
	mi x[MATRIX_TERMS], tops[4], sums[2] = {zero, zero}; // several, so that none waits for itself
#pragma GCC unroll 16
	for (int k = 0; k < MATRIX_TERMS; k++) {
		x[k] = MI(add_epi32)(mi_load(be + k * TILE), MI(set1_epi32)(ae[k]));
		tops[k % 4] = k < 4 ? x[k] : MI(max_epi32)(tops[k % 4], x[k]);
	}
	const mi top = MI(max_epi32)(MI(max_epi32)(tops[0], tops[1]), MI(max_epi32)(MI(max_epi32)(tops[2], tops[3]),
		MI(max_epi32)(e, MI(set1_epi32)(MATRIX_LEAST))));
	if (mi_above(top, MI(set1_epi32)(MATRIX_MOST))) return 0;
#pragma GCC unroll 16
	for (int k = 0; k < MATRIX_TERMS; k++) {
		const mi p = MI(madd_epi16)(MI(set1_epi32)(am[k]), mi_load(bm + k * TILE));
		sums[k % 2] = MI(add_epi32)(sums[k % 2], mi_signed(MI(srlv_epi32)(MI(abs_epi32)(p), MI(sub_epi32)(top, x[k])), p));
	}
	const mi sum = MI(add_epi32)(sums[0], sums[1]);
	const mi own = mi_signed(MI(srlv_epi32)(MI(slli_epi32)(m, 2), MI(sub_epi32)(top, e)), u), all = MI(add_epi32)(sum, own);
	// The products alone have 31 bits; with c, the sum may have more.
	if (mi_negative(mi_and(mi_xor(sum, all), mi_xor(own, all)))) return 0;
	const mf scale = mf_bits(MI(slli_epi32)(MI(add_epi32)(top, MI(set1_epi32)(15 + 127)), 23));
	mf_store(c, mf_mul(mf_mul(mf_of(all), mf_bits(MI(set1_epi32)((127 - 40) << 23))), scale));
	return 1;
}
#endif

// matrix_sums is block_sums of class "matrix/16x25".
static void matrix_sums(const bf16 *a, const bf16 *b, float *c, long ldc, long steps, long rows, long cols, int zero) {
	rows = rows < BLOCK ? rows : BLOCK;
	for (long r = 0; zero && r < rows; r++)
		for (long j = 0; j < BLOCK && j < cols; j += TILE) v_store(c + r * ldc + j, v_zero());
#if defined(MATRIX_LANES)
	int32_t am[BLOCK][TERMS] __attribute__((aligned(64))), ae[BLOCK][TERMS] __attribute__((aligned(64)));
	struct apart t __attribute__((aligned(64)));
	unsigned mode = cutting();
#endif
	for (; steps > 0; steps--, a += STEP, b += STEP) {
#if defined(MATRIX_LANES)
		for (long r = 0; r < rows; r++)
			for (int k = 0; k < TERMS; k += MATRIX_LANES) take_apart(&am[r][k], &ae[r][k], mi_halves(a + r * TERMS + k), 7);
#endif
		for (long j = 0; j < BLOCK && j < cols; j += TILE) {
			const bf16 *bj = b + j * TERMS;
#if defined(MATRIX_LANES)
			for (int k = 0; k < TERMS; k += 2)
				for (int i = 0; i < TILE; i += MATRIX_LANES) {
					const mi pairs = mi_load(bj + k * TILE + 2 * i);
					take_apart(&t.m[k][i], &t.e[k][i], mi_and(pairs, MI(set1_epi32)(0xffff)), 4);
					take_apart(&t.m[k + 1][i], &t.e[k + 1][i], MI(srli_epi32)(pairs, 16), 4);
				}
#endif
			for (int k = 0; k < TERMS; k += MATRIX_TERMS)
				for (long r = 0; r < rows; r++) {
					float *cr = c + r * ldc + j;
#if defined(MATRIX_LANES)
					for (int i = 0; i < TILE; i += MATRIX_LANES) {
						if (matrix_step(cr + i, am[r] + k, ae[r] + k, &t.m[k][i], &t.e[k][i])) continue;
						not_cutting(mode);
						matrix_columns(a + r * TERMS + k, bj + k * TILE, cr, i, MATRIX_LANES);
						mode = cutting();
					}
#else
					matrix_columns(a + r * TERMS + k, bj + k * TILE, cr, 0, TILE);
#endif
				}
		}
	}
#if defined(MATRIX_LANES)
	not_cutting(mode);
#endif
}

// matrixsum.h: the sums of class "matrix/16x25" (kernels/ref's MatrixSum), in integers.
//
// A step adds 16 products and the sum so far at once: each is shifted to 25 places below the largest exponent
// and cut, the integers are added, and their sum is cut to a float32. Vectors run along columns. Steps with
// infinite, NaN, enormous or tiny numbers take matrix_step1, one column at a time.

// in_matrix says that this thread computes an operation of class "matrix/16x25".
static _Thread_local int in_matrix __attribute__((tls_model("initial-exec")));

#define MATRIX_TERMS 16
#define MATRIX_LEAST (-133) // the least exponent of a step's largest addend
#define MATRIX_LOW (-100)    // the least and the largest that vectors take: scales, products and sums are
#define MATRIX_MOST 112      // normal float32
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

// Vectors of MATRIX_LANES columns. A step takes 2 passes over its terms: one for the largest exponent, one for the
// sum. A product of two BF16 numbers is exact in float32, and so is its multiple by a power of two, so turning that
// into an integer is the only rounding: towards zero.
#if defined(LEVEL_AVX512)
#define MATRIX_LANES 16
#elif defined(LEVEL_AVX2)
#define MATRIX_LANES 8
#else
#define MATRIX_LANES 4
#endif
#define MATRIX_ROWS 4 // that a step takes at once
typedef float mf __attribute__((vector_size(4 * MATRIX_LANES)));
typedef int32_t mi __attribute__((vector_size(4 * MATRIX_LANES)));
typedef uint32_t mu __attribute__((vector_size(4 * MATRIX_LANES)));
typedef uint16_t mh __attribute__((vector_size(2 * MATRIX_LANES)));

INLINE mi mi_load(const void *p) { mi a; memcpy(&a, p, sizeof a); return a; }
INLINE void mi_store(void *p, mi a) { memcpy(p, &a, sizeof a); }
INLINE mi mi_all(int32_t x) { return (mi){0} + x; }
INLINE mi mi_pick(mi a, mi mask, int32_t yes) { return (a & ~mask) | (yes & mask); }
INLINE mi mi_cut(mf a) { return __builtin_convertvector(a, mi); }
#if defined(LEVEL_AVX512)
INLINE mi mi_max(mi a, mi b) { return (mi)_mm512_max_epi32((__m512i)a, (__m512i)b); }
INLINE int mi_negative(mi a) { return _mm512_movepi32_mask((__m512i)a) != 0; }
#elif defined(LEVEL_AVX2)
INLINE mi mi_max(mi a, mi b) { return (mi)_mm256_max_epi32((__m256i)a, (__m256i)b); }
INLINE int mi_negative(mi a) { return _mm256_movemask_ps((__m256)a) != 0; }
#else
INLINE mi mi_max(mi a, mi b) { const mi above = a > b; return (a & above) | (b & ~above); }
#if defined(__SSE2__)
INLINE int mi_negative(mi a) { return _mm_movemask_ps((__m128)a) != 0; }
#else
INLINE int mi_negative(mi a) { return (a[0] | a[1] | a[2] | a[3]) < 0; }
#endif
#endif

// Factors of a step, apart: the numbers, subnormal ones as 0, and their exponents.
struct apart { float x[TERMS][TILE]; int32_t e[TERMS][TILE]; };

// take_apart stores the numbers and exponents of BF16 numbers in the lower halves of h.
INLINE void take_apart(float *x, int32_t *e, mi h) {
	const mi field = h >> 7 & 0xff, zero = field == 0;
	mi_store(x, h << 16 & ~(zero & 0x7fffffff));
	mi_store(e, mi_pick(mi_pick(field - 127, zero, NO_EXPONENT), field == 0xff, NO_NUMBER));
}

// mf_whole returns x cut to a float32; size is |x|.
INLINE mf mf_whole(mi x, mi size) {
#if defined(LEVEL_AVX512)
	(void)size;
	return (mf)_mm512_cvt_roundepi32_ps((__m512i)x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
#else
	// The shift clears the place below the 24 of a float32, at least: so rounding to nearest goes down.
	return (mf)((mi)__builtin_convertvector(size & ~(size >> 24), mf) | (x & (int32_t)0x80000000));
#endif
}

// matrix_step continues MATRIX_LANES columns of `rows` rows of c, 1 or MATRIX_ROWS, by 16 products of the rows' numbers
// a, with exponents ae, and the columns'. It returns 0, and leaves c alone, where matrix_step1 must. One row has as
// many chains of maxima and sums as several, of every fourth term each.
INLINE int matrix_step(float *c, long ldc, const float *a, const int32_t *ae, const float *b, const int32_t *be, const int rows) {
	const int stride = rows == 1 ? MATRIX_ROWS : 1;
	mf own[MATRIX_ROWS], scale[MATRIX_ROWS];
	mi top[MATRIX_ROWS], sum[MATRIX_ROWS], bad = {0};
#pragma GCC unroll 4
	for (int x = 0; x < MATRIX_ROWS; x++) {
		const mi u = mi_load(c + (rows == 1 ? 0 : x) * ldc);
		own[x] = (mf)u;
		top[x] = mi_pick((u >> 23 & 0xff) - 127, (u & 0x7fffffff) == 0, NO_EXPONENT);
	}
#pragma GCC unroll 1
	for (int k = 0; k < MATRIX_TERMS; k += stride)
#pragma GCC unroll 4
		for (int x = 0; x < MATRIX_ROWS; x++) {
			const int r = rows == 1 ? 0 : x, at = rows == 1 ? k + x : k;
			top[x] = mi_max(top[x], mi_load(be + at * TILE) + ae[r * TERMS + at]);
		}
	if (rows == 1) top[0] = mi_max(mi_max(top[0], top[1]), mi_max(top[2], top[3]));
#pragma GCC unroll 4
	for (int r = 0; r < rows; r++) {
		bad |= (MATRIX_MOST - top[r]) | ((top[r] - MATRIX_LOW) & ~(top[r] - NO_EXPONENT / 2));
		top[r] = mi_max(top[r], mi_all(MATRIX_LOW));
		scale[r] = (mf)((127 + 25 - top[r]) << 23);
	}
	if (mi_negative(bad)) return 0;
#pragma GCC unroll 4
	for (int x = 0; x < MATRIX_ROWS; x++) sum[x] = mi_all(0);
#pragma GCC unroll 1
	for (int k = 0; k < MATRIX_TERMS; k += stride)
#pragma GCC unroll 4
		for (int x = 0; x < MATRIX_ROWS; x++) {
			const int r = rows == 1 ? 0 : x, at = rows == 1 ? k + x : k;
			sum[x] += mi_cut((mf)mi_load(b + at * TILE) * a[r * TERMS + at] * scale[r]);
		}
	if (rows == 1) sum[0] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
	mi all[MATRIX_ROWS], size[MATRIX_ROWS];
#pragma GCC unroll 4
	for (int r = 0; r < rows; r++) {
		const mi first = mi_cut(own[r] * scale[r]), sign = (mi)((mu)sum[r] + (mu)first) >> 31;
		all[r] = (mi)((mu)sum[r] + (mu)first);
		size[r] = (mi)((mu)(all[r] ^ sign) - (mu)sign);
		bad |= size[r] | ((sum[r] ^ all[r]) & (first ^ all[r])); // the products alone have 31 bits, with c there may be more
	}
	if (mi_negative(bad)) return 0;
#pragma GCC unroll 4
	for (int r = 0; r < rows; r++)
		mi_store(c + r * ldc, (mi)(mf_whole(all[r], size[r]) * (mf)((top[r] - 25 + 127) << 23)));
	return 1;
}

// matrix_rows takes a step in all columns of a tile and `rows` rows.
INLINE void matrix_rows(const bf16 *a, const bf16 *b, float *c, long ldc, const float *ax, const int32_t *ae, const struct apart *t,
		const int k, const int rows) {
	for (int i = 0; i < TILE; i += MATRIX_LANES)
		if (!matrix_step(c + i, ldc, ax + k, ae + k, &t->x[k][i], &t->e[k][i], rows))
			for (int r = 0; r < rows; r++) matrix_columns(a + r * TERMS + k, b + k * TILE, c + r * ldc, i, MATRIX_LANES);
}

// matrix_sums is block_sums of class "matrix/16x25".
static void matrix_sums(const bf16 *a, const bf16 *b, float *c, long ldc, long steps, long rows, long cols, int zero) {
	const int n = rows < BLOCK ? (int)rows : BLOCK;
	for (int r = 0; zero && r < n; r++)
		for (long j = 0; j < BLOCK && j < cols; j += TILE) v_store(c + r * ldc + j, v_zero());
	float ax[BLOCK][TERMS] __attribute__((aligned(64)));
	int32_t ae[BLOCK][TERMS] __attribute__((aligned(64)));
	struct apart t __attribute__((aligned(64)));
	for (; steps > 0; steps--, a += STEP, b += STEP) {
		for (int r = 0; r < n; r++)
			for (int k = 0; k < TERMS; k += MATRIX_LANES) {
				mh h;
				memcpy(&h, a + r * TERMS + k, sizeof h);
				take_apart(&ax[r][k], &ae[r][k], __builtin_convertvector(h, mi));
			}
		for (long j = 0; j < BLOCK && j < cols; j += TILE) {
			const bf16 *bj = b + j * TERMS;
			for (int k = 0; k < TERMS; k += 2)
				for (int i = 0; i < TILE; i += MATRIX_LANES) {
					const mi pairs = mi_load(bj + k * TILE + 2 * i);
					take_apart(&t.x[k][i], &t.e[k][i], pairs & 0xffff);
					take_apart(&t.x[k + 1][i], &t.e[k + 1][i], (mi)((mu)pairs >> 16));
				}
			for (int k = 0; k < TERMS; k += MATRIX_TERMS) {
				int r = 0;
				for (; r + MATRIX_ROWS <= n; r += MATRIX_ROWS)
					matrix_rows(a + r * TERMS, bj, c + r * ldc + j, ldc, ax[r], ae[r], &t, k, MATRIX_ROWS);
				for (; r < n; r++) matrix_rows(a + r * TERMS, bj, c + r * ldc + j, ldc, ax[r], ae[r], &t, k, 1);
			}
		}
	}
}

// tilesum.h: the inner loop of class "cpu/bf16", on tiles of BF16 factors.
//
// Factors are in tiles of 16 × 32. A tile of rows has 16 rows of 32 terms; a tile of
// columns has 16 pairs of terms for each of 16 columns, [16][16][2]. As 32-bit pairs,
// one is the other transposed.
//
// block_sums continues up to 32 × 32 tile sums (package kernels, "bf16"): on the
// matrix unit, with products of pairs, or with fused multiply-adds. All give the same
// bits.

#define STEP (2 * TILE_LEN) // elements in two adjacent tiles
#define BLOCK TILE_BLOCK    // rows or columns in a block of two tiles

// FIRST and SECOND are the terms of a step that pair p holds, the lower half first. The
// matrix unit makes one chain of lower halves and one of upper ones. A product of pairs
// continues one chain by the upper half, then by the lower: for it the first eight pairs
// hold the even terms, the other eight the odd ones, so that each chain is in order.
#if defined(LEVEL_PAIRS)
#define FIRST(p) ((p) < 8 ? 4 * (p) + 2 : 4 * (p) - 29)
#define SECOND(p) (FIRST(p) - 2)
// in_pairs reorders 32 terms of a row as in a tile, in_terms reorders them back.
INLINE __m512i in_pairs(__m512i x) {
	return _mm512_permutexvar_epi16(_mm512_set_epi16(29, 31, 25, 27, 21, 23, 17, 19, 13, 15, 9, 11, 5, 7, 1, 3,
		28, 30, 24, 26, 20, 22, 16, 18, 12, 14, 8, 10, 4, 6, 0, 2), x);
}
INLINE __m512i in_terms(__m512i x) {
	return _mm512_permutexvar_epi16(_mm512_set_epi16(30, 14, 31, 15, 28, 12, 29, 13, 26, 10, 27, 11, 24, 8, 25, 9,
		22, 6, 23, 7, 20, 4, 21, 5, 18, 2, 19, 3, 16, 0, 17, 1), x);
}
#else
#define FIRST(p) (2 * (p))
#define SECOND(p) (2 * (p) + 1)
#if defined(LEVEL_AVX512)
INLINE __m512i in_pairs(__m512i x) { return x; }
#endif
#endif

// flush_one returns x, or zero of its sign if x is subnormal. fma_one returns a·b + c of BF16 factors as the processor flushes it:
// to zero of its sign if it is below 2^-126 when it is rounded to 24 bits whatever its exponent (fusedFlushed of kernels/ref).
#define LEAST_KEPT 0x1.ffffffp-127 // rounds to 2^-126
INLINE float flush_one(float x) { return (float_bits(x) & 0x7f800000u) == 0 ? bits_float(float_bits(x) & 0x80000000u) : x; }
INLINE float flush_fma(float x, float a, float b, float c) { // x = a·b + c
	if ((float_bits(x) & 0x7fffffffu) > 0x00800000u) return x;
	return fabs((double)a * b + c) >= LEAST_KEPT ? x : bits_float(float_bits(x) & 0x80000000u);
}
INLINE float fma_one(float a, float b, float c) { return flush_fma(fmaf(a, b, c), a, b, c); }

// flushing makes subnormal operands and results zero until it is undone, as the matrix
// unit does. Without such a mode the code flushes every result itself.
#if defined(__SSE__) && !defined(LEVEL_PORTABLE)
INLINE unsigned flushing(void) {
	const unsigned old = _mm_getcsr();
	_mm_setcsr(old | 0x8040);
	__asm__ volatile("" ::: "memory"); // keeps later loads, so later arithmetic, after this
	return old;
}
INLINE void not_flushing(unsigned old) {
	__asm__ volatile("" ::: "memory"); // keeps earlier stores before this
	_mm_setcsr(old);
}
INLINE vf f_fma(vf a, vf b, vf c) { return v_fma(a, b, c); }
INLINE vf f_add(vf a, vf b) { return v_add(a, b); }
#else
INLINE unsigned flushing(void) { return 0; }
INLINE void not_flushing(unsigned old) { (void)old; }
#if defined(__SSE2__) && !defined(__FP_FAST_FMAF)
// exact4 is the product of a and b plus c. The product of BF16 factors is exact in float if it is normal or a factor is
// 0; then the sum is rounded once, and needs no flushing if it is above 2^-126 or 0. odd is set for all others.
INLINE __m128 exact4(__m128 a, __m128 b, __m128 c, __m128i *odd) {
	const __m128 p = _mm_mul_ps(a, b), y = _mm_add_ps(p, c), none = _mm_setzero_ps();
	const __m128i zero = _mm_setzero_si128(), magnitude = _mm_set1_epi32(INT32_MAX);
	const __m128i product = _mm_and_si128(_mm_castps_si128(p), magnitude);
	const __m128i sum = _mm_and_si128(_mm_castps_si128(y), magnitude);
	const __m128i small = _mm_andnot_si128(_mm_castps_si128(_mm_or_ps(_mm_cmpeq_ps(a, none), _mm_cmpeq_ps(b, none))),
		_mm_cmplt_epi32(product, _mm_set1_epi32(0x00800000)));
	const __m128i large = _mm_cmpgt_epi32(product, _mm_set1_epi32(0x7f7fffff));
	const __m128i tiny = _mm_andnot_si128(_mm_cmpeq_epi32(sum, zero), _mm_cmplt_epi32(sum, _mm_set1_epi32(0x00800001)));
	const __m128i low = _mm_and_si128(_mm_castps_si128(_mm_or_ps(a, b)), _mm_set1_epi32(0xffff)); // that BF16 lacks
	*odd = _mm_or_si128(*odd, _mm_or_si128(_mm_or_si128(small, large), _mm_or_si128(tiny, _mm_cmpgt_epi32(low, zero))));
	return y;
}
#endif
FUSED vf f_fma(vf a, vf b, vf c) {
#if defined(__SSE2__) && !defined(__FP_FAST_FMAF)
	vf s;
	__m128i odd = _mm_setzero_si128();
	for (int i = 0; i < LANES; i += 4) {
		const __m128 u = _mm_loadu_ps((float *)&a + i), v = _mm_loadu_ps((float *)&b + i);
		_mm_storeu_ps((float *)&s + i, exact4(u, v, _mm_loadu_ps((float *)&c + i), &odd));
	}
	if (!_mm_movemask_epi8(odd)) return s;
#endif
	const vf x = v_fma(a, b, c);
	EACH(flush_fma(x[i], a[i], b[i], c[i]));
}
FUSED vf f_add(vf a, vf b) { EACH(flush_one(flush_one(a[i]) + flush_one(b[i]))); }
#endif

// Work done between the products of a block of tile sums, a little at each step.
struct meanwhile {
	const char *next; // memory needed soon: each step prefetches ask lines to the second-level cache
	long ask;
	// An earlier block's sums: each step stores `some` of the `left` remaining rows of BLOCK,
	// rounded if h, line bytes apart, past the caches if past.
	const float *sums;
	char *out;
	long line, left, some;
	int h, past;
};

// store_rows stores the next n rows, or all that remain.
INLINE void store_rows(struct meanwhile *w, long n) {
	for (n = n < w->left ? n : w->left, w->left -= n; n > 0; n--, w->sums += BLOCK, w->out += w->line) {
		const vf x = v_load(w->sums), y = v_load(w->sums + LANES);
#if defined(LEVEL_AVX512)
		if (w->past && w->h) {
			_mm512_stream_si512((void *)w->out, v_narrow2(x, y));
			continue;
		}
#endif
		if (w->h) h_store((bf16 *)w->out, x), h_store((bf16 *)w->out + LANES, y);
		else if (w->past) v_stream((float *)w->out, x), v_stream((float *)w->out + LANES, y);
		else v_store((float *)w->out, x), v_store((float *)w->out + LANES, y);
	}
}

// block_sums: c [rows][cols] has ldc floats per row; rows and columns past BLOCK are left out.
// a holds the tiles of rows of each step, b the tiles of columns. Rows and columns up to whole
// tiles may be written too. c starts from 0 if zero is set. a and b start on cache lines. There
// is at least one step. block_sums_meanwhile also does all the work in w.

#if defined(LEVEL_PORTABLE) || defined(EMULATE_AMX)
// four_rows continues four rows of one tile, in plain C or for the emulated matrix unit.
INLINE void four_rows(const bf16 *a, const bf16 *b, float *c, long ldc, long steps, int zero) {
	vf acc[4];
	for (int r = 0; r < 4; r++) acc[r] = zero ? v_zero() : v_load(c + r * ldc);
	for (long s = 0; s < steps; s++, a += STEP, b += STEP) {
		vf even[4], odd[4];
		for (int r = 0; r < 4; r++) even[r] = odd[r] = v_zero();
		for (int p = 0; p < TERMS / 2; p++) {
			const vf be = h_even(b + p * 2 * TILE), bo = h_odd(b + p * 2 * TILE);
			for (int r = 0; r < 4; r++) {
				even[r] = f_fma(v_set1(widen(a[r * TERMS + 2 * p])), be, even[r]);
				odd[r] = f_fma(v_set1(widen(a[r * TERMS + 2 * p + 1])), bo, odd[r]);
			}
		}
		for (int r = 0; r < 4; r++) acc[r] = f_add(acc[r], f_add(even[r], odd[r]));
	}
	for (int r = 0; r < 4; r++) v_store(c + r * ldc, acc[r]);
}
#endif

#if defined(LEVEL_AMX)
#if defined(EMULATE_AMX)
#include "matrixunit.h"
#endif

// tiles_begin and tiles_end enclose a kernel's use of tiles.
INLINE void tiles_begin(void) {
	static const struct { uint8_t palette, start, none[14]; uint16_t bytes[16]; uint8_t rows[16]; }
		layout __attribute__((aligned(64))) = {1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};
	_tile_loadconfig(&layout);
}
INLINE void tiles_end(void) { _tile_release(); }

// tile_sums is block_sums of rt × ct tiles, with the work in w except stores left at the end.
INLINE void tile_sums(const bf16 *a, const bf16 *b, float *c, long ldc, long steps, const int rt, const int ct, int zero,
	struct meanwhile *w) {
	const long line = ldc * sizeof(float);
	if (zero) {
		_tile_zero(0);
		if (ct > 1) _tile_zero(1);
		if (rt > 1) _tile_zero(2);
		if (rt > 1 && ct > 1) _tile_zero(3);
	} else {
		_tile_loadd(0, c, line);
		if (ct > 1) _tile_loadd(1, c + TILE, line);
		if (rt > 1) _tile_loadd(2, c + TILE * ldc, line);
		if (rt > 1 && ct > 1) _tile_loadd(3, c + TILE * ldc + TILE, line);
	}
	for (long s = 0; s < steps; s++, a += STEP, b += STEP) {
		if (w) {
			for (const char *end = w->next + w->ask * 64; w->next < end; w->next += 64) __builtin_prefetch(w->next, 0, 2);
			store_rows(w, w->some);
		}
		_tile_loadd(4, a, 64);
		_tile_loadd(6, b, 64);
		_tile_dpbf16ps(0, 4, 6);
		if (ct > 1) {
			_tile_loadd(7, b + TILE_LEN, 64);
			_tile_dpbf16ps(1, 4, 7);
		}
		if (rt > 1) {
			_tile_loadd(5, a + TILE_LEN, 64);
			_tile_dpbf16ps(2, 5, 6);
			if (ct > 1) _tile_dpbf16ps(3, 5, 7);
		}
	}
	_tile_stored(0, c, line);
	if (ct > 1) _tile_stored(1, c + TILE, line);
	if (rt > 1) _tile_stored(2, c + TILE * ldc, line);
	if (rt > 1 && ct > 1) _tile_stored(3, c + TILE * ldc + TILE, line);
}

// block_sums_with is tile_sums with as many tiles as rows and cols, at most BLOCK each, need.
INLINE void block_sums_with(const bf16 *a, const bf16 *b, float *c, long ldc, long steps, long rows, long cols, int zero, struct meanwhile *w) {
	if (rows > TILE && cols > TILE) tile_sums(a, b, c, ldc, steps, 2, 2, zero, w);
	else if (rows > TILE) tile_sums(a, b, c, ldc, steps, 2, 1, zero, w);
	else if (cols > TILE) tile_sums(a, b, c, ldc, steps, 1, 2, zero, w);
	else tile_sums(a, b, c, ldc, steps, 1, 1, zero, w);
}
static void block_sums(const bf16 *a, const bf16 *b, float *c, long ldc, long steps, long rows, long cols, int zero) {
	block_sums_with(a, b, c, ldc, steps, rows, cols, zero, 0);
}
static void block_sums_meanwhile(const bf16 *a, const bf16 *b, float *c, long ldc, long steps, long rows, long cols, int zero, struct meanwhile *w) {
	block_sums_with(a, b, c, ldc, steps, rows, cols, zero, w);
	store_rows(w, w->left);
}

#else

INLINE void tiles_begin(void) {}
INLINE void tiles_end(void) {}

#if defined(LEVEL_PAIRS)

#define SUM_ROWS 8         // most rows of sum_rows: 16 chains of even terms, then as many of odd ones
#define INTERLEAVED_ROWS 6 // most rows whose chains of both kinds fit in registers with the factors

INLINE vf v_pairs(vf acc, vf a, const bf16 *b) { // acc + both products, as two fused multiply-adds
	return _mm512_dpbf16_ps(acc, (__m512bh)_mm512_castps_si512(a), (__m512bh)_mm512_loadu_si512(b));
}

// sum_rows continues R rows of ct tiles of columns. A step computes chains of even terms and chains
// of odd terms, then adds them up. Few rows alternate between the two kinds, or each chain would
// wait for its last product. Each pair prefetches the next 0, 1 or 2 lines from next.
INLINE void sum_rows(const int R, const int ct, const int lines, const bf16 *a, const bf16 *b, float *c, long ldc, long steps, int zero, const char *next) {
	const int interleaved = R <= INTERLEAVED_ROWS;
	for (long s = 0; s < steps; s++, a += STEP, b += STEP, zero = 0) {
		vf half[2][SUM_ROWS][2];
#pragma GCC unroll 2
		for (int h = 0; h < 2; h++)
#pragma GCC unroll 8
			for (int r = 0; r < R; r++) half[h][r][0] = half[h][r][1] = v_zero();
#pragma GCC unroll 16
		for (int q = 0; q < 16; q++) {
			const int h = interleaved ? q % 2 : q / 8, p = interleaved ? h * 8 + q / 2 : q;
			for (int l = 0; l < lines; l++, next += LINE) __builtin_prefetch(next, 0, 2);
#pragma GCC unroll 8
			for (int r = 0; r < R; r++) {
				float pair;
				memcpy(&pair, a + r * TERMS + 2 * p, sizeof pair);
				for (int j = 0; j < ct; j++) half[h][r][j] = v_pairs(half[h][r][j], v_set1(pair), b + j * TILE_LEN + p * 2 * TILE);
			}
		}
#pragma GCC unroll 8
		for (int r = 0; r < R; r++)
			for (int j = 0; j < ct; j++) {
				float *at = c + r * ldc + j * TILE;
				v_store(at, v_add(zero ? v_zero() : v_load(at), v_add(half[0][r][j], half[1][r][j])));
			}
	}
}

// few_rows is sum_rows of two tiles, for at most FEW_ROWS rows (tile.h). It reads the columns in the
// order of their addresses, because so few rows wait for memory, which the processor's own
// prefetching reads fastest.
INLINE void few_rows(const int R, const bf16 *a, const bf16 *b, float *c, long ldc, long steps, int zero) {
	for (long s = 0; s < steps; s++, a += STEP, b += STEP, zero = 0)
#pragma GCC unroll 2
		for (int j = 0; j < 2; j++) {
			vf half[2][FEW_ROWS];
#pragma GCC unroll 2
			for (int h = 0; h < 2; h++) {
#pragma GCC unroll 8
				for (int r = 0; r < R; r++) half[h][r] = v_zero();
#pragma GCC unroll 8
				for (int p = h * 8; p < h * 8 + 8; p++)
#pragma GCC unroll 8
					for (int r = 0; r < R; r++) {
						float pair;
						memcpy(&pair, a + r * TERMS + 2 * p, sizeof pair);
						half[h][r] = v_pairs(half[h][r], v_set1(pair), b + j * TILE_LEN + p * 2 * TILE);
					}
			}
#pragma GCC unroll 8
			for (int r = 0; r < R; r++) {
				float *at = c + r * ldc + j * TILE;
				v_store(at, v_add(zero ? v_zero() : v_load(at), v_add(half[0][r], half[1][r])));
			}
		}
}

#define SUM_SOME_ROWS(R)                                                                                                        \
	static __attribute__((noinline)) void sum_##R(const bf16 *a, const bf16 *b, float *c, long ldc, long steps, long cols, int zero, const char *next, int lines) { \
		if (cols <= TILE) sum_rows(R, 1, 0, a, b, c, ldc, steps, zero, 0);                                                     \
		else if (!next) sum_rows(R, 2, 0, a, b, c, ldc, steps, zero, 0);                                                       \
		else if (lines == 1) sum_rows(R, 2, 1, a, b, c, ldc, steps, zero, next);                                               \
		else sum_rows(R, 2, 2, a, b, c, ldc, steps, zero, next);                                                               \
	}
#define SUM_FEW_ROWS(R)                                                                                                         \
	static __attribute__((noinline)) void few_##R(const bf16 *a, const bf16 *b, float *c, long ldc, long steps, int zero) {        \
		few_rows(R, a, b, c, ldc, steps, zero);                                                                                \
	}
SUM_SOME_ROWS(1) SUM_SOME_ROWS(2) SUM_SOME_ROWS(3) SUM_SOME_ROWS(4) SUM_SOME_ROWS(5) SUM_SOME_ROWS(6) SUM_SOME_ROWS(7) SUM_SOME_ROWS(8)
SUM_FEW_ROWS(1) SUM_FEW_ROWS(2) SUM_FEW_ROWS(3) SUM_FEW_ROWS(4)
static void (*const sum_some_rows[])(const bf16 *, const bf16 *, float *, long, long, long, int, const char *, int) = {
	0, sum_1, sum_2, sum_3, sum_4, sum_5, sum_6, sum_7, sum_8};
static void (*const sum_few_rows[])(const bf16 *, const bf16 *, float *, long, long, int) = {0, few_1, few_2, few_3, few_4};

#elif defined(LEVEL_PORTABLE)
#define SUM_ROWS 4
#else
#include "tilefma.h"
#endif
#if !defined(LEVEL_BF16)
#include "matrixsum.h"
#endif

static void block_sums_meanwhile(const bf16 *a, const bf16 *b, float *c, long ldc, long steps, long rows, long cols, int zero, struct meanwhile *w) {
#if !defined(LEVEL_BF16)
	if (in_matrix) {
		matrix_sums(a, b, c, ldc, steps, rows, cols, zero);
		if (w) w->next += w->ask * steps * LINE, store_rows(w, w->left);
		return;
	}
#endif
	const unsigned mode = flushing();
	rows = rows < BLOCK ? rows : BLOCK;
	const long strips = (rows + SUM_ROWS - 1) / SUM_ROWS;
	const char *next = w ? w->next : 0, *end = w ? next + w->ask * steps * 64 : 0;
	long s = 0, r = 0;
#if defined(LEVEL_PAIRS)
	if (strips == 1 && rows <= FEW_ROWS && cols > TILE) {
		sum_few_rows[rows](a, b, c, ldc, steps, zero);
		s = 1, next = end;
	}
	if (!w && cols > TILE) next = (const char *)(b + steps * STEP), end = next + steps * STEP * sizeof *b;
#endif
#if !defined(LEVEL_PORTABLE)
	// Strips prefetch line by line while they multiply, one line for each pair of terms, until all
	// lines are on their way: many at once would evict lines that the strip itself needs, and wait
	// for each other. One strip alone takes two lines for each pair.
	const int lines = strips == 1 ? 2 : 1;
	const int paced = cols > TILE && (!w || w->ask >= TILE);
	for (; s < strips; s++) {
		const long n = (rows - r + strips - s - 1) / (strips - s);
		const char *from = paced && next < end ? next : 0;
		if (from) next += steps * TILE * lines * LINE;
		for (const char *some = next + (end - next) / (strips - s); !paced && next < some; next += 64) __builtin_prefetch(next, 0, 2);
		sum_some_rows[n](a + r * TERMS, b, c + r * ldc, ldc, steps, cols, zero, from, lines);
		r += n;
	}
	next = end;
#else
	for (; s < strips; s++, r += SUM_ROWS) {
		for (const char *some = next + (end - next) / (strips - s); next < some; next += 64) __builtin_prefetch(next, 0, 2);
		for (long j = 0; j < BLOCK && j < cols; j += TILE)
			four_rows(a + r * TERMS, b + j * TERMS, c + r * ldc + j, ldc, steps, zero);
	}
#endif
	not_flushing(mode);
	if (w) w->next = next, store_rows(w, w->left);
}

static void block_sums(const bf16 *a, const bf16 *b, float *c, long ldc, long steps, long rows, long cols, int zero) {
	block_sums_meanwhile(a, b, c, ldc, steps, rows, cols, zero, 0);
}

#endif

// transpose_pairs sets out [16][16] to x [16][16] transposed, in elements of 32 bits.
#if defined(LEVEL_AVX512)
INLINE void transpose_pairs(bf16 *out, const bf16 *x) {
	__m512i r[16], t[16];
#pragma GCC unroll 16
	for (int i = 0; i < 16; i++) r[i] = _mm512_loadu_si512(x + i * 32);
#pragma GCC unroll 8
	for (int i = 0; i < 8; i++) {
		t[2 * i] = _mm512_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
		t[2 * i + 1] = _mm512_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
	}
#pragma GCC unroll 4
	for (int i = 0; i < 4; i++) {
		r[4 * i] = _mm512_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
		r[4 * i + 1] = _mm512_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
		r[4 * i + 2] = _mm512_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
		r[4 * i + 3] = _mm512_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
	}
#pragma GCC unroll 4
	for (int i = 0; i < 4; i++) {
		t[i] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
		t[i + 4] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xdd);
		t[i + 8] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
		t[i + 12] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xdd);
	}
#pragma GCC unroll 8
	for (int i = 0; i < 8; i++) {
		_mm512_storeu_si512(out + i * 32, _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88));
		_mm512_storeu_si512(out + (i + 8) * 32, _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd));
	}
}
#elif defined(LEVEL_AVX2)
INLINE void transpose_pairs(bf16 *out, const bf16 *x) {
	for (int i = 0; i < 16; i += 8)
		for (int j = 0; j < 16; j += 8) {
			__m256 r[8];
#pragma GCC unroll 8
			for (int k = 0; k < 8; k++) r[k] = _mm256_loadu_ps((const float *)(x + (i + k) * 32 + 2 * j));
			transpose8(r);
#pragma GCC unroll 8
			for (int k = 0; k < 8; k++) _mm256_storeu_ps((float *)(out + (j + k) * 32 + 2 * i), r[k]);
		}
}
#else
INLINE void transpose_pairs(bf16 *out, const bf16 *x) {
	uint32_t t;
	for (int i = 0; i < 16; i++)
		for (int j = 0; j < 16; j++) {
			memcpy(&t, x + (i * 16 + j) * 2, 4);
			memcpy(out + (j * 16 + i) * 2, &t, 4);
		}
}
#endif

// Terms that a step does not have. In a tile of rows they are -0, in one of columns +0: their products are -0, the one
// number that changes no sum, not even -0.
#define NO_ROW_TERM 0x8000
#define NO_COLUMN_TERM 0

INLINE void fill_terms(bf16 *out, const bf16 with) {
	for (int i = 0; i < TERMS; i++) out[i] = with;
}

// rows16 fills a tile with min(rows, 16) rows of min(terms, 32) elements of x, from
// element `at`, rows ld_ apart; their other terms are `none`. h says whether x is BF16.
INLINE void rows16(bf16 *out, const void *x, long at, long ld_, long rows, long terms, const int h, const bf16 none) {
	for (long r = 0; r < TILE; r++, out += TERMS) {
		if (r >= rows) {
			fill_terms(out, none);
		} else if (terms >= TERMS) {
#if defined(LEVEL_AVX512)
			_mm512_storeu_si512(out, in_pairs(h_load2(x, at + r * ld_, h)));
			continue;
#endif
			h_store(out, ld(x, at + r * ld_, LANES, h));
			h_store(out + LANES, ld(x, at + r * ld_ + LANES, LANES, h));
		} else {
			fill_terms(out, none);
			h_storen(out, ld(x, at + r * ld_, lanes_left(terms), h), lanes_left(terms));
			if (terms > LANES) h_storen(out + LANES, ld(x, at + r * ld_ + LANES, (int)terms - LANES, h), (int)terms - LANES);
#if defined(LEVEL_PAIRS)
			_mm512_storeu_si512(out, in_pairs(_mm512_loadu_si512(out)));
#endif
		}
	}
}

// store_terms stores 32 terms of a row of a tile, rounded; load_terms loads them in their
// original order.
INLINE void store_terms(bf16 *out, vf x, vf y) {
#if defined(LEVEL_AVX512)
	_mm512_storeu_si512(out, in_pairs(v_narrow2(x, y)));
#else
	h_store(out, x), h_store(out + LANES, y);
#endif
}
INLINE void load_terms(bf16 *out, const bf16 *x) {
#if defined(LEVEL_PAIRS)
	_mm512_storeu_si512(out, in_terms(_mm512_loadu_si512(x)));
#else
	memcpy(out, x, TERMS * sizeof *out);
#endif
}

// pairs16 fills a tile of columns: pair p of column j is elements (FIRST(p), j) and
// (SECOND(p), j) of x, whose rows are terms. Other terms are `none`, as are columns past the given ones.
INLINE void pairs16(bf16 *out, const void *x, long at, long ld_, long terms, long cols, const int h, const bf16 none) {
	const int n = lanes_left(cols);
	for (long p = 0; p < TERMS / 2; p++, out += 2 * TILE) {
		bf16 first[TERMS], second[TERMS];
		fill_terms(first, none), fill_terms(second, none);
		if (FIRST(p) < terms) h_storen(first, ld(x, at + FIRST(p) * ld_, n, h), n);
		if (SECOND(p) < terms) h_storen(second, ld(x, at + SECOND(p) * ld_, n, h), n);
		for (int j = 0; j < TILE; j++) {
			out[2 * j] = first[j];
			out[2 * j + 1] = second[j];
		}
	}
}

// pairs16x2 is pairs16 for 32 columns: two tiles, one after the other.
INLINE void pairs16x2(bf16 *out, const void *x, long at, long ld_, long terms, const int h, const bf16 none) {
#if defined(LEVEL_AVX512)
	const __m512i rest = _mm512_set1_epi16((short)none);
	const __m512i lo = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
	const __m512i hi = _mm512_add_epi16(lo, _mm512_set1_epi16(16));
	for (long p = 0; p < TERMS / 2; p++, out += 2 * TILE) {
		const __m512i first = FIRST(p) < terms ? h_load2(x, at + FIRST(p) * ld_, h) : rest;
		const __m512i second = SECOND(p) < terms ? h_load2(x, at + SECOND(p) * ld_, h) : rest;
		_mm512_storeu_si512(out, _mm512_permutex2var_epi16(first, lo, second));
		_mm512_storeu_si512(out + TILE_LEN, _mm512_permutex2var_epi16(first, hi, second));
	}
#elif defined(LEVEL_AVX2)
	for (long p = 0; p < TERMS / 2; p++, out += 2 * TILE)
		for (int half = 0; half < 2; half++) {
			const __m256i rest = _mm256_set1_epi16((short)none);
			const __m256i first = FIRST(p) < terms ? h_load16(x, at + FIRST(p) * ld_ + half * TILE, h) : rest;
			const __m256i second = SECOND(p) < terms ? h_load16(x, at + SECOND(p) * ld_ + half * TILE, h) : rest;
			const __m256i lo = _mm256_unpacklo_epi16(first, second), hi = _mm256_unpackhi_epi16(first, second);
			_mm256_storeu_si256((__m256i *)(out + half * TILE_LEN), _mm256_permute2x128_si256(lo, hi, 0x20));
			_mm256_storeu_si256((__m256i *)(out + half * TILE_LEN + TILE), _mm256_permute2x128_si256(lo, hi, 0x31));
		}
#else
	pairs16(out, x, at, ld_, terms, TILE, h, none);
	pairs16(out + TILE_LEN, x, at + TILE, ld_, terms, TILE, h, none);
#endif
}

// rows32_of fills the steps of a block of rows (at most 32): tiles [steps][2].
INLINE void rows32_of(bf16 *out, const void *x, long at, long ld_, long rows, long terms, const int h) {
#if defined(LEVEL_AVX512)
	if (rows >= BLOCK && terms % TERMS == 0) { // row by row, in memory order
		for (long r = 0; r < BLOCK; r++) {
			bf16 *o = out + r * TERMS;
			for (long t = 0; t < terms; t += TERMS, o += STEP) _mm512_storeu_si512(o, in_pairs(h_load2(x, at + r * ld_ + t, h)));
		}
		return;
	}
#endif
	for (long t = 0; t < terms; t += TERMS, out += STEP) {
		rows16(out, x, at + t, ld_, rows, terms - t, h, NO_ROW_TERM);
		if (rows > TILE) rows16(out + TILE_LEN, x, at + t + TILE * ld_, ld_, rows - TILE, terms - t, h, NO_ROW_TERM);
	}
}

// cols32_of fills the steps of a block of columns (at most 32) whose terms run along the
// rows of x: row j of x is column j.
INLINE void cols32_of(bf16 *out, const void *x, long at, long ld_, long cols, long terms, const int h) {
	bf16 t[TILE_LEN] __attribute__((aligned(64)));
	for (long k = 0; k < terms; k += TERMS, out += STEP)
		for (int half = 0; half < 2 && half * TILE < cols; half++) {
			rows16(t, x, at + k + half * TILE * ld_, ld_, cols - half * TILE, terms - k, h, NO_COLUMN_TERM);
			transpose_pairs(out + half * TILE_LEN, t);
		}
}

// pairs32_of fills the steps of a block of columns whose terms are the rows of x.
INLINE void pairs32_of(bf16 *out, const void *x, long at, long ld_, long terms, long cols, const int h) {
	for (long k = 0; k < terms; k += TERMS, out += STEP) {
		if (cols >= BLOCK) {
			pairs16x2(out, x, at + k * ld_, ld_, terms - k, h, NO_COLUMN_TERM);
			continue;
		}
		pairs16(out, x, at + k * ld_, ld_, terms - k, cols, h, NO_COLUMN_TERM);
		if (cols > TILE) pairs16(out + TILE_LEN, x, at + k * ld_ + TILE, ld_, terms - k, cols - TILE, h, NO_COLUMN_TERM);
	}
}

// column_rows32_of fills one step of a block of rows whose terms are the rows of x: row
// i of the block is column i of x.
INLINE void column_rows32_of(bf16 *out, const void *x, long at, long ld_, long terms, long rows, const int h) {
	bf16 t[STEP] __attribute__((aligned(64)));
	if (rows >= BLOCK) {
		pairs16x2(t, x, at, ld_, terms, h, NO_ROW_TERM);
		transpose_pairs(out, t);
		transpose_pairs(out + TILE_LEN, t + TILE_LEN);
		return;
	}
	for (int half = 0; half < 2 && half * TILE < rows; half++) {
		pairs16(t, x, at + half * TILE, ld_, terms, rows - half * TILE, h, NO_ROW_TERM);
		transpose_pairs(out + half * TILE_LEN, t);
	}
}

// ONCE_EACH compiles f_of for float32 and for BF16 once. Blocks are large: a call is nothing to them.
#define ONCE_EACH(f)                                                                        \
	ONE_COPY void f(bf16 *out, const void *x, long at, long ld_, long n, long m, int h) { \
		if (h) f##_of(out, x, at, ld_, n, m, 1);                                            \
		else f##_of(out, x, at, ld_, n, m, 0);                                              \
	}
ONCE_EACH(rows32) ONCE_EACH(cols32) ONCE_EACH(pairs32) ONCE_EACH(column_rows32)

INLINE long steps_of(long terms) { return (terms + TERMS - 1) / TERMS; }

// tilefma.h: tile sums by fused multiply-adds of vectors, for processors that cannot multiply
// pairs.
//
// A step's even terms make one set of chains and its odd terms another, so that one set fills
// the registers at a time. Terms of rows are widened once per step, because a multiply-add
// broadcasts a float32 from memory for nothing; terms of columns are widened in registers.

#if defined(LEVEL_AVX512)
#define SUM_ROWS 11 // most rows: 22 chains, 2 vectors of columns, a broadcast; 32 rows are three strips
#define SUM_COLS 2  // vectors of columns
#else
#define SUM_ROWS 6 // 12 chains of 8 lanes, 2 vectors of columns, a broadcast
#define SUM_COLS 1
#endif

// sum_half sets R rows of V vectors to the chains of the even terms of a step, or of the odd ones.
// If next is not 0, each pair of terms prefetches the next 1 or 2 lines from there.
INLINE void sum_half(const int R, const int V, const int odd, vf acc[SUM_ROWS][SUM_COLS], const float wide[SUM_ROWS][TILE], const bf16 *b, const char *next, int lines) {
#pragma GCC unroll 16
	for (int r = 0; r < R; r++)
		for (int v = 0; v < V; v++) acc[r][v] = v_zero();
	for (int p = 0; p < TERMS / 2; p++) {
		if (next) {
			__builtin_prefetch(next + p * lines * LINE, 0, 2);
			if (lines > 1) __builtin_prefetch(next + (p * lines + 1) * LINE, 0, 2);
		}
		vf x[SUM_COLS];
		for (int v = 0; v < V; v++) {
			const bf16 *at = b + v * TILE_LEN + p * 2 * TILE;
			x[v] = odd ? h_odd(at) : h_even(at);
		}
#pragma GCC unroll 16
		for (int r = 0; r < R; r++) {
			const vf y = v_set1(wide[r][p]);
			for (int v = 0; v < V; v++) acc[r][v] = v_fma(y, x[v], acc[r][v]);
		}
	}
}

// sum_rows continues R rows of `groups` groups of V vectors of columns. Each step prefetches TILE
// times `lines` lines from next.
INLINE void sum_rows(const int R, const int V, const bf16 *a, const bf16 *b, float *c, long ldc, long steps, long groups, int zero, const char *next, int lines) {
	float wide[2][SUM_ROWS][TILE] __attribute__((aligned(64))), even[SUM_ROWS][SUM_COLS * LANES] __attribute__((aligned(64)));
	for (; steps > 0; steps--, a += STEP, b += STEP, zero = 0) {
#pragma GCC unroll 16
		for (int r = 0; r < R; r++) v_store(wide[0][r], h_even(a + r * TERMS)), v_store(wide[1][r], h_odd(a + r * TERMS));
		for (long j = 0; j < groups; j++) {
			const bf16 *from = b + j * V * TILE_LEN;
			vf acc[SUM_ROWS][SUM_COLS];
			sum_half(R, V, 0, acc, (const float(*)[TILE])wide[0], from, j == 0 ? next : 0, lines);
#pragma GCC unroll 16
			for (int r = 0; r < R; r++)
				for (int v = 0; v < V; v++) v_store(even[r] + v * LANES, acc[r][v]);
			sum_half(R, V, 1, acc, (const float(*)[TILE])wide[1], from, 0, 0);
#pragma GCC unroll 16
			for (int r = 0; r < R; r++)
				for (int v = 0; v < V; v++) {
					float *at = c + r * ldc + (j * V + v) * TILE;
					v_store(at, v_add(zero ? v_zero() : v_load(at), v_add(v_load(even[r] + v * LANES), acc[r][v])));
				}
		}
		if (next) next += TILE * lines * LINE;
	}
}

#if defined(LEVEL_AVX512)
#define SUM_SOME_ROWS(R)                                                                                                        \
	static __attribute__((noinline)) void sum_##R(const bf16 *a, const bf16 *b, float *c, long ldc, long steps, long cols, int zero, const char *next, int lines) { \
		if (cols > TILE) sum_rows(R, 2, a, b, c, ldc, steps, 1, zero, next, lines);                                              \
		else sum_rows(R, 1, a, b, c, ldc, steps, 1, zero, 0, 0);                                                               \
	}
SUM_SOME_ROWS(1) SUM_SOME_ROWS(2) SUM_SOME_ROWS(3) SUM_SOME_ROWS(4) SUM_SOME_ROWS(5) SUM_SOME_ROWS(6)
SUM_SOME_ROWS(7) SUM_SOME_ROWS(8) SUM_SOME_ROWS(9) SUM_SOME_ROWS(10) SUM_SOME_ROWS(11)
static void (*const sum_some_rows[])(const bf16 *, const bf16 *, float *, long, long, long, int, const char *, int) = {
	0, sum_1, sum_2, sum_3, sum_4, sum_5, sum_6, sum_7, sum_8, sum_9, sum_10, sum_11};
#else
#define SUM_SOME_ROWS(R)                                                                                                        \
	static __attribute__((noinline)) void sum_##R(const bf16 *a, const bf16 *b, float *c, long ldc, long steps, long cols, int zero, const char *next, int lines) { \
		sum_rows(R, 1, a, b, c, ldc, steps, cols > TILE ? 2 : 1, zero, next, lines);                                             \
	}
SUM_SOME_ROWS(1) SUM_SOME_ROWS(2) SUM_SOME_ROWS(3) SUM_SOME_ROWS(4) SUM_SOME_ROWS(5) SUM_SOME_ROWS(6)
static void (*const sum_some_rows[])(const bf16 *, const bf16 *, float *, long, long, long, int, const char *, int) = {
	0, sum_1, sum_2, sum_3, sum_4, sum_5, sum_6};
#endif

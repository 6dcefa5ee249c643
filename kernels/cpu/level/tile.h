// tile.h: the inner loops of all matmuls, attention scores, attention values and their
// gradients.
//
// A tile keeps mr rows × nv vectors of C in registers and runs the chain over k:
//
//	c[i][j] = fma(a[i][k], b[k][j], c[i][j])    k ascending
//
// so each element of C has the bits of the plain loop, however C is tiled.
//
// Operands are copied to scratch memory first, in one layout that serves both
// sides: a matrix X [rows, n] in panels of NR columns, [n/NR][rows][NR]. As B its
// panels are the columns of a tile; as A its rows are NR apart, or, transposed, its
// columns are adjacent. So all strides in the inner loops are constants, and a
// power-of-two row length of the caller cannot make the rows share a cache set.

enum tile_init {
	FROM_ZERO = 0,
	FROM_BIAS = 1, // c[i][j] starts from bias[j]
	FROM_C = 2,    // c[i][j] continues the chain in C
};

#if defined(__clang__)
#define ONE_COPY static __attribute__((noinline))
#else
#define ONE_COPY static __attribute__((noinline, noclone))
#endif

// BY_O3 marks what gains by -O3 at level AVX-512, up to a tenth: gradients of weights, capped scores and linear attention.
#if defined(LEVEL_AVX512) && !defined(__clang__)
#define BY_O3 __attribute__((optimize("O3")))
#else
#define BY_O3
#endif

#define ACC_START(row)                                                                             \
	vf acc[MR][NV];                                                                                \
	_Pragma("GCC unroll 16") for (int i = 0; i < mr; i++)                                          \
	_Pragma("GCC unroll 2") for (int j = 0; j < nv; j++) {                                         \
		if (init == FROM_ZERO) acc[i][j] = v_zero();                                               \
		else acc[i][j] = v_load((row) + j * LANES);                                                \
	}

// load_columns loads a row of a panel: nv vectors, or with half NR BF16 columns in pairs (bf16.h).
INLINE void load_columns(vf bv[NV], const void *b, const int nv, const int half) {
	if (half) {
		h_columns(bv, b);
		return;
	}
#pragma GCC unroll 2
	for (int j = 0; j < nv; j++) bv[j] = v_load((const float *)b + j * LANES);
}

// ADD_TERM adds one term to rows first..last of the tile; a's rows are am apart. half: B is BF16.
#define ADD_TERM(first, last, am, half)                                                                \
	do {                                                                                           \
		vf bv[NV];                                                                                 \
		load_columns(bv, b, nv, half);                                                             \
		_Pragma("GCC unroll 16") for (int i = 0; i < mr; i++) {                                    \
			if (i < (first) || i > (last)) continue;                                               \
			const vf av = v_set1(a[i * (am)]);                                                     \
			_Pragma("GCC unroll 2") for (int j = 0; j < nv; j++) acc[i][j] = v_fma(av, bv[j], acc[i][j]); \
		}                                                                                          \
	} while (0)

// rows_tile: a's rows are NR apart in panels of `panel` elements, and the tile walks k
// columns; b is one panel, BF16 with half. next is memory needed soon, which
// the tile prefetches to the second-level cache: if steady, ask bytes at each step, in one
// stream per line of a panel's row, k lines apart; else ask lines every ASK_STEPS steps.
// steady is an argument, not a constant: a test every two steps costs nothing, but a second copy of the loops
// costs compile time.
#define ASK_STEPS 8
#define LINE 64
INLINE void rows_tile(const int mr, const int nv, const int half, const float *a, long panel, const void *columns, float *c, long ldc, long k,
	enum tile_init init, const float *bias, const char *next, long ask, const int steady, const int past) {
	const char *b = columns;
	const long row = NR * (half ? sizeof(bf16) : sizeof(float)), second = k * LINE;
	for (int i = 0; ask && !past && i < mr; i++) // prefetch C, so that it arrives before it is written
		for (int j = 0; j < nv; j++) __builtin_prefetch(c + i * ldc + j * LANES, 1);
	ACC_START(init == FROM_BIAS ? bias : c + i * ldc)
	for (; k >= NR; k -= NR) {
		for (long u = 0; u < NR; u += ASK_STEPS) {
			if (!steady)
				for (const char *end = next + ask * LINE; next < end; next += LINE) __builtin_prefetch(next, 0, 2);
			for (long t = 0; t < ASK_STEPS; t += 2) {
#pragma GCC unroll 2
				for (int s = 0; steady && s < 2; s++, next += ask) {
					__builtin_prefetch(next, 0, 2);
					if (nv > 1 && !half) __builtin_prefetch(next + second, 0, 2);
				}
#pragma GCC unroll 2
				for (int s = 0; s < 2; s++, a++, b += row) ADD_TERM(0, mr - 1, NR, half);
			}
		}
		a += panel - NR;
	}
	for (; k > 0; k--, a++, b += row) ADD_TERM(0, mr - 1, NR, half);
#pragma GCC unroll 16
	for (int i = 0; i < mr; i++)
#pragma GCC unroll 2
		for (int j = 0; j < nv; j++) {
			if (past) v_stream(c + i * ldc + j * LANES, acc[i][j]);
			else v_store(c + i * ldc + j * LANES, acc[i][j]);
		}
}

// add_tile adds to C, instead of setting it: the tile's rows are adjacent columns of a's rows, MR
// wide, and the chain runs down k of them.
INLINE void add_tile(const int mr, const int nv, const float *a, const float *b, float *c, long ldc, long k) {
	const enum tile_init init = FROM_ZERO;
	ACC_START(c)
	for (; k > 0; k--, a += MR, b += NR) ADD_TERM(0, mr - 1, 1, 0);
#pragma GCC unroll 16
	for (int i = 0; i < mr; i++)
#pragma GCC unroll 2
		for (int j = 0; j < nv; j++) {
			float *p = c + i * ldc + j * LANES;
			v_store(p, v_add(v_load(p), acc[i][j]));
		}
}

// One function per number of rows, so that the tile stays in registers.
#define TILE_ROWS(R)                                                                               \
	ONE_COPY void rows_##R(const float *a, long panel, const void *b, float *c, long ldc, long k, \
		enum tile_init init, const float *bias, const char *next, long ask, int steady, int past) {         \
		rows_tile(R, NV, 0, a, panel, b, c, ldc, k, init, bias, next, ask, steady, past);                  \
	}                                                                                              \
	ONE_COPY void half_##R(const float *a, long panel, const void *b, float *c, long ldc, long k, \
		enum tile_init init, const float *bias, const char *next, long ask, int steady, int past) {         \
		rows_tile(R, NV, 1, a, panel, b, c, ldc, k, init, bias, next, ask, steady, past);                  \
	}                                                                                              \
	ONE_COPY void scores_##R(const float *a, long panel, const float *b, float *c, long k, int n) { \
		if (NV == 1 || n > LANES) rows_tile(R, NV, 0, a, panel, b, c, NR, k, FROM_ZERO, 0, 0, 0, 0, 0);     \
		else rows_tile(R, 1, 0, a, panel, b, c, NR, k, FROM_ZERO, 0, 0, 0, 0, 0);                           \
	}                                                                                              \
	BY_O3 ONE_COPY void blocks_##R(const float *a, const float *b, float *c, long ldc,                   \
		const int32_t *block, long blocks) {                                                       \
		for (int i = 0; i < R; i++)                                                                \
			for (int j = 0; j < NV; j++) __builtin_prefetch(c + i * ldc + j * LANES, 1);           \
		for (long u = 0; u < blocks; u++) {                                                        \
			const long r = block[u] - block[0];                                                    \
			add_tile(R, NV, a + r * MR, b + r * NR, c, ldc, block[u + 1] - block[u]);              \
		}                                                                                          \
	}

TILE_ROWS(1)
TILE_ROWS(2)
TILE_ROWS(3)
TILE_ROWS(4)
#if MR >= 6
TILE_ROWS(5)
TILE_ROWS(6)
#endif
#if MR >= 14
TILE_ROWS(7)
TILE_ROWS(8)
TILE_ROWS(9)
TILE_ROWS(10)
TILE_ROWS(11)
TILE_ROWS(12)
TILE_ROWS(13)
TILE_ROWS(14)
#endif

#if MR >= 14
#define ALL_ROWS(f) 0, f##_1, f##_2, f##_3, f##_4, f##_5, f##_6, f##_7, f##_8, f##_9, f##_10, f##_11, f##_12, f##_13, f##_14
#elif MR >= 6
#define ALL_ROWS(f) 0, f##_1, f##_2, f##_3, f##_4, f##_5, f##_6
#else
#define ALL_ROWS(f) 0, f##_1, f##_2, f##_3, f##_4
#endif

typedef void (*rows_function)(const float *, long, const void *, float *, long, long, enum tile_init,
	const float *, const char *, long, int, int);
static const rows_function rows_tiles[MR + 1] = {ALL_ROWS(rows)}, half_tiles[MR + 1] = {ALL_ROWS(half)};
static void (*const scores_tiles[MR + 1])(const float *, long, const float *, float *, long, int) = {ALL_ROWS(scores)};
static void (*const blocks_tiles[MR + 1])(const float *, const float *, float *, long, const int32_t *, long) = {
	ALL_ROWS(blocks)};
INLINE long round_up(long n, long to) { return (n + to - 1) / to * to; }

// strip_count returns the number of strips of at most MR rows in m rows; strip s begins
// at row strip_at(m, strips, s).
INLINE long strip_count(long m) { return (m + MR - 1) / MR; }

// copy_tile copies rows × n of a tile.
ONE_COPY void copy_tile(float *out, long ldo, const float *x, long ldx, long rows, int n) {
	for (long i = 0; i < rows; i++)
		for (int j = 0; j < n; j += LANES) v_storet(out + i * ldo + j, v_loadt(x + i * ldx + j, n - j), n - j);
}

// ask_row prefetches n elements of row i of x, if there is such a row. The processor does
// not foresee rows that are far apart. Copies ask rows_ahead rows before they read: 1024
// elements, about as many as are copied while memory answers.
INLINE void ask_row(const float *x, long ldx, long i, long m, long n) {
	for (long j = 0; i < m && j < n; j += LANES) __builtin_prefetch(x + i * ldx + j, 0, 2);
}
INLINE long rows_ahead(long n) { return 2 + 1024 / (n + 1); }

// put_panels copies x [m,n] (rows ldx apart) to panels [n/NR][rows][NR]. Elements past n in
// the last panel are left alone.
INLINE void put_panels_here(float *out, long rows, const float *x, long ldx, long m, long n) {
	const long ahead = rows_ahead(n);
	for (long i = 0; i < m; i++) {
		const float *xi = x + i * ldx;
		float *o = out + i * NR;
		ask_row(x, ldx, i + ahead, m, n);
		long j = 0;
		for (; j + NR <= n; j += NR, o += rows * NR)
			for (int v = 0; v < NV; v++) v_store(o + v * LANES, v_load(xi + j + v * LANES));
		for (int v = 0; j < n; j += LANES, v++) v_storet(o + v * LANES, v_loadt(xi + j, (int)(n - j)), (int)(n - j));
	}
}

ONE_COPY void put_panels(float *out, long rows, const float *x, long ldx, long m, long n) { put_panels_here(out, rows, x, ldx, m, n); }

// put_transposed copies x [m,n] (rows ldx apart), transposed, to panels
// [m/NR][n][NR]; elements past m in the last panel become 0.
INLINE void put_transposed_of(float *out, const void *x, long ldx, long m, long n, const int half) {
	for (long i = 0; i < round_up(m, NR); i += LANES) {
		float *o = out + i / NR * n * NR + i % NR;
		const int rows = m - i < LANES ? (m > i ? (int)(m - i) : 0) : LANES;
		for (int t = 0; !half && t < LANES; t++) ask_row(x, ldx, i + LANES + t, m, n);
		for (long j = 0; j < n; j += LANES) {
			const int w = n - j < LANES ? (int)(n - j) : LANES;
			vf r[LANES];
			if (rows == LANES && w == LANES) {
#pragma GCC unroll 16
				for (int t = 0; t < LANES; t++) r[t] = ld(x, (i + t) * ldx + j, LANES, half);
				v_transpose(r);
#pragma GCC unroll 16
				for (int t = 0; t < LANES; t++) v_store(o + (j + t) * NR, r[t]);
				continue;
			}
			for (int t = 0; t < LANES; t++) r[t] = t < rows ? ld(x, (i + t) * ldx + j, w, half) : v_zero();
			v_transpose(r);
			for (int t = 0; t < w; t++) v_store(o + (j + t) * NR, r[t]);
		}
	}
}
static void put_transposed(float *out, const float *x, long ldx, long m, long n) { put_transposed_of(out, x, ldx, m, n, 0); }
static void put_widened(float *out, const bf16 *x, long ldx, long m, long n) { put_transposed_of(out, x, ldx, m, n, 1); }

// K_BLOCK is how much of a chain runs before the next tile: a panel of B that long
// fills two thirds of the first-level cache.
#define K_BLOCK 256

// With at most STEADY_STRIPS strips, memory limits how fast panels of B arrive, and an
// even stream of prefetches uses it best. With more strips, prefetches are few and most
// hit the cache already: in bunches they cost less.
#define STEADY_STRIPS 5

// With at most FEW_ROWS rows the processor foresees the next lines of B by itself, as fast as
// memory delivers them; prefetches cost a tenth (float32) to a third (BF16) of that rate.
#define FEW_ROWS 4

// panel_row returns the bytes in a row of a panel.
INLINE long panel_row(const struct factor *b) { return NR * (b->form == PANELS_BF16 || b->form == ACROSS_BF16 ? sizeof(bf16) : sizeof(float)); }

// Rows needed next, line elements apart: two pieces of NR elements each, the second `apart`
// elements after the first.
struct beside { const float *rows; long line, apart; };

INLINE void ask_beside(const struct beside *beside, long i, long rows) {
	for (long r = i; r < i + rows; r++)
		for (int j = 0; j < NR; j += LANES) {
			__builtin_prefetch(beside->rows + r * beside->line + j, 0, 2);
			__builtin_prefetch(beside->rows + r * beside->line + beside->apart + j, 0, 2);
		}
}

// take_block transposes a block of NR × NR: rows of a panel become columns, zeros past the given
// number of rows.
INLINE void take_block(float *out, const void *from, long rows, const int half) {
	for (int i = 0; i < NR; i += LANES) {
		vf r[NV][LANES];
		for (int t = 0; t < LANES; t++) {
			vf x[NV];
			if (i + t < rows) load_columns(x, (const char *)from + (i + t) * NR * (half ? sizeof(bf16) : sizeof(float)), NV, half);
			else
				for (int v = 0; v < NV; v++) x[v] = v_zero();
			for (int v = 0; v < NV; v++) r[v][t] = x[v];
		}
		for (int v = 0; v < NV; v++) {
			v_transpose(r[v]);
			for (int t = 0; t < LANES; t++) v_store(out + (v * LANES + t) * NR + i, r[v][t]);
		}
	}
}
// across_block returns the block with the columns of panel p and the terms from k, a multiple of
// NR.
INLINE const char *across_block(const struct factor *b, long p, long k) {
	return (const char *)b->at + (k / NR * b->columns + p * NR) * panel_row(b);
}

// take_across sets out [kn][NR] to the terms from k0, a multiple of NR, of the columns of panel p
// of b, which is stored in panels of its terms. It writes terms up to a multiple of NR.
static void take_across(float *out, const struct factor *b, long p, long k0, long kn) {
	const long left = b->columns - p * NR, rows = left < NR ? left : NR;
	for (long k = 0; k < kn; k += NR) {
		const char *from = across_block(b, p, k0 + k);
		if (b->form == ACROSS_BF16) take_block(out + k * NR, from, rows, 1);
		else take_block(out + k * NR, from, rows, 0);
	}
}

// ask_across prefetches the part of panel p with the terms from k0: piece s of `pieces`.
INLINE void ask_across(const struct factor *b, long p, long k0, long kn, long s, long pieces) {
	const long lines = NR * panel_row(b) / LINE, all = kn / NR * lines;
	if (p * NR + NR > b->columns || k0 + kn > b->terms) return; // the last block
	for (long i = s * all / pieces; i < (s + 1) * all / pieces; i++)
		__builtin_prefetch(across_block(b, p, k0 + i / lines * NR) + i % lines * LINE, 0, 2);
}

// strip_product sets, or continues, mr rows of n columns of C from a part of A and of a panel of
// B, kn long, as rows_tile does; if n < NR, in a tile that it copies to C.
INLINE void strip_product(const rows_function *tiles, const float *a, long panel, const void *b, float *c, long ldc, long mr, int n, long kn,
	enum tile_init init, const float *bias, const char *next, long ask, int steady, int past) {
	float t[MR * NR];
	if (n == NR) {
		tiles[mr](a, panel, b, c, ldc, kn, init, bias, next, ask, steady, past);
		return;
	}
	if (init == FROM_C) copy_tile(t, NR, c, ldc, mr, n);
	tiles[mr](a, panel, b, t, NR, kn, init, bias, next, ask, steady, 0);
	copy_tile(c, ldc, t, NR, mr, n);
}

// across_product is panel_product of a B stored in panels of its terms: it transposes a part of
// the panel at a time and multiplies all strips by it.
ONE_COPY void across_product(const float *a, const struct factor *b, long p, long k0, long k, float *c, long ldc, long m, int n,
	const float *bias, enum tile_init init, long next_p, const struct beside *beside) {
	float room[K_BLOCK * NR] __attribute__((aligned(64)));
	const long strips = strip_count(m);
	for (long kb = 0; kb < k || kb == 0; kb += K_BLOCK, init = FROM_C) {
		const long kn = k - kb < K_BLOCK ? k - kb : K_BLOCK, last = kb + kn >= k;
		take_across(room, b, p, k0 + kb, kn);
		for (long s = 0; s < strips; s++) {
			const long i = strip_at(m, strips, s), mr = strip_at(m, strips, s + 1) - i;
			if (beside && kb == 0) ask_beside(beside, i, mr);
			ask_across(b, last ? next_p : p, last ? k0 : k0 + kb + kn, last ? K_BLOCK : kn, s, strips);
			strip_product(rows_tiles, a + kb * m + i * NR, m * NR, room, c + i * ldc, ldc, mr, n, kn, init, bias, 0, 0, 0, 0);
		}
	}
}

// panel_product sets m rows of the n ≤ NR columns of panel p of C from A, in panels of m
// rows, and k terms of B from k0. Meanwhile it prefetches the next part of B, at the end
// next_p's first, spread evenly over the strips, so that B arrives as fast as it is used.
// With few rows it prefetches nothing. With past, k is at most K_BLOCK and C goes past the
// caches if it is NR wide.
static void panel_product(const float *a, const struct factor *b, long p, long k0, long k, float *c, long ldc, long m, int n,
	const float *bias, enum tile_init init, long next_p, int past, const struct beside *beside) {
	float tb[NR];
	if (bias && n < NR) {
		copy_tile(tb, 0, bias, 0, 1, n);
		bias = tb;
	}
	if (b->form >= ACROSS_F32) {
		across_product(a, b, p, k0, k, c, ldc, m, n, bias, init, next_p, beside);
		return;
	}
	const long strips = strip_count(m), row = panel_row(b);
	const int few = m <= FEW_ROWS, steady = !few && strips <= STEADY_STRIPS;
	// Bytes per step in one stream, or lines per ASK_STEPS steps.
	const long ask = few ? 0 : ((steady ? (row < LINE ? row : LINE) : ASK_STEPS * row / LINE) + strips - 1) / strips;
	const rows_function *tiles = b->form == PANELS_BF16 ? half_tiles : rows_tiles;
	const char *columns = (const char *)b->at + (p * b->terms + k0) * row, *next_panel = (const char *)b->at + (next_p * b->terms + k0) * row;
	for (long kb = 0; kb < k || kb == 0; kb += K_BLOCK, init = FROM_C) {
		const long kn = k - kb < K_BLOCK ? k - kb : K_BLOCK;
		const char *bk = columns + kb * row, *next = kb + kn < k ? bk + kn * row : next_panel;
		for (long s = 0; s < strips; s++) {
			const long i = strip_at(m, strips, s), mr = strip_at(m, strips, s + 1) - i;
			if (beside && kb == 0) ask_beside(beside, i, mr);
			strip_product(tiles, a + kb * m + i * NR, m * NR, bk, c + i * ldc, ldc, mr, n, kn, init, bias,
				next + s * ask * kn * (steady ? 1 : LINE / ASK_STEPS), ask, steady, past);
		}
	}
}

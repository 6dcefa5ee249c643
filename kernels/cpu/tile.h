// tile.h: the one inner loop that all matmuls, attention scores, attention
// values and their gradients run on.
//
// A tile keeps mr rows × nv vectors of C in registers and runs the chain over k:
//
//	c[i][j] = fma(a[i·am + k·ak], b[k·ldb + j], c[i][j])    k ascending
//
// so each element of C has the bits of the plain loop, however C is tiled.

enum tile_init {
	FROM_ZERO = 0,
	FROM_BIAS = 1, // c[i][j] starts from bias[j]
	FROM_C = 2,    // continues the chain in C
};

// The last vector of a tile with tail set has n mod LANES columns; memory past
// them is neither read nor written.
INLINE void tile(const int mr, const int nv, const int tail, const float *a, long am, long ak,
	const float *b, long ldb, float *c, long ldc, long k, int n, enum tile_init init, const float *bias, int add) {
	vf acc[MR][NV];
	const int left = n - (nv - 1) * LANES;
#define LOAD(p, j) (tail && (j) == nv - 1 ? v_loadn((p) + (j) * LANES, left) : v_load((p) + (j) * LANES))
#pragma GCC unroll 16
	for (int i = 0; i < mr; i++)
#pragma GCC unroll 2
		for (int j = 0; j < nv; j++) {
			if (init == FROM_ZERO) acc[i][j] = v_zero();
			else if (init == FROM_BIAS) acc[i][j] = LOAD(bias, j);
			else acc[i][j] = LOAD(c + i * ldc, j);
		}
	for (long t = 0; t < k; t++) {
		vf bv[NV];
#pragma GCC unroll 2
		for (int j = 0; j < nv; j++) bv[j] = LOAD(b, j);
#pragma GCC unroll 16
		for (int i = 0; i < mr; i++) {
			const vf av = v_set1(a[i * am]);
#pragma GCC unroll 2
			for (int j = 0; j < nv; j++) acc[i][j] = v_fma(av, bv[j], acc[i][j]);
		}
		a += ak;
		b += ldb;
	}
#pragma GCC unroll 16
	for (int i = 0; i < mr; i++)
#pragma GCC unroll 2
		for (int j = 0; j < nv; j++) {
			float *p = c + i * ldc;
			if (add) acc[i][j] = v_add(LOAD(p, j), acc[i][j]);
			if (tail && j == nv - 1) v_storen(p + j * LANES, acc[i][j], left);
			else v_store(p + j * LANES, acc[i][j]);
		}
#undef LOAD
}

#if defined(__clang__)
#define ONE_COPY static __attribute__((noinline))
#else
#define ONE_COPY static __attribute__((noinline, noclone))
#endif

// One function per number of rows, so that the tile stays in registers. Columns
// come in full tiles of NR, in one vector, or as a masked tail.
#define TILE_ROWS(R)                                                                                       \
	ONE_COPY void tile_##R(const float *a, long am, long ak, const float *b,         \
		long ldb, float *c, long ldc, long k, int n, enum tile_init init, const float *bias, int add) {        \
		if (n == NR) tile(R, NV, 0, a, am, ak, b, ldb, c, ldc, k, n, init, bias, add);                         \
		else if (n == LANES) tile(R, 1, 0, a, am, ak, b, ldb, c, ldc, k, n, init, bias, add);                  \
		else if (n < LANES) tile(R, 1, 1, a, am, ak, b, ldb, c, ldc, k, n, init, bias, add);                   \
		else tile(R, NV, 1, a, am, ak, b, ldb, c, ldc, k, n, init, bias, add);                                 \
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

typedef void (*tile_fn)(const float *, long, long, const float *, long, float *, long, long, int,
	enum tile_init, const float *, int);

static const tile_fn tiles[MR + 1] = {
	0, tile_1, tile_2, tile_3, tile_4,
#if MR >= 6
	tile_5, tile_6,
#endif
#if MR >= 14
	tile_7, tile_8, tile_9, tile_10, tile_11, tile_12, tile_13, tile_14,
#endif
};

// strip computes rows 0..m-1 of one strip of n ≤ NR columns of C.
INLINE void strip(const float *a, long am, long ak, const float *b, long ldb, float *c, long ldc,
	long m, long k, int n, enum tile_init init, const float *bias, int add) {
	long i = 0;
	for (; i + MR <= m; i += MR)
		tiles[MR](a + i * am, am, ak, b, ldb, c + i * ldc, ldc, k, n, init, bias, add);
	if (i < m)
		tiles[m - i](a + i * am, am, ak, b, ldb, c + i * ldc, ldc, k, n, init, bias, add);
}

// block computes C [m,n] from A [m,k] (strides am, ak) and B [k,n] (stride ldb).
static void block(const float *a, long am, long ak, const float *b, long ldb, float *c, long ldc,
	long m, long k, long n, enum tile_init init, int add) {
	for (long j = 0; j < n; j += NR)
		strip(a, am, ak, b + j, ldb, c + j, ldc, m, k, n - j < NR ? (int)(n - j) : NR, init, 0, add);
}

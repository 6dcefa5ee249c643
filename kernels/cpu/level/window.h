// window.h: the inner loops of attention whose rows see different keys, because they are causal or
// have a window, on strips with no more rows than the window, so that all rows of a tile take
// part in some step. Only the triangles at both ends branch.

// first_seen returns the first position that position i sees.
INLINE long first_seen(long i, long window) { return i < window ? 0 : i + 1 - window; }

// end_seen returns one past the last of T positions that position i sees. ahead says how many behind it, null for
// none.
INLINE long end_seen(long i, long T, int full, const int32_t *ahead) { return full ? T : i + 1 + (ahead ? ahead[i] : 0); }

// run_end returns one past the last of T positions from i on that see alike: each up to itself, or all up to one end.
INLINE long run_end(long i, long T, int full, const int32_t *ahead) {
	if (full || !ahead) return T;
	if (ahead[i] > 0) return end_seen(i, T, 0, ahead);
	while (i < T && ahead[i] == 0) i++;
	return i;
}

// first_seeing returns the first position behind a prefix that sees position t.
INLINE long first_seeing(long t, long prefix, int full, const int32_t *ahead) {
	long i = full || t < prefix ? prefix : t;
	while (ahead && i > prefix && ahead[i - 1] > 0) i--;
	return i;
}

// window_strips is strip_count with strips of at most window rows.
INLINE long window_strips(long m, long window) { return window < MR ? (m + window - 1) / window : strip_count(m); }

// window_tile is a rows_tile that starts from 0 and in which each row begins one step after
// the row before: b's rows from..to-1, with `lead` steps until all rows take part, and if causal
// a step more for each row than for the one before. a and b point to row from.
INLINE void window_tile(const int mr, const float *a, long panel, const float *b, float *c, long ldc, long from, long to,
	int lead, int causal, const float *scale) {
	const int nv = NV;
	const enum tile_init init = FROM_ZERO;
	long t = from % NR;
	ACC_START(c)
#define NEXT (a += ++t % NR == 0 ? panel - NR + 1 : 1, b += NR)
	for (int begun = mr - lead; begun < mr; begun++, NEXT) ADD_TERM(0, begun - 1, NR, 0);
	for (long k = to - from - lead, n; k > 0; k -= n) {
		n = NR - t % NR < k ? NR - t % NR : k;
#pragma GCC unroll 2
		for (long s = 0; s < n; s++, a++, b += NR) ADD_TERM(0, mr - 1, NR, 0);
		t += n;
		if (t % NR == 0) a += panel - NR;
	}
	if (causal) {
#pragma GCC unroll 16
		for (int s = 1; s < mr; s++, NEXT) ADD_TERM(s, mr - 1, NR, 0);
	}
#undef NEXT
#pragma GCC unroll 16
	for (int i = 0; i < mr; i++)
#pragma GCC unroll 2
		for (int j = 0; j < NV; j++)
			v_store(c + i * ldc + j * LANES, scale ? v_mul(acc[i][j], v_set1(scale[i])) : acc[i][j]);
}

// window_columns: the tile's rows are adjacent columns of a panel, and the chain runs down k of the
// panel's rows. With causal, row i of the tile starts at step i. Then `more` steps follow: first
// for the rows from `ended`, then for one row fewer at each step.
INLINE void window_columns(const int mr, const float *a, const float *b, float *c, long ldc, long k, enum tile_init init,
	int causal, int ended, long more) {
	const int nv = NV;
	ACC_START(c + i * ldc)
	if (causal) {
#pragma GCC unroll 16
		for (int s = 0; s < mr - 1; s++, a += NR, b += NR) ADD_TERM(0, s, 1, 0);
		k -= mr - 1;
	}
	for (; k > 0; k--, a += NR, b += NR) ADD_TERM(0, mr - 1, 1, 0);
	for (; more > 0; more--, ended++, a += NR, b += NR) ADD_TERM(ended, mr - 1, 1, 0);
#pragma GCC unroll 16
	for (int i = 0; i < mr; i++)
#pragma GCC unroll 2
		for (int j = 0; j < NV; j++) v_store(c + i * ldc + j * LANES, acc[i][j]);
}

#define WINDOW_ROWS(R)                                                                             \
	ONE_COPY void window_##R(const float *a, long panel, const float *b, float *c, long ldc, long from, long to, int lead, \
		int causal, const float *scale) { window_tile(R, a, panel, b, c, ldc, from, to, lead, causal, scale); } \
	ONE_COPY void window_columns_##R(const float *a, const float *b, float *c, long ldc, long k,   \
		enum tile_init init, int causal, int ended, long more) {                                   \
		window_columns(R, a, b, c, ldc, k, init, causal, ended, more);                             \
	}

WINDOW_ROWS(1)
WINDOW_ROWS(2)
WINDOW_ROWS(3)
WINDOW_ROWS(4)
#if MR >= 6
WINDOW_ROWS(5)
WINDOW_ROWS(6)
#endif
#if MR >= 14
WINDOW_ROWS(7)
WINDOW_ROWS(8)
WINDOW_ROWS(9)
WINDOW_ROWS(10)
WINDOW_ROWS(11)
WINDOW_ROWS(12)
WINDOW_ROWS(13)
WINDOW_ROWS(14)
#endif

static void (*const window_tiles[MR + 1])(const float *, long, const float *, float *, long, long, long, int, int, const float *) = {
	ALL_ROWS(window)};
static void (*const window_columns_tiles[MR + 1])(const float *, const float *, float *, long, long, enum tile_init, int, int,
	long) = {ALL_ROWS(window_columns)};

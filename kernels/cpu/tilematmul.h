// tilematmul.h: linear maps of class "cpu/bf16", and their gradients.

// tile_pack packs panels lo..hi of BLOCK columns of w [rows,cols], rounded: out
// [panels][steps][STEP]. Columns of the product are w's rows and its terms w's
// columns, or with transposed the other way round.
static void tile_pack(const struct tile_pack_args *g, long lo, long hi, int tid) {
	(void)tid;
	for (long p = lo; p < hi; p++) {
		const long j = p * BLOCK;
		if (g->transposed) {
			bf16 *out = g->out + p * steps_of(g->rows) * STEP;
			memset(out, 0, steps_of(g->rows) * STEP * sizeof *out);
			pairs32(out, g->w, j, g->cols, g->rows, g->cols - j, 0);
		} else {
			bf16 *out = g->out + p * steps_of(g->cols) * STEP;
			memset(out, 0, steps_of(g->cols) * STEP * sizeof *out);
			cols32(out, g->w, j * g->cols, g->cols, g->rows - j, g->cols, 0);
		}
	}
}

#define PAST (1 << 20) // elements of an output that no second-level cache keeps

// put stores a block of sums [rows][cols] in c [·,ldc]. With past set, whole lines go
// past the caches: where the output is larger than these, reading each line first and
// evicting others for it costs more than the product.
INLINE void put(void *c, long at, long ldc, const float *sums, long rows, long cols, const int h, int past) {
#if defined(LEVEL_AVX512)
	if (h && cols == BLOCK) {
		bf16 *line = (bf16 *)c + at;
		if (past)
			for (long i = 0; i < rows; i++) _mm512_stream_si512((void *)(line + i * ldc), h_load2(sums, i * BLOCK, 0));
		else
			for (long i = 0; i < rows; i++) _mm512_storeu_si512(line + i * ldc, h_load2(sums, i * BLOCK, 0));
		return;
	}
#endif
	for (long i = 0; i < rows; i++)
		for (long j = 0; j < cols; j += LANES)
			st(c, at + i * ldc + j, v_load(sums + i * BLOCK + j), lanes_left(cols - j), h);
}

// tile_matmul computes unit u of c [m,n] = a [m,k] · B (+ bias). A unit is one block of
// rows × one group of panels. scratch: the rows as tiles.
static void tile_matmul(const struct tile_matmul_args *g, long u0, long u1, int tid) {
	const long steps = steps_of(g->k), panels = (g->n + BLOCK - 1) / BLOCK;
	bf16 *a = (bf16 *)(g->scratch + tid * g->scratch_len);
	float sums[BLOCK * BLOCK] __attribute__((aligned(64)));
	long packed = -1;
	const int past = g->m * g->n > PAST && (uintptr_t)g->c % 64 == 0 && g->n % BLOCK == 0;
	tiles_begin();
	for (long u = u0; u < u1; u++) {
		const long rb = u / g->panel_groups, pg = u % g->panel_groups;
		const long i0 = rb * g->row_block, i1 = i0 + g->row_block < g->m ? i0 + g->row_block : g->m;
		if (rb != packed) {
			for (long i = i0; i < i1; i += BLOCK) {
				bf16 *out = a + (i - i0) / BLOCK * steps * STEP;
				if (g->a_bf16) rows32(out, g->a, i * g->k, g->k, i1 - i, g->k, 1);
				else rows32(out, g->a, i * g->k, g->k, i1 - i, g->k, 0);
			}
			packed = rb;
		}
		const long p0 = pg * panels / g->panel_groups, p1 = (pg + 1) * panels / g->panel_groups;
		for (long p = p0; p < p1; p++) {
			const long j = p * BLOCK, cols = g->n - j < BLOCK ? g->n - j : BLOCK;
			for (long i = i0; i < i1; i += BLOCK) {
				const long rows = i1 - i < BLOCK ? i1 - i : BLOCK;
				if (g->bias)
					for (long c = 0; c < cols; c += LANES) {
						const vf v = v_loadt(g->bias + j + c, lanes_left(cols - c));
						for (long r = 0; r < rows; r++) v_store(sums + r * BLOCK + c, v);
					}
				block_sums(a + (i - i0) / BLOCK * steps * STEP, g->b + p * steps * STEP, sums, BLOCK, steps, rows, cols, !g->bias);
				if (g->c_bf16) put(g->c, i * g->n + j, g->n, sums, rows, cols, 1, past);
				else put(g->c, i * g->n + j, g->n, sums, rows, cols, 0, 0);
			}
		}
	}
	tiles_end();
#if defined(LEVEL_AVX512)
	if (past) _mm_sfence(); // before another thread is told that the work is done
#endif
}

// rows_of_tiles copies rows r.. (at most BLOCK) of a block of columns out of tiles of
// rows.
INLINE void rows_of_tiles(bf16 *out, const bf16 *tiles, long panels, long r, long rows, long panel) {
	const long in = BLOCK - r % BLOCK < rows ? BLOCK - r % BLOCK : rows; // those in the first tiles
	const bf16 *from = tiles + (r / BLOCK * panels + panel) * STEP;
	memcpy(out, from + r % BLOCK * TERMS, in * TERMS * sizeof *out);
	if (in < rows) memcpy(out + in * TERMS, from + panels * STEP, (rows - in) * TERMS * sizeof *out);
}

// tile_matmul_dw continues in dw [n,k] the tile sums of dout [m,n]ᵀ · x [m,k], a step
// being one piece of rows piece[2s]..piece[2s+1]. A unit is a block of dw, which stays
// in the second-level cache while the rows pass by, DW_PIECES pieces at a time.
// scratch: tiles of dout [n_block/BLOCK][DW_PIECES][STEP] and x [k_block/BLOCK][…].
static void tile_matmul_dw(const struct tile_dw_args *g, long u0, long u1, int tid) {
	bf16 *a = (bf16 *)(g->scratch + tid * g->scratch_len), *b = a + g->n_block / BLOCK * DW_PIECES * STEP;
	float sums[BLOCK * BLOCK] __attribute__((aligned(64)));
	bf16 t[STEP] __attribute__((aligned(64)));
	tiles_begin();
	for (long u = u0; u < u1; u++) {
		const long n0 = u / g->k_blocks * g->n_block, k0 = u % g->k_blocks * g->k_block;
		const long n1 = n0 + g->n_block < g->n ? n0 + g->n_block : g->n, k1 = k0 + g->k_block < g->k ? k0 + g->k_block : g->k;
		for (long s0 = 0; s0 < g->pieces; s0 += DW_PIECES) {
			const long steps = g->pieces - s0 < DW_PIECES ? g->pieces - s0 : DW_PIECES;
			for (long s = 0; s < steps; s++) {
				const long r = g->piece[2 * (s0 + s)], rows = g->piece[2 * (s0 + s) + 1] - r;
				for (long n = n0; n < n1; n += BLOCK) {
					bf16 *out = a + ((n - n0) / BLOCK * DW_PIECES + s) * STEP;
					if (g->dout_tiles) {
						rows_of_tiles(t, g->dout, (g->n + BLOCK - 1) / BLOCK, r, rows, n / BLOCK);
						column_rows32(out, t, 0, BLOCK, rows, n1 - n, 1);
					} else if (g->dout_bf16) column_rows32(out, g->dout, r * g->n + n, g->n, rows, n1 - n, 1);
					else column_rows32(out, g->dout, r * g->n + n, g->n, rows, n1 - n, 0);
				}
				for (long k = k0; k < k1; k += BLOCK) {
					bf16 *out = b + ((k - k0) / BLOCK * DW_PIECES + s) * STEP;
					if (g->x_bf16) pairs32(out, g->x, r * g->k + k, g->k, rows, k1 - k, 1);
					else pairs32(out, g->x, r * g->k + k, g->k, rows, k1 - k, 0);
				}
			}
			for (long n = n0; n < n1; n += BLOCK)
				for (long k = k0; k < k1; k += BLOCK) {
					const long rows = n1 - n < BLOCK ? n1 - n : BLOCK, cols = k1 - k < BLOCK ? k1 - k : BLOCK;
					float *dw = g->dw + n * g->k + k;
					const bf16 *ta = a + (n - n0) / BLOCK * DW_PIECES * STEP, *tb = b + (k - k0) / BLOCK * DW_PIECES * STEP;
					if (rows == BLOCK && cols == BLOCK) {
						block_sums(ta, tb, dw, g->k, steps, rows, cols, 0);
						continue;
					}
					for (long i = 0; i < rows; i++)
						for (long j = 0; j < cols; j += LANES)
							v_store(sums + i * BLOCK + j, v_loadt(dw + i * g->k + j, lanes_left(cols - j)));
					block_sums(ta, tb, sums, BLOCK, steps, rows, cols, 0);
					put(dw, 0, g->k, sums, rows, cols, 0, 0);
				}
		}
	}
	tiles_end();
}

// tile_bias_columns is bias_columns for dbias in dw of the arguments and block offsets in
// piece.
INLINE void tile_bias_columns(const int V, const struct tile_dw_args *g, long j, int n, const int h) {
	vf sum[BIAS_VECTORS], acc[BIAS_VECTORS];
	for (int v = 0; v < V; v++) sum[v] = v_loadt(g->dw + j + v * LANES, V == 1 ? n : LANES);
	for (long b = 0; b < g->pieces; b++) {
		for (int v = 0; v < V; v++) acc[v] = v_zero();
		for (long r = g->piece[b]; r < g->piece[b + 1]; r++)
			for (int v = 0; v < V; v++) acc[v] = v_add(acc[v], ld(g->dout, r * g->n + j + v * LANES, V == 1 ? n : LANES, h));
		for (int v = 0; v < V; v++) sum[v] = v_add(sum[v], acc[v]);
	}
	for (int v = 0; v < V; v++) v_storet(g->dw + j + v * LANES, sum[v], V == 1 ? n : LANES);
}

// tile_matmul_dbias is matmul_dbias on dout of either type.
static void tile_matmul_dbias(const struct tile_dw_args *g, long u0, long u1, int tid) {
	(void)tid;
	for (long u = u0; u < u1; u++) {
		const long end = (u + 1) * BIAS_VECTORS * LANES;
		long j = u * BIAS_VECTORS * LANES;
		if (end > g->n) {
			for (; j < g->n; j += LANES) tile_bias_columns(1, g, j, lanes_left(g->n - j), g->dout_bf16);
			continue;
		}
		if (g->dout_bf16) tile_bias_columns(BIAS_VECTORS, g, j, LANES, 1);
		else tile_bias_columns(BIAS_VECTORS, g, j, LANES, 0);
	}
}

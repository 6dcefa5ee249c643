// tilematmul.h: linear maps of class "cpu/bf16", and their gradients.

// tile_pack packs panels lo..hi of BLOCK columns of w [rows,cols], rounded: out
// [panels][steps][STEP]. Columns of the product are w's rows and its terms w's
// columns, or the reverse with transposed.
static void tile_pack(const struct tile_pack_args *g, long lo, long hi, int tid) {
	(void)tid;
	const void *w = (const void *)g->w;
	for (long p = lo; p < hi; p++) {
		const long j = p * BLOCK;
		if (g->transposed) {
			bf16 *out = g->out + p * steps_of(g->rows) * STEP;
			memset(out, 0, steps_of(g->rows) * STEP * sizeof *out);
			pairs32(out, w, j, g->cols, g->rows, g->cols - j, 0); // never BF16: such weights are frozen
		} else {
			bf16 *out = g->out + p * steps_of(g->cols) * STEP;
			memset(out, 0, steps_of(g->cols) * STEP * sizeof *out);
			cols32(out, w, j * g->cols, g->cols, g->rows - j, g->cols, g->w_bf16);
		}
	}
}

// take_column sets out [BLOCK] to the terms of column c in a step of packed columns.
INLINE void take_column(bf16 *out, const bf16 *step, long c) {
	const bf16 *from = step + c / TILE * TILE_LEN + c % TILE * 2;
	for (int p = 0; p < TERMS / 2; p++, from += 2 * TILE) out[FIRST(p)] = from[0], out[SECOND(p)] = from[1];
}

// tile_across packs panels lo..hi of out, the transpose of packed w: its columns are w's terms and
// its terms w's columns. w is [rows/BLOCK][cols/TERMS][STEP], in panels of rows.
static void tile_across(const struct tile_pack_args *g, long lo, long hi, int tid) {
	(void)tid;
	const long panels = steps_of(g->cols), steps = steps_of(g->rows);
	bf16 t[STEP] __attribute__((aligned(64)));
	for (long p = lo; p < hi; p++)
		for (long s = 0; s < steps; s++) {
			const bf16 *from = (const bf16 *)g->w + (s * panels + p) * STEP;
			for (long c = 0; c < BLOCK; c++) take_column(t + c * TERMS, from, c);
			pairs32(g->out + (p * steps + s) * STEP, t, 0, TERMS, BLOCK, BLOCK, 1);
		}
}

// tile_embed sets rows lo..hi of out to scale times columns of packed weights. It rounds the
// weights first, because not all levels flush subnormals to zero when they pack.
static void tile_embed(const struct embed_frozen_args *g, long lo, long hi, int tid) {
	(void)tid;
	bf16 t[TERMS];
	for (long i = lo; i < hi; i++) {
		const long id = g->ids[i], c = g->c, steps = steps_of(c);
		const bf16 *from = (const bf16 *)g->weight + id / BLOCK * steps * STEP;
		for (long s = 0; s < steps; s++) {
			take_column(t, from + s * STEP, id % BLOCK);
			for (long j = s * TERMS; j < c && j < (s + 1) * TERMS; j++) g->out[i * c + j] = g->scale * widen(round1(widen(t[j - s * TERMS])));
		}
	}
}

#define PAST (1 << 20) // elements in an output too large for any second-level cache: reading each
// line first and evicting others for it would cost more than the product

// put stores a block of sums [rows][cols] in c [·,ldc], rounded if h is set.
ONE_COPY void put(void *c, long at, long ldc, const float *sums, long rows, long cols, int h) {
	for (long i = 0; i < rows; i++)
		for (long j = 0; j < cols; j += LANES)
			st(c, at + i * ldc + j, v_load(sums + i * BLOCK + j), lanes_left(cols - j), h);
}

// tile_matmul computes unit u of c [m,n] = a [m,k] · B (+ bias). A unit is one block of
// rows × one group of panels. Chains longer than part steps are cut and continued later, so
// that the factors stay in the first two caches. While it multiplies a block, it rounds and
// stores the sums of the one before and prefetches the next panel.
// scratch: the rows as tiles, and if chains are cut the sums of the unit
// [panels][rows.many][BLOCK][BLOCK].
static void tile_matmul(const struct tile_matmul_args *g, long u0, long u1, int tid) {
	const long steps = steps_of(g->k), panels = (g->n + BLOCK - 1) / BLOCK, cut = g->part < steps;
	const long size = g->c_bf16 ? sizeof(bf16) : sizeof(float);
	bf16 *a = (bf16 *)(g->scratch + tid * g->scratch_len);
	float *kept = (float *)(a + g->rows.many * g->part * STEP);
	float once[2][BLOCK * BLOCK] __attribute__((aligned(64)));
	const int past = !g->near && g->m * g->n > PAST && (uintptr_t)g->c % 64 == 0 && g->n % BLOCK == 0;
	struct meanwhile w = {0};
	long turn = 0;
	tiles_begin();
	for (long u = u0; u < u1; u++) {
		const long rb = u / g->panel_groups, pg = u % g->panel_groups;
		const long i0 = tile_block_row(&g->rows, g->m, rb), i1 = tile_block_row(&g->rows, g->m, rb + 1);
		const long blocks = (i1 - i0 + BLOCK - 1) / BLOCK, ask = (STEP / TERMS + blocks - 1) / blocks;
		const long p0 = pg * panels / g->panel_groups, p1 = (pg + 1) * panels / g->panel_groups;
		for (long s0 = 0; s0 < steps; s0 += g->part) {
			const long part = steps - s0 < g->part ? steps - s0 : g->part, terms = g->k - s0 * TERMS < part * TERMS ? g->k - s0 * TERMS : part * TERMS;
			const int first = s0 == 0, last = s0 + part == steps;
			for (long b = 0; b < blocks; b++) {
				const long i = i0 + b * BLOCK, at = i * g->k + s0 * TERMS;
				rows32(a + b * part * STEP, g->a, at, g->k, i1 - i, terms, g->a_bf16);
			}
			for (long p = p0; p < p1; p++) {
				const long j = p * BLOCK, cols = g->n - j < BLOCK ? g->n - j : BLOCK;
				const bf16 *panel = g->b + (p * steps + s0) * STEP;
				const bf16 *next = p + 1 < p1 ? panel + steps * STEP : last ? panel : g->b + (p0 * steps + s0 + part) * STEP;
				for (long b = 0; b < blocks; b++) {
					const long i = i0 + b * BLOCK, rows = i1 - i < BLOCK ? i1 - i : BLOCK;
					float *sums = cut ? kept + ((p - p0) * blocks + b) * BLOCK * BLOCK : once[turn++ & 1];
					if (first && g->bias)
						for (long c = 0; c < cols; c += LANES) {
							const vf v = v_loadt(g->bias + j + c, lanes_left(cols - c));
							for (long r = 0; r < rows; r++) v_store(sums + r * BLOCK + c, v);
						}
					w.next = (const char *)(next + b * part * ask * TERMS), w.ask = ask;
					block_sums_meanwhile(a + b * part * STEP, panel, sums, BLOCK, part, rows, cols, first && !g->bias, &w);
					if (!last) continue;
					if (cols < BLOCK) {
						put(g->c, i * g->n + j, g->n, sums, rows, cols, g->c_bf16);
						continue;
					}
					w.sums = sums, w.out = (char *)g->c + (i * g->n + j) * size, w.line = g->n * size;
					w.left = rows, w.some = (BLOCK + part - 1) / part, w.h = g->c_bf16, w.past = past;
				}
			}
		}
		store_rows(&w, w.left);
	}
	tiles_end();
	if (past) v_streamed(); // before other threads learn that the work is done
}

// rows_of_tiles copies rows r.. (at most BLOCK) of a block of columns from tiles of
// rows.
INLINE void rows_of_tiles(bf16 *out, const bf16 *tiles, long panels, long r, long rows, long panel) {
	const long in = BLOCK - r % BLOCK < rows ? BLOCK - r % BLOCK : rows; // rows in the first tiles
	const bf16 *from = tiles + (r / BLOCK * panels + panel) * STEP;
	for (long i = 0; i < in; i++) load_terms(out + i * TERMS, from + (r % BLOCK + i) * TERMS);
	for (long i = in; i < rows; i++) load_terms(out + i * TERMS, from + panels * STEP + (i - in) * TERMS);
}

// take_sums fills sums [·/BLOCK][·/BLOCK][BLOCK][BLOCK] with rows n0..n1 and columns k0..k1
// of dw [·,k]; put_sums writes them back. A block of sums fills 64 consecutive cache lines,
// while rows of dw, a power of two apart, would share a few sets.
ONE_COPY void take_sums(float *sums, const float *dw, long k, long n0, long n1, long k0, long k1) {
	for (long n = n0; n < n1; n += BLOCK)
		for (long c = k0; c < k1; c += BLOCK, sums += BLOCK * BLOCK)
			for (long i = n; i < n1 && i < n + BLOCK; i++)
				for (long j = c; j < k1 && j < c + BLOCK; j += LANES)
					v_store(sums + (i - n) * BLOCK + j - c, v_loadt(dw + i * k + j, lanes_left(k1 - j)));
}
INLINE void put_sums(float *dw, const float *sums, long k, long n0, long n1, long k0, long k1) {
	const int past = (uintptr_t)dw % 64 == 0 && k % LANES == 0;
	for (long n = n0; n < n1; n += BLOCK)
		for (long c = k0; c < k1; c += BLOCK, sums += BLOCK * BLOCK)
			for (long i = n; i < n1 && i < n + BLOCK; i++)
				for (long j = c; j < k1 && j < c + BLOCK; j += LANES) {
					const vf x = v_load(sums + (i - n) * BLOCK + j - c);
					if (past) v_stream(dw + i * k + j, x);
					else v_storet(dw + i * k + j, x, lanes_left(k1 - j));
				}
}

// tile_matmul_dw continues the tile sums of dout [m,n]ᵀ · x [m,k] in dw [n,k]; step s is
// the piece of rows piece[2s]..piece[2s+1]. A unit is a block of dw, which stays in the
// second-level cache while the rows stream by, DW_PIECES pieces at a time.
// scratch: the sums, and tiles of dout [n_block/BLOCK][DW_PIECES][STEP] and x [k_block/BLOCK][…].
static void tile_matmul_dw(const struct tile_dw_args *g, long u0, long u1, int tid) {
	float *sums = g->scratch + tid * g->scratch_len;
	bf16 *a = (bf16 *)(sums + g->n_block * g->k_block), *b = a + g->n_block / BLOCK * DW_PIECES * STEP;
	bf16 t[STEP] __attribute__((aligned(64)));
	tiles_begin();
	for (long u = u0; u < u1; u++) {
		const long n0 = u / g->k_blocks * g->n_block, k0 = u % g->k_blocks * g->k_block;
		const long n1 = n0 + g->n_block < g->n ? n0 + g->n_block : g->n, k1 = k0 + g->k_block < g->k ? k0 + g->k_block : g->k;
		const int near = g->pieces > 2 * DW_PIECES; // else dw's rows are used only once or twice
		if (near) take_sums(sums, g->dw, g->k, n0, n1, k0, k1);
		for (long s0 = 0; s0 < g->pieces; s0 += DW_PIECES) {
			const long steps = g->pieces - s0 < DW_PIECES ? g->pieces - s0 : DW_PIECES;
			for (long s = 0; s < steps; s++) {
				const long r = g->piece[2 * (s0 + s)], rows = g->piece[2 * (s0 + s) + 1] - r;
				for (long n = n0; n < n1; n += BLOCK) {
					bf16 *out = a + ((n - n0) / BLOCK * DW_PIECES + s) * STEP;
					if (g->dout_tiles) {
						rows_of_tiles(t, g->dout, (g->n + BLOCK - 1) / BLOCK, r, rows, n / BLOCK);
						column_rows32(out, t, 0, BLOCK, rows, n1 - n, 1);
					} else column_rows32(out, g->dout, r * g->n + n, g->n, rows, n1 - n, g->dout_bf16);
				}
				for (long k = k0; k < k1; k += BLOCK) {
					bf16 *out = b + ((k - k0) / BLOCK * DW_PIECES + s) * STEP;
					pairs32(out, g->x, r * g->k + k, g->k, rows, k1 - k, g->x_bf16);
				}
			}
			float *c = sums;
			for (long n = n0; n < n1; n += BLOCK)
				for (long k = k0; k < k1; k += BLOCK, c += BLOCK * BLOCK) {
					const bf16 *ta = a + (n - n0) / BLOCK * DW_PIECES * STEP, *tb = b + (k - k0) / BLOCK * DW_PIECES * STEP;
					if (near) block_sums(ta, tb, c, BLOCK, steps, n1 - n, k1 - k, 0);
					else if (n + BLOCK <= n1 && k + BLOCK <= k1) block_sums(ta, tb, g->dw + n * g->k + k, g->k, steps, BLOCK, BLOCK, 0);
					else {
						take_sums(sums, g->dw, g->k, n, n1 - n < BLOCK ? n1 : n + BLOCK, k, k1 - k < BLOCK ? k1 : k + BLOCK);
						block_sums(ta, tb, sums, BLOCK, steps, n1 - n, k1 - k, 0);
						put(g->dw, n * g->k + k, g->k, sums, n1 - n < BLOCK ? n1 - n : BLOCK, k1 - k < BLOCK ? k1 - k : BLOCK, 0);
					}
				}
		}
		if (near) put_sums(g->dw, sums, g->k, n0, n1, k0, k1);
	}
	tiles_end();
	v_streamed(); // before other threads learn that the work is done
}

// tile_bias_columns is bias_columns with dbias in the arguments' dw and the block offsets
// in their piece.
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

// matmul.h: linear maps on packed weights, and their gradients.

// put_pairs copies BF16 x [m,n] (rows ldx apart), transposed, to one panel [n][NR] in pairs
// (bf16.h), 0 past m.
INLINE void put_pairs(bf16 *out, const bf16 *x, long ldx, long m, long n) {
	long k = 0;
#if defined(LEVEL_AVX512)
	for (; k < n; k += LANES) {
		const int w = lanes_left(n - k);
		vf r[LANES];
		for (int j = 0; j < LANES; j++) {
			const vf lo = j < m ? ld(x, j * ldx + k, w, 1) : v_zero(), hi = j + LANES < m ? ld(x, (j + LANES) * ldx + k, w, 1) : v_zero();
			r[j] = _mm512_castsi512_ps(_mm512_or_epi32(_mm512_srli_epi32(_mm512_castps_si512(lo), 16), _mm512_castps_si512(hi)));
		}
		v_transpose(r);
		for (int t = 0; t < w; t++) v_store((float *)(out + (k + t) * NR), r[t]);
	}
#endif
	for (; k < n; k++)
		for (long j = 0; j < NR; j++) out[k * NR + PAIRED(j)] = j < m ? x[j * ldx + k] : 0;
}

// pack copies column panels p0..p1 of B [k,n], given by its strides (one of them
// 1), into out[p][k][NR]; columns past n are 0. BF16 has sk = 1.
static void pack(const struct pack_args *g, long p0, long p1, int tid) {
	(void)tid;
	for (long p = p0; p < p1; p++) {
		const long j0 = p * NR, n = g->n - j0 < NR ? g->n - j0 : NR;
		float *out = (float *)g->out + p * g->k * NR;
		const float *b = (const float *)g->b + j0 * g->sn;
		if (g->out_bf16) put_pairs((bf16 *)g->out + p * g->k * NR, (const bf16 *)g->b + j0 * g->sn, g->sn, n, g->k);
		else if (g->b_bf16) put_widened(out, (const bf16 *)g->b + j0 * g->sn, g->sn, n, g->k);
		else if (g->sn != 1) put_transposed(out, b, g->sn, n, g->k);
		else {
			put_panels(out, g->k, b, g->sk, g->k, n);
			for (long k = 0; n < NR && k < g->k; k++)
				for (long j = n; j < NR; j++) out[k * NR + j] = 0.0f;
		}
	}
}

// matmul computes unit u of c [m,n] = a [m,k] · B (+ bias), B packed in panels.
// A unit is one block of rows × one group of panels. With a long k, A is copied in
// parts, so that each stays in the second-level cache.
// scratch: [rows of a block, k_part] in panels.
#define PAST_CACHES (1 << 19) // elements in an output too large for any second-level cache
static void matmul(const struct matmul_args *g, long u0, long u1, int tid) {
	const long panels = (g->n + NR - 1) / NR;
	float *a = g->scratch + tid * g->scratch_len;
	const int past = !g->near && g->m * g->n > PAST_CACHES && g->k <= K_BLOCK && (uintptr_t)g->c % 64 == 0 && g->n % NR == 0;
	for (long u = u0; u < u1; u++) {
		const long rb = u / g->panel_groups, pg = u % g->panel_groups;
		const long i0 = block_row(&g->rows, g->m, rb), m = block_row(&g->rows, g->m, rb + 1) - i0;
		const long p0 = pg * panels / g->panel_groups, p1 = (pg + 1) * panels / g->panel_groups;
		for (long k0 = 0; k0 < g->k || k0 == 0; k0 += g->k_part) {
			const long k = g->k - k0 < g->k_part ? g->k - k0 : g->k_part;
			put_panels(a, m, g->a + i0 * g->k + k0, g->k, m, k);
			for (long p = p0; p < p1; p++) {
				const long j = p * NR;
				panel_product(a, &g->b, p, k0, k, g->c + i0 * g->n + j, g->n, m, g->n - j < NR ? (int)(g->n - j) : NR,
					g->bias ? g->bias + j : 0, k0 > 0 ? FROM_C : g->bias ? FROM_BIAS : FROM_ZERO, p + 1, past, 0);
			}
		}
	}
	if (past) v_streamed(); // before other threads learn that the work is done
}

// put_strips copies n columns of rows of x in strips of MR columns, DW_STRIP
// apart. It writes LANES elements per row; the next row overwrites the excess.
#define DW_STRIP (DW_ROWS * MR + LANES)
INLINE void put_strips(float *out, const float *x, long ldx, long rows, long n) {
	const long ahead = rows_ahead(n);
	for (long r = 0; r < rows; r++) {
		const float *xr = x + r * ldx;
		float *o = out + r * MR;
		ask_row(x, ldx, r + ahead, rows, n);
		long i = 0;
		for (; i + LANES <= n; i += MR, o += DW_STRIP) v_store(o, v_load(xr + i));
		for (; i < n; i += MR, o += DW_STRIP) v_store(o, v_loadn(xr + i, (int)(n - i)));
	}
}

// matmul_dw adds to dw [n,k] the blocked sum of dout [m,n]ᵀ · x [m,k]. A unit is a
// piece of dw, small enough to stay in the second-level cache while the rows
// stream by: it copies DW_ROWS at a time, x to panels, dout to strips, and adds all
// their blocks to each tile of dw.
// scratch: [strips][DW_STRIP] and [panels][DW_PANEL_ROWS][NR].
BY_O3 static void matmul_dw(const struct matmul_dw_args *g, long u0, long u1, int tid) {
	const long panels = (g->k + NR - 1) / NR;
	for (long u = u0; u < u1; u++) {
		const long ug = u / g->col_groups, uc = u % g->col_groups;
		const long n0 = ug * g->n / g->row_groups, n1 = (ug + 1) * g->n / g->row_groups;
		const long k0 = uc * panels / g->col_groups * NR, kp = (uc + 1) * panels / g->col_groups * NR, k1 = kp < g->k ? kp : g->k;
		const long strips = strip_count(n1 - n0);
		float *a = g->scratch + tid * g->scratch_len, *xp = a + round_up(strips * DW_STRIP, LANES);
		for (long b0 = 0, b1; b0 < g->blocks; b0 = b1) {
			const long base = g->block[b0];
			for (b1 = b0 + 1; b1 < g->blocks && g->block[b1 + 1] - base <= DW_ROWS; b1++) {}
			const long rows = g->block[b1] - base;
			put_panels_here(xp, DW_PANEL_ROWS, g->x + base * g->k + k0, g->k, rows, k1 - k0);
			put_strips(a, g->dout + base * g->n + n0, g->n, rows, n1 - n0);
			for (long j = k0; j < k1; j += NR)
				for (long s = 0; s < strips; s++) {
					const long i = n0 + s * MR, mr = n1 - i < MR ? n1 - i : MR;
					const float *as = a + s * DW_STRIP, *bp = xp + (j - k0) * DW_PANEL_ROWS;
					float *c = g->dw + i * g->k + j, t[MR * NR];
					if (g->k - j >= NR) {
						blocks_tiles[mr](as, bp, c, g->k, g->block + b0, b1 - b0);
						continue;
					}
					copy_tile(t, NR, c, g->k, mr, (int)(g->k - j));
					blocks_tiles[mr](as, bp, t, NR, g->block + b0, b1 - b0);
					copy_tile(c, g->k, t, NR, mr, (int)(g->k - j));
				}
		}
	}
}

// bias_columns adds the blocked plain sum of dout [m,n] to V vectors of dbias from column j,
// n columns in the last.
INLINE void bias_columns(const int V, const struct matmul_dw_args *g, long j, int n) {
	vf sum[BIAS_VECTORS], acc[BIAS_VECTORS];
	for (int v = 0; v < V; v++) sum[v] = v_loadt(g->dbias + j + v * LANES, V == 1 ? n : LANES);
	for (long b = 0; b < g->blocks; b++) {
		for (int v = 0; v < V; v++) acc[v] = v_zero();
		for (long r = g->block[b]; r < g->block[b + 1]; r++)
			for (int v = 0; v < V; v++) acc[v] = v_add(acc[v], v_loadt(g->dout + r * g->n + j + v * LANES, V == 1 ? n : LANES));
		for (int v = 0; v < V; v++) sum[v] = v_add(sum[v], acc[v]);
	}
	for (int v = 0; v < V; v++) v_storet(g->dbias + j + v * LANES, sum[v], V == 1 ? n : LANES);
}

// matmul_dbias calls bias_columns for units of BIAS_VECTORS adjacent vectors: with single ones,
// each line would come from another page.
static void matmul_dbias(const struct matmul_dw_args *g, long u0, long u1, int tid) {
	(void)tid;
	for (long u = u0; u < u1; u++) {
		const long end = (u + 1) * BIAS_VECTORS * LANES;
		long j = u * BIAS_VECTORS * LANES;
		if (end <= g->n) bias_columns(BIAS_VECTORS, g, j, LANES);
		else
			for (; j < g->n; j += LANES) bias_columns(1, g, j, g->n - j < LANES ? (int)(g->n - j) : LANES);
	}
}

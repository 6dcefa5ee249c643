// matmul.h: linear maps on packed weights, and their gradients.

// pack copies column panels p0..p1 of B [k,n], given by its strides, into
// out[p][k][NR]; columns past n are 0.
static void pack(const struct pack_args *g, long p0, long p1, int tid) {
	(void)tid;
	for (long p = p0; p < p1; p++) {
		const long j0 = p * NR;
		float *out = g->out + p * g->k * NR;
		if (g->sn == 1) {
			for (long k = 0; k < g->k; k++)
				for (long j = 0; j < NR; j++)
					out[k * NR + j] = j0 + j < g->n ? g->b[k * g->sk + j0 + j] : 0.0f;
		} else {
			for (long j = 0; j < NR; j++)
				for (long k = 0; k < g->k; k++)
					out[k * NR + j] = j0 + j < g->n ? g->b[k * g->sk + (j0 + j) * g->sn] : 0.0f;
		}
	}
}

// copy_columns copies n ≤ ldo columns of rows of x to out, row by row.
INLINE void copy_columns(float *out, long ldo, const float *x, long ldx, long rows, long n) {
	for (long r = 0; r < rows; r++)
		for (long i = 0; i < n; i += LANES) {
			const int w = n - i < LANES ? (int)(n - i) : LANES;
			v_storet(out + r * ldo + i, v_loadt(x + r * ldx + i, w), w);
		}
}

// matmul computes unit u of c [m,n] = a [m,k] · B (+ bias), B packed in panels.
// A unit is one block of rows × one group of panels.
static void matmul(const struct matmul_args *g, long u0, long u1, int tid) {
	(void)tid;
	const long panels = (g->n + NR - 1) / NR;
	for (long u = u0; u < u1; u++) {
		const long rb = u / g->panel_groups, pg = u % g->panel_groups;
		const long i0 = rb * g->row_block, i1 = i0 + g->row_block < g->m ? i0 + g->row_block : g->m;
		const long p0 = pg * panels / g->panel_groups, p1 = (pg + 1) * panels / g->panel_groups;
		for (long p = p0; p < p1; p++) {
			const long j = p * NR;
			const int n = g->n - j < NR ? (int)(g->n - j) : NR;
			strip(g->a + i0 * g->k, g->k, 1, g->b + p * g->k * NR, NR, g->c + i0 * g->n + j, g->n,
				i1 - i0, g->k, n, g->bias ? FROM_BIAS : FROM_ZERO, g->bias ? g->bias + j : 0, 0);
		}
	}
}

// matmul_dw adds to dw [n,k] the blocked sum of dout [m,n]ᵀ · x [m,k]. A unit is a
// group of dw's rows. Blocks are taken DW_ROWS rows at a time: their x is packed in
// panels, the columns of dout that a row of tiles needs in a strip, and each tile of
// dw then stays in the first-level cache for all of them.
// scratch: [DW_ROWS][MR] and [panels][DW_ROWS][NR].
static void matmul_dw(const struct matmul_dw_args *g, long u0, long u1, int tid) {
	float *a = g->scratch + tid * g->scratch_len, *xp = a + DW_ROWS * MR;
	for (long u = u0; u < u1; u++) {
		const long n0 = u * g->n / g->row_groups, n1 = (u + 1) * g->n / g->row_groups;
		for (long b0 = 0, b1; b0 < g->blocks; b0 = b1) {
			const long base = g->block[b0];
			for (b1 = b0 + 1; b1 < g->blocks && g->block[b1 + 1] - base <= DW_ROWS; b1++) {}
			const long rows = g->block[b1] - base;
			for (long j = 0; j < g->k; j += NR)
				copy_columns(xp + j * DW_ROWS, NR, g->x + base * g->k + j, g->k, rows, g->k - j < NR ? g->k - j : NR);
			for (long i = n0; i < n1; i += MR) {
				const long mr = n1 - i < MR ? n1 - i : MR;
				copy_columns(a, MR, g->dout + base * g->n + i, g->n, rows, mr);
				for (long j = 0; j < g->k; j += NR) {
					const int w = g->k - j < NR ? (int)(g->k - j) : NR;
					for (long b = b0; b < b1; b++) {
						const long r = g->block[b] - base;
						tiles[mr](a + r * MR, 1, MR, xp + j * DW_ROWS + r * NR, NR, g->dw + i * g->k + j, g->k,
							g->block[b + 1] - g->block[b], w, FROM_ZERO, 0, 1);
					}
				}
			}
		}
	}
}

// matmul_dbias adds to dbias [n], columns in units of LANES, the blocked plain sum
// of dout [m,n].
static void matmul_dbias(const struct matmul_dw_args *g, long u0, long u1, int tid) {
	(void)tid;
	for (long u = u0; u < u1; u++) {
		const long j = u * LANES;
		const int w = g->n - j < LANES ? (int)(g->n - j) : LANES;
		vf sum = v_loadt(g->dbias + j, w);
		for (long b = 0; b < g->blocks; b++) {
			vf acc = v_zero();
			for (long r = g->block[b]; r < g->block[b + 1]; r++)
				acc = v_add(acc, v_loadt(g->dout + r * g->n + j, w));
			sum = v_add(sum, acc);
		}
		v_storet(g->dbias + j, sum, w);
	}
}

// tileswiglu.h: swiglu.h for class "cpu/bf16".

// put_tile_swiglu sets columns j0..j0+n of act, and of gate_up unless it is null, in rows
// i0..i0+m, from sums ld apart. It computes act from gates and ups rounded as in gate_up.
ONE_COPY void put_tile_swiglu(const struct swiglu_args *g, long i0, long m, long j0, long n, const float *gates, const float *ups, long ld_) {
	for (long i = 0; i < m; i++)
		for (long j = 0; j < n; j += LANES) {
			const int some = lanes_left(n - j);
			const vf gate = v_rounded(v_loadt(gates + i * ld_ + j, some)), up = v_rounded(v_loadt(ups + i * ld_ + j, some));
			const long at = (i0 + i) * 2 * g->f + j0 + j;
			if (g->gate_up) st(g->gate_up, at, gate, some, 1), st(g->gate_up, at + g->f, up, some, 1);
			st(g->act, (i0 + i) * g->f + j0 + j, v_swiglu(gate, up), some, 1);
		}
}

// swiglu_rows fills the tiles of rows i0..i1 of x.
INLINE void swiglu_rows(bf16 *a, const struct swiglu_args *g, long i0, long i1) {
	const long steps = steps_of(g->k);
	for (long i = i0; i < i1; i += BLOCK, a += steps * STEP) rows32(a, g->x, i * g->k, g->k, i1 - i, g->k, g->x_bf16);
}

// tile_matmul_swiglu computes unit u of act [m,f], and of gate_up [m,2f] unless it is null. A unit
// is one block of rows × one group of panels of gates, each with its panel of ups, or × all panels
// if one panel holds both gates and ups. It multiplies all rows by a panel before the next panel.
// scratch: the rows as tiles, and sums [rows][BLOCK] of a panel of gates, or [BLOCK][2f] of all
// panels.
static void tile_matmul_swiglu(const struct swiglu_args *g, long u0, long u1, int tid) {
	const long steps = steps_of(g->k), panels = g->f / BLOCK, panel = steps * STEP, both = round_up(2 * g->f, BLOCK);
	bf16 *a = (bf16 *)(g->scratch + tid * g->scratch_len);
	float *gates = (float *)(a + g->rows.many * panel), ups[BLOCK * BLOCK] __attribute__((aligned(64)));
	tiles_begin();
	for (long u = u0; u < u1; u++) {
		const long rb = u / g->panel_groups, pg = u % g->panel_groups;
		const long i0 = tile_block_row(&g->rows, g->m, rb), i1 = tile_block_row(&g->rows, g->m, rb + 1);
		const bf16 *w = g->b;
		swiglu_rows(a, g, i0, i1);
		if (g->f % BLOCK) {
			for (long i = i0; i < i1; i += BLOCK) {
				const long rows = i1 - i < BLOCK ? i1 - i : BLOCK;
				for (long j = 0; j < both; j += BLOCK)
					block_sums(a + (i - i0) / BLOCK * panel, w + j / BLOCK * panel, gates + j, both, steps, rows, BLOCK, 1);
				put_tile_swiglu(g, i, rows, 0, g->f, gates, gates + g->f, both);
			}
			continue;
		}
		const long p1 = (pg + 1) * panels / g->panel_groups, blocks = (i1 - i0 + BLOCK - 1) / BLOCK;
		struct meanwhile with = {.ask = (STEP / TERMS + blocks - 1) / blocks};
		for (long p = pg * panels / g->panel_groups; p < p1; p++) {
			const bf16 *gate = w + p * panel, *up = gate + panels * panel;
			with.next = (const char *)up;
			for (long i = 0; i < i1 - i0; i += BLOCK)
				block_sums_meanwhile(a + i / BLOCK * panel, gate, gates + i * BLOCK, BLOCK, steps, i1 - i0 - i, BLOCK, 1, &with);
			with.next = (const char *)(gate + panel);
			for (long i = 0; i < i1 - i0; i += BLOCK) {
				const long rows = i1 - i0 - i < BLOCK ? i1 - i0 - i : BLOCK;
				block_sums_meanwhile(a + i / BLOCK * panel, up, ups, BLOCK, steps, rows, BLOCK, 1, &with);
				put_tile_swiglu(g, i0 + i, rows, p * BLOCK, BLOCK, gates + i * BLOCK, ups, BLOCK);
			}
		}
	}
	tiles_end();
}

// tile_matmul_dx_swiglu computes unit u of dgate_up [m,2f]: one block of rows × one group of
// panels. scratch: the rows as tiles.
static void tile_matmul_dx_swiglu(const struct swiglu_args *g, long u0, long u1, int tid) {
	const long steps = steps_of(g->k), panels = (g->f + BLOCK - 1) / BLOCK, panel = steps * STEP, f = g->f;
	bf16 *a = (bf16 *)(g->scratch + tid * g->scratch_len), *grads = g->dgate_up;
	const bf16 *gate_up = g->gate_up;
	float d[BLOCK * BLOCK] __attribute__((aligned(64)));
	tiles_begin();
	for (long u = u0; u < u1; u++) {
		const long rb = u / g->panel_groups, pg = u % g->panel_groups;
		const long i0 = tile_block_row(&g->rows, g->m, rb), i1 = tile_block_row(&g->rows, g->m, rb + 1);
		const long p1 = (pg + 1) * panels / g->panel_groups;
		swiglu_rows(a, g, i0, i1);
		for (long p = pg * panels / g->panel_groups; p < p1; p++)
			for (long i = i0; i < i1; i += BLOCK) {
				const long rows = i1 - i < BLOCK ? i1 - i : BLOCK, n = f - p * BLOCK < BLOCK ? f - p * BLOCK : BLOCK;
				const long at = i * 2 * f + p * BLOCK;
				for (long r = 0; r < rows; r++) { // prefetched while the block is multiplied
					__builtin_prefetch(gate_up + at + r * 2 * f);
					__builtin_prefetch(gate_up + at + r * 2 * f + f);
				}
				block_sums(a + (i - i0) / BLOCK * panel, (const bf16 *)g->b + p * panel, d, BLOCK, steps, rows, n, 1);
				for (long r = 0; r < rows; r++)
					for (long j = 0; j < n; j += LANES) {
						const int some = lanes_left(n - j);
						const long to = at + r * 2 * f + j;
						vf gate = ld(gate_up, to, some, 1), up = ld(gate_up, to + f, some, 1);
						swiglu_gradients(&gate, &up, v_rounded(v_load(d + r * BLOCK + j)));
						st(grads, to, gate, some, 1);
						st(grads, to + f, up, some, 1);
					}
			}
	}
	tiles_end();
}

// swiglu.h: the gated feed-forward activation, fused with the product before it and with the
// gradient of the product after it, so that the intermediate values stay in the caches.

// put_swiglu sets columns j0..j0+n of act, and of gate_up unless it is null, in rows i0..i0+m,
// from products ld apart.
ONE_COPY void put_swiglu(const struct swiglu_args *g, long i0, long m, long j0, long n, const float *gates, const float *ups, long ld_, int past) {
	for (long i = 0; i < m; i++)
		for (long j = 0; j < n; j += LANES) {
			const int some = n - j < LANES ? (int)(n - j) : LANES;
			const vf gate = v_loadt(gates + i * ld_ + j, some), up = v_loadt(ups + i * ld_ + j, some);
			float *kept = (float *)g->gate_up + (i0 + i) * 2 * g->f + j0 + j;
			if (g->gate_up && past) v_stream(kept, gate), v_stream(kept + g->f, up);
			else if (g->gate_up) v_storet(kept, gate, some), v_storet(kept + g->f, up, some);
			v_storet((float *)g->act + (i0 + i) * g->f + j0 + j, v_swiglu(gate, up), some);
		}
}

// matmul_swiglu computes unit u of act [m,f], and of gate_up [m,2f] unless it is null. A unit is
// one block of rows × one group of panels of gates, each with its panel of ups, or × all panels
// if one panel holds both gates and ups.
// scratch: the rows [m,k] in panels, and products [m][NR] of a panel of gates and one of ups, or
// of all panels.
static void matmul_swiglu(const struct swiglu_args *g, long u0, long u1, int tid) {
	const long panels = g->f / NR;
	const struct factor b = {g->b, g->form, g->k, 2 * g->f};
	float *a = g->scratch + tid * g->scratch_len;
	const int apart = g->f % NR == 0, past = apart && 2 * g->m * g->f > PAST_CACHES && (uintptr_t)g->gate_up % 64 == 0;
	for (long u = u0; u < u1; u++) {
		const long rb = u / g->panel_groups, pg = u % g->panel_groups;
		const long i0 = block_row(&g->rows, g->m, rb), m = block_row(&g->rows, g->m, rb + 1) - i0;
		const long p1 = (pg + 1) * panels / g->panel_groups, both = round_up(2 * g->f, NR);
		float *gates = a + m * round_up(g->k, NR), *ups = gates + m * NR;
		put_panels(a, m, (const float *)g->x + i0 * g->k, g->k, m, g->k);
		if (!apart) {
			for (long j = 0; j < both; j += NR)
				panel_product(a, &b, j / NR, 0, g->k, gates + j, both, m, NR, 0, FROM_ZERO, j / NR + 1, 0, 0);
			put_swiglu(g, i0, m, 0, g->f, gates, gates + g->f, both, 0);
			continue;
		}
		for (long p = pg * panels / g->panel_groups; p < p1; p++) {
			panel_product(a, &b, p, 0, g->k, gates, NR, m, NR, 0, FROM_ZERO, panels + p, 0, 0);
			panel_product(a, &b, panels + p, 0, g->k, ups, NR, m, NR, 0, FROM_ZERO, p + 1, 0, 0);
			put_swiglu(g, i0, m, p * NR, NR, gates, ups, NR, past);
		}
	}
	if (past) v_streamed(); // before other threads learn that the work is done
}

// matmul_dx_swiglu computes unit u of dgate_up [m,2f]: one block of rows × one group of panels.
// scratch: the rows [m,k] in panels, and the product [m][NR] of one panel.
static void matmul_dx_swiglu(const struct swiglu_args *g, long u0, long u1, int tid) {
	const long panels = (g->f + NR - 1) / NR, f = g->f;
	const struct factor b = {g->b, g->form, g->k, f};
	float *a = g->scratch + tid * g->scratch_len;
	for (long u = u0; u < u1; u++) {
		const long rb = u / g->panel_groups, pg = u % g->panel_groups;
		const long i0 = block_row(&g->rows, g->m, rb), m = block_row(&g->rows, g->m, rb + 1) - i0;
		const long p1 = (pg + 1) * panels / g->panel_groups;
		float *d = a + m * round_up(g->k, NR);
		put_panels(a, m, (const float *)g->x + i0 * g->k, g->k, m, g->k);
		for (long p = pg * panels / g->panel_groups; p < p1; p++) {
			const long at = i0 * 2 * f + p * NR;
			const int n = f - p * NR < NR ? (int)(f - p * NR) : NR;
			const struct beside near = {(const float *)g->gate_up + at, 2 * f, f};
			panel_product(a, &b, p, 0, g->k, d, NR, m, n, 0, FROM_ZERO, p + 1, 0, &near);
			for (long i = 0; i < m; i++)
				for (int j = 0; j < n; j += LANES) {
					const float *x = (const float *)g->gate_up + at + i * 2 * f + j;
					float *out = (float *)g->dgate_up + at + i * 2 * f + j;
					vf gate = v_loadt(x, n - j), up = v_loadt(x + f, n - j);
					swiglu_gradients(&gate, &up, v_load(d + i * NR + j));
					v_storet(out, gate, n - j);
					v_storet(out + f, up, n - j);
				}
		}
	}
}

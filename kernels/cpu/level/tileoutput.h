// tileoutput.h: the output layer in class "cpu/bf16": output.h on logits from tiles,
// BLOCK rows at a time.

// tile_logits sets z [rows][ldz] to the unscaled logits of rows r0.. (at most BLOCK).
// a is room for the rows as tiles.
INLINE void tile_logits(const struct tile_output_args *g, long r0, long rows, bf16 *a, float *z, long ldz) {
	const long steps = steps_of(g->c);
	rows32(a, g->h, r0 * g->c, g->c, rows, g->c, 1);
	for (long j = 0; j < g->v; j += BLOCK)
		block_sums(a, g->w + j / BLOCK * steps * STEP, z + j, ldz, steps, rows, g->v - j, 1);
}

// logits_ld is the stride of rows of logits: whole blocks plus one line, so that rows do
// not share a cache set.
INLINE long logits_ld(long v) { return (v + BLOCK - 1) / BLOCK * BLOCK + LANES; }

// tile_logprob computes chunks lo..hi of BLOCK rows. scratch: logits [BLOCK][ldz] and tiles.
static void tile_logprob(const struct tile_output_args *g, long lo, long hi, int tid) {
	const long ldz = logits_ld(g->v);
	float *logits = g->scratch + tid * g->scratch_len;
	bf16 *a = (bf16 *)(logits + BLOCK * ldz);
	tiles_begin();
	for (long u = lo; u < hi; u++) {
		const long r0 = u * BLOCK, n = g->rows - r0 < BLOCK ? g->rows - r0 : BLOCK;
		tile_logits(g, r0, n, a, logits, ldz);
		for (long r = 0; r < n; r++) {
			float *z = logits + r * ldz;
			cap_row(z, g->v, &g->cap);
			const struct row_stats s = row_scores(z, g->v, g->inv_temp);
			for (long k = (r0 + r) * g->k; k < (r0 + r + 1) * g->k; k++)
				g->logprob[k] = z[g->targets[k]] * g->inv_temp - s.lse;
			g->entropy[r0 + r] = s.entropy;
			g->lse[r0 + r] = s.lse;
		}
	}
	tiles_end();
}

// logit_gradients sets a block of dz to the gradients of the logits z [rows][BLOCK] of
// rows r.. and columns j.., rounded; columns past the last are no terms (tilesum.h). capped: whether
// there is a cap.
INLINE void logit_gradients(const struct tile_output_args *g, long r, long rows, long j, const float *z, bf16 *dz, const int capped) {
	const vf it = v_set1(g->inv_temp), one = v_set1(1.0f), cap = v_set1(g->cap.cap), inverse = v_set1(g->cap.inverse);
	const long cols = g->v - j;
	for (const long end = r + rows; r < end; r++, z += BLOCK, dz += BLOCK) {
		const vf lse = v_set1(g->lse[r]), ent = v_set1(g->entropy[r]), dl = v_set1(g->dall[r]), dh = v_set1(g->dentropy[r]);
		vf z0 = v_load(z), z1 = v_load(z + LANES), th0, th1;
		if (capped) {
			th0 = v_tanh(v_mul(z0, inverse)), th1 = v_tanh(v_mul(z1, inverse));
			z0 = v_mul(cap, th0), z1 = v_mul(cap, th1);
		}
		const vf x0 = v_sub(v_mul(z0, it), lse), x1 = v_sub(v_mul(z1, it), lse);
		vf y0 = v_neg(v_mul(v_exp(x0), v_fma(dh, v_add(x0, ent), dl)));
		vf y1 = v_neg(v_mul(v_exp(x1), v_fma(dh, v_add(x1, ent), dl)));
		if (any_target(BLOCK, j, g->targets + r * g->k, g->k)) {
			float y[BLOCK];
			v_store(y, y0), v_store(y + LANES, y1);
			add_targets(y, BLOCK, j, g->targets + r * g->k, g->dlogprob + r * g->k, g->k);
			y0 = v_load(y), y1 = v_load(y + LANES);
		}
		y0 = v_mul(y0, it), y1 = v_mul(y1, it);
		if (capped) y0 = v_mul(y0, v_sub(one, v_mul(th0, th0))), y1 = v_mul(y1, v_sub(one, v_mul(th1, th1)));
		if (cols < BLOCK) {
			y0 = v_keep(y0, lanes_left(cols), v_set1(-0.0f));
			y1 = v_keep(y1, cols > LANES ? (int)cols - LANES : 0, v_set1(-0.0f));
		}
		store_terms(dz, y0, y1);
	}
}

// tile_logprob_backward takes blocks lo..hi of row_block rows to the logits and back: it
// sets dh and the logits' gradients, as tiles of rows dz [blocks of BLOCK rows from
// row0][panels][STEP]. It takes panels in groups, so that gradients are still in the
// caches when they are multiplied, and each weight is read once per row_block rows.
// scratch: the rows as tiles, the sums of dh [row_block/BLOCK][c/BLOCK][BLOCK][BLOCK], and
// if dz is null a group's panels of it.
static void tile_logprob_backward(const struct tile_output_args *g, long lo, long hi, int tid) {
	const long steps = steps_of(g->c), panels = steps_of(g->v);
	bf16 *a = (bf16 *)(g->scratch + tid * g->scratch_len);
	float *sums = (float *)(a + g->row_block / BLOCK * steps * STEP);
	float z[BLOCK * BLOCK] __attribute__((aligned(64)));
	tiles_begin();
	for (long u = lo; u < hi; u++) {
		const long r0 = g->row0 + u * g->row_block, n = g->rows - r0 < g->row_block ? g->rows - r0 : g->row_block;
		// Without dz only one group's panels exist, each group in the same place.
		const long apart = g->dz ? panels : g->panel_group;
		bf16 *dz = g->dz ? g->dz + u * (g->row_block / BLOCK) * panels * STEP : (bf16 *)(sums + g->row_block * steps * BLOCK);
		for (long i = 0; i < n; i += BLOCK) rows32(a + i / BLOCK * steps * STEP, g->h, (r0 + i) * g->c, g->c, n - i, g->c, 1);
		for (long p0 = 0; p0 < panels; p0 += g->panel_group) {
			const long p1 = p0 + g->panel_group < panels ? p0 + g->panel_group : panels;
			for (long i = 0; i < n; i += BLOCK) {
				const long b = i / BLOCK, rows = n - i < BLOCK ? n - i : BLOCK;
				for (long p = p0; p < p1; p++) {
					block_sums(a + b * steps * STEP, g->w + p * steps * STEP, z, BLOCK, steps, rows, g->v - p * BLOCK, 1);
					bf16 *to = dz + (b * apart + (g->dz ? p : p - p0)) * STEP;
					if (g->cap.cap > 0) logit_gradients(g, r0 + i, rows, p * BLOCK, z, to, 1);
					else logit_gradients(g, r0 + i, rows, p * BLOCK, z, to, 0);
				}
				for (long o = 0; o < steps; o++)
					block_sums(dz + (b * apart + (g->dz ? p0 : 0)) * STEP, g->wt + (o * panels + p0) * STEP, sums + (b * steps + o) * BLOCK * BLOCK, BLOCK,
						p1 - p0, rows, g->c - o * BLOCK, p0 == 0);
			}
		}
		for (long i = 0; i < n; i += BLOCK)
			for (long o = 0; o < steps; o++) {
				const long rows = n - i < BLOCK ? n - i : BLOCK, cols = g->c - o * BLOCK < BLOCK ? g->c - o * BLOCK : BLOCK;
				const float *s = sums + (i / BLOCK * steps + o) * BLOCK * BLOCK;
				put(g->dh, (r0 + i) * g->c + o * BLOCK, g->c, s, rows, cols, g->dh_bf16);
			}
	}
	tiles_end();
}

// tile_sample draws a token from the whole vocabulary for rows lo..hi, whose unscaled logits are
// z [rows][v], or takes the most probable one. scratch: exponentials, and sums of their blocks.
static void tile_sample(const struct tile_output_args *g, long lo, long hi, int tid) {
	float *e = g->scratch + tid * g->scratch_len;
	double *sums = (double *)(e + logits_ld(g->v));
	for (long r = lo; r < hi; r++) {
		float *z = g->z + r * g->v;
		cap_row(z, g->v, &g->cap);
		const struct row_stats s = row_softmax(z, g->v, g->inv_temp, e);
		long id = 0;
		if (g->greedy && s.sum == s.sum) id = greatest(z, g->v, g->inv_temp);
		else if (!g->greedy) id = draw(e, g->v, g->u[r], sums);
		g->ids[r] = (int32_t)id;
		g->logprob[r] = z[id] * g->inv_temp - s.lse;
		g->entropy[r] = s.entropy;
		g->lse[r] = s.lse;
	}
}

// tile_scaled_logits scales the logits z [rows][v] of rows lo..hi, and writes exp(z-max) to
// e [rows][v], for draws that Go restricts; the sum of the exponentials goes to logprob, the
// row's scores to entropy and lse.
static void tile_scaled_logits(const struct tile_output_args *g, long lo, long hi, int tid) {
	(void)tid;
	for (long r = lo; r < hi; r++) {
		float *z = g->z + r * g->v;
		cap_row(z, g->v, &g->cap);
		const struct row_stats s = row_softmax(z, g->v, g->inv_temp, g->e + r * g->v);
		scale_row(z, g->v, g->inv_temp);
		g->logprob[r] = s.sum;
		g->entropy[r] = s.entropy;
		g->lse[r] = s.lse;
	}
}

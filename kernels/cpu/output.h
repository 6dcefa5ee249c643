// output.h: projection on the vocabulary, log-softmax, entropy, their gradient,
// and the draw of a token. Logits live in scratch, a chunk of rows at a time.

// logit_rows sets z[i][v] (stride ldz) to the unscaled logits of rows r0..r1, v < n.
// a: scratch for the rows in panels.
INLINE void logit_rows(const struct output_args *g, long r0, long r1, float *a, float *z, long ldz) {
	put_panels(a, r1 - r0, g->h + r0 * g->c, g->c, r1 - r0, g->c);
	for (long j = 0; j < g->v; j += NR)
		panel_product(a, g->w + j * g->c, z + j, ldz, r1 - r0, g->c, g->v - j < NR ? (int)(g->v - j) : NR, 0, FROM_ZERO,
			g->w + (j + NR) * g->c, 0, 0);
}

// row_length is the distance of the rows of logits in scratch: not a power of two,
// so that the rows of a tile do not share a set of the cache.
INLINE long row_length(long v) { return round_up(v, LANES) + LANES; }

struct row_stats { float max, sum, lse, entropy; };

// row_softmax returns the statistics of z[0:n] scaled by inv_temp. e, if not 0, gets
// exp(z·inv_temp-max). z is left as it is.
INLINE struct row_stats row_softmax(const float *z, long n, float inv_temp, float *e) {
	const vf it = v_set1(inv_temp), low = v_set1(-INFINITY);
	const long full = n / LANES * LANES;
	const int rest = (int)(n - full);
	vf m0 = low, m1 = low;
	long i = 0;
	for (; i + 2 * LANES <= full; i += 2 * LANES) {
		m0 = v_max(v_mul(v_load(z + i), it), m0);
		m1 = v_max(v_mul(v_load(z + i + LANES), it), m1);
	}
	if (i < full) m0 = v_max(v_mul(v_load(z + i), it), m0);
	if (rest) m1 = v_max(v_keep(v_mul(v_loadn(z + full, rest), it), rest, low), m1);
	const float max = v_largest(v_max(m0, m1));
	const vf mv = v_set1(max);
	vf sum = v_zero(), dot = v_zero();
	for (i = 0; i < full; i += LANES) {
		const vf x = v_sub(v_mul(v_load(z + i), it), mv), y = v_exp_neg(x);
		if (e) v_store(e + i, y);
		sum = v_add(sum, y);
		dot = v_fma(y, x, dot);
	}
	if (rest) { // lanes past the row count as 0
		const vf x = v_sub(v_mul(v_loadn(z + full, rest), it), mv), y = v_exp_neg(x);
		if (e) v_storen(e + full, y, rest);
		sum = v_add(sum, v_keep(y, rest, v_zero()));
		dot = v_fma(v_keep(y, rest, v_zero()), v_keep(x, rest, v_zero()), dot);
	}
	struct row_stats s;
	s.sum = v_sum(sum);
	const float logsum = log1(s.sum);
	s.max = max;
	s.lse = max + logsum;
	s.entropy = logsum - v_sum(dot) / s.sum;
	return s;
}

// logprob computes chunks lo..hi of g->chunk rows. scratch: the rows in panels,
// logits [chunk][row_length].
static void logprob(const struct output_args *g, long lo, long hi, int tid) {
	const long ldz = row_length(g->v);
	float *z = g->scratch + tid * g->scratch_len, *a = z + g->chunk * ldz;
	for (long u = lo; u < hi; u++) {
		const long r0 = u * g->chunk, r1 = r0 + g->chunk < g->rows ? r0 + g->chunk : g->rows;
		logit_rows(g, r0, r1, a, z, ldz);
		for (long r = r0; r < r1; r++) {
			const float *zr = z + (r - r0) * ldz;
			const struct row_stats s = row_softmax(zr, g->v, g->inv_temp, 0);
			g->logprob[r] = zr[g->targets[r]] * g->inv_temp - s.lse;
			g->entropy[r] = s.entropy;
			g->lse[r] = s.lse;
		}
	}
}

// panel_gradients turns a panel of logits z [rows][NR], of rows r.. and columns j.., into
// their gradients, and stores these in dz [rows][v] too: whole lines past the caches, which
// need the room.
INLINE void panel_gradients(const struct output_args *g, long r, long rows, long j, float *z, float *dz, int past) {
	const vf it = v_set1(g->inv_temp);
	for (long i = 0; i < rows; i++, r++, z += NR, dz += g->v) {
		const vf lse = v_set1(g->lse[r]), ent = v_set1(g->entropy[r]), dl = v_set1(g->dlogprob[r]), dh = v_set1(g->dentropy[r]);
		const long t = g->targets[r] - j;
		vf y[NV];
		for (int v = 0; v < NV; v++) {
			const vf x = v_sub(v_mul(v_load(z + v * LANES), it), lse);
			y[v] = v_neg(v_mul(v_exp(x), v_fma(dh, v_add(x, ent), dl)));
		}
		if (t >= 0 && t < NR) {
			for (int v = 0; v < NV; v++) v_store(z + v * LANES, y[v]);
			z[t] += g->dlogprob[r];
			for (int v = 0; v < NV; v++) y[v] = v_load(z + v * LANES);
		}
		for (int v = 0; v < NV; v++) {
			const long left = g->v - j - v * LANES;
			y[v] = v_mul(y[v], it);
			v_store(z + v * LANES, y[v]);
			if (past) v_stream(dz + j + v * LANES, y[v]);
			else if (left > 0) v_storet(dz + j + v * LANES, y[v], left < LANES ? (int)left : LANES);
		}
	}
}

// logprob_backward takes chunks lo..hi of rows, counted from row0, to the logits and
// back: sets their gradients dz [row-row0][v], and dh. Panels go by in groups, so that
// gradients are multiplied while they are near, and a weight is read once for a chunk.
// scratch: the rows and a group of logits, in panels.
static void logprob_backward(const struct output_args *g, long lo, long hi, int tid) {
	const int past = (uintptr_t)g->dz % 64 == 0 && g->v % NR == 0;
	float *a = g->scratch + tid * g->scratch_len, *z = a + g->chunk * round_up(g->c, NR);
	for (long u = lo; u < hi; u++) {
		const long r0 = g->row0 + u * g->chunk, m = g->rows - r0 < g->chunk ? g->rows - r0 : g->chunk;
		float *dz = g->dz + (r0 - g->row0) * g->v, *dh = g->dh + r0 * g->c;
		put_panels(a, m, g->h + r0 * g->c, g->c, m, g->c);
		for (long j0 = 0, k; j0 < g->v; j0 += k) {
			k = g->v - j0 < GRADIENT_PANELS * NR ? g->v - j0 : GRADIENT_PANELS * NR;
			for (long j = 0; j < k; j += NR) {
				panel_product(a, g->w + (j0 + j) * g->c, z + j * m, NR, m, g->c, NR, 0, FROM_ZERO, g->w + (j0 + j + NR) * g->c, 0, 0);
				panel_gradients(g, r0, m, j0 + j, z + j * m, dz, past);
			}
			for (long o = 0; o < g->c; o += NR)
				panel_product(z, g->wt + o * g->v + j0 * NR, dh + o, g->c, m, k, g->c - o < NR ? (int)(g->c - o) : NR, 0,
					j0 ? FROM_C : FROM_ZERO, g->wt + (o + NR) * g->v + j0 * NR, 0, 0);
		}
	}
	if (past) v_streamed(); // before another thread is told that the work is done
}

#define SAMPLE_BLOCK 256

// block_sum adds e[0:n] in LANES float64 sums.
INLINE double block_sum(const float *e, long n) {
	double lane[LANES] = {0};
	long i = 0;
	for (; i + LANES <= n; i += LANES)
		for (int j = 0; j < LANES; j++) lane[j] += (double)e[i + j];
	for (int j = 0; i + j < n; j++) lane[j] += (double)e[i + j];
	for (int s = LANES / 2; s > 0; s /= 2)
		for (int j = 0; j < s; j++) lane[j] += lane[j + s];
	return lane[0];
}

// draw picks a token from weights e[0:v] with the uniform number u, as Draw of
// kernels/ref does. sums: room for the sums of the blocks.
INLINE long draw(const float *e, long v, float u, double *sums) {
	double total = 0, run = 0;
	for (long b = 0; b < v; b += SAMPLE_BLOCK) {
		const double s = block_sum(e + b, v - b < SAMPLE_BLOCK ? v - b : SAMPLE_BLOCK);
		sums[b / SAMPLE_BLOCK] = s;
		total += s;
	}
	const double x = (double)u * total;
	for (long b = 0; b < v; b += SAMPLE_BLOCK) {
		const long end = b + SAMPLE_BLOCK < v ? b + SAMPLE_BLOCK : v;
		const double next = run + sums[b / SAMPLE_BLOCK];
		if (next > x) {
			long last = b;
			for (long i = b; i < end; i++) {
				if (e[i] > 0) last = i;
				run += (double)e[i];
				if (run > x) return i;
			}
			return last;
		}
		run = next;
	}
	return 0;
}

// greatest returns the lowest index of the largest of z[0:v] scaled by `by`, z
// having no NaN.
INLINE long greatest(const float *z, long v, float by) {
	long id = 0;
	float best = z[0] * by;
	for (long i = 1; i < v; i++)
		if (z[i] * by > best) { best = z[i] * by; id = i; }
	return id;
}

// sample draws a token for the rows of chunks lo..hi from all tokens, or takes the
// most probable one. scratch: as logprob, then exp [row_length], sums of blocks.
static void sample(const struct output_args *g, long lo, long hi, int tid) {
	const long ldz = row_length(g->v);
	float *z = g->scratch + tid * g->scratch_len, *e = z + g->chunk * ldz;
	double *sums = (double *)(e + ldz);
	float *a = (float *)(sums + round_up(g->v / SAMPLE_BLOCK + 1, LANES));
	for (long u = lo; u < hi; u++) {
		const long r0 = u * g->chunk, r1 = r0 + g->chunk < g->rows ? r0 + g->chunk : g->rows;
		logit_rows(g, r0, r1, a, z, ldz);
		for (long r = r0; r < r1; r++) {
			const float *zr = z + (r - r0) * ldz;
			const struct row_stats s = row_softmax(zr, g->v, g->inv_temp, e);
			long id = 0;
			if (g->greedy && s.sum == s.sum) id = greatest(zr, g->v, g->inv_temp);
			else if (!g->greedy) id = draw(e, g->v, g->u[r], sums);
			g->ids[r] = (int32_t)id;
			g->logprob[r] = zr[id] * g->inv_temp - s.lse;
			g->entropy[r] = s.entropy;
			g->lse[r] = s.lse;
		}
	}
}

// logits writes the scaled logits of chunks lo..hi to z [rows][v] and exp(z-max) to
// dz [rows][v], for draws that are restricted on the Go side; the sum of the
// exponentials goes to logprob, the row's scores to entropy and lse. scratch: the
// rows in panels.
static void logits(const struct output_args *g, long lo, long hi, int tid) {
	for (long u = lo; u < hi; u++) {
		const long r0 = u * g->chunk, r1 = r0 + g->chunk < g->rows ? r0 + g->chunk : g->rows;
		logit_rows(g, r0, r1, g->scratch + tid * g->scratch_len, g->z + r0 * g->v, g->v);
		for (long r = r0; r < r1; r++) {
			const struct row_stats s = row_softmax(g->z + r * g->v, g->v, g->inv_temp, g->dz + r * g->v);
			scale_row(g->z + r * g->v, g->v, g->inv_temp);
			g->logprob[r] = s.sum;
			g->entropy[r] = s.entropy;
			g->lse[r] = s.lse;
		}
	}
}

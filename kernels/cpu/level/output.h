// output.h: projection on the vocabulary, log-softmax, entropy, their gradient,
// and sampling. Logits are in scratch, a chunk of rows at a time.

// logit_rows sets z[i][v] (stride ldz) to the unscaled logits of rows r0..r1, v < n.
// a: scratch for the rows in panels.
ONE_COPY void logit_rows(const struct output_args *g, long r0, long r1, float *a, float *z, long ldz) {
	put_panels(a, r1 - r0, g->h + r0 * g->c, g->c, r1 - r0, g->c);
	for (long j = 0; j < g->v; j += NR)
		panel_product(a, &g->w, j / NR, 0, g->c, z + j, ldz, r1 - r0, g->v - j < NR ? (int)(g->v - j) : NR, 0, FROM_ZERO,
			j / NR + 1, 0, 0);
}

// row_length is the stride of the rows of logits in scratch: not a power of two, so that
// the rows of a tile do not share a cache set.
INLINE long row_length(long v) { return round_up(v, LANES) + LANES; }

// cap_row replaces z[0:n] by cap·tanh(z/cap) if cap > 0.
ONE_COPY void cap_row(float *z, long n, const struct cap *c) {
	if (!(c->cap > 0)) return;
	const vf cap = v_set1(c->cap), inverse = v_set1(c->inverse);
	for (long i = 0; i < n; i += LANES) {
		const int w = lanes_left(n - i);
		v_storet(z + i, v_mul(cap, v_tanh(v_mul(v_loadt(z + i, w), inverse))), w);
	}
}

// cap_logits caps rows lo..hi.
static void cap_logits(const struct cap_args *g, long lo, long hi, int tid) {
	(void)tid;
	for (long r = lo; r < hi; r++) cap_row(g->z + r * g->n, g->n, &g->cap);
}

struct row_stats { float max, sum, lse, entropy; };

// softmax_of returns the statistics of z[0:n] scaled by inv_temp. With keep, e gets
// exp(z·inv_temp-max). z is unchanged.
INLINE struct row_stats softmax_of(const float *z, long n, float inv_temp, float *e, const int keep) {
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
		if (keep) v_store(e + i, y);
		sum = v_add(sum, y);
		dot = v_fma(y, x, dot);
	}
	if (rest) { // lanes past the row's end count as 0
		const vf x = v_sub(v_mul(v_loadn(z + full, rest), it), mv), y = v_exp_neg(x);
		if (keep) v_storen(e + full, y, rest);
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

ONE_COPY struct row_stats row_softmax(const float *z, long n, float inv_temp, float *e) { return softmax_of(z, n, inv_temp, e, 1); }
ONE_COPY struct row_stats row_scores(const float *z, long n, float inv_temp) { return softmax_of(z, n, inv_temp, 0, 0); }

// chunk_logits returns the logits of rows r0..r1, ld apart: the given ones, or it computes them in
// z. a: see logit_rows.
INLINE float *chunk_logits(const struct output_args *g, long r0, long r1, float *a, float *z, long *ldz) {
	if (g->given) {
		*ldz = g->v;
		return g->z + r0 * g->v;
	}
	*ldz = row_length(g->v);
	logit_rows(g, r0, r1, a, z, *ldz);
	return z;
}

// logprob computes chunks lo..hi of g->chunk rows. scratch, unless logits are given: logits
// [chunk][row_length], the rows in panels.
static void logprob(const struct output_args *g, long lo, long hi, int tid) {
	float *room = g->scratch + tid * g->scratch_len, *a = room + g->chunk * row_length(g->v);
	for (long u = lo; u < hi; u++) {
		const long r0 = u * g->chunk, r1 = r0 + g->chunk < g->rows ? r0 + g->chunk : g->rows;
		long ldz;
		float *z = chunk_logits(g, r0, r1, a, room, &ldz);
		for (long r = r0; r < r1; r++) {
			float *zr = z + (r - r0) * ldz;
			cap_row(zr, g->v, &g->cap);
			const struct row_stats s = row_scores(zr, g->v, g->inv_temp);
			for (long k = r * g->k; k < (r + 1) * g->k; k++) g->logprob[k] = zr[g->targets[k]] * g->inv_temp - s.lse;
			g->entropy[r] = s.entropy;
			g->lse[r] = s.lse;
		}
	}
}

// add_targets adds the gradients of n targets to those among the logits z [width] from column j on.
INLINE void add_targets(float *z, long width, long j, const int32_t *targets, const float *dlogprob, long n) {
	for (long k = 0; k < n; k++) {
		const long t = targets[k] - j;
		if (t >= 0 && t < width) z[t] += dlogprob[k];
	}
}

// any_target reports whether one of n targets is among `width` columns from j on.
INLINE int any_target(long width, long j, const int32_t *targets, long n) {
	int found = 0;
	for (long k = 0; k < n; k++) found |= targets[k] - j >= 0 && targets[k] - j < width;
	return found;
}

// panel_gradients turns a panel of logits z [rows][NR], of rows r.. and columns j.., into
// their gradients, and stores them in dz [rows][v] too, unless it is null: whole lines past
// the caches, to leave these to other data. capped: whether there is a cap.
INLINE void panel_gradients(const struct output_args *g, long r, long rows, long j, float *z, float *dz, int past, const int capped) {
	const vf it = v_set1(g->inv_temp), one = v_set1(1.0f), cap = v_set1(g->cap.cap), inverse = v_set1(g->cap.inverse);
	for (long i = 0; i < rows; i++, r++, z += NR, dz += dz ? g->v : 0) {
		const vf lse = v_set1(g->lse[r]), ent = v_set1(g->entropy[r]), dl = v_set1(g->dall[r]), dh = v_set1(g->dentropy[r]);
		vf y[NV], th[NV];
		for (int v = 0; v < NV; v++) {
			vf zv = v_load(z + v * LANES);
			if (capped) th[v] = v_tanh(v_mul(zv, inverse)), zv = v_mul(cap, th[v]);
			const vf x = v_sub(v_mul(zv, it), lse);
			y[v] = v_neg(v_mul(v_exp(x), v_fma(dh, v_add(x, ent), dl)));
		}
		if (any_target(NR, j, g->targets + r * g->k, g->k)) {
			for (int v = 0; v < NV; v++) v_store(z + v * LANES, y[v]);
			add_targets(z, NR, j, g->targets + r * g->k, g->dlogprob + r * g->k, g->k);
			for (int v = 0; v < NV; v++) y[v] = v_load(z + v * LANES);
		}
		for (int v = 0; v < NV; v++) {
			const long left = g->v - j - v * LANES;
			y[v] = v_mul(y[v], it);
			if (capped) y[v] = v_mul(y[v], v_sub(one, v_mul(th[v], th[v])));
			v_store(z + v * LANES, y[v]);
			if (!dz) continue;
			if (past) v_stream(dz + j + v * LANES, y[v]);
			else if (left > 0) v_storet(dz + j + v * LANES, y[v], left < LANES ? (int)left : LANES);
		}
	}
}

// logprob_backward takes chunks lo..hi of rows, counted from row0, to the logits and
// back: it sets the gradients dz [row-row0][v], unless dz is null, and dh. It takes panels
// in groups, so that gradients are still in the caches when they are multiplied, and each
// weight is read once per chunk. scratch: the rows and a group of logits, in panels.
static void logprob_backward(const struct output_args *g, long lo, long hi, int tid) {
	const int past = g->dz && (uintptr_t)g->dz % 64 == 0 && g->v % NR == 0;
	float *a = g->scratch + tid * g->scratch_len, *z = a + g->chunk * round_up(g->c, NR);
	for (long u = lo; u < hi; u++) {
		const long r0 = g->row0 + u * g->chunk, m = g->rows - r0 < g->chunk ? g->rows - r0 : g->chunk;
		float *dz = g->dz ? g->dz + (r0 - g->row0) * g->v : 0, *dh = g->dh + r0 * g->c;
		put_panels(a, m, g->h + r0 * g->c, g->c, m, g->c);
		for (long j0 = 0, k; j0 < g->v; j0 += k) {
			k = g->v - j0 < GRADIENT_PANELS * NR ? g->v - j0 : GRADIENT_PANELS * NR;
			for (long j = 0; j < k; j += NR) {
				panel_product(a, &g->w, (j0 + j) / NR, 0, g->c, z + j * m, NR, m, NR, 0, FROM_ZERO, (j0 + j) / NR + 1, 0, 0);
				if (g->cap.cap > 0) panel_gradients(g, r0, m, j0 + j, z + j * m, dz, past, 1);
				else panel_gradients(g, r0, m, j0 + j, z + j * m, dz, past, 0);
			}
			for (long o = 0; o < g->c; o += NR)
				panel_product(z, &g->wt, o / NR, j0, k, dh + o, g->c, m, g->c - o < NR ? (int)(g->c - o) : NR, 0,
					j0 ? FROM_C : FROM_ZERO, o / NR + 1, 0, 0);
		}
	}
	if (past) v_streamed(); // before other threads learn that the work is done
}

#define SAMPLE_BLOCK 256

// block_sum returns the sum of e[0:n], by LANES float64 sums.
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

// draw picks a token from weights e[0:v] with the uniform number u, as Draw in
// kernels/ref does. sums: room for the blocks' sums.
ONE_COPY long draw(const float *e, long v, float u, double *sums) {
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

// greatest returns the lowest index of the largest of z[0:v] scaled by `by`. z has
// no NaN.
ONE_COPY long greatest(const float *z, long v, float by) {
	long id = 0;
	float best = z[0] * by;
	for (long i = 1; i < v; i++)
		if (z[i] * by > best) { best = z[i] * by; id = i; }
	return id;
}

// sample draws a token from the whole vocabulary for the rows of chunks lo..hi, or takes
// the most probable one. scratch: exp [row_length], sums of blocks; then as logprob.
static void sample(const struct output_args *g, long lo, long hi, int tid) {
	float *e = g->scratch + tid * g->scratch_len;
	double *sums = (double *)(e + row_length(g->v));
	float *room = (float *)(sums + round_up(g->v / SAMPLE_BLOCK + 1, LANES)), *a = room + g->chunk * row_length(g->v);
	for (long u = lo; u < hi; u++) {
		const long r0 = u * g->chunk, r1 = r0 + g->chunk < g->rows ? r0 + g->chunk : g->rows;
		long ldz;
		float *z = chunk_logits(g, r0, r1, a, room, &ldz);
		for (long r = r0; r < r1; r++) {
			float *zr = z + (r - r0) * ldz;
			cap_row(zr, g->v, &g->cap);
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

// logits scales the logits of chunks lo..hi in z [rows][v], which it computes unless they are
// given, and writes exp(z-max) to dz [rows][v], for draws that Go restricts; the sum of the
// exponentials goes to logprob, the row's scores to entropy and lse. scratch: the rows in panels.
static void logits(const struct output_args *g, long lo, long hi, int tid) {
	for (long u = lo; u < hi; u++) {
		const long r0 = u * g->chunk, r1 = r0 + g->chunk < g->rows ? r0 + g->chunk : g->rows;
		if (!g->given) logit_rows(g, r0, r1, g->scratch + tid * g->scratch_len, g->z + r0 * g->v, g->v);
		for (long r = r0; r < r1; r++) {
			cap_row(g->z + r * g->v, g->v, &g->cap);
			const struct row_stats s = row_softmax(g->z + r * g->v, g->v, g->inv_temp, g->dz + r * g->v);
			scale_row(g->z + r * g->v, g->v, g->inv_temp);
			g->logprob[r] = s.sum;
			g->entropy[r] = s.entropy;
			g->lse[r] = s.lse;
		}
	}
}

// output.h: projection on the vocabulary, log-softmax, entropy, their gradient,
// and the draw of a token. Logits live in scratch, a chunk of rows at a time.

// logit_rows sets z[i][v] (stride ldz) to the unscaled logits of rows r0..r1, v < n.
INLINE void logit_rows(const struct output_args *g, long r0, long r1, float *z, long ldz) {
	for (long p = 0; p * NR < g->v; p++) {
		const long j = p * NR;
		strip(g->h + r0 * g->c, g->c, 1, g->w + p * g->c * NR, NR, z + j, ldz, r1 - r0, g->c,
			g->v - j < NR ? (int)(g->v - j) : NR, FROM_ZERO, 0, 0);
	}
}

struct row_stats { float max, sum, lse, entropy; };

// row_softmax scales z[0:n] by inv_temp in place and returns its statistics. e, if
// not 0, gets exp(z-max).
INLINE struct row_stats row_softmax(float *z, long n, float inv_temp, float *e) {
	scale_row(z, n, inv_temp);
	const float m = row_max(z, n);
	const vf mv = v_set1(m);
	vf sum = v_zero(), dot = v_zero();
	for (long i = 0; i < n; i += LANES) {
		const int w = n - i < LANES ? (int)(n - i) : LANES;
		vf x = v_sub(v_loadt(z + i, w), mv), y = v_exp(x);
		if (w < LANES) { // lanes past the row count as 0
			float t[LANES];
			v_store(t, x);
			x = v_loadn(t, w);
			v_store(t, y);
			y = v_loadn(t, w);
		}
		if (e) v_storet(e + i, y, w);
		sum = v_add(sum, y);
		dot = v_fma(y, x, dot);
	}
	struct row_stats s;
	const float logsum = log1(v_sum(sum));
	s.max = m;
	s.sum = v_sum(sum);
	s.lse = m + logsum;
	s.entropy = logsum - v_sum(dot) / s.sum;
	return s;
}

// logprob computes chunks lo..hi of g->chunk rows. scratch: logits [chunk][v].
static void logprob(const struct output_args *g, long lo, long hi, int tid) {
	float *z = g->scratch + tid * g->scratch_len;
	for (long u = lo; u < hi; u++) {
		const long r0 = u * g->chunk, r1 = r0 + g->chunk < g->rows ? r0 + g->chunk : g->rows;
		logit_rows(g, r0, r1, z, g->v);
		for (long r = r0; r < r1; r++) {
			float *zr = z + (r - r0) * g->v;
			const struct row_stats s = row_softmax(zr, g->v, g->inv_temp, 0);
			g->logprob[r] = zr[g->targets[r]] - s.lse;
			g->entropy[r] = s.entropy;
			g->lse[r] = s.lse;
		}
	}
}

// logprob_backward sets dz [row-row0][v] for chunks lo..hi counted from row0.
static void logprob_backward(const struct output_args *g, long lo, long hi, int tid) {
	(void)tid;
	for (long u = lo; u < hi; u++) {
		const long r0 = g->row0 + u * g->chunk, r1 = r0 + g->chunk < g->rows ? r0 + g->chunk : g->rows;
		float *dz = g->dz + (r0 - g->row0) * g->v;
		logit_rows(g, r0, r1, dz, g->v);
		for (long r = r0; r < r1; r++) {
			float *zr = dz + (r - r0) * g->v;
			const vf it = v_set1(g->inv_temp), lse = v_set1(g->lse[r]), ent = v_set1(g->entropy[r]),
				dl = v_set1(g->dlogprob[r]), dh = v_set1(g->dentropy[r]);
			const long a = g->targets[r];
			float at = 0;
			for (long i = 0; i < g->v; i += LANES) {
				const int w = g->v - i < LANES ? (int)(g->v - i) : LANES;
				const vf x = v_sub(v_mul(v_loadt(zr + i, w), it), lse);
				const vf q = v_fma(dh, v_add(x, ent), dl);
				v_storet(zr + i, v_neg(v_mul(v_exp(x), q)), w);
			}
			at = zr[a] + g->dlogprob[r];
			zr[a] = at;
			scale_row(zr, g->v, g->inv_temp);
		}
	}
}

#define SAMPLE_BLOCK 256

INLINE double block_sum(const float *e, long n) {
	double lane[LANES] = {0};
	for (long i = 0; i < n; i++) lane[i % LANES] += (double)e[i];
	for (int s = LANES / 2; s > 0; s /= 2)
		for (int j = 0; j < s; j++) lane[j] += lane[j + s];
	return lane[0];
}

// draw picks a token from weights e[0:v] with the uniform number u, as Draw of
// kernels/ref does.
INLINE long draw(const float *e, long v, float u) {
	double total = 0, run = 0;
	for (long b = 0; b < v; b += SAMPLE_BLOCK)
		total += block_sum(e + b, v - b < SAMPLE_BLOCK ? v - b : SAMPLE_BLOCK);
	const double x = (double)u * total;
	for (long b = 0; b < v; b += SAMPLE_BLOCK) {
		const long end = b + SAMPLE_BLOCK < v ? b + SAMPLE_BLOCK : v;
		const double next = run + block_sum(e + b, end - b);
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

// sample draws a token for the rows of chunks lo..hi from all tokens, or takes the
// most probable one. scratch: logits [chunk][v], exp [v].
static void sample(const struct output_args *g, long lo, long hi, int tid) {
	float *z = g->scratch + tid * g->scratch_len, *e = z + g->chunk * g->v;
	for (long u = lo; u < hi; u++) {
		const long r0 = u * g->chunk, r1 = r0 + g->chunk < g->rows ? r0 + g->chunk : g->rows;
		logit_rows(g, r0, r1, z, g->v);
		for (long r = r0; r < r1; r++) {
			float *zr = z + (r - r0) * g->v;
			const struct row_stats s = row_softmax(zr, g->v, g->inv_temp, e);
			long id = 0;
			if (g->greedy && s.sum == s.sum) {
				for (long i = 1; i < g->v; i++) if (zr[i] > zr[id]) id = i;
			} else if (!g->greedy) {
				id = draw(e, g->v, g->u[r]);
			}
			g->ids[r] = (int32_t)id;
			g->logprob[r] = zr[id] - s.lse;
			g->entropy[r] = s.entropy;
			g->lse[r] = s.lse;
		}
	}
}

// logits writes the scaled logits of chunks lo..hi to z [rows][v] and exp(z-max) to
// dz [rows][v], for draws that are restricted on the Go side; the sum of the
// exponentials goes to logprob, the row's scores to entropy and lse.
static void logits(const struct output_args *g, long lo, long hi, int tid) {
	(void)tid;
	for (long u = lo; u < hi; u++) {
		const long r0 = u * g->chunk, r1 = r0 + g->chunk < g->rows ? r0 + g->chunk : g->rows;
		logit_rows(g, r0, r1, g->z + r0 * g->v, g->v);
		for (long r = r0; r < r1; r++) {
			const struct row_stats s = row_softmax(g->z + r * g->v, g->v, g->inv_temp, g->dz + r * g->v);
			g->logprob[r] = s.sum;
			g->entropy[r] = s.entropy;
			g->lse[r] = s.lse;
		}
	}
}

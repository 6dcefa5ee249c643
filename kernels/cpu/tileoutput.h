// tileoutput.h: the output layer of class "cpu/bf16": output.h on logits from tiles,
// BLOCK rows at a time.

// tile_logits sets z [rows][ldz] to the unscaled logits of rows r0.. (at most BLOCK).
// a is room for the rows as tiles.
INLINE void tile_logits(const struct tile_output_args *g, long r0, long rows, bf16 *a, float *z, long ldz) {
	const long steps = steps_of(g->c);
	rows32(a, g->h, r0 * g->c, g->c, rows, g->c, 1);
	for (long j = 0; j < g->v; j += BLOCK)
		block_sums(a, g->w + j / BLOCK * steps * STEP, z + j, ldz, steps, rows, g->v - j, 1);
}

// logits_ld is the distance of rows of logits: whole blocks, and a line more, so that
// rows do not share a set of the cache.
INLINE long logits_ld(long v) { return (v + BLOCK - 1) / BLOCK * BLOCK + LANES; }

// room returns this thread's logits [BLOCK][ldz], exponentials [ldz], sums of their
// blocks and tiles.
struct output_room { float *z, *e; double *sums; bf16 *a; long ldz; };
INLINE struct output_room room(const struct tile_output_args *g, int tid) {
	struct output_room r;
	r.ldz = logits_ld(g->v);
	r.z = g->scratch + tid * g->scratch_len;
	r.e = r.z + BLOCK * r.ldz;
	r.sums = (double *)(r.e + r.ldz);
	r.a = (bf16 *)(r.sums + round_up(g->v / SAMPLE_BLOCK + 1, LANES));
	return r;
}

// Each of these works on chunks lo..hi of BLOCK rows, counted from row0.
#define CHUNKS(u, r0, n) \
	for (long u = lo, r0, n; u < hi && (r0 = g->row0 + u * BLOCK, n = g->rows - r0 < BLOCK ? g->rows - r0 : BLOCK, 1); u++)

static void tile_logprob(const struct tile_output_args *g, long lo, long hi, int tid) {
	const struct output_room m = room(g, tid);
	tiles_begin();
	CHUNKS(u, r0, n) {
		tile_logits(g, r0, n, m.a, m.z, m.ldz);
		for (long r = 0; r < n; r++) {
			const float *z = m.z + r * m.ldz;
			const struct row_stats s = row_softmax(z, g->v, g->inv_temp, 0);
			g->logprob[r0 + r] = z[g->targets[r0 + r]] * g->inv_temp - s.lse;
			g->entropy[r0 + r] = s.entropy;
			g->lse[r0 + r] = s.lse;
		}
	}
	tiles_end();
}

// tile_logprob_backward sets dz [row-row0][v], rounded.
static void tile_logprob_backward(const struct tile_output_args *g, long lo, long hi, int tid) {
	const struct output_room m = room(g, tid);
	const vf it = v_set1(g->inv_temp);
	tiles_begin();
	CHUNKS(u, r0, n) {
		tile_logits(g, r0, n, m.a, m.z, m.ldz);
		for (long r = r0; r < r0 + n; r++) {
			const float *z = m.z + (r - r0) * m.ldz;
			bf16 *dz = g->dz + (r - g->row0) * g->v;
			const vf lse = v_set1(g->lse[r]), ent = v_set1(g->entropy[r]), dl = v_set1(g->dlogprob[r]), dh = v_set1(g->dentropy[r]);
			const long a = g->targets[r], a0 = a / LANES * LANES;
			for (long i = 0; i < g->v; i += LANES) {
				const vf x = v_sub(v_mul(v_load(z + i), it), lse);
				vf y = v_neg(v_mul(v_exp(x), v_fma(dh, v_add(x, ent), dl)));
				if (i == a0) {
					float t[LANES];
					v_store(t, y);
					t[a - a0] += g->dlogprob[r];
					y = v_load(t);
				}
				st(dz, i, v_mul(y, it), lanes_left(g->v - i), 1);
			}
		}
	}
	tiles_end();
}

// tile_sample draws a token from all tokens, or takes the most probable one.
static void tile_sample(const struct tile_output_args *g, long lo, long hi, int tid) {
	const struct output_room m = room(g, tid);
	tiles_begin();
	CHUNKS(u, r0, n) {
		tile_logits(g, r0, n, m.a, m.z, m.ldz);
		for (long r = r0; r < r0 + n; r++) {
			const float *z = m.z + (r - r0) * m.ldz;
			const struct row_stats s = row_softmax(z, g->v, g->inv_temp, m.e);
			long id = 0;
			if (g->greedy && s.sum == s.sum) id = greatest(z, g->v, g->inv_temp);
			else if (!g->greedy) id = draw(m.e, g->v, g->u[r], m.sums);
			g->ids[r] = (int32_t)id;
			g->logprob[r] = z[id] * g->inv_temp - s.lse;
			g->entropy[r] = s.entropy;
			g->lse[r] = s.lse;
		}
	}
	tiles_end();
}

// tile_scaled_logits writes the scaled logits to z [rows][v] and exp(z-max) to e
// [rows][v], for draws that are restricted on the Go side; the sum of the exponentials
// goes to logprob, the row's scores to entropy and lse.
static void tile_scaled_logits(const struct tile_output_args *g, long lo, long hi, int tid) {
	const struct output_room m = room(g, tid);
	tiles_begin();
	CHUNKS(u, r0, n) {
		tile_logits(g, r0, n, m.a, m.z, m.ldz);
		for (long r = r0; r < r0 + n; r++) {
			float *z = m.z + (r - r0) * m.ldz;
			const struct row_stats s = row_softmax(z, g->v, g->inv_temp, g->e + r * g->v);
			memcpy(g->z + r * g->v, z, g->v * sizeof *z);
			scale_row(g->z + r * g->v, g->v, g->inv_temp);
			g->logprob[r] = s.sum;
			g->entropy[r] = s.entropy;
			g->lse[r] = s.lse;
		}
	}
	tiles_end();
}

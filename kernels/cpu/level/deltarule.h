// deltarule.h: the recurrence of linear attention. Vectors run along the columns of a state.
// The constant h says whether rows are BF16 (bf16.h).

// DELTA_VECTORS is the most vectors of columns that a sequence is computed for at a time: with
// 128 rows of 64 columns the state fits in the first-level cache.
#define DELTA_VECTORS 4

// delta_length returns 1 over the length of n elements of u from element `at`.
INLINE float delta_length(const void *u, long at, long n, const int h) {
	vf s = v_zero();
	for (long i = 0; i < n; i += LANES) {
		const vf x = ld(u, at + i, lanes_left(n - i), h);
		s = v_fma(x, x, s);
	}
	return 1.0f / sqrtf(v_sum(s) + DELTA_EPS);
}

// delta_scaled sets q and k [key_dim] to the scaled query and key of key head kh in row m.
INLINE void delta_scaled(const struct delta_args *g, long m, long kh, float *q, float *k, const int h) {
	const long n = g->key_dim, at = m * g->mixed + kh * n, key = at + g->keys * n;
	const vf rq = v_set1(delta_length(g->u, at, n, h)), rk = v_set1(delta_length(g->u, key, n, h)), c = v_set1(g->scale);
	for (long i = 0; i < n; i += LANES) {
		const int some = lanes_left(n - i);
		v_storet(q + i, v_mul(v_mul(ld(g->u, at + i, some, h), rq), c), some);
		v_storet(k + i, v_mul(ld(g->u, key + i, some, h), rk), some);
	}
}

// delta_predicted sets p to what key k reads of V vectors of the state S, whose rows are ld apart.
INLINE void delta_predicted(const float *S, long ld_, const float *k, long n, vf *p, const int V, int some) {
	for (int v = 0; v < V; v++) p[v] = v_zero();
	for (long i = 0; i < n; i++) {
		const vf ki = v_set1(k[i]);
#pragma GCC unroll 4
		for (int v = 0; v < V; v++) p[v] = v_fma(ki, v_loadt(S + i * ld_ + v * LANES, some), p[v]);
	}
}

// delta_step takes V vectors of columns, from column j, of value head vh through row m: it updates S
// and, with read, a constant, sets out. Of one vector, `some` columns count.
INLINE void delta_step(const struct delta_args *g, float *S, long ld_, long m, long vh, long j, const float *q, const float *k,
	const int V, int some, const int read, const int h) {
	vf d[DELTA_VECTORS], out[DELTA_VECTORS];
	const vf keep = v_set1(g->gates[m * 2 * g->values + vh]), w = v_set1(g->gates[m * 2 * g->values + g->values + vh]);
	const long v0 = m * g->mixed + 2 * g->keys * g->key_dim + vh * g->value_dim + j;
	delta_predicted(S, ld_, k, g->key_dim, d, V, some);
#pragma GCC unroll 4
	for (int v = 0; v < V; v++) {
		d[v] = v_mul(w, v_sub(ld(g->u, v0 + v * LANES, some, h), v_mul(keep, d[v])));
		out[v] = v_zero();
	}
	for (long i = 0; i < g->key_dim; i++) {
		const vf ki = v_set1(k[i]), qi = v_set1(q[i]);
#pragma GCC unroll 4
		for (int v = 0; v < V; v++) {
			float *p = S + i * ld_ + v * LANES;
			const vf s = v_fma(ki, d[v], v_mul(keep, v_loadt(p, some)));
			v_storet(p, s, some);
			if (read) out[v] = v_fma(qi, s, out[v]);
		}
	}
	if (!read) return;
	const long at = (m * g->values + vh) * g->value_dim + j;
	for (int v = 0; v < V; v++) st(g->out, at + v * LANES, out[v], some, h);
}

// delta_columns takes columns of value head vh through the own rows of a sequence.
INLINE void delta_columns(const struct delta_args *g, float *S, long first, long own, long vh, float *qk, const int h) {
	const long kh = vh / (g->values / g->keys), ld_ = g->value_dim;
	for (long j = 0; j < ld_;) {
		const long left = ld_ - j;
		const int V = left >= DELTA_VECTORS * LANES ? DELTA_VECTORS : 1;
		for (long m = first; m < first + own; m++) {
			delta_scaled(g, m, kh, qk, qk + g->key_dim, h);
			if (V == DELTA_VECTORS) delta_step(g, S + j, ld_, m, vh, j, qk, qk + g->key_dim, DELTA_VECTORS, LANES, 1, h);
			else delta_step(g, S + j, ld_, m, vh, j, qk, qk + g->key_dim, 1, lanes_left(left), 1, h);
		}
		j += V * LANES;
	}
}

// delta_units computes units lo..hi: a group of sequences × a value head. scratch: two states, a
// query and a key.
INLINE void delta_units(const struct delta_args *g, long lo, long hi, float *scratch, const int h) {
	const long size = g->key_dim * g->value_dim;
	float *ending = scratch, *S = ending + size, *qk = S + size;
	for (long u = lo; u < hi; u++) {
		const long group = u / g->values, vh = u % g->values;
		const long lead = group_from(&g->runs, group), to = group_to(&g->runs, group);
		for (long j = lead; j < to; j++) {
			const struct run q = run_at(&g->runs, j, lead);
			float *state = j == lead ? ending : S;
			if (g->runs.slots) {
				const long s = g->runs.slots[j];
				state = g->states + ((s < 0 ? -1 - s : s) * g->values + vh) * size;
				if (s < 0) memset(state, 0, size * sizeof *state);
			} else if (j == lead) memset(state, 0, size * sizeof *state);
			else memcpy(state, ending, size * sizeof *state);
			delta_columns(g, state, q.first, q.own, vh, qk, h);
		}
	}
}

static void delta_rule(const struct delta_args *g, long lo, long hi, int tid) {
	float *scratch = g->scratch + tid * g->scratch_len;
	if (g->bf16) delta_units(g, lo, hi, scratch, 1);
	else delta_units(g, lo, hi, scratch, 0);
}

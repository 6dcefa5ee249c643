// deltarule.h: the recurrence of linear attention. Vectors run along the columns of a state.
// The constant h says whether rows are BF16 (bf16.h), the constant scan whether it is Mamba-2's.

// DELTA_VECTORS is the most vectors of columns that a sequence is computed for at a time: their
// sums stay in registers, and 128 rows of the state in the first-level cache.
#if defined(LEVEL_AVX512)
#define DELTA_VECTORS 4
#else
#define DELTA_VECTORS 2
#endif

// delta_length returns 1 over the length of n elements of u from element `at`.
INLINE float delta_length(const void *u, long at, long n, const int h) {
	vf s = v_zero();
	for (long i = 0; i < n; i += LANES) {
		const vf x = ld(u, at + i, lanes_left(n - i), h);
		s = v_fma(x, x, s);
	}
	return 1.0f / sqrtf(v_sum(s) + DELTA_EPS);
}

// delta_scaled sets q and k [key_dim] to the query and key of key head kh in row m, scaled except in a scan.
INLINE void delta_scaled(const struct delta_args *g, long m, long kh, float *q, float *k, const int scan, int h) {
	const long n = g->key_dim, at = m * g->mixed + g->query + kh * n, key = m * g->mixed + g->key + kh * n;
	if (scan) {
		for (long i = 0; i < n; i += LANES) {
			const int some = lanes_left(n - i);
			v_storet(q + i, ld(g->u, at + i, some, h), some);
			v_storet(k + i, ld(g->u, key + i, some, h), some);
		}
		return;
	}
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

// delta_pass updates V vectors of a state with key k, which writes d, from `from` to S; both may be one.
// With read, it sets out to what query q reads of S, with more, p to what key `next` does. V, read and
// more are constants.
INLINE void delta_pass(const float *from, float *S, long ld_, const float *q, const float *k, const float *next, long n, vf keep, const vf *d, vf *out, vf *p,
	const int V, int some, const int read, const int more) {
	vf dv[DELTA_VECTORS], o[DELTA_VECTORS], s[DELTA_VECTORS];
#pragma GCC unroll 4
	for (int v = 0; v < V; v++) dv[v] = d[v], o[v] = s[v] = v_zero();
	for (long i = 0; i < n; i++) {
		const vf ki = v_set1(k[i]), qi = v_set1(read ? q[i] : 0), ni = v_set1(more ? next[i] : 0);
		float *row = S + i * ld_;
#pragma GCC unroll 4
		for (int v = 0; v < V; v++) {
			const vf x = v_fma(ki, dv[v], v_mul(keep, v_loadt(from + i * ld_ + v * LANES, some)));
			v_storet(row + v * LANES, x, some);
			if (read) o[v] = v_fma(qi, x, o[v]);
			if (more) s[v] = v_fma(ni, x, s[v]);
		}
	}
#pragma GCC unroll 4
	for (int v = 0; v < V; v++) {
		if (read) out[v] = o[v];
		if (more) p[v] = s[v];
	}
}

// delta_written returns what row m writes to columns j.. of value head vh, p being the prediction.
INLINE vf delta_written(const struct delta_args *g, long m, long vh, long j, vf p, int some, const int scan, int h) {
	const float *gate = g->gates + m * g->width + vh;
	const vf v = ld(g->u, m * g->mixed + g->value + vh * g->value_dim + j, some, h);
	if (scan) return v_mul(v_set1(gate[g->values]), v);
	return v_mul(v_set1(gate[g->values]), v_sub(v, v_mul(v_set1(gate[0]), p)));
}

// delta_rows takes columns j.. of value head vh through rows first..first+n, whose scaled queries and
// keys are qk: V vectors, a constant. Of one vector, `some` columns count.
INLINE void delta_rows(const struct delta_args *g, float *S, long first, long n, long vh, long j, const float *qk, const int V, int some,
	const int scan, int h) {
	vf d[DELTA_VECTORS], out[DELTA_VECTORS], p[DELTA_VECTORS];
	const long dim = g->key_dim, ld_ = g->value_dim;
	for (int v = 0; v < V; v++) p[v] = v_zero();
	if (!scan) delta_predicted(S, ld_, qk + dim, dim, p, V, some);
	for (long r = 0; r < n; r++, qk += 2 * dim) {
		const long m = first + r;
		const float *gate = g->gates + m * g->width + vh;
		const vf keep = v_set1(gate[0]);
		for (int v = 0; v < V; v++) d[v] = delta_written(g, m, vh, j + v * LANES, p[v], some, scan, h);
		if (!scan && r + 1 < n) delta_pass(S, S, ld_, qk, qk + dim, qk + 3 * dim, dim, keep, d, out, p, V, some, 1, 1);
		else delta_pass(S, S, ld_, qk, qk + dim, 0, dim, keep, d, out, p, V, some, 1, 0);
		for (int v = 0; v < V; v++) {
			if (scan) out[v] = v_fma(v_set1(gate[2 * g->values]), ld(g->u, m * g->mixed + vh * ld_ + j + v * LANES, some, h), out[v]);
			st(g->out, (m * g->values + vh) * ld_ + j + v * LANES, out[v], some, h);
		}
	}
}

// delta_columns takes the columns of value head vh through the own rows of a sequence, DELTA_ROWS at a
// time.
INLINE void delta_columns(const struct delta_args *g, float *S, long first, long own, long vh, float *qk, const int scan, int h) {
	const long kh = vh / (g->values / g->keys);
	for (long r = 0; r < own; r += DELTA_ROWS) {
		const long n = own - r < DELTA_ROWS ? own - r : DELTA_ROWS;
		for (long i = 0; i < n; i++) {
			float *q = qk + i * 2 * g->key_dim;
			delta_scaled(g, first + r + i, kh, q, q + g->key_dim, scan, h);
		}
		for (long j = 0; j < g->value_dim;) {
			const long left = g->value_dim - j;
			const int V = left >= DELTA_VECTORS * LANES ? DELTA_VECTORS : 1;
			if (V == DELTA_VECTORS) delta_rows(g, S + j, first + r, n, vh, j, qk, DELTA_VECTORS, LANES, scan, h);
			else delta_rows(g, S + j, first + r, n, vh, j, qk, 1, lanes_left(left), scan, h);
			j += V * LANES;
		}
	}
}

// delta_units computes units lo..hi: a group of sequences × a value head. scratch: two states, and
// queries and keys of DELTA_ROWS rows.
INLINE void delta_units(const struct delta_args *g, long lo, long hi, float *scratch, const int scan, int h) {
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
			delta_columns(g, state, q.first, q.own, vh, qk, scan, h);
		}
	}
}

BY_O3 static void delta_rule(const struct delta_args *g, long lo, long hi, int tid) {
	float *scratch = g->scratch + tid * g->scratch_len;
	if (g->scan) delta_units(g, lo, hi, scratch, 1, g->bf16);
	else delta_units(g, lo, hi, scratch, 0, g->bf16);
}

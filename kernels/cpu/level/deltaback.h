// deltaback.h: the gradients of the recurrence of linear attention (deltarule.h). A thread takes
// LANES columns of a state at a time through the rows of a group and back. It keeps the state of
// every DELTA_KEEP-th row and computes those between again.

// delta_back is a thread's memory: states are [key_dim][LANES].
struct delta_back {
	float *dS, *end, *d_end; // gradient of the state; state and its gradient at the prefix's end
	float *between, *p;      // [DELTA_KEEP+1] states; [DELTA_KEEP][LANES] predictions
	float *prefix, *own;     // kept states
	float *qk, *dqk;         // [rows][2·key_dim] of the group from row `first` on
	long first;
};

// delta_back_room lays the memory out and returns its length; see deltaBackRoom in recurrence.go.
INLINE void delta_back_room(const struct delta_args *g, struct delta_back *b, float *at) {
	const long size = g->key_dim * LANES;
	b->dS = at, at += size;
	b->end = at, at += size;
	b->d_end = at, at += size;
	b->between = at, at += (DELTA_KEEP + 1) * size;
	b->p = at, at += DELTA_KEEP * LANES;
	b->prefix = at, at += (g->longest / DELTA_KEEP + 1) * size;
	b->own = at, at += (g->longest / DELTA_KEEP + 1) * size;
	b->qk = at, at += g->most * 2 * g->key_dim;
	b->dqk = at;
}

// lane_sums returns the sums of the lanes of 16 vectors, by halves: of lanes 8 apart, 4, 2, 1.
#if defined(LEVEL_AVX2)
INLINE __m256 quarter_sums(__m256 a, __m256 b) {
	return _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
}
INLINE __m256 pair_sums(__m256 a, __m256 b) {
	return _mm256_add_ps(_mm256_shuffle_ps(a, b, 0x44), _mm256_shuffle_ps(a, b, 0xee));
}
INLINE __m256 lane_sums8(const __m256 r[8]) {
	const __m256 a = pair_sums(quarter_sums(r[0], r[4]), quarter_sums(r[1], r[5]));
	const __m256 b = pair_sums(quarter_sums(r[2], r[6]), quarter_sums(r[3], r[7]));
	return _mm256_add_ps(_mm256_shuffle_ps(a, b, 0x88), _mm256_shuffle_ps(a, b, 0xdd));
}
typedef __m256 half;
INLINE half v_halves(vf x) { return _mm256_add_ps(x.a, x.b); }
INLINE vf lane_sums(half r[LANES]) { return v_of(lane_sums8(r), lane_sums8(r + 8)); }
#else
typedef vf half;
INLINE half v_halves(vf x) { return x; }
INLINE vf lane_sums(half r[LANES]) {
	v_transpose(r);
#pragma GCC unroll 4
	for (int s = LANES / 2; s > 0; s /= 2)
		for (int i = 0; i < s; i++) r[i] = v_add(r[i], r[i + s]);
	return r[0];
}
#endif

// live returns n lanes of x and zeros.
INLINE vf live(vf x, int n) { return n < LANES ? v_keep(x, n, v_zero()) : x; }

// delta_walk is delta_pass for a vector of columns of a state [n][LANES].
BY_O3 static __attribute__((noinline)) void delta_walk(const float *from, float *S, const float *k, const float *next, long n, vf keep, const vf *d, vf *p) {
	delta_pass(from, S, LANES, 0, k, next, n, keep, d, 0, p, 1, LANES, 0, 1);
}

// delta_step is delta_walk without a prediction.
BY_O3 static __attribute__((noinline)) void delta_step(const float *from, float *S, const float *k, long n, vf keep, const vf *d) {
	delta_pass(from, S, LANES, 0, k, 0, n, keep, d, 0, 0, 1, LANES, 0, 0);
}

// delta_through takes a state through rows first..first+n, from S + r·step to S + (r+1)·step, and sets the
// predictions ps [n][LANES] unless they are null.
INLINE void delta_through(const struct delta_args *g, const struct delta_back *b, float *S, long step, float *ps, long first, long n, long vh, long j, int some, const int scan, int h) {
	const long dim = g->key_dim;
	const float *k = b->qk + (first - b->first) * 2 * dim + dim;
	vf p = v_zero();
	if (!scan) delta_predicted(S, LANES, k, dim, &p, 1, LANES);
	for (long r = 0; r < n; r++, k += 2 * dim, S += step) {
		const vf keep = v_set1(g->gates[(first + r) * g->width + vh]), d = delta_written(g, first + r, vh, j, p, some, scan, h);
		if (ps) v_store(ps + r * LANES, p);
		if (scan) delta_step(S, S + step, k, dim, keep, &d);
		else delta_walk(S, S + step, k, r + 1 < n ? k + 2 * dim : k, dim, keep, &d, &p);
	}
}

// delta_forth takes a state through rows first..first+n and keeps every DELTA_KEEP-th.
INLINE void delta_forth(const struct delta_args *g, const struct delta_back *b, float *S, float *kept, long first, long n, long vh, long j, int some, const int scan, int h) {
	const long size = g->key_dim * LANES;
	for (long r = 0; r < n; r += DELTA_KEEP, kept += size) {
		memcpy(kept, S, size * sizeof *S);
		delta_through(g, b, S, 0, 0, first + r, n - r < DELTA_KEEP ? n - r : DELTA_KEEP, vh, j, some, scan, h);
	}
}

// delta_read adds to dS [n][LANES] what comes through the output, whose gradient is dout, and to dq what
// comes through S. It sets dd to what key k reads of dS.
INLINE void delta_read(float *dS, const float *S, const float *q, const float *k, float *dq, long n, vf dout, vf *dd, int some) {
	vf sum = v_zero();
	half r[LANES];
	for (long i0 = 0; i0 < n; i0 += LANES) {
		const int rows = lanes_left(n - i0);
		for (int i = 0; i < rows; i++) {
			const long at = (i0 + i) * LANES;
			const vf s = v_fma(v_set1(q[i0 + i]), dout, v_load(dS + at));
			v_store(dS + at, s);
			sum = v_fma(v_set1(k[i0 + i]), s, sum);
			r[i] = v_halves(live(v_mul(v_load(S + at), dout), some));
		}
		for (int i = rows; i < LANES; i++) r[i] = v_halves(v_zero());
		v_storet(dq + i0, v_add(v_loadt(dq + i0, rows), lane_sums(r)), rows);
	}
	*dd = sum;
}

// delta_wrote takes dS [n][LANES] back from a row to state P before it, and adds to dk. It returns the
// chain of dS·P.
INLINE vf delta_wrote(float *dS, const float *P, const float *k, float *dk, long n, vf keep, vf d, vf dp, int some) {
	vf kept = v_zero();
	half r[LANES];
	for (long i0 = 0; i0 < n; i0 += LANES) {
		const int rows = lanes_left(n - i0);
		for (int i = 0; i < rows; i++) {
			const long at = (i0 + i) * LANES;
			const vf before = v_load(P + at), s = v_load(dS + at);
			r[i] = v_halves(live(v_fma(before, dp, v_mul(s, d)), some));
			kept = v_fma(s, before, kept);
			v_store(dS + at, v_fma(v_set1(k[i0 + i]), dp, v_mul(keep, s)));
		}
		for (int i = rows; i < LANES; i++) r[i] = v_halves(v_zero());
		v_storet(dk + i0, v_add(v_loadt(dk + i0, rows), lane_sums(r)), rows);
	}
	return kept;
}

BY_O3 static __attribute__((noinline)) void delta_read_some(float *dS, const float *S, const float *q, const float *k, float *dq, long n, const vf *dout, vf *dd, int some) {
	if (some == LANES) delta_read(dS, S, q, k, dq, n, *dout, dd, LANES);
	else delta_read(dS, S, q, k, dq, n, *dout, dd, some);
}

BY_O3 static __attribute__((noinline)) void delta_wrote_some(float *dS, const float *P, const float *k, float *dk, long n, float keep, const vf *d, const vf *dp, vf *kept, int some) {
	if (some == LANES) *kept = delta_wrote(dS, P, k, dk, n, v_set1(keep), *d, *dp, LANES);
	else *kept = delta_wrote(dS, P, k, dk, n, v_set1(keep), *d, *dp, some);
}

// delta_row takes the gradient dS back through row m, from state S to P, p being the prediction.
INLINE void delta_row(const struct delta_args *g, const struct delta_back *b, const float *P, const float *S, vf p, long m, long vh, long j, int some, const int scan, int h) {
	const long n = g->key_dim;
	const float *q = b->qk + (m - b->first) * 2 * n, *gate = g->gates + m * g->width + vh;
	float *dq = b->dqk + (m - b->first) * 2 * n, *dgate = g->dgates + m * g->width + vh;
	const vf keep = v_set1(gate[0]), w = v_set1(gate[g->values]);
	const vf dout = ld(g->dout, (m * g->values + vh) * g->value_dim + j, some, h);
	const long v0 = m * g->mixed + g->value + vh * g->value_dim + j;
	vf dd, kept;
	delta_read_some(b->dS, S, q, q + n, dq, n, &dout, &dd, some);
	const vf value = ld(g->u, v0, some, h), e = scan ? value : v_sub(value, v_mul(keep, p)), d = v_mul(w, e);
	vf dv = v_mul(w, dd), dp = v_zero();
	if (scan) {
		dv = v_fma(v_set1(gate[2 * g->values]), dout, dv);
		dgate[2 * g->values] += v_sum(live(v_mul(dout, value), some));
	} else
		dp = v_neg(v_mul(keep, dv));
	st(g->du, v0, dv, some, h);
	dgate[g->values] += v_sum(live(v_mul(dd, e), some));
	delta_wrote_some(b->dS, P, q + n, dq + n, n, gate[0], &d, &dp, &kept, some);
	*dgate += v_sum(live(v_fma(v_neg(dv), p, kept), some));
}

// delta_back_rows takes dS back through rows first..first+n, whose kept states are given.
INLINE void delta_back_rows(const struct delta_args *g, const struct delta_back *b, const float *kept, long first, long n, long vh, long j, int some, const int scan, int h) {
	const long size = g->key_dim * LANES;
	for (long part = (n + DELTA_KEEP - 1) / DELTA_KEEP - 1; part >= 0; part--) {
		const long from = first + part * DELTA_KEEP, rows = n - part * DELTA_KEEP < DELTA_KEEP ? n - part * DELTA_KEEP : DELTA_KEEP;
		memcpy(b->between, kept + part * size, size * sizeof *kept);
		delta_through(g, b, b->between, size, b->p, from, rows, vh, j, some, scan, h);
		for (long r = rows - 1; r >= 0; r--)
			delta_row(g, b, b->between + r * size, b->between + (r + 1) * size, v_load(b->p + r * LANES), from + r, vh, j, some, scan, h);
	}
}

// delta_back_columns does so for LANES columns from j of value head vh, over all sequences of a group.
INLINE void delta_back_columns(const struct delta_args *g, const struct delta_back *b, long lead, long to, long vh, long j, const int scan, int h) {
	const long size = g->key_dim * LANES;
	const int some = lanes_left(g->value_dim - j);
	const struct run prefix = run_at(&g->runs, lead, lead);
	memset(b->end, 0, size * sizeof *b->end);
	memset(b->d_end, 0, size * sizeof *b->end);
	delta_forth(g, b, b->end, b->prefix, prefix.first, prefix.own, vh, j, some, scan, h);
	for (long s = lead + 1; s < to; s++) {
		const struct run q = run_at(&g->runs, s, lead);
		memcpy(b->dS, b->end, size * sizeof *b->end); // the state, for now
		delta_forth(g, b, b->dS, b->own, q.first, q.own, vh, j, some, scan, h);
		memset(b->dS, 0, size * sizeof *b->end);
		delta_back_rows(g, b, b->own, q.first, q.own, vh, j, some, scan, h);
		for (long i = 0; i < size; i += LANES) v_store(b->d_end + i, v_add(v_load(b->d_end + i), v_load(b->dS + i)));
	}
	memcpy(b->dS, b->d_end, size * sizeof *b->end);
	delta_back_rows(g, b, b->prefix, prefix.first, prefix.own, vh, j, some, scan, h);
}

// delta_unscale stores the gradient of a query or key of the mixed rows, from element `at`, given the
// gradient d of the scaled one, which in a scan it is.
INLINE void delta_unscale(const struct delta_args *g, long at, const float *d, float c, const int scan, int h) {
	const long n = g->key_dim;
	if (scan) {
		for (long i = 0; i < n; i += LANES) st(g->du, at + i, v_loadt(d + i, lanes_left(n - i)), lanes_left(n - i), h);
		return;
	}
	const float r = delta_length(g->u, at, n, h);
	vf f = v_zero();
	for (long i = 0; i < n; i += LANES) {
		const int some = lanes_left(n - i);
		f = v_fma(v_loadt(d + i, some), ld(g->u, at + i, some, h), f);
	}
	const vf a = v_set1(-(v_sum(f) * ((r * r) * r))), rv = v_set1(r), cv = v_set1(c);
	for (long i = 0; i < n; i += LANES) {
		const int some = lanes_left(n - i);
		st(g->du, at + i, v_mul(v_fma(a, ld(g->u, at + i, some, h), v_mul(v_loadt(d + i, some), rv)), cv), some, h);
	}
}

INLINE void delta_back_units(const struct delta_args *g, long lo, long hi, float *scratch, const int scan, int h) {
	struct delta_back b;
	delta_back_room(g, &b, scratch);
	const long n = g->key_dim, shared = g->values / g->keys;
	for (long u = lo; u < hi; u++) {
		const long group = u / g->keys, kh = u % g->keys;
		const long lead = group_from(&g->runs, group), to = group_to(&g->runs, group);
		if (lead == to) continue;
		b.first = g->runs.offsets[lead];
		const long rows = g->runs.offsets[to] - b.first;
		for (long m = 0; m < rows; m++) {
			delta_scaled(g, b.first + m, kh, b.qk + m * 2 * n, b.qk + m * 2 * n + n, scan, h);
			for (long i = 0; i < shared; i++) {
				float *dgate = g->dgates + (b.first + m) * g->width + kh * shared + i;
				dgate[0] = dgate[g->values] = 0;
				if (scan) dgate[2 * g->values] = 0;
			}
		}
		memset(b.dqk, 0, rows * 2 * n * sizeof *b.dqk);
		for (long vh = kh * shared; vh < (kh + 1) * shared; vh++)
			for (long j = 0; j < g->value_dim; j += LANES) delta_back_columns(g, &b, lead, to, vh, j, scan, h);
		for (long m = 0; m < rows; m++) {
			const long at = (b.first + m) * g->mixed + kh * n;
			delta_unscale(g, at + g->query, b.dqk + m * 2 * n, g->scale, scan, h);
			delta_unscale(g, at + g->key, b.dqk + m * 2 * n + n, 1.0f, scan, h);
		}
	}
}

// delta_rule_backward computes units lo..hi: a group of sequences × a key head.
BY_O3 static void delta_rule_backward(const struct delta_args *g, long lo, long hi, int tid) {
	float *scratch = g->scratch + tid * g->scratch_len;
	if (g->scan) delta_back_units(g, lo, hi, scratch, 1, g->bf16);
	else delta_back_units(g, lo, hi, scratch, 0, g->bf16);
}

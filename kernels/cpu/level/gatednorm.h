// gatednorm.h: the norm of linear attention's output with its gate, the output gate of attention, and
// their gradients. The constant h says whether rows are BF16 (bf16.h).

// gate_at returns the first element of the gates of value head v in projected row m.
INLINE long gate_at(const struct gated_norm_args *g, long m, long v) {
	const long r = g->per_group;
	return m * g->stride + v / r * g->group + g->at + v % r * g->dim;
}

INLINE void gated_norm_rows(const struct gated_norm_args *g, long lo, long hi, const int h) {
	for (long m = lo; m < hi; m++)
		for (long v = 0; v < g->heads; v++) {
			const long at = (m * g->heads + v) * g->dim, gate = gate_at(g, m, v);
			vf squares = v_zero();
			for (long i = 0; i < g->dim; i += LANES) {
				const vf x = ld(g->x, at + i, lanes_left(g->dim - i), h);
				squares = v_fma(x, x, squares);
			}
			const float r = 1.0f / sqrtf(v_sum(squares) / (float)g->dim + g->eps);
			g->rstd[m * g->heads + v] = r;
			const vf rv = v_set1(r);
			for (long i = 0; i < g->dim; i += LANES) {
				const int n = lanes_left(g->dim - i);
				const vf y = v_mul(v_mul(ld(g->x, at + i, n, h), rv), v_loadt(g->weight + i, n));
				const vf z = ld(g->p, gate + i, n, h);
				st(g->out, at + i, v_mul(y, v_mul(z, v_sigmoid(z))), n, h);
			}
		}
}

static void gated_norm(const struct gated_norm_args *g, long lo, long hi, int tid) {
	(void)tid;
	if (g->bf16) gated_norm_rows(g, lo, hi, 1);
	else gated_norm_rows(g, lo, hi, 0);
}

// gated_norm_back computes one value head of a row and adds to the sums [dim] of dweight. dn [dim] is
// scratch.
INLINE void gated_norm_back(const struct gated_norm_args *g, long m, long v, float *sums, float *dn, const int h) {
	const long at = (m * g->heads + v) * g->dim, gate = gate_at(g, m, v);
	const float r = g->rstd[m * g->heads + v];
	const vf one = v_set1(1.0f), rv = v_set1(r);
	vf s = v_zero();
	for (long i = 0; i < g->dim; i += LANES) {
		const int n = lanes_left(g->dim - i);
		const vf z = ld(g->p, gate + i, n, h), sg = v_sigmoid(z), x = ld(g->x, at + i, n, h), d = ld(g->dout, at + i, n, h);
		const vf w = v_loadt(g->weight + i, n), xr = v_mul(x, rv), dnv = v_mul(d, v_mul(z, sg));
		st(g->dp, gate + i, v_mul(v_mul(d, v_mul(xr, w)), v_mul(sg, v_fma(z, v_sub(one, sg), one))), n, h);
		v_storet(sums + i, v_fma(dnv, xr, v_loadt(sums + i, n)), n);
		const vf gv = v_mul(dnv, w);
		v_storet(dn + i, gv, n);
		const vf next = v_fma(gv, x, s);
		s = n < LANES ? v_keep(next, n, s) : next;
	}
	const vf mean = norm_back_mean(s, r, g->dim);
	for (long i = 0; i < g->dim; i += LANES) {
		const int n = lanes_left(g->dim - i);
		st(g->dx, at + i, v_fma(mean, ld(g->x, at + i, n, h), v_mul(v_loadt(dn + i, n), rv)), n, h);
	}
}

// gated_norm_backward computes gradient blocks lo..hi and their parts [blocks][dim] of dweight, which
// rmsnorm_dweight adds up.
static void gated_norm_backward(const struct gated_norm_args *g, long lo, long hi, int tid) {
	float *dn = g->scratch + tid * g->scratch_len;
	for (long b = lo; b < hi; b++) {
		float *sums = g->parts + b * g->dim;
		memset(sums, 0, g->dim * sizeof *sums);
		for (long m = g->block[b]; m < g->block[b + 1]; m++)
			for (long v = 0; v < g->heads; v++) {
				if (g->bf16) gated_norm_back(g, m, v, sums, dn, 1);
				else gated_norm_back(g, m, v, sums, dn, 0);
			}
	}
}

// gated_group returns n channels of group v in row m from channel i on, times their gates. It sets x to the channels and z
// to the gates.
INLINE vf gated_group(const struct gated_norm_args *g, long m, long v, long i, int n, vf *x, vf *z, const int h) {
	*x = ld(g->x, (m * g->heads + v) * g->dim + i, n, h), *z = ld(g->p, gate_at(g, m, v) + i, n, h);
	return v_mul(*x, v_mul(*z, v_sigmoid(*z)));
}

INLINE void grouped_norm_rows(const struct gated_norm_args *g, long lo, long hi, const int h) {
	vf x, z;
	for (long m = lo; m < hi; m++)
		for (long v = 0; v < g->heads; v++) {
			vf squares = v_zero();
			for (long i = 0; i < g->dim; i += LANES) {
				const vf y = gated_group(g, m, v, i, lanes_left(g->dim - i), &x, &z, h);
				squares = v_fma(y, y, squares);
			}
			const float r = 1.0f / sqrtf(v_sum(squares) / (float)g->dim + g->eps);
			g->rstd[m * g->heads + v] = r;
			const vf rv = v_set1(r);
			for (long i = 0; i < g->dim; i += LANES) {
				const int n = lanes_left(g->dim - i);
				const vf y = gated_group(g, m, v, i, n, &x, &z, h);
				st(g->out, (m * g->heads + v) * g->dim + i, v_mul(v_mul(y, rv), v_loadt(g->weight + v * g->dim + i, n)), n, h);
			}
		}
}

static void grouped_norm(const struct gated_norm_args *g, long lo, long hi, int tid) {
	(void)tid;
	if (g->bf16) grouped_norm_rows(g, lo, hi, 1);
	else grouped_norm_rows(g, lo, hi, 0);
}

// grouped_norm_back computes one group of a row and adds to the sums [dim] of its dweight.
INLINE void grouped_norm_back(const struct gated_norm_args *g, long m, long v, float *sums, const int h) {
	const long at = (m * g->heads + v) * g->dim, gate = gate_at(g, m, v);
	const float r = g->rstd[m * g->heads + v], *w = g->weight + v * g->dim;
	const vf one = v_set1(1.0f), rv = v_set1(r);
	vf s = v_zero(), x, z;
	for (long i = 0; i < g->dim; i += LANES) {
		const int n = lanes_left(g->dim - i);
		const vf y = gated_group(g, m, v, i, n, &x, &z, h), d = ld(g->dout, at + i, n, h);
		v_storet(sums + i, v_fma(d, v_mul(y, rv), v_loadt(sums + i, n)), n);
		const vf next = v_fma(v_mul(d, v_loadt(w + i, n)), y, s);
		s = n < LANES ? v_keep(next, n, s) : next;
	}
	const vf mean = norm_back_mean(s, r, g->dim);
	for (long i = 0; i < g->dim; i += LANES) {
		const int n = lanes_left(g->dim - i);
		const vf y = gated_group(g, m, v, i, n, &x, &z, h), sg = v_sigmoid(z), d = ld(g->dout, at + i, n, h);
		const vf dy = v_fma(mean, y, v_mul(v_mul(d, v_loadt(w + i, n)), rv));
		st(g->dp, gate + i, v_mul(v_mul(dy, x), v_mul(sg, v_fma(z, v_sub(one, sg), one))), n, h);
		st(g->dx, at + i, v_mul(dy, v_mul(z, sg)), n, h);
	}
}

// grouped_norm_backward computes gradient blocks lo..hi and their parts [blocks][heads·dim] of dweight, which
// rmsnorm_dweight adds up.
static void grouped_norm_backward(const struct gated_norm_args *g, long lo, long hi, int tid) {
	(void)tid;
	const long out = g->heads * g->dim;
	for (long b = lo; b < hi; b++) {
		float *sums = g->parts + b * out;
		memset(sums, 0, out * sizeof *sums);
		for (long m = g->block[b]; m < g->block[b + 1]; m++)
			for (long v = 0; v < g->heads; v++) {
				if (g->bf16) grouped_norm_back(g, m, v, sums + v * g->dim, 1);
				else grouped_norm_back(g, m, v, sums + v * g->dim, 0);
			}
	}
}

// move_heads copies the heads of rows lo..hi except the gates: from x to qkv, or back.
static void move_heads(const struct output_gate_args *g, long lo, long hi, int tid) {
	(void)tid;
	const long bytes = g->d * (g->bf16 ? 2 : 4);
	for (long m = lo; m < hi; m++)
		for (long i = 0; i < g->h + 2 * g->kv; i++) {
			char *narrow = (char *)g->qkv + (m * (g->h + 2 * g->kv) + i) * bytes;
			char *wide = (char *)g->x + (m * 2 * (g->h + g->kv) + (i < g->h ? 2 * i : g->h + i)) * bytes;
			if (g->back) memcpy(wide, narrow, bytes);
			else memcpy(narrow, wide, bytes);
		}
}

INLINE void output_gate_rows(const struct output_gate_args *g, long lo, long hi, const int back, const int h) {
	const vf one = v_set1(1.0f);
	for (long v = lo * g->h; v < hi * g->h; v++) {
		const long gate = (v / g->h * 2 * (g->h + g->kv) + 2 * (v % g->h) + 1) * g->d;
		for (long i = 0; i < g->d; i += LANES) {
			const int n = lanes_left(g->d - i);
			const vf s = v_sigmoid(ld(g->x, gate + i, n, h)), att = ld(g->att, v * g->d + i, n, h);
			if (!back) {
				st(g->out, v * g->d + i, v_mul(att, s), n, h);
				continue;
			}
			const vf d = ld(g->dout, v * g->d + i, n, h);
			st(g->dx, gate + i, v_mul(v_mul(d, att), v_mul(s, v_sub(one, s))), n, h);
			st(g->out, v * g->d + i, v_mul(d, s), n, h);
		}
	}
}

static void output_gate(const struct output_gate_args *g, long lo, long hi, int tid) {
	(void)tid;
	switch (g->back * 2 + g->bf16) {
	case 0: output_gate_rows(g, lo, hi, 0, 0); return;
	case 1: output_gate_rows(g, lo, hi, 0, 1); return;
	case 2: output_gate_rows(g, lo, hi, 1, 0); return;
	case 3: output_gate_rows(g, lo, hi, 1, 1); return;
	}
}

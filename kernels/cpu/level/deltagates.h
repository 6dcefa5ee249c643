// deltagates.h: what each value head of linear attention keeps and writes, and its gradients.

INLINE float ld1(const void *p, long i, const int h) { return h ? widen(((const bf16 *)p)[i]) : ((const float *)p)[i]; }
INLINE void st1(void *p, long i, float x, const int h) {
	if (h) ((bf16 *)p)[i] = round1(x);
	else ((float *)p)[i] = x;
}

// write_column and forget_column return the projected columns of value head i's logits.
INLINE long write_column(const struct delta_gates_args *g, long i) {
	const long r = g->by_key ? g->heads / g->keys : g->heads;
	return g->at + i / r * 2 * r + i % r;
}
INLINE long forget_column(const struct delta_gates_args *g, long i) {
	if (g->scan) return g->at + i;
	return write_column(g, i) + (g->by_key ? g->heads / g->keys : g->heads);
}

// softplus is Softplus of kernels/ref/deltagates.go; e is Exp(x).
INLINE float softplus(float x, float e) {
	if (x > 20.0f) return x;
	const float u = 1.0f + e;
	return u == 1.0f ? e : log1(u) * (e / (u - 1.0f));
}

// time_step returns w within the limits of a scan, and a NaN as it is.
INLINE float time_step(const struct delta_gates_args *g, float w) { return w < g->low ? g->low : w > g->high ? g->high : w; }

// forget_rate sets z to the arguments of Softplus and w to its values, or a scan's time steps, and returns the logarithms
// of what value heads i..i+n keep, rate being Exp of their logs.
INLINE vf forget_rate(const struct delta_gates_args *g, long m, long i, int n, vf rate, vf *z, vf *w, const int h) {
	float t[LANES] = {0}, e[LANES];
	for (int k = 0; k < n; k++) t[k] = ld1(g->x, m * g->stride + forget_column(g, i + k), h) + g->bias[i + k];
	*z = v_load(t);
	v_store(e, v_exp(*z));
	for (int k = 0; k < LANES; k++) t[k] = softplus(t[k], e[k]);
	if (g->scan)
		for (int k = 0; k < LANES; k++) t[k] = time_step(g, t[k]);
	*w = v_load(t);
	return v_neg(v_mul(rate, *w));
}

INLINE void delta_gates_rows(const struct delta_gates_args *g, long lo, long hi, const int h) {
	for (long i = 0; i < g->heads; i += LANES) {
		const int n = lanes_left(g->heads - i);
		const vf rate = v_exp(v_loadt(g->logs + i, n));
		for (long m = lo; m < hi; m++) {
			float b[LANES] = {0};
			vf z, w;
			if (g->scan) {
				float *gate = g->gates + m * 3 * g->heads + i;
				v_storet(gate, v_exp(forget_rate(g, m, i, n, rate, &z, &w, h)), n);
				v_storet(gate + g->heads, w, n);
				v_storet(gate + 2 * g->heads, v_loadt(g->skip + i, n), n);
				continue;
			}
			for (int k = 0; k < n; k++) b[k] = ld1(g->x, m * g->stride + write_column(g, i + k), h);
			v_storet(g->gates + m * 2 * g->heads + i, v_exp(forget_rate(g, m, i, n, rate, &z, &w, h)), n);
			v_storet(g->gates + m * 2 * g->heads + g->heads + i, v_sigmoid(v_load(b)), n);
		}
	}
}

static void delta_gates(const struct delta_gates_args *g, long lo, long hi, int tid) {
	(void)tid;
	if (g->bf16) delta_gates_rows(g, lo, hi, 1);
	else delta_gates_rows(g, lo, hi, 0);
}

// delta_gates_heads computes the gradients of n value heads from i on, at most LANES.
INLINE void delta_gates_heads(const struct delta_gates_args *g, long i, int n, const int h) {
	const vf one = v_set1(1.0f), rate = v_exp(v_loadt(g->logs + i, n));
	vf dlogs = v_loadt(g->dlogs + i, n), dbias = v_loadt(g->dbias + i, n);
	for (long b = 0; b < g->blocks; b++) {
		vf sum_logs = v_zero(), sum_bias = v_zero();
		for (long m = g->block[b]; m < g->block[b + 1]; m++) {
			const long at = m * 2 * g->heads + i;
			const vf w = v_loadt(g->gates + at + g->heads, n);
			const vf d = v_mul(v_loadt(g->dgates + at, n), v_loadt(g->gates + at, n));
			float s[LANES], zs[LANES], db[LANES];
			vf z, step;
			const vf e = forget_rate(g, m, i, n, rate, &z, &step, h);
			v_store(zs, z);
			v_store(s, v_sigmoid(z));
			for (int k = 0; k < LANES; k++) if (zs[k] > 20.0f) s[k] = 1.0f;
			const vf da = v_neg(v_mul(v_mul(d, rate), v_load(s)));
			sum_logs = v_add(sum_logs, v_mul(d, e));
			sum_bias = v_add(sum_bias, da);
			v_store(db, v_mul(v_loadt(g->dgates + at + g->heads, n), v_mul(w, v_sub(one, w))));
			v_store(s, da);
			for (int k = 0; k < n; k++) {
				st1(g->dx, m * g->stride + forget_column(g, i + k), s[k], h);
				st1(g->dx, m * g->stride + write_column(g, i + k), db[k], h);
			}
		}
		dlogs = v_add(dlogs, sum_logs), dbias = v_add(dbias, sum_bias);
	}
	v_storet(g->dlogs + i, dlogs, n);
	v_storet(g->dbias + i, dbias, n);
}

// scan_gates_heads does so for a scan.
INLINE void scan_gates_heads(const struct delta_gates_args *g, long i, int n, const int h) {
	const vf rate = v_exp(v_loadt(g->logs + i, n));
	vf dlogs = v_loadt(g->dlogs + i, n), dbias = v_loadt(g->dbias + i, n), dskip = v_loadt(g->dskip + i, n);
	for (long b = 0; b < g->blocks; b++) {
		vf sum_logs = v_zero(), sum_bias = v_zero(), sum_skip = v_zero();
		for (long m = g->block[b]; m < g->block[b + 1]; m++) {
			const float *gate = g->gates + m * 3 * g->heads + i, *dgate = g->dgates + m * 3 * g->heads + i;
			const vf d = v_mul(v_loadt(dgate, n), v_loadt(gate, n));
			float s[LANES], zs[LANES], e[LANES], da[LANES];
			vf z, w;
			sum_logs = v_add(sum_logs, v_mul(d, forget_rate(g, m, i, n, rate, &z, &w, h)));
			v_store(zs, z);
			v_store(s, v_sigmoid(z));
			v_store(e, v_exp(z));
			for (int k = 0; k < LANES; k++) if (zs[k] > 20.0f) s[k] = 1.0f;
			v_store(da, v_mul(v_sub(v_loadt(dgate + g->heads, n), v_mul(d, rate)), v_load(s)));
			for (int k = 0; k < n; k++) {
				const float y = softplus(zs[k], e[k]);
				if (y < g->low || y > g->high) da[k] = 0;
				st1(g->dx, m * g->stride + forget_column(g, i + k), da[k], h);
			}
			sum_bias = v_add(sum_bias, v_load(da));
			sum_skip = v_add(sum_skip, v_loadt(dgate + 2 * g->heads, n));
		}
		dlogs = v_add(dlogs, sum_logs), dbias = v_add(dbias, sum_bias), dskip = v_add(dskip, sum_skip);
	}
	v_storet(g->dlogs + i, dlogs, n);
	v_storet(g->dbias + i, dbias, n);
	v_storet(g->dskip + i, dskip, n);
}

// delta_gates_backward computes units lo..hi of LANES value heads.
static void delta_gates_backward(const struct delta_gates_args *g, long lo, long hi, int tid) {
	(void)tid;
	for (long u = lo; u < hi; u++) {
		const int n = lanes_left(g->heads - u * LANES);
		switch (g->scan * 2 + g->bf16) {
		case 0: delta_gates_heads(g, u * LANES, n, 0); break;
		case 1: delta_gates_heads(g, u * LANES, n, 1); break;
		case 2: scan_gates_heads(g, u * LANES, n, 0); break;
		case 3: scan_gates_heads(g, u * LANES, n, 1); break;
		}
	}
}

// swiglu.h: the gated feed-forward activation.

INLINE vf v_sigmoid(vf x) { return v_div(v_set1(1.0f), v_add(v_set1(1.0f), v_exp(v_neg(x)))); }

static void swiglu(const struct swiglu_args *a, long lo, long hi, int tid) {
	(void)tid;
	const long f = a->f;
	for (long m = lo; m < hi; m++) {
		const float *gate = a->gate_up + m * 2 * f, *up = gate + f;
		float *out = a->out + m * f;
		for (long i = 0; i < f; i += LANES) {
			const int n = f - i < LANES ? (int)(f - i) : LANES;
			const vf g = v_loadt(gate + i, n);
			v_storet(out + i, v_mul(v_mul(g, v_sigmoid(g)), v_loadt(up + i, n)), n);
		}
	}
}

static void swiglu_backward(const struct swiglu_args *a, long lo, long hi, int tid) {
	(void)tid;
	const long f = a->f;
	const vf one = v_set1(1.0f);
	for (long m = lo; m < hi; m++) {
		const float *gate = a->gate_up + m * 2 * f, *up = gate + f, *dout = a->dout + m * f;
		float *dgate = a->out + m * 2 * f, *dup = dgate + f;
		for (long i = 0; i < f; i += LANES) {
			const int n = f - i < LANES ? (int)(f - i) : LANES;
			const vf g = v_loadt(gate + i, n), u = v_loadt(up + i, n), d = v_loadt(dout + i, n);
			const vf s = v_sigmoid(g);
			v_storet(dup + i, v_mul(d, v_mul(g, s)), n);
			v_storet(dgate + i, v_mul(v_mul(d, u), v_mul(s, v_fma(g, v_sub(one, s), one))), n);
		}
	}
}

// swiglu.h: the gated feed-forward activation. The constant h says whether its
// buffers are BF16 (bf16.h).

INLINE vf v_sigmoid(vf x) { return v_div(v_set1(1.0f), v_add(v_set1(1.0f), v_exp(v_neg(x)))); }

INLINE void swiglu_rows(const struct swiglu_args *a, long lo, long hi, const int h) {
	const long f = a->f;
	for (long m = lo; m < hi; m++) {
		const long gate = m * 2 * f, up = gate + f;
		for (long i = 0; i < f; i += LANES) {
			const int n = lanes_left(f - i);
			const vf g = ld(a->gate_up, gate + i, n, h);
			st(a->out, m * f + i, v_mul(v_mul(g, v_sigmoid(g)), ld(a->gate_up, up + i, n, h)), n, h);
		}
	}
}

static void swiglu(const struct swiglu_args *a, long lo, long hi, int tid) {
	(void)tid;
	if (a->bf16) swiglu_rows(a, lo, hi, 1);
	else swiglu_rows(a, lo, hi, 0);
}

INLINE void swiglu_backward_rows(const struct swiglu_args *a, long lo, long hi, const int h) {
	const long f = a->f;
	const vf one = v_set1(1.0f);
	for (long m = lo; m < hi; m++) {
		const long gate = m * 2 * f, up = gate + f;
		for (long i = 0; i < f; i += LANES) {
			const int n = lanes_left(f - i);
			const vf g = ld(a->gate_up, gate + i, n, h), u = ld(a->gate_up, up + i, n, h), d = ld(a->dout, m * f + i, n, h);
			const vf s = v_sigmoid(g);
			st(a->out, up + i, v_mul(d, v_mul(g, s)), n, h);
			st(a->out, gate + i, v_mul(v_mul(d, u), v_mul(s, v_fma(g, v_sub(one, s), one))), n, h);
		}
	}
}

static void swiglu_backward(const struct swiglu_args *a, long lo, long hi, int tid) {
	(void)tid;
	if (a->bf16) swiglu_backward_rows(a, lo, hi, 1);
	else swiglu_backward_rows(a, lo, hi, 0);
}

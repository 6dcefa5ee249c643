// gates.h: gated activations on their own, and their gradients. kind and h say which activation it is and
// whether the rows are BF16 (bf16.h); for SiLU both are constants.

// gelu_tanh returns the activation of gates, and with back also its derivative.
// As in kernels/ref it computes in float64 and rounds once.
ONE_COPY vf gelu_tanh(vf gate, vf *slope, int back) {
	static const double exp_terms[] = {1, 1, 0.5, 0.16666666666666666, 0.041666666666666664, 0.008333333333333333,
		0.001388888888888889, 0.0001984126984126984, 2.48015873015873e-05, 2.7557319223985893e-06, 2.755731922398589e-07,
		2.505210838544172e-08, 2.08767569878681e-09, 1.6059043836821613e-10};
	const vd one = d_set1(1), root2 = d_set1(1.5957691216057308); // 2·√(2/π)
	const vd x = d_widen(gate), xx = d_mul(x, x);
	const vd arg = d_mul(d_mul(root2, x), d_fma(d_set1(0.044715), xx, one));
	// e = exp(-|arg|), which underflows to 0 in float64 below -1000.
	const vd low = d_at_least(d_neg_abs(arg), -1000), n = d_rint(d_mul(low, d_set1(1.44269504088896338700)));
	const vd r = d_fma(n, d_set1(-1.90821492927058770002e-10), d_fma(n, d_set1(-6.93147180369123816490e-01), low));
	vd e = d_set1(exp_terms[13]);
#pragma GCC unroll 13
	for (int k = 12; k >= 0; k--) e = d_fma(e, r, d_set1(exp_terms[k]));
	e = d_scale(e, n);
	const vd s = d_div(d_where_neg(arg, e, one), d_add(one, e)), y = d_mul(x, s);
	if (back) *slope = d_round(d_fma(d_mul(y, d_sub(one, s)), d_mul(root2, d_fma(d_set1(0.134145), xx, one)), s));
	return d_round(y);
}

// clamped_up returns 1 + ups, which are clamped, and clamped gpt-oss's activation of gates times that (kernels/ref).
INLINE vf clamped_up(vf up) {
	const vf most = v_set1(GATE_LIMIT), least = v_set1(-GATE_LIMIT);
	return v_add(v_above(up, most, most, v_above(least, up, least, up)), v_set1(1.0f));
}
INLINE vf clamped(vf gate, vf up) {
	const vf most = v_set1(GATE_LIMIT), c = v_above(gate, most, most, gate);
	return v_mul(v_mul(c, v_sigmoid(v_mul(v_set1(GATE_SLOPE), c))), clamped_up(up));
}

// clamped_gradients replaces gates and ups by their gradients, 0 where they are beyond their bounds; d is the activation's.
INLINE void clamped_gradients(vf *gate, vf *up, vf d) {
	const vf one = v_set1(1.0f), most = v_set1(GATE_LIMIT), c = v_above(*gate, most, most, *gate);
	const vf z = v_mul(v_set1(GATE_SLOPE), c), s = v_sigmoid(z), du = v_mul(d, v_mul(c, s));
	const vf dg = v_mul(v_mul(d, clamped_up(*up)), v_mul(s, v_fma(z, v_sub(one, s), one)));
	*gate = v_above(*gate, most, v_zero(), dg);
	*up = v_above(*up, most, v_zero(), v_above(v_set1(-GATE_LIMIT), *up, v_zero(), du));
}

// plain_gate returns an activation of one number, with back times d's slope.
INLINE vf plain_gate(vf x, vf d, int back, enum gate_kind kind) {
	if (kind == RELU2) {
		const vf r = v_above(v_zero(), x, v_zero(), x);
		return back ? v_mul(d, v_add(r, r)) : v_mul(r, r);
	}
	if (kind == PLAIN_GELU_TANH) {
		vf slope;
		const vf y = gelu_tanh(x, &slope, back);
		return back ? v_mul(d, slope) : y;
	}
	float in[LANES], along[LANES], out[LANES];
	v_store(in, x);
	v_store(along, d);
	gelu_lanes(out, along, in, LANES, back);
	return v_load(out);
}

// plain_units computes parts u0..u1 of rows of such an activation.
INLINE void plain_units(const struct gate_args *g, long u0, long u1, int back, enum gate_kind kind, int h) {
	for (long u = u0; u < u1; u++) {
		const long m = u / g->parts, from = u % g->parts * GATE_PART, to = g->f - from < GATE_PART ? g->f : from + GATE_PART;
		for (long j = from; j < to; j += LANES) {
			const int n = lanes_left(to - j);
			const long at = m * g->f + j;
			const vf x = ld(g->gate_up, at, n, h), d = back ? ld(g->dact, at, n, h) : x;
			st(back ? g->dgate_up : g->act, at, plain_gate(x, d, back, kind), n, h);
		}
	}
}

// gate_units computes parts u0..u1 of rows: of act, or of the gradients with back.
INLINE void gate_units(const struct gate_args *g, long u0, long u1, int back, enum gate_kind kind, int h) {
	const long f = g->f;
	for (long u = u0; u < u1; u++) {
		const long m = u / g->parts, from = u % g->parts * GATE_PART, to = f - from < GATE_PART ? f : from + GATE_PART;
		for (long j = from; j < to; j += LANES) {
			const int n = lanes_left(to - j);
			const long at = m * 2 * f + j;
			vf gate = ld(g->gate_up, at, n, h), up = ld(g->gate_up, at + f, n, h), slope;
			if (!back) {
				const vf act = kind == CLAMPED ? clamped(gate, up) : kind == GELU_TANH ? v_mul(gelu_tanh(gate, &slope, 0), up) : v_swiglu(gate, up);
				st(g->act, m * f + j, act, n, h);
				continue;
			}
			const vf d = ld(g->dact, m * f + j, n, h);
			if (kind == CLAMPED) clamped_gradients(&gate, &up, d);
			else if (kind == GELU_TANH) {
				const vf du = v_mul(d, gelu_tanh(gate, &slope, 1));
				gate = v_mul(v_mul(d, up), slope), up = du;
			} else
				swiglu_gradients(&gate, &up, d);
			st(g->dgate_up, at, gate, n, h);
			st(g->dgate_up, at + f, up, n, h);
		}
	}
}

// gate_rest computes units of any activation but SiLU, which fewer models have: compiled once for all of kind, back and h.
ONE_COPY void gate_rest(const struct gate_args *g, long u0, long u1, int back) {
	if (g->kind >= RELU2) plain_units(g, u0, u1, back, g->kind, g->bf16);
	else gate_units(g, u0, u1, back, g->kind, g->bf16);
}

static void gate(const struct gate_args *g, long u0, long u1, int tid) {
	(void)tid;
	if (g->kind != SILU) gate_rest(g, u0, u1, 0);
	else if (g->bf16) gate_units(g, u0, u1, 0, SILU, 1);
	else gate_units(g, u0, u1, 0, SILU, 0);
}

static void gate_backward(const struct gate_args *g, long u0, long u1, int tid) {
	(void)tid;
	if (g->kind != SILU) gate_rest(g, u0, u1, 1);
	else if (g->bf16) gate_units(g, u0, u1, 1, SILU, 1);
	else gate_units(g, u0, u1, 1, SILU, 0);
}

// gate.h: the gated activation on vectors, and its gradients.

INLINE vf v_sigmoid(vf x) { return v_div(v_set1(1.0f), v_add(v_set1(1.0f), v_exp(v_neg(x)))); }
INLINE vf v_swiglu(vf g, vf u) { return v_mul(v_mul(g, v_sigmoid(g)), u); }

// swiglu_gradients replaces gate g and up u by their gradients; d is act's gradient.
INLINE void swiglu_gradients(vf *g, vf *u, vf d) {
	const vf one = v_set1(1.0f), s = v_sigmoid(*g), du = v_mul(d, v_mul(*g, s));
	*g = v_mul(v_mul(d, *u), v_mul(s, v_fma(*g, v_sub(one, s), one)));
	*u = du;
}

// clip.h: values cut at a limit, and their gradient.

// clip_units computes units u0..u1 of CLIP_UNIT elements: of out, or of its gradient with back, a constant.
INLINE void clip_units(const struct clip_args *a, long u0, long u1, const int back, const int h) {
	const long end = u1 * CLIP_UNIT < a->n ? u1 * CLIP_UNIT : a->n;
	const vf most = v_set1(a->limit), least = v_set1(-a->limit);
	for (long i = u0 * CLIP_UNIT; i < end; i += LANES) {
		const int n = lanes_left(end - i);
		const vf x = ld(a->x, i, n, h), in = back ? ld(a->dout, i, n, h) : x;
		const vf over = back ? v_zero() : most, under = back ? v_zero() : least;
		st(a->out, i, v_above(x, most, over, v_above(least, x, under, in)), n, h);
	}
}

static void clip(const struct clip_args *a, long u0, long u1, int tid) {
	(void)tid;
	if (a->bf16) clip_units(a, u0, u1, 0, 1);
	else clip_units(a, u0, u1, 0, 0);
}

static void clip_backward(const struct clip_args *a, long u0, long u1, int tid) {
	(void)tid;
	if (a->bf16) clip_units(a, u0, u1, 1, 1);
	else clip_units(a, u0, u1, 1, 0);
}

// peak.h: the machine's peak rates: fused multiply-adds in registers, and reads from
// memory. Training does not use it.

// Independent chains of peak_fma. Two units with a latency of four cycles need 8
// registers in flight; the chains and the two factors fill all registers.
#if defined(LEVEL_AVX512)
#define PEAK_CHAINS 24
#else
#define PEAK_CHAINS 6
#endif

// peak_fma runs, for each unit, chains of rounds multiply-adds on vectors that stay
// in registers:
//
//	acc[c] = fma(acc[c], scale, shift)    rounds times, acc[c] from src[c]
//
// src is [PEAK_CHAINS+2][LANES]: the chains' starts, scale, shift. A unit leaves its
// chains in out[tid], [PEAK_CHAINS][LANES]. All inputs come from memory and all results
// go there, so that the compiler can neither precompute nor remove the work.
static void peak_fma(const struct peak_args *g, long u0, long u1, int tid) {
	const vf scale = v_load(g->src + PEAK_CHAINS * LANES), shift = v_load(g->src + (PEAK_CHAINS + 1) * LANES);
	for (long u = u0; u < u1; u++) {
		vf acc[PEAK_CHAINS];
#pragma GCC unroll 24
		for (int c = 0; c < PEAK_CHAINS; c++) acc[c] = v_load(g->src + c * LANES);
		for (long t = 0; t < g->rounds; t++) {
#pragma GCC unroll 24
			for (int c = 0; c < PEAK_CHAINS; c++) acc[c] = v_fma(acc[c], scale, shift);
		}
#pragma GCC unroll 24
		for (int c = 0; c < PEAK_CHAINS; c++) v_store(g->out + (tid * PEAK_CHAINS + c) * LANES, acc[c]);
	}
}

// peak_read sets out[u] to the sum of block u of src, PEAK_READ elements.
static void peak_read(const struct peak_args *g, long u0, long u1, int tid) {
	(void)tid;
	for (long u = u0; u < u1; u++) {
		const float *p = g->src + u * PEAK_READ;
		vf a = v_zero(), b = v_zero(), c = v_zero(), d = v_zero();
		for (long i = 0; i < PEAK_READ; i += 4 * LANES) {
			a = v_add(a, v_load(p + i));
			b = v_add(b, v_load(p + i + LANES));
			c = v_add(c, v_load(p + i + 2 * LANES));
			d = v_add(d, v_load(p + i + 3 * LANES));
		}
		g->out[u] = v_sum(v_add(v_add(a, b), v_add(c, d)));
	}
}

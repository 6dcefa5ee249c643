#include "sums.h"

// A half warp for each row.
BLOCK_KERNEL(layernorm, LANE_THREADS, 4) {
	const long m = element() / LANES, first = threadIdx.x % LANES, C = m < a.M ? a.C : 0;
	const float *x = a.x + m * a.C;
	float lane = 0;
	AHEAD for (long i = first; i < C; i += LANES) lane += x[i];
	const float mean = fold_lanes(lane) / (float)a.C;
	lane = 0;
	AHEAD for (long i = first; i < C; i += LANES) lane = fmaf(x[i] - mean, x[i] - mean, lane);
	const float rstd = 1 / sqrtf(fold_lanes(lane) / (float)a.C + a.eps);
	if (C && first == 0) {
		a.stats[2 * m] = mean;
		a.stats[2 * m + 1] = rstd;
	}
	for (long i = first; i < C; i += LANES) a.out[m * a.C + i] = fmaf((x[i] - mean) * rstd, a.weight[i], a.bias[i]);
}

BLOCK_KERNEL(layernorm_dw, SUM_THREADS, 2) {
	SHARED(float, sums, SUM_THREADS);
	const long i = column();
	for (long b = 0; b < a.B; b += SUM_WARPS) {
		const struct range r = block_rows(a.blocks, a.B, b);
		float acc = 0;
		if (i < a.C) {
			AHEAD for (long m = r.lo; m < r.hi; m++)
				acc = fmaf(a.dout[m * a.C + i], (a.x[m * a.C + i] - a.stats[2 * m]) * a.stats[2 * m + 1], acc);
		}
		add_blocks(a.dweight, sums, acc, a.C, a.B - b);
	}
}

// A half warp for each row. dx may be dout.
BLOCK_KERNEL(layernorm_backward, LANE_THREADS, 4) {
	const long m = element() / LANES, first = threadIdx.x % LANES, C = m < a.M ? a.C : 0;
	const float *x = a.x + m * a.C, *dout = a.dout + m * a.C, mean = C ? a.stats[2 * m] : 0, rstd = C ? a.stats[2 * m + 1] : 0;
	float sum = 0, dot = 0;
	for (long i = first; i < C; i += LANES) {
		const float g = dout[i] * a.weight[i];
		sum += g;
		dot = fmaf(g, (x[i] - mean) * rstd, dot);
	}
	const float p = fold_lanes(sum) / (float)a.C, q = fold_lanes(dot) / (float)a.C;
	for (long i = first; i < C; i += LANES)
		a.dx[m * a.C + i] = fmaf(-((x[i] - mean) * rstd), q, dout[i] * a.weight[i] - p) * rstd;
}

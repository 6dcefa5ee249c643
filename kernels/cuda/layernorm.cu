#include "num.h"

// A thread for each row.
KERNEL(layernorm) {
	const long m = element();
	if (m >= a.M) return;
	const float *x = a.x + m * a.C;
	float lane[LANES] = {0};
	for (long i = 0; i < a.C; i += LANES)
		EACH_LANE(j) if (i + j < a.C) lane[j] += x[i + j];
	const float mean = fold(lane) / (float)a.C;
	EACH_LANE(j) lane[j] = 0;
	for (long i = 0; i < a.C; i += LANES)
		EACH_LANE(j) if (i + j < a.C) lane[j] = fmaf(x[i + j] - mean, x[i + j] - mean, lane[j]);
	const float rstd = 1 / sqrtf(fold(lane) / (float)a.C + a.eps);
	a.stats[2 * m] = mean;
	a.stats[2 * m + 1] = rstd;
	for (long i = 0; i < a.C; i++) a.out[m * a.C + i] = fmaf((x[i] - mean) * rstd, a.weight[i], a.bias[i]);
}

// A thread for each element of the weight.
KERNEL(layernorm_dw) {
	const long i = element();
	if (i >= a.C) return;
	for (long b = 0; b < a.B; b++) {
		float acc = 0;
		for (long m = a.blocks[b]; m < a.blocks[b + 1]; m++)
			acc = fmaf(a.dout[m * a.C + i], (a.x[m * a.C + i] - a.stats[2 * m]) * a.stats[2 * m + 1], acc);
		a.dweight[i] += acc;
	}
}

// A thread for each row. dx may be dout.
KERNEL(layernorm_backward) {
	const long m = element();
	if (m >= a.M) return;
	const float *x = a.x + m * a.C, *dout = a.dout + m * a.C, mean = a.stats[2 * m], rstd = a.stats[2 * m + 1];
	float sum[LANES] = {0}, dot[LANES] = {0};
	for (long i = 0; i < a.C; i += LANES)
		EACH_LANE(j) if (i + j < a.C) {
			const float g = dout[i + j] * a.weight[i + j];
			sum[j] += g;
			dot[j] = fmaf(g, (x[i + j] - mean) * rstd, dot[j]);
		}
	const float p = fold(sum) / (float)a.C, q = fold(dot) / (float)a.C;
	for (long i = 0; i < a.C; i++)
		a.dx[m * a.C + i] = fmaf(-((x[i] - mean) * rstd), q, dout[i] * a.weight[i] - p) * rstd;
}

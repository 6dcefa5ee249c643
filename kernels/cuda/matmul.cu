#include "num.h"

// Products (kernels.Linear), a thread for each output. Every chain is one thread's.

KERNEL(matmul) {
	const long i = element(), m = i / a.N, n = i % a.N;
	if (m >= a.M) return;
	a.out[i] = chain_row(a.x + m * a.K, a.w, n, a.K, a.bias ? a.bias[n] : 0);
}

// dot_column is the chain over n of dout[n]·w[n,k].
DEVICE float dot_column(const float *dout, struct weights w, long k, long N, long K) {
	float acc = 0;
	for (long n = 0; n < N; n++) acc = fmaf(dout[n], load(w, n * K + k), acc);
	return acc;
}

KERNEL(matmul_dx) {
	const long i = element(), m = i / a.K, k = i % a.K;
	if (m < a.M) a.dx[i] = dot_column(a.dout + m * a.N, a.w, k, a.N, a.K);
}

KERNEL(matmul_dw) {
	const long i = element(), n = i / a.K, k = i % a.K;
	if (n >= a.N) return;
	for (long b = 0; b < a.B; b++) {
		float acc = 0;
		for (long m = a.blocks[b]; m < a.blocks[b + 1]; m++) acc = fmaf(a.dout[m * a.N + n], a.x[m * a.K + k], acc);
		a.dw[i] += acc;
	}
}

KERNEL(column_sums) {
	const long c = element();
	if (c >= a.C) return;
	for (long b = 0; b < a.B; b++) {
		float sum = 0;
		for (long m = a.blocks[b]; m < a.blocks[b + 1]; m++) sum += a.x[m * a.C + c];
		a.dst[c] += sum;
	}
}

KERNEL(matmul_swiglu) {
	const long i = element(), m = i / a.F, f = i % a.F;
	if (m >= a.M) return;
	const float g = chain_row(a.x + m * a.K, a.w, f, a.K, 0), u = chain_row(a.x + m * a.K, a.w, a.F + f, a.K, 0);
	if (a.gate_up) {
		a.gate_up[m * 2 * a.F + f] = g;
		a.gate_up[m * 2 * a.F + a.F + f] = u;
	}
	a.act[i] = g * sigmoid_of(g) * u;
}

KERNEL(matmul_dx_swiglu) {
	const long i = element(), m = i / a.F, f = i % a.F, gate = m * 2 * a.F + f, up = gate + a.F;
	if (m >= a.M) return;
	const float d = dot_column(a.dout + m * a.N, a.w, f, a.N, a.F);
	const float g = a.gate_up[gate], u = a.gate_up[up], s = sigmoid_of(g);
	a.dgate_up[gate] = d * u * (s * fmaf(g, 1 - s, 1));
	a.dgate_up[up] = d * (g * s);
}

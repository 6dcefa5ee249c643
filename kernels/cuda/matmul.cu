#include "sum.h"
#include "sums.h"
#include "wide.h"

// Products (kernels.Linear) that are not on tiles, a thread for each output: tile sums, and chains with
// bf16 weights. Every sum is one thread's.

// row_sum is the sum of row m of x and row n of w, K elements each, from acc. column_sum is the sum
// of row m of x [.,N] and column k of w [N,K], from 0.
DEVICE float row_sum(int tile, struct operand x, long m, struct operand w, long n, long K, float acc) {
	return product_sum(tile, terms_of(x, m * K, 1), terms_of(w, n * K, 1), K, acc);
}

DEVICE float column_sum(int tile, struct operand x, long m, struct operand w, long k, long N, long K) {
	return product_sum(tile, terms_of(x, m * N, 1), terms_of(w, k, K), N, 0);
}

KERNEL(matmul) {
	const long i = element(), m = i / a.N, n = i % a.N;
	if (m >= a.M) return;
	store(a.out, i, row_sum(a.tile, a.x, m, a.w, n, a.K, a.bias ? a.bias[n] : 0));
}

KERNEL(matmul_dx) {
	const long i = element(), m = i / a.K, k = i % a.K;
	if (m < a.M) store(a.dx, i, column_sum(a.tile, a.dout, m, a.w, k, a.N, a.K));
}

// A tile sum continues in the gradient.
KERNEL(matmul_dw) {
	const long i = element(), n = i / a.K, k = i % a.K;
	if (n >= a.N) return;
	for (long b = 0; b < a.B; b++) {
		const long lo = a.blocks[b], rows = a.blocks[b + 1] - lo;
		const struct terms d = terms_of(a.dout, lo * a.N + n, a.N), x = terms_of(a.x, lo * a.K + k, a.K);
		a.dw[i] = tile_sum(d, x, rows, a.dw[i]);
	}
}

// ROWS loads that many rows before it uses one: a warp has 64 bytes of a row in bf16.
#define ROWS 32

// sum_rows is the sum of a column of rows lo to hi, whose elements are at `at`, at + stride, and so on.
INLINE float sum_rows(struct operand x, long at, long stride, long lo, long hi) {
	float sum = 0;
	long m = lo;
	at += lo * stride;
	for (; m + ROWS <= hi; m += ROWS, at += ROWS * stride) {
		float v[ROWS];
		UNROLL for (int k = 0; k < ROWS; k++) v[k] = load(x, at + k * stride);
		UNROLL for (int k = 0; k < ROWS; k++) sum += v[k];
	}
	AHEAD for (; m < hi; m++, at += stride) sum += load(x, at);
	return sum;
}

BLOCK_KERNEL(column_sums, SUM_THREADS, 1) {
	SHARED(float, sums, SUM_THREADS);
	const long c = column();
	for (long b = 0; b < a.B; b += SUM_WARPS) {
		const struct range r = block_rows(a.blocks, a.B, b);
		float sum = 0;
		if (c < a.C) {
			sum = a.x.bf16 ? sum_rows(bf16s(a.x.at), c, a.C, r.lo, r.hi) :
				sum_rows(floats((const float *)a.x.at), c, a.C, r.lo, r.hi);
		}
		add_blocks(a.dst, sums, sum, a.C, a.B - b);
	}
}

KERNEL(matmul_swiglu) {
	const long i = element(), m = i / a.F, f = i % a.F;
	if (m >= a.M) return;
	float g = row_sum(a.tile, a.x, m, a.w, f, a.K, 0), u = row_sum(a.tile, a.x, m, a.w, a.F + f, a.K, 0);
	if (a.tile) g = rounded(g), u = rounded(u);
	if (a.gate_up.at) {
		store(a.gate_up, m * 2 * a.F + f, g);
		store(a.gate_up, m * 2 * a.F + a.F + f, u);
	}
	store(a.act, i, g * sigmoid_of(g) * u);
}

KERNEL(matmul_dx_swiglu) {
	const long i = element(), m = i / a.F, f = i % a.F, gate = m * 2 * a.F + f, up = gate + a.F;
	if (m >= a.M) return;
	float d = column_sum(a.tile, a.dout, m, a.w, f, a.N, a.F);
	if (a.tile) d = rounded(d);
	const float g = load(a.gate_up, gate), u = load(a.gate_up, up), s = sigmoid_of(g);
	store(a.dgate_up, gate, d * u * (s * fmaf(g, 1 - s, 1)));
	store(a.dgate_up, up, d * (g * s));
}

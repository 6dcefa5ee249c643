#include "warp.h"
#include "wide.h"

// Apertus's activation and its gradients, in float64 and rounded once, as in kernels/ref.

struct xielus {
	float value, slope, positive, negative; // the last two: derivatives in the parameters
};

DEVICE struct xielus xielu_of(double g, struct xielu_numbers a) {
	struct xielus y;
	if (g > 0) {
		const double gg = g * g;
		y.value = (float)fma(a.beta, g, a.positive * gg);
		y.slope = (float)fma(2 * a.positive, g, a.beta);
		y.positive = (float)(a.d_positive * gg);
		y.negative = 0;
		return y;
	}
	const double e = exp64(g < a.eps ? g : a.eps), n = e - 1 - g;
	y.value = (float)fma(a.beta, g, a.negative * n);
	y.slope = (float)fma(a.negative, (g < a.eps ? e : 0) - 1, a.beta);
	y.positive = 0;
	y.negative = (float)(a.d_negative * n);
	return y;
}

// A thread for each row and 8 columns.
KERNEL(xielu) {
	const long i = element(), f = i % wides(a.F) * WIDE, m = i / wides(a.F);
	if (m >= a.M) return;
	float x[WIDE];
	load_wide(x, a.x, m * a.F + f, a.F - f);
	EACH_WIDE(j) x[j] = xielu_of(x[j], a.by).value;
	store_wide(a.act, m * a.F + f, a.F - f, x);
}

// The threads of a half warp are the lanes of a row. dx may be x or dact.
BLOCK_KERNEL(xielu_backward, LANE_THREADS, 4) {
	const long m = element() / LANES;
	const int live = m < a.M;
	const long n = live ? a.F : 0;
	float p = 0, q = 0;
	for (long i = threadIdx.x % LANES; i < n; i += LANES) {
		const float d = load(a.dact, m * a.F + i);
		const struct xielus y = xielu_of(load(a.x, m * a.F + i), a.by);
		p = fmaf(d, y.positive, p);
		q = fmaf(d, y.negative, q);
		store(a.dx, m * a.F + i, d * y.slope);
	}
	p = fold_lanes(p);
	q = fold_lanes(q);
	if (live && threadIdx.x % LANES == 0) {
		a.terms[2 * m] = p;
		a.terms[2 * m + 1] = q;
	}
}

// A thread for each gradient block and parameter.
KERNEL(xielu_parts) {
	const long i = element(), b = i / 2, k = i % 2;
	if (b >= a.B) return;
	float sum = 0;
	AHEAD_4 for (long m = a.blocks[b]; m < a.blocks[b + 1]; m++) sum += a.terms[2 * m + k];
	a.parts[i] = sum;
}

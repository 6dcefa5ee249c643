#include "warp.h"
#include "wide.h"

// One more key of attention, whose value is zeros, and its gradients.

// keys_share is how much attention the keys get and the sink does not. v numbers rows and their heads.
DEVICE float keys_share(const float *stats, const float *sinks, long v, long H) {
	const float x = exp_of(sinks[v % H] - stats[2 * v]) * stats[2 * v + 1];
	return 1 / (1 + x);
}

// A thread for each row, head and 8 channels.
KERNEL(sink) {
	const long i = element(), d = i % wides(a.D) * WIDE, v = i / wides(a.D);
	if (v >= a.M * a.H) return;
	const float share = keys_share(a.stats, a.sinks, v, a.H);
	float x[WIDE];
	load_wide(x, a.att, v * a.D + d, a.D - d);
	EACH_WIDE(j) x[j] = x[j] * share;
	store_wide(a.out, v * a.D + d, a.D - d, x);
}

// The threads of a half warp are the lanes of a row and head. datt may be dout.
BLOCK_KERNEL(sink_backward, LANE_THREADS, 4) {
	const long v = element() / LANES;
	const int live = v < a.M * a.H;
	const long n = live ? a.D : 0;
	const float share = live ? keys_share(a.stats, a.sinks, v, a.H) : 0;
	float lane = 0;
	for (long i = threadIdx.x % LANES; i < n; i += LANES) {
		const float d = load(a.dout, v * a.D + i);
		lane = fmaf(d, load(a.out, v * a.D + i), lane);
		store(a.datt, v * a.D + i, d * share);
	}
	const float t = fold_lanes(lane);
	if (live && threadIdx.x % LANES == 0) a.terms[v] = t * (1 - share);
}

// A thread for each gradient block and head.
KERNEL(sink_parts) {
	const long i = element(), b = i / a.H, h = i % a.H;
	if (b >= a.B) return;
	float sum = 0;
	AHEAD_4 for (long m = a.blocks[b]; m < a.blocks[b + 1]; m++) sum -= a.terms[m * a.H + h];
	a.parts[i] = sum;
}

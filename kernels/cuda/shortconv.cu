#include "delta.h"

// The short convolution of linear attention and the gated one of LFM2. A thread has up to 8 channels of a row. The
// constant gated says which convolution it is: a gated one reads products of two columns, and multiplies by a third
// instead of an activation.

// load_input sets v to the channels of position t of a sequence, which before its rows are those of `slot` of tails, or 0
// if slot is negative.
INLINE void load_input(float *v, struct operand x, struct operand tails, long slot, struct sequence q, long t,
	struct delta_shape s, struct strip r, const int gated) {
	if (t >= 0) {
		const long at = row_of(q, t) * s.stride + r.at;
		load_wide(v, x, at, r.left);
		if (!gated) return;
		float factor[WIDE];
		load_wide(factor, x, at + 2 * s.mixed, r.left);
		EACH_WIDE(i) if (i < r.left) v[i] *= factor[i];
	} else if (slot >= 0) load_wide(v, tails, (slot * (s.taps - 1) + s.taps - 1 + t) * s.mixed + r.c, r.left);
	else EACH_WIDE(i) v[i] = 0;
}

// A sequence's inputs.
struct inputs {
	struct operand x, tails;
	long slot;
	struct sequence q;
	struct delta_shape s;
};

// convolve sets y to the sums of products at position t.
INLINE void convolve(float *y, const struct inputs *in, const float *weight, const float *bias, long t, struct strip r,
	const int gated) {
	const long taps = in->s.taps;
	float v[WIDE];
	EACH_WIDE(i) y[i] = 0;
	if (bias) load_wide(y, floats(bias), r.c, r.left);
	const int usual = gated ? 3 : 4; // in published models
	if (taps == usual && r.left >= WIDE) {
		float w[4 * WIDE];
		UNROLL for (int k = 0; k < usual; k++) load_wide(w + k * WIDE, floats(weight), usual * r.c + k * WIDE, WIDE);
		UNROLL for (int j = 0; j < usual; j++) {
			load_input(v, in->x, in->tails, in->slot, in->q, t - (usual - 1) + j, in->s, r, gated);
			EACH_WIDE(i) y[i] = fmaf(w[usual * i + j], v[i], y[i]);
		}
		return;
	}
	for (long j = 0; j < taps; j++) {
		load_input(v, in->x, in->tails, in->slot, in->q, t - (taps - 1) + j, in->s, r, gated);
		EACH_WIDE(i) if (i < r.left) y[i] = fmaf(weight[(r.c + i) * taps + j], v[i], y[i]);
	}
}

// convolve_row computes a strip of a row; biased is a constant.
INLINE void convolve_row(const struct short_conv_args *args, const int biased, const int gated) {
	const struct short_conv_args a = *args;
	const long i = element(), n = strips(a.s), m = i / n;
	if (m >= a.p.M) return;
	const struct strip r = strip_of(a.s, i % n);
	const struct place at = place_of(a.p, m);
	struct inputs in = {a.x, a.tails, -1, at.q, a.s};
	int first = 1;
	const long slot = a.slots ? slot_of(a.slots, at.j, &first) : -1;
	if (!first) in.slot = slot;
	float y[WIDE];
	convolve(y, &in, a.weight, biased ? a.bias : 0, at.t, r, gated);
	if (gated) {
		float factor[WIDE];
		load_wide(factor, a.x, m * a.s.stride + a.s.mixed + r.at, r.left);
		EACH_WIDE(k) if (k < r.left) y[k] = y[k] * factor[k];
	} else EACH_WIDE(k) y[k] = y[k] * sigmoid_of(y[k]);
	store_wide(a.u, m * a.s.mixed + r.c, r.left, y);
}

KERNEL(short_conv) { convolve_row(&a, 0, 0); }
KERNEL(short_conv_biased) { convolve_row(&a, 1, 0); }
KERNEL(gated_conv) { convolve_row(&a, 0, 1); }

// leave_tails leaves in the slots what the next rows read. A thread moves its channels towards the
// front, so it reads nothing that it wrote.
INLINE void leave_tails(const struct short_conv_args *args, const int gated) {
	const struct short_conv_args a = *args;
	const long i = element(), n = strips(a.s), j = i / n, taps = a.s.taps;
	if (j >= a.p.S) return;
	const struct strip r = strip_of(a.s, i % n);
	const struct sequence q = sequence_of(a.p, j, 0);
	int first;
	const long slot = slot_of(a.slots, j, &first);
	float v[WIDE];
	for (long k = 0; k < taps - 1; k++) {
		load_input(v, a.x, a.tails, first ? -1 : slot, q, q.own - (taps - 1) + k, a.s, r, gated);
		store_wide(a.tails, (slot * (taps - 1) + k) * a.s.mixed + r.c, r.left, v);
	}
}

KERNEL(short_conv_tails) { leave_tails(&a, 0); }
KERNEL(gated_conv_tails) { leave_tails(&a, 1); }

// slopes_of_row sets dy to the gradients before the activation, or before the last factor, whose gradients it stores;
// biased is a constant.
INLINE void slopes_of_row(const struct short_conv_backward_args *args, const int biased, const int gated) {
	const struct short_conv_backward_args a = *args;
	const long i = element(), n = strips(a.s), m = i / n;
	if (m >= a.p.M) return;
	const struct strip r = strip_of(a.s, i % n);
	const struct place at = place_of(a.p, m);
	const struct inputs in = {a.x, a.x, -1, at.q, a.s};
	float y[WIDE], d[WIDE];
	convolve(y, &in, a.weight, biased ? a.bias : 0, at.t, r, gated);
	load_wide(d, a.du, m * a.s.mixed + r.c, r.left);
	if (gated) {
		const long after = m * a.s.stride + a.s.mixed + r.at;
		float factor[WIDE];
		load_wide(factor, a.x, after, r.left);
		EACH_WIDE(k) if (k < r.left) {
			y[k] = d[k] * y[k];
			d[k] = d[k] * factor[k];
		}
		store_wide(a.dx, after, r.left, y);
	} else EACH_WIDE(k) {
		const float g = sigmoid_of(y[k]);
		d[k] = d[k] * (g * fmaf(y[k], 1 - g, 1));
	}
	store_wide(floats(a.dy), m * a.s.mixed + r.c, r.left, d);
}

KERNEL(short_conv_slopes) { slopes_of_row(&a, 0, 0); }
KERNEL(short_conv_slopes_biased) { slopes_of_row(&a, 1, 0); }
KERNEL(gated_conv_slopes) { slopes_of_row(&a, 0, 1); }

// add_slope adds to sum what the row m reads of the row `back` before it.
INLINE void add_slope(float *sum, const struct short_conv_backward_args *a, long m, long back, struct strip r) {
	const long taps = a->s.taps;
	float d[WIDE];
	load_wide(d, floats(a->dy), m * a->s.mixed + r.c, r.left);
	EACH_WIDE(k) if (k < r.left) sum[k] = fmaf(a->weight[(r.c + k) * taps + taps - 1 - back], d[k], sum[k]);
}

// dx_of_row adds up the rows of its own sequence that read a row, then those of the sequences that follow it.
INLINE void dx_of_row(const struct short_conv_backward_args *args, const int gated) {
	const struct short_conv_backward_args a = *args;
	const long i = element(), n = strips(a.s), m = i / n, taps = a.s.taps;
	if (m >= a.p.M) return;
	const struct strip r = strip_of(a.s, i % n);
	const struct place at = place_of(a.p, m);
	const long end = at.q.first + at.q.own;
	float sum[WIDE] = {0};
	for (long back = 0; back < taps && m + back < end; back++) add_slope(sum, &a, m + back, back, r);
	if (a.p.G && a.p.groups[at.g] == at.j && at.q.own - at.t < taps) {
		for (long j = at.j + 1; j < a.p.groups[at.g + 1]; j++) {
			const struct sequence q = sequence_of(a.p, j, at.g);
			for (long row = 0; row < q.own && q.prefix + row - at.t < taps; row++)
				add_slope(sum, &a, q.first + row, q.prefix + row - at.t, r);
		}
	}
	const long first = m * a.s.stride + r.at, second = first + 2 * a.s.mixed;
	if (gated) {
		float x[WIDE], d[WIDE];
		load_wide(x, a.x, first, r.left);
		EACH_WIDE(k) d[k] = k < r.left ? sum[k] * x[k] : 0;
		store_wide(a.dx, second, r.left, d);
		load_wide(x, a.x, second, r.left);
		EACH_WIDE(k) if (k < r.left) sum[k] = sum[k] * x[k];
	}
	store_wide(a.dx, first, r.left, sum);
}

KERNEL(short_conv_dx) { dx_of_row(&a, 0); }
KERNEL(gated_conv_dx) { dx_of_row(&a, 1); }

// dw_of_channel adds up a gradient block, 4 taps at a time. A thread has one block and channel.
INLINE void dw_of_channel(const struct short_conv_backward_args *args, const int gated) {
	const struct short_conv_backward_args a = *args;
	const long i = element(), b = i / a.s.mixed, c = i % a.s.mixed, taps = a.s.taps;
	if (b >= a.B) return;
	const long lo = a.blocks[b], hi = a.blocks[b + 1], at = projected(a.s, c);
	for (long j0 = 0; j0 < taps; j0 += 4) {
		float sum[4] = {0};
		struct place now = place_of(a.p, lo);
		for (long m = lo; m < hi; m++) {
			if (m >= now.q.first + now.q.own) now = place_of(a.p, m);
			const long t = now.q.prefix + m - now.q.first - (taps - 1) + j0;
			const float d = a.dy[m * a.s.mixed + c];
			UNROLL for (int k = 0; k < 4; k++) {
				float v = 0;
				if (t + k >= 0 && j0 + k < taps) {
					const long i = row_of(now.q, t + k) * a.s.stride + at;
					v = load(a.x, i);
					if (gated) v *= load(a.x, i + 2 * a.s.mixed);
				}
				sum[k] = fmaf(d, v, sum[k]);
			}
		}
		UNROLL for (int k = 0; k < 4; k++) if (j0 + k < taps) a.parts[(b * a.s.mixed + c) * taps + j0 + k] = sum[k];
	}
}

KERNEL(short_conv_dw) { dw_of_channel(&a, 0); }
KERNEL(gated_conv_dw) { dw_of_channel(&a, 1); }

// A thread for each gradient block and channel.
KERNEL(short_conv_dbias) {
	const long i = element(), b = i / a.s.mixed, c = i % a.s.mixed;
	if (b >= a.B) return;
	float sum = 0;
	for (long m = a.blocks[b]; m < a.blocks[b + 1]; m++) sum += a.dy[m * a.s.mixed + c];
	a.parts[a.B * a.s.mixed * a.s.taps + b * a.s.mixed + c] = sum;
}

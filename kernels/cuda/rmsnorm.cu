#include "sums.h"
#include "wide.h"

// Root mean square norms. A block reads a few vectors into shared memory, coalesced. The 16 threads of a
// half warp are the lanes of a vector's sum. Then all write the results.

#define NORM_THREADS 256
#define NORM_SUMS (NORM_THREADS / LANES)
#define NORM_ROOM (12288 - NORM_SUMS) // elements in shared memory, and a number for each vector

// A long vector is filled up to whole chunks of 8, behind a number.
#define NORM_HEAD 4
#define NORM_WIDE(n) (NORM_HEAD + ((n) + WIDE - 1) / WIDE * WIDE)

// vector_at is the offset of the v-th vector of the shape, counted row by row.
DEVICE long vector_at(struct norm_shape s, long v) {
	return v / s.heads * s.stride + s.offset + v % s.heads * s.dim;
}

// wide_vector_at is that of the block's own, mostly without a division.
DEVICE long wide_vector_at(struct norm_shape s) {
	return s.heads == 1 ? blockIdx.x * s.stride + s.offset : vector_at(s, blockIdx.x);
}

DEVICE float scale_of(float weight, struct norm_shape s) { return s.unit_offset ? 1 + weight : weight; }

// Vectors first to last of a block. The first `near` elements of each are in shared memory, the rest of a
// long one is read from global memory again.
struct share {
	long first, last, near;
};

DEVICE struct share share_of(struct norm_shape s, long room) {
	const long few = s.dim > room ? 1 : room / s.dim < NORM_SUMS ? room / s.dim : NORM_SUMS, all = s.M * s.heads;
	struct share b;
	b.first = blockIdx.x * few;
	b.last = b.first + few < all ? b.first + few : all;
	b.near = s.dim < room ? s.dim : room;
	return b;
}

BLOCK_KERNEL(rmsnorm, NORM_THREADS, 3) {
	SHARED(float, kept, NORM_ROOM + NORM_SUMS);
	const struct share b = share_of(a.s, NORM_ROOM);
	const struct operand x = a.sum ? floats(a.sum) : a.x;
	const long dim = a.s.dim, mine = b.first + threadIdx.x / LANES;
	float v[BURST], d[BURST], lane = 0;
	for (long w = b.first; w < b.last; w++) {
		const long at = vector_at(a.s, w);
		for (long lo = threadIdx.x; lo < dim; lo += NORM_THREADS * BURST) {
			load_burst(v, a.x, at, lo, NORM_THREADS, dim);
			if (a.sum) load_burst(d, floats(a.delta), at, lo, NORM_THREADS, dim);
			EACH_LOAD(k) {
				const long i = lo + k * NORM_THREADS;
				if (i >= dim) continue;
				if (a.sum) a.sum[at + i] = v[k] = v[k] + d[k];
				if (i < b.near) kept[(w - b.first) * dim + i] = v[k];
			}
		}
	}
	barrier();
	if (mine < b.last) {
		const long at = vector_at(a.s, mine);
		const float *near = kept + (mine - b.first) * dim;
		long i = threadIdx.x % LANES;
		AHEAD for (; i < b.near; i += LANES) lane = fmaf(near[i], near[i], lane);
		AHEAD for (; i < dim; i += LANES) lane = fmaf(load(x, at + i), load(x, at + i), lane);
	}
	const float r = 1 / sqrtf(fold_lanes(lane) / (float)dim + a.eps);
	if (mine < b.last && threadIdx.x % LANES == 0) a.rstd[mine] = kept[NORM_ROOM + mine - b.first] = r;
	barrier();
	for (long w = b.first; w < b.last; w++) {
		const long at = vector_at(a.s, w);
		for (long i = threadIdx.x; i < dim; i += NORM_THREADS) {
			const float y = i < b.near ? kept[(w - b.first) * dim + i] : load(x, at + i);
			store(a.out, at + i, y * kept[NORM_ROOM + w - b.first] * scale_of(a.weight[i], a.s));
		}
	}
}

// chain_of is a lane's sum of n products in shared memory, for the threads of the first half warp.
DEVICE float chain_of(const float *x, const float *y, int n) {
	float lane = 0;
	AHEAD for (int i = (int)threadIdx.x; i < n; i += LANES) lane = fmaf(x[i], y[i], lane);
	return fold_lanes(lane);
}

// keep_wide writes 8 elements to shared memory, and kept_wide reads them.
INLINE void keep_wide(float *at, const float *v) {
	wide low, high;
	UNROLL for (int j = 0; j < 4; j++) low[j] = bits_of(v[j]), high[j] = bits_of(v[j + 4]);
	((wide *)at)[0] = low;
	((wide *)at)[1] = high;
}

INLINE void kept_wide(float *v, const float *at) {
	const wide low = ((const wide *)at)[0], high = ((const wide *)at)[1];
	UNROLL for (int j = 0; j < 4; j++) v[j] = float_of(low[j]), v[j + 4] = float_of(high[j]);
}

// A block for a long vector: its elements lie in shared memory, and go there and back 8 at a time.
BLOCK_KERNEL(rmsnorm_wide, NORM_THREADS, 4) {
	LAUNCH_SHARED(float, kept, NORM_WIDE(a.s.dim));
	const long at = wide_vector_at(a.s);
	const int dim = (int)a.s.dim, step = NORM_THREADS * WIDE, first = (int)threadIdx.x * WIDE;
	float v[WIDE], d[WIDE], weight[2][WIDE];
	for (int i = first; i < dim; i += step) {
		load_wide(v, a.x, at + i, dim - i);
		if (a.sum) {
			load_wide(d, floats(a.delta), at + i, dim - i);
			EACH_WIDE(j) v[j] = v[j] + d[j];
			store_wide(floats(a.sum), at + i, dim - i, v);
		}
		keep_wide(kept + NORM_HEAD + i, v);
	}
	UNROLL for (int k = 0; k < 2; k++) // before anybody waits
		load_wide(weight[k], floats(a.weight), first + k * step, dim - first - k * step);
	barrier();
	if (threadIdx.x < WARP) {
		const float ss = chain_of(kept + NORM_HEAD, kept + NORM_HEAD, threadIdx.x < LANES ? dim : 0);
		const float r = 1 / sqrtf(ss / (float)dim + a.eps);
		if (threadIdx.x == 0) a.rstd[blockIdx.x] = kept[0] = r;
	}
	barrier();
	const float r = kept[0];
	for (int i = first; i < dim; i += step) {
		const int k = i >= step;
		if (i >= 2 * step) load_wide(weight[1], floats(a.weight), i, dim - i);
		kept_wide(v, kept + NORM_HEAD + i);
		EACH_WIDE(j) v[j] = v[j] * r * scale_of(k ? weight[1][j] : weight[0][j], a.s);
		store_wide(a.out, at + i, dim - i, v);
	}
}

// dx may be dout.
BLOCK_KERNEL(rmsnorm_backward_wide, NORM_THREADS, 5) {
	LAUNCH_SHARED(float, kept, NORM_HEAD + 2 * (NORM_WIDE(a.s.dim) - NORM_HEAD));
	const long at = wide_vector_at(a.s);
	const int dim = (int)a.s.dim, step = NORM_THREADS * WIDE, first = (int)threadIdx.x * WIDE;
	const int gs = NORM_WIDE(dim); // where the gradients' terms begin
	float v[WIDE], g[WIDE], w[WIDE];
	for (int i = first; i < dim; i += step) {
		load_wide(v, a.x, at + i, dim - i);
		load_wide(g, a.dout, at + i, dim - i);
		keep_wide(kept + NORM_HEAD + i, v);
		load_wide(w, floats(a.weight), i, dim - i);
		EACH_WIDE(j) g[j] = g[j] * scale_of(w[j], a.s);
		keep_wide(kept + gs + i, g);
	}
	barrier();
	if (threadIdx.x < WARP) {
		const float r = a.rstd[blockIdx.x], dot = chain_of(kept + gs, kept + NORM_HEAD, threadIdx.x < LANES ? dim : 0);
		if (threadIdx.x == 0) kept[0] = dot * (r * r * r) / (float)dim, kept[1] = r;
	}
	barrier();
	const float k = kept[0], r = kept[1];
	for (int i = first; i < dim; i += step) {
		if (!a.set) load_wide(w, a.dx, at + i, dim - i);
		kept_wide(v, kept + NORM_HEAD + i);
		kept_wide(g, kept + gs + i);
		EACH_WIDE(j) v[j] = fmaf(-k, v[j], g[j] * r);
		if (!a.set) EACH_WIDE(j) v[j] = w[j] + v[j];
		store_wide(a.dx, at + i, dim - i, v);
	}
}

// ROWS loads that many rows before it uses one: a warp has 64 bytes of a row in bf16.
#define ROWS 16
#define EACH_ROW(k) UNROLL for (int k = 0; k < ROWS; k++)

// sum_rows is the sum of a column of rows lo to hi, whose elements are at `at`, at + stride, and so on.
INLINE float sum_rows(struct operand dout, struct operand x, const float *rstd, long at, long stride,
	long lo, long hi) {
	float acc = 0;
	long v = lo;
	at += lo * stride;
	for (; v + ROWS <= hi; v += ROWS, at += ROWS * stride) {
		float d[ROWS], z[ROWS], r[ROWS];
		EACH_ROW(k) d[k] = load(dout, at + k * stride);
		EACH_ROW(k) z[k] = load(x, at + k * stride);
		EACH_ROW(k) r[k] = rstd[v + k];
		EACH_ROW(k) acc = fmaf(d[k], z[k] * r[k], acc);
	}
	for (; v < hi; v++, at += stride) acc = fmaf(load(dout, at), load(x, at) * rstd[v], acc);
	return acc;
}

BLOCK_KERNEL(rmsnorm_dw, SUM_THREADS, 1) {
	SHARED(float, sums, SUM_THREADS);
	const long i = column();
	for (long b = 0; b < a.B; b += SUM_WARPS) {
		const struct range r = block_rows(a.blocks, a.B, b);
		float acc = 0;
		if (i >= a.s.dim) {
		} else if (a.s.heads == 1 && a.dout.bf16 && a.x.bf16) {
			acc = sum_rows(bf16s(a.dout.at), bf16s(a.x.at), a.rstd, a.s.offset + i, a.s.stride, r.lo, r.hi);
		} else if (a.s.heads == 1 && !a.dout.bf16 && !a.x.bf16) {
			const struct operand dout = floats((const float *)a.dout.at), x = floats((const float *)a.x.at);
			acc = sum_rows(dout, x, a.rstd, a.s.offset + i, a.s.stride, r.lo, r.hi);
		} else {
			AHEAD_4 for (long v = r.lo * a.s.heads; v < r.hi * a.s.heads; v++) {
				const long at = vector_at(a.s, v) + i;
				acc = fmaf(load(a.dout, at), load(a.x, at) * a.rstd[v], acc);
			}
		}
		add_blocks(a.dweight, sums, acc, a.s.dim, a.B - b);
	}
}

// dx may be dout.
BLOCK_KERNEL(rmsnorm_backward, NORM_THREADS, 3) {
	SHARED(float, kept, NORM_ROOM + NORM_SUMS);
	const struct share b = share_of(a.s, NORM_ROOM / 2);
	const long dim = a.s.dim, mine = b.first + threadIdx.x / LANES;
	float *gs = kept + NORM_ROOM / 2, v[BURST], g[BURST], lane = 0;
	for (long w = b.first; w < b.last; w++) {
		const long at = vector_at(a.s, w);
		for (long lo = threadIdx.x; lo < b.near; lo += NORM_THREADS * BURST) {
			load_burst(v, a.x, at, lo, NORM_THREADS, b.near);
			load_burst(g, a.dout, at, lo, NORM_THREADS, b.near);
			EACH_LOAD(k) {
				const long i = lo + k * NORM_THREADS;
				if (i >= b.near) continue;
				kept[(w - b.first) * dim + i] = v[k];
				gs[(w - b.first) * dim + i] = g[k] * scale_of(a.weight[i], a.s);
			}
		}
	}
	barrier();
	if (mine < b.last) {
		const long at = vector_at(a.s, mine), here = (mine - b.first) * dim;
		long i = threadIdx.x % LANES;
		AHEAD for (; i < b.near; i += LANES) lane = fmaf(gs[here + i], kept[here + i], lane);
		AHEAD for (; i < dim; i += LANES)
			lane = fmaf(load(a.dout, at + i) * scale_of(a.weight[i], a.s), load(a.x, at + i), lane);
	}
	lane = fold_lanes(lane);
	if (mine < b.last && threadIdx.x % LANES == 0) {
		const float r = a.rstd[mine];
		kept[NORM_ROOM + mine - b.first] = lane * (r * r * r) / (float)dim;
	}
	barrier();
	for (long w = b.first; w < b.last; w++) {
		const long at = vector_at(a.s, w), here = (w - b.first) * dim;
		const float r = a.rstd[w], k = kept[NORM_ROOM + w - b.first];
		for (long i = threadIdx.x; i < dim; i += NORM_THREADS) {
			const int in = i < b.near;
			const float z = in ? kept[here + i] : load(a.x, at + i);
			const float y = in ? gs[here + i] : load(a.dout, at + i) * scale_of(a.weight[i], a.s), d = fmaf(-k, z, y * r);
			store(a.dx, at + i, a.set ? d : load(a.dx, at + i) + d);
		}
	}
}

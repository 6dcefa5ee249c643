#include "sums.h"

// Root mean square norms. A block reads a few vectors into shared memory, coalesced. The 16 threads of a
// half warp are the lanes of a vector's sum. Then all write the results.

#define NORM_THREADS 256
#define NORM_SUMS (NORM_THREADS / LANES)
#define NORM_ROOM (12288 - NORM_SUMS) // elements in shared memory, and a number for each vector

// vector_at is the offset of the v-th vector of the shape, counted row by row.
DEVICE long vector_at(struct norm_shape s, long v) {
	return v / s.heads * s.stride + s.offset + v % s.heads * s.dim;
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

BLOCK_KERNEL(rmsnorm_dw, SUM_THREADS, 2) {
	SHARED(float, sums, SUM_THREADS);
	const long i = column();
	for (long b = 0; b < a.B; b += SUM_WARPS) {
		const struct range r = block_rows(a.blocks, a.B, b);
		float acc = 0;
		if (i < a.s.dim) {
			AHEAD for (long v = r.lo * a.s.heads; v < r.hi * a.s.heads; v++) {
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

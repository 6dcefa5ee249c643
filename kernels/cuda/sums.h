// sums.h adds up what several blocks of rows give to a vector, in the order of the blocks: a warp adds
// the rows of one block for 32 columns, and the next the next block's.
#ifndef EXP_CUDA_SUMS_H
#define EXP_CUDA_SUMS_H

#include "warp.h"

#define SUM_THREADS 512
#define SUM_WARPS (SUM_THREADS / WARP)

struct range {
	long lo, hi;
};

// column is the calling thread's column.
DEVICE long column(void) { return (long)blockIdx.x * WARP + threadIdx.x % WARP; }

// block_rows returns the rows of the calling warp's block, of those from b on.
DEVICE struct range block_rows(const int *blocks, long B, long b) {
	struct range r;
	b += threadIdx.x / WARP;
	r.lo = b < B ? blocks[b] : 0;
	r.hi = b < B ? blocks[b + 1] : 0;
	return r;
}

// add_blocks adds the sums of up to `left` warps to dst [C], in order. sums is shared.
DEVICE void add_blocks(float *dst, float *sums, float acc, long C, long left) {
	sums[threadIdx.x] = acc;
	barrier();
	if (threadIdx.x < WARP && column() < C) {
		float sum = dst[column()];
		for (long w = 0; w < SUM_WARPS && w < left; w++) sum += sums[w * WARP + threadIdx.x];
		dst[column()] = sum;
	}
	barrier();
}

#endif

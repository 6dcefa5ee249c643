#include "warp.h"

#define SQUARE_THREADS 256 // the lanes of 16 blocks of elements
#define STAGE ((SQUARE_THREADS - WARP) * BURST) // sums in shared memory at a time

// 16 threads for each block of elements, its lanes.
BLOCK_KERNEL(sum_squares, SQUARE_THREADS, 4) {
	const long b = element() / LANES, lo = b * SUM_BLOCK, hi = lo + SUM_BLOCK < a.n ? lo + SUM_BLOCK : a.n;
	double lane = 0;
	AHEAD for (long i = lo + threadIdx.x % LANES; i < hi; i += LANES) lane = fma((double)a.x[i], (double)a.x[i], lane);
	lane = fold_lanes64(lane);
	if (lo < a.n && threadIdx.x % LANES == 0) a.sums[b] = lane;
}

// One thread adds the sums in order, while the other warps fetch what it adds next.
BLOCK_KERNEL(sum_blocks, SQUARE_THREADS, 1) {
	SHARED(double, stages, 2 * STAGE);
	double sum = 0;
	for (long lo = 0, stage = 0; lo < a.blocks + STAGE; lo += STAGE, stage ^= STAGE) {
		const double *before = stages + (stage ^ STAGE);
		const long left = a.blocks - lo + STAGE, n = left < STAGE ? left : STAGE; // of the stage before
		if (threadIdx.x >= WARP) {
			const long mine = threadIdx.x - WARP, step = STAGE / BURST;
			double next[BURST];
			EACH_LOAD(k) next[k] = lo + mine + k * step < a.blocks ? a.sums[lo + mine + k * step] : 0;
			EACH_LOAD(k) stages[stage + mine + k * step] = next[k];
		} else if (threadIdx.x == 0 && lo > 0) {
			AHEAD for (long i = 0; i < n; i++) sum += before[i];
		}
		barrier();
	}
	if (threadIdx.x == 0) *a.out = sum;
}

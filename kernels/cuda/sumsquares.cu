#include "num.h"

// A thread for each block.
KERNEL(sum_squares) {
	const long b = element(), lo = b * SUM_BLOCK, hi = lo + SUM_BLOCK < a.n ? lo + SUM_BLOCK : a.n;
	if (lo >= a.n) return;
	double lane[LANES] = {0};
	for (long i = lo; i < hi; i += LANES)
		EACH_LANE(j) if (i + j < hi) lane[j] = fma(a.x[i + j], a.x[i + j], lane[j]);
	a.sums[b] = fold64(lane);
}

// One thread adds the blocks in order.
KERNEL(sum_blocks) {
	if (element() > 0) return;
	double sum = 0;
	for (long b = 0; b < a.blocks; b++) sum += a.sums[b];
	*a.out = sum;
}

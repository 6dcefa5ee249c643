// span.h finds a block's rows of attention, at most BLOCK_ROWS, and stores their heads. A head has up to 128 channels, a
// multiple of 8. A kernel takes PANEL positions of the other factor at a time.
#ifndef EXP_CUDA_SPAN_H
#define EXP_CUDA_SPAN_H

#include "heads.h"

#define CHUNKS 16 // of 8 channels

// A head of the rows of an array, `width` elements apart: of each from element `first` on.
struct head {
	const uint16_t *at;
	int first, width;
};

DEVICE struct head head_in(struct operand x, long width, long first) {
	struct head h;
	h.at = (const uint16_t *)x.at;
	h.first = (int)first;
	h.width = (int)width;
	return h;
}

// store_sums sets a head of x that begins at `at` to row quad+4·e of a warp's sums, times scale plus zero: +0 makes -0 a 0, and -0
// changes nothing.
INLINE void store_sums(struct operand x, long at, float (*sum)[4], int e, float scale, float zero, int D) {
	const int c = computed_here(pair() * 2);
	UNROLL for (int i = 0; i < CHUNKS; i++) UNROLL for (int odd = 0; odd < 2; odd++)
		if (c + i * 8 + odd < D) store(x, at + c + i * 8 + odd, sum[i][e / 2 * 2 + odd] * scale + zero);
}

// seen_from returns the first position that a query at position n sees.
DEVICE int seen_from(struct step s, int n) { return s.window > 0 && n + 1 > s.window ? n + 1 - s.window : 0; }

// first_panel is where the first panel begins that a span's queries see.
DEVICE int first_panel(struct span x, struct step s) { return seen_from(s, computed_here(x.lo)) / PANEL * PANEL; }

// The spans of a block are those that begin in rows `first` to `end`, for one head of some. The last rows see most, so
// their blocks go first. All is computed where it is needed: registers are short.
struct share {
	int first, end, head;
};

DEVICE struct share share_of(struct packing p, long heads) {
	const int M = (int)p.M, block = computed_here(blockIdx.x), chunk = (M - 1) / BLOCK_ROWS - block / (int)heads;
	struct share s;
	s.first = chunk * BLOCK_ROWS;
	s.end = s.first + BLOCK_ROWS < M ? s.first + BLOCK_ROWS : M;
	s.head = block % (int)heads;
	return s;
}

// span_of_block sets *x to the block's first span that begins at row i or later, 0 for any, and returns whether there is one.
DEVICE int span_of_block(struct packing p, long heads, int i, struct span *x) {
	const struct share s = share_of(p, heads);
	return next_span(p, i > s.first ? i : s.first, s.end, BLOCK_ROWS, x) < s.end;
}

// base_of is x.base, and row_in_span the row of a position of x; the row of x.hi is the next after the span.
DEVICE int base_of(struct span x) { return x.lo / STEP * STEP; }
DEVICE int row_in_span(struct span x, int n) { return x.seq.first - x.seq.prefix + n; }

#endif

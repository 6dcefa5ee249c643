// sum.h adds up products in the order of the class: a chain, or a tile sum (TileSum of kernels/ref)
// of factors rounded to bf16.
#ifndef EXP_CUDA_SUM_H
#define EXP_CUDA_SUM_H

#include "num.h"

// Elements first, first+step, … of an array.
struct terms {
	struct operand x;
	long first, step;
};

DEVICE struct terms terms_of(struct operand x, long first, long step) {
	struct terms t;
	t.x = x;
	t.first = first;
	t.step = step;
	return t;
}

// flush returns x, or zero of its sign if x is subnormal.
DEVICE float flush(float x) { return bits_of(x) & 0x7f800000 ? x : float_of(bits_of(x) & 0x80000000); }

// fma_flushed is fusedFlushed of kernels/ref: fmaf, or zero of its sign below 2⁻¹²⁶. Subnormals have fewer bits, so fmaf rounds some
// results up to 2⁻¹²⁶ that 24 bits do not. Their multiples by 2²⁴ are normal and tell.
DEVICE float fma_flushed(float x, float y, float sum) {
	const float z = fmaf(x, y, sum);
	if ((bits_of(z) & 0x7fffffff) == 0x00800000) {
		const uint32_t size = bits_of(fmaf(x * 0x1p24f, y, sum * 0x1p24f)) & 0x7fffffff; // 2²⁴·x may be infinite if y is 0
		return size < bits_of(0x1p-102f) ? float_of(bits_of(z) & 0x80000000) : z;
	}
	return flush(z);
}

// step_sum ends a step of a tile sum, whose even and odd terms have made chains from 0.
DEVICE float step_sum(float acc, float even, float odd) { return flush(flush(acc) + flush(even + odd)); }

// tile_sum returns acc plus the tile sum of n products.
DEVICE float tile_sum(struct terms x, struct terms y, long n, float acc) {
	for (long lo = 0; lo < n; lo += TILE_TERMS) {
		float even = 0, odd = 0;
		for (long i = lo; i < n && i < lo + TILE_TERMS; i++) {
			const float p = rounded(load(x.x, x.first + i * x.step)), q = rounded(load(y.x, y.first + i * y.step));
			if (i % 2) odd = fma_flushed(p, q, odd);
			else even = fma_flushed(p, q, even);
		}
		acc = step_sum(acc, even, odd);
	}
	return acc;
}

// product_sum returns acc plus n products: a chain, or a tile sum.
DEVICE float product_sum(int tile, struct terms x, struct terms y, long n, float acc) {
	if (tile) return tile_sum(x, y, n, acc);
	for (long i = 0; i < n; i++)
		acc = fmaf(load(x.x, x.first + i * x.step), load(y.x, y.first + i * y.step), acc);
	return acc;
}

#endif

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

// step_sum ends a step of a tile sum, whose even and odd terms have made chains from 0.
DEVICE float step_sum(float acc, float even, float odd) { return flush(flush(acc) + flush(even + odd)); }

// tile_sum returns acc plus the tile sum of n products.
DEVICE float tile_sum(struct terms x, struct terms y, long n, float acc) {
	for (long lo = 0; lo < n; lo += TILE_TERMS) {
		float even = 0, odd = 0;
		for (long i = lo; i < n && i < lo + TILE_TERMS; i++) {
			const float p = rounded(load(x.x, x.first + i * x.step)), q = rounded(load(y.x, y.first + i * y.step));
			if (i % 2) odd = flush(fmaf(p, q, odd));
			else even = flush(fmaf(p, q, even));
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

// n sums of products that grow together, one term of each at a time. They are chains in acc, or
// tile sums if even and odd are not null.
struct sums {
	float *acc, *even, *odd;
	long n;
};

// start_sums returns n sums from 0: in room, which has 3·n floats, or if room is null in elements
// of out, float32, from `at`.
DEVICE struct sums start_sums(float *room, struct operand out, long at, long n) {
	struct sums s;
	s.acc = room ? room : (float *)out.at + at;
	s.even = room ? room + n : 0;
	s.odd = room ? room + 2 * n : 0;
	s.n = n;
	for (long d = 0; d < (room ? 3 * n : n); d++) s.acc[d] = 0;
	return s;
}

DEVICE void end_step(struct sums s) {
	for (long d = 0; d < s.n; d++) {
		s.acc[d] = step_sum(s.acc[d], s.even[d], s.odd[d]);
		s.even[d] = s.odd[d] = 0;
	}
}

// add_products adds w·x[at+d] to sum d, as term t.
DEVICE void add_products(struct sums s, long t, float w, struct operand x, long at) {
	if (!s.even) {
		for (long d = 0; d < s.n; d++) s.acc[d] = fmaf(w, load(x, at + d), s.acc[d]);
		return;
	}
	float *lane = t % 2 ? s.odd : s.even;
	const float p = rounded(w);
	for (long d = 0; d < s.n; d++) lane[d] = flush(fmaf(p, rounded(load(x, at + d)), lane[d]));
	if (t % TILE_TERMS == TILE_TERMS - 1) end_step(s);
}

// add_zeros adds products 0 as terms lo to hi of tile sums. A zero may change the sign of another.
DEVICE void add_zeros(struct sums s, long lo, long hi) {
	if (!s.even) return;
	for (long t = lo; t < hi && t < (lo / TILE_TERMS + 2) * TILE_TERMS; t++) { // a second step of zeros changes nothing
		float *lane = t % 2 ? s.odd : s.even;
		for (long d = 0; d < s.n; d++) lane[d] = lane[d] + 0;
		if (t % TILE_TERMS == TILE_TERMS - 1) end_step(s);
	}
}

// end_sums ends tile sums of terms before t.
DEVICE void end_sums(struct sums s, long t) {
	if (s.even && t % TILE_TERMS != 0) end_step(s);
}

#endif

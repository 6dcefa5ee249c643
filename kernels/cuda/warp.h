// warp.h has what threads of a block exchange: the lanes of a warp, and the 16 lanes of lane sums, which
// are the threads of a half warp.
#ifndef EXP_CUDA_WARP_H
#define EXP_CUDA_WARP_H

#include "num.h"

// shuffle_word returns the x of lane^mask, and shuffle_xor does so for a float. meet waits for the other lanes of
// the warp, and sees what they wrote. ballot returns a bit for each lane whose p is not 0. add_shared adds n to a
// number in shared memory, of which threads may be in any order, and returns what it was.
#if defined(EMULATED)
DEVICE uint32_t shuffle_word(uint32_t x, int mask) { return exchange(&x, 1, 0)[lane() ^ mask][0]; }

DEVICE void meet(void) { exchange(0, 0, 0); }

DEVICE uint32_t ballot(int p) {
	const uint32_t u = p != 0;
	const words *all = (const words *)exchange(&u, 1, 0);
	uint32_t bits = 0;
	for (int l = 0; l < WARP; l++) bits |= all[l][0] << l;
	return bits;
}

DEVICE uint32_t add_shared(uint32_t *at, uint32_t n) { return (*at += n) - n; }
#else
#define WARP 32

DEVICE uint32_t shuffle_word(uint32_t x, int mask) { return __nvvm_shfl_sync_bfly_i32(~0u, x, mask, 0x1f); }

DEVICE void meet(void) { __nvvm_bar_warp_sync(~0u); }

DEVICE uint32_t ballot(int p) { return __nvvm_vote_ballot_sync(~0u, p != 0); }

DEVICE void barrier(void) { __syncthreads(); }

DEVICE uint32_t add_shared(uint32_t *at, uint32_t n) { return __nvvm_atom_add_gen_i((int *)at, (int)n); }
#endif

DEVICE float shuffle_xor(float x, int mask) { return float_of(shuffle_word(bits_of(x), mask)); }

DEVICE int any(int p) { return ballot(p) != 0; }

// shuffle_xor64 is shuffle_xor in float64.
DEVICE double shuffle_xor64(double x, int mask) {
	union { double d; float f[2]; } v;
	v.d = x;
	v.f[0] = shuffle_xor(v.f[0], mask);
	v.f[1] = shuffle_xor(v.f[1], mask);
	return v.d;
}

// shuffle_long is shuffle_word for 64 bits.
DEVICE uint64_t shuffle_long(uint64_t x, int mask) {
	const uint64_t high = shuffle_word((uint32_t)(x >> 32), mask);
	return high << 32 | shuffle_word((uint32_t)x, mask);
}

// fold_lanes is fold where each thread of a half warp has a lane. All get the sum.
DEVICE float fold_lanes(float x) {
	UNROLL for (int w = LANES / 2; w > 0; w /= 2) x += shuffle_xor(x, w);
	return x;
}

DEVICE double fold_lanes64(double x) {
	UNROLL for (int w = LANES / 2; w > 0; w /= 2) x += shuffle_xor64(x, w);
	return x;
}

// LANE_THREADS is the number of threads in a block where each half warp has a row.
#define LANE_THREADS 256

// A thread loads BURST elements before it uses one, so that the memory has enough to do.
#define BURST 8
#define EACH_LOAD(k) UNROLL for (int k = 0; k < BURST; k++)

// AHEAD does so in a loop that stores nothing, and AHEAD_4 where an element is four.
#if defined(EMULATED)
#define AHEAD
#define AHEAD_4
#else
#define AHEAD _Pragma("unroll 8")
#define AHEAD_4 _Pragma("unroll 4")
#endif

// load_burst sets v[k] to element i+k·step of x from `at`, or to 0 from n on.
INLINE void load_burst(float *v, struct operand x, long at, long i, long step, long n) {
	if (x.bf16) {
		const uint16_t *p = (const uint16_t *)x.at + at;
		EACH_LOAD(k) v[k] = i + k * step < n ? float_of((uint32_t)p[i + k * step] << 16) : 0;
	} else {
		const float *p = (const float *)x.at + at;
		EACH_LOAD(k) v[k] = i + k * step < n ? p[i + k * step] : 0;
	}
}

#endif

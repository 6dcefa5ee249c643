// tiles.h: the kernels of classes "cpu/bf16" and "matrix/16x25" at one instruction level, and their tables. Both
// classes compute on the same tiles. What would be the same code at two levels is in the table of the one below.
#include "tilesum.h"
#include "tilematmul.h"
#include "tileswiglu.h"
#include "tileattention.h"
#include "tilepagedattention.h"
#include "tileoutput.h"
#if !defined(LEVEL_BF16)
#include "matrixattention.h"
#endif

// tile_peak runs `rounds` rounds per unit on zeros in registers: four tile sums each, the
// peak rate of the matrix unit, or 24 products of pairs.
#if defined(LEVEL_AMX)
#define PEAK_STEP (4 * 2 * TILE * TILE * TERMS)
static void tile_peak(const struct peak_args *g, long u0, long u1, int tid) {
	(void)tid;
	tiles_begin(); // clears all tiles
	for (long u = u0; u < u1; u++)
		for (long t = 0; t < g->rounds; t++) {
			_tile_dpbf16ps(0, 4, 6);
			_tile_dpbf16ps(1, 4, 7);
			_tile_dpbf16ps(2, 5, 6);
			_tile_dpbf16ps(3, 5, 7);
		}
	tiles_end();
}
#elif defined(LEVEL_PAIRS)
#define PEAK_STEP (24 * 4 * LANES)
static void tile_peak(const struct peak_args *g, long u0, long u1, int tid) {
	(void)tid;
	// Hide from the compiler that these stay zero, that chains are alike, and that nothing
	// reads them.
	vf acc[24], one = v_zero();
	bf16 pairs[TERMS] __attribute__((aligned(64))) = {0};
#pragma GCC unroll 24
	for (int c = 0; c < 24; c++) __asm__ volatile("vxorps %0, %0, %0" : "=v"(acc[c]));
	for (long t = 0; t < (u1 - u0) * g->rounds; t++) {
		__asm__ volatile("" : "+v"(one), "+m"(pairs));
#pragma GCC unroll 24
		for (int c = 0; c < 24; c++) acc[c] = v_pairs(acc[c], one, pairs);
	}
#pragma GCC unroll 24
	for (int c = 0; c < 24; c++) __asm__ volatile("" : : "v"(acc[c]));
}

// pairs_are_two_fmas reports whether the instruction for products of pairs does what block_sums
// assumes: two fused multiply-adds, the upper half first, each rounded to nearest, subnormals
// zero. Known processors do; the manuals do not promise it.
int pairs_are_two_fmas(void) {
	uint64_t x = 0x9e3779b97f4a7c15u;
	float acc[LANES], a[LANES], got[LANES], want[LANES];
	bf16 b[TERMS] __attribute__((aligned(64)));
	for (int n = 0; n < 2000; n++) {
		for (int i = 0; i < LANES; i++) {
			x ^= x << 13, x ^= x >> 7, x ^= x << 17;
			// Random exponents overflow, exponents near 1 round, small ones underflow.
			const uint32_t keep = n % 3 ? 0x83ff83ff : 0xffffffff, near = n % 3 == 0 ? 0 : n % 3 == 1 ? 0x3c003c00 : 0x1e001e00;
			const uint32_t p = ((uint32_t)x & keep) | near, q = ((uint32_t)(x >> 32) & keep) | near;
			memcpy(a + i, &p, sizeof p), memcpy(b + 2 * i, &q, sizeof q);
			acc[i] = bits_float(((uint32_t)(x >> 16) & (n % 3 ? 0x83ffffff : 0xffffffff)) | (n % 3 == 1 ? 0x3c000000 : 0));
			if (n < LANES && i == n) { // 2^-126 - 2^-150, which rounds to 2^-126 as a subnormal only
				const uint32_t small = 0x1a000000, less = 0x9a000000;
				memcpy(a + i, &small, sizeof small), memcpy(b + 2 * i, &less, sizeof less);
				acc[i] = 0x1p-126f;
			}
		}
		v_store(got, v_pairs(v_load(acc), v_load(a), b));
		const unsigned mode = flushing();
		const vf upper = v_fma(h_odd((bf16 *)a), h_odd(b), v_load(acc));
		v_store(want, v_fma(h_even((bf16 *)a), h_even(b), upper));
		not_flushing(mode);
		for (int i = 0; i < LANES; i++)
			if (float_bits(got[i]) != float_bits(want[i]) && !(got[i] != got[i] && want[i] != want[i])) return 0;
	}
	return 1;
}
#endif

const struct tile_kernels TILES = {
	.pack = (kernel)tile_pack,
	.across = (kernel)tile_across,
	.embed_packed = (kernel)tile_embed,
	.matmul = (kernel)tile_matmul,
	.matmul_dw = (kernel)tile_matmul_dw,
	.matmul_swiglu = (kernel)tile_matmul_swiglu,
	.matmul_dx_swiglu = (kernel)tile_matmul_dx_swiglu,
	.attention = (kernel)tile_attention,
	.attention_backward = (kernel)tile_attention_backward,
	.logprob = (kernel)tile_logprob,
	.logprob_backward = (kernel)tile_logprob_backward,
#if !defined(LEVEL_AMX)
	.paged_attention = (kernel)tile_paged_attention,
#endif
#if defined(LEVEL_BF16)
	.peak = (kernel)tile_peak,
	.peak_flops = PEAK_STEP,
#else
	.matmul_dbias = (kernel)tile_matmul_dbias,
	.logits = (kernel)tile_scaled_logits,
	.sample = (kernel)tile_sample,
#endif
};

#if !defined(LEVEL_BF16)
// IN_MATRIX defines a kernel of class "matrix/16x25": f with the other sums.
#define IN_MATRIX(f)                                                    \
	static void f##_in_matrix(const void *g, long lo, long hi, int tid) { \
		in_matrix = 1;                                                    \
		f(g, lo, hi, tid);                                                \
		in_matrix = 0;                                                    \
	}
IN_MATRIX(tile_matmul) IN_MATRIX(tile_matmul_dw) IN_MATRIX(tile_matmul_swiglu) IN_MATRIX(tile_matmul_dx_swiglu)
IN_MATRIX(tile_attention_backward)
IN_MATRIX(tile_scaled_logits) IN_MATRIX(tile_logprob) IN_MATRIX(tile_logprob_backward) IN_MATRIX(tile_sample)

const struct tile_kernels MATRIX = {
	.pack = (kernel)tile_pack,
	.across = (kernel)tile_across,
	.embed_packed = (kernel)tile_embed,
	.matmul = tile_matmul_in_matrix,
	.matmul_dw = tile_matmul_dw_in_matrix,
	.matmul_dbias = (kernel)tile_matmul_dbias,
	.matmul_swiglu = tile_matmul_swiglu_in_matrix,
	.matmul_dx_swiglu = tile_matmul_dx_swiglu_in_matrix,
	.attention = (kernel)matrix_attention,
	.attention_backward = tile_attention_backward_in_matrix,
	.paged_attention = (kernel)matrix_paged_attention,
	.logits = tile_scaled_logits_in_matrix,
	.logprob = tile_logprob_in_matrix,
	.logprob_backward = tile_logprob_backward_in_matrix,
	.sample = tile_sample_in_matrix,
};
#endif

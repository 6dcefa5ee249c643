// matrix.h computes on tensor cores, for class matrix/16x25: the lanes of a warp share two factors
// and 16 × 8 sums. MatrixSum of kernels/ref defines what a step of 16 terms adds up.
#ifndef EXP_CUDA_MATRIX_H
#define EXP_CUDA_MATRIX_H

#include "warp.h"

#define STEP 16 // kernels.MatrixTerms

// multiply adds the products of a (16 rows, 16 terms) and b (8 columns, 16 terms) to sums. Lane 4·g+q
// has of a, in words of two terms, (g, 2q), (g+8, 2q), (g, 2q+8), (g+8, 2q+8); of b (g, 2q) and
// (g, 2q+8); of the sums (g, 2q), (g, 2q+1), (g+8, 2q), (g+8, 2q+1).
#if defined(EMULATED)
DEVICE void multiply(float *sum, const uint32_t *a, const uint32_t *b) {
	const uint32_t v[] = {a[0], a[1], a[2], a[3], b[0], b[1], bits_of(sum[0]), bits_of(sum[1]), bits_of(sum[2]), bits_of(sum[3])};
	const uint32_t *w = exchange(v, 10, matrix_product)[lane()];
	for (int e = 0; e < 4; e++) sum[e] = float_of(w[6 + e]);
}
#else
INLINE void multiply(float *sum, const uint32_t *a, const uint32_t *b) {
	asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
		: "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
		: "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

DEVICE uint32_t shared_address(const void *p) {
	return (uint32_t)(uint64_t)(__attribute__((address_space(3))) const void *)p;
}

// copy_later, copy_word_later, commit_copies and await_copies are as in fake/emulator.h; the number is a constant.
DEVICE void copy_later(void *to, const void *from) {
	const int n = from ? 16 : 0;
	asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(n) : "memory");
}
DEVICE void copy_word_later(void *to, const void *from) {
	const int n = from ? 4 : 0;
	asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_address(to)), "l"(from), "r"(n) : "memory");
}
DEVICE void commit_copies(void) { asm volatile("cp.async.commit_group;" ::: "memory"); }
#define await_copies(n) asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory")

// load_matrices reads four matrices of 8 × 8 numbers of 16 bits: lane 8·i+r names row r of matrix
// i, and gets two numbers of row lane/4 of each, or of column lane/4 if transposed.
INLINE void load_matrices(uint32_t *r, const void *row, int transposed) {
	const uint32_t at = shared_address(row);
	if (transposed)
		asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
			: "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
	else
		asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
			: "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
}
#endif

// both packs two factors into a word.
DEVICE uint32_t both(float x, float y) { return round_bf16(x) | (uint32_t)round_bf16(y) << 16; }

#endif

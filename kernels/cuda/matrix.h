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
DEVICE void copy_to(uint32_t to, const void *from, int there) {
	const int n = there ? 16 : 0;
	asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(n) : "memory");
}
DEVICE void copy_word_to(uint32_t to, const void *from, int there) {
	const int n = there ? 4 : 0;
	asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(n) : "memory");
}
DEVICE void copy_later(void *to, const void *from) { copy_to(shared_address(to), from, from != 0); }
DEVICE void copy_word_later(void *to, const void *from) { copy_word_to(shared_address(to), from, from != 0); }
DEVICE void commit_copies(void) { asm volatile("cp.async.commit_group;" ::: "memory"); }
#define await_copies(n) asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory")

// load_matrices reads four matrices of 8 × 8 numbers of 16 bits: lane 8·i+r names row r of matrix
// i, and gets two numbers of row lane/4 of each, or of column lane/4 if transposed.
INLINE void load_at(uint32_t *r, uint32_t row, int transposed) {
	if (transposed)
		asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
			: "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(row) : "memory");
	else
		asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
			: "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(row) : "memory");
}
INLINE void load_matrices(uint32_t *r, const void *row, int transposed) { load_at(r, shared_address(row), transposed); }
#endif

// An address counts the bytes of shared memory; it has 32 bits on a device. load_at, copy_to and copy_word_to are
// load_matrices, copy_later and copy_word_later; what is not there is zeros.
//
// computed_here is x; what is made of it stays in the loop, where it takes no register all the time.
#if defined(EMULATED)
typedef char *address;
DEVICE int computed_here(int x) { return x; }
DEVICE address address_of(void *p) { return p; }
INLINE void load_at(uint32_t *r, address row, int transposed) { load_matrices(r, row, transposed); }
INLINE void copy_to(address to, const void *from, int there) { copy_later(to, there ? from : 0); }
INLINE void copy_word_to(address to, const void *from, int there) { copy_word_later(to, there ? from : 0); }
#else
typedef uint32_t address;
DEVICE int computed_here(int x) {
	asm volatile("" : "+r"(x));
	return x;
}
DEVICE address address_of(void *p) { return shared_address(p); }
#endif

// both packs two factors, none of them subnormal, into a word, and both_flushed any two: a subnormal becomes 0. The
// sign of a factor 0 shows in no sum.
#if defined(EMULATED)
// The instruction keeps subnormals.
DEVICE uint32_t upper_half(float x) { return x != x ? 0x7fff : (bits_of(x) + 0x7fff + (bits_of(x) >> 16 & 1)) >> 16; }
DEVICE uint32_t both(float x, float y) { return upper_half(x) | upper_half(y) << 16; }
#else
DEVICE uint32_t both(float x, float y) {
	uint32_t w;
	asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(w) : "f"(y), "f"(x));
	return w;
}
#endif

DEVICE float flushed(float x) { return x < 0x1p-126f && x > -0x1p-126f ? 0 : x; }

DEVICE uint32_t both_flushed(float x, float y) { return both(flushed(x), flushed(y)); }

#endif

// warpgroup.h has what four warps (a warpgroup) do together on compute capability 9.0: they wait at barriers in shared
// memory, and give one instruction, wgmma, whose factors lie there. fake/cluster.h says what the functions do.
#ifndef EXP_CUDA_WARPGROUP_H
#define EXP_CUDA_WARPGROUP_H

#include "matrix.h"

#define GROUP_ROWS 64     // of sums
#define GROUP_THREADS 128

// A factor lies in boxes: rows of WIDE elements. A row takes LINE bytes, in chunks of 16 whose places depend on
// the row (128-byte swizzle).
#define WIDE 64 // as device_map has it
#define LINE (WIDE * 2)
#define EIGHT_LINES (8 * LINE) // after which the places repeat
#define BOX (GROUP_ROWS * LINE)

#if !defined(EMULATED)
DEVICE void make_barrier(uint64_t *b, int arrivals) {
	asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(b)), "r"(arrivals) : "memory");
}

DEVICE void publish_barriers(void) { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

// arrive_here and arrive_at say that a stage has come, or that a warp is done with it. A warp that multiplied has waited for
// its products, and publish_writes comes before, so they need no release in the whole cluster, which would wait for all memory of
// the device (MEMBAR.ALL.GPU) at every stage.
DEVICE void arrive_here(uint64_t *b) {
	asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(b)) : "memory");
}

DEVICE void arrive_at(uint64_t *b, int rank) {
	asm volatile("{\n\t.reg .b32 at;\n\tmapa.shared::cluster.u32 at, %0, %1;\n\t"
		"mbarrier.arrive.shared::cluster.b64 _, [at];\n\t}"
		::"r"(shared_address(b)), "r"(rank) : "memory");
}

DEVICE void await_phase(uint64_t *b, int parity) {
	uint32_t done;
	do {
		asm volatile("{\n\t.reg .pred p;\n\tmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
			"selp.u32 %0, 1, 0, p;\n\t}"
			: "=r"(done) : "r"(shared_address(b)), "r"(parity) : "memory");
	} while (!done);
}

DEVICE void group_barrier(int id, int threads) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory"); }

DEVICE void publish_writes(void) { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// group_any is group_barrier, and reports whether p is not 0 for any of the threads.
DEVICE int group_any(int id, int threads, int p) {
	int found;
	asm volatile("{\n\t.reg .pred p, q;\n\tsetp.ne.b32 p, %3, 0;\n\tbar.red.or.pred q, %1, %2, p;\n\t"
		"selp.b32 %0, 1, 0, q;\n\t}" : "=r"(found) : "r"(id), "r"(threads), "r"(p) : "memory");
	return found;
}

// uniform returns x, equal in all lanes of a warp, so that the assembler can see it.
DEVICE int uniform(int x) { return __nvvm_shfl_sync_idx_i32(~0u, x, 0, 0x1f); }

// Warpgroups that hold sums take registers from the others, if they need them.
#define fewer_registers(n) asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(n))
#define more_registers(n) asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(n))

DEVICE void open_products(void) { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void commit_products(void) { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
#define await_products(n) asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(n) : "memory")

#define SUMS_4(j) "+f"(sum[j][0]), "+f"(sum[j][1]), "+f"(sum[j][2]), "+f"(sum[j][3])
#define SUMS_16(j) SUMS_4(j), SUMS_4(j + 1), SUMS_4(j + 2), SUMS_4(j + 3)
#define SUMS_32 SUMS_16(0), SUMS_16(4)
#define SUMS_64 SUMS_32, SUMS_16(8), SUMS_16(12)
#define SUMS_128 SUMS_64, SUMS_16(16), SUMS_16(20), SUMS_16(24), SUMS_16(28)
#define NAMES_16 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define NAMES_32                                                                                       \
	"%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                             \
	"%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define NAMES_64 NAMES_32 ", "                                                                         \
	"%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "                    \
	"%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define NAMES_128 NAMES_64 ", "                                                                        \
	"%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "                    \
	"%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "                    \
	"%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "        \
	"%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"

// hold_sums keeps the compiler from reading sums before they are complete.
INLINE void hold_sums(float (*sum)[4], int eights) {
	UNROLL for (int j = 0; j < eights; j++)
		asm volatile("" : SUMS_4(j)::"memory");
}
#else
#define hold_sums(sum, eights) (void)0
#define uniform(x) (x)
#endif

// descriptor says where a factor of a wgmma starts, and how its parts follow each other. 8 lines are EIGHT_LINES apart. If the
// factor is not by_terms, the next WIDE outputs are `wide` bytes further; else wide is 0. The last bit names the swizzle.
DEVICE uint64_t descriptor(const void *at, int wide) {
	return (shared_address(at) & 0x3ffff) >> 4 | (uint64_t)(wide ? wide >> 4 : 1) << 16 |
		(uint64_t)(EIGHT_LINES >> 4) << 32 | (uint64_t)1 << 62;
}

// STEP_IN is how far a descriptor moves for a step.
#define STEP_IN(by_terms) (((by_terms) ? STEP * 2 : STEP * LINE) >> 4)

#endif

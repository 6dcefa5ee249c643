// cluster.h has what kernels of wgmma.h and warpgroup.h call: barriers that count, copies of tiles, products of
// warpgroups. emulator.h includes it.
#ifndef EXP_CUDA_CLUSTER_H
#define EXP_CUDA_CLUSTER_H

#include <stdint.h>

struct tensor_map;

// shared_address is the place of p in the shared memory of the calling thread's block.
uint32_t shared_address(const void *p);

// A barrier in shared memory (mbarrier) ends a phase after so many arrivals and all bytes that were announced.
// expect_bytes announces some and arrives. arrive_here arrives, and arrive_at at the same barrier of another block of
// the cluster. await_phase waits until the phase of a parity ends; before the first, parity 1 has.
void make_barrier(uint64_t *b, int arrivals);
void expect_bytes(uint64_t *b, int bytes);
void arrive_here(uint64_t *b);
void arrive_at(uint64_t *b, int rank);
void await_phase(uint64_t *b, int parity);

// load_box queues the copy of the box of a map at a column and a row, whose bytes go to the barrier, and
// load_box_for_all to all blocks of the cluster. In order 0 it arrives when it is awaited, in order 1 at once,
// in order 2 one box so and the next otherwise. A copy that nobody awaits fails the launch.
void load_box(void *to, const struct tensor_map *map, int column, int row, uint64_t *b);
void load_box_for_all(void *to, const struct tensor_map *map, int column, int row, uint64_t *b);

// wgmma queues 16 products for each of a warpgroup's 64 × 8·eights sums. They are added when they are awaited, in order 1
// as soon as they are committed, warp by warp, of the factors that the shared memory has then.
//
// wgmma_from_zero is wgmma with sums that begin at 0. wgmma_rows takes 16 terms of x's 64 rows from registers, which lie as in
// multiply and stay until then.
void wgmma(float (*sum)[4], int eights, uint64_t x, uint64_t y, int x_by_terms, int y_by_terms);
void wgmma_from_zero(float (*sum)[4], int eights, uint64_t x, uint64_t y, int x_by_terms, int y_by_terms);
void wgmma_rows(float (*sum)[4], int eights, const uint32_t *x, uint64_t y, int y_by_terms);
void open_products(void);
void commit_products(void);
void await_products(int n);

// cluster_barrier waits for all threads of the cluster, and group_barrier for some of the block. group_any reports whether p
// is not 0 for any of them.
void cluster_barrier(void);
void group_barrier(int id, int threads);
int group_any(int id, int threads, int p);

// wgmma_differs makes the sums of wgmma other than those of mma.sync.
extern int wgmma_differs;

static inline void publish_barriers(void) {}
static inline void publish_writes(void) {}
#define fewer_registers(n) (void)0
#define more_registers(n) (void)0

#endif

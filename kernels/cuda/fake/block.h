// block.h runs blocks whose threads wait for each other, for emulator.c, and what cluster.c needs of them.
#ifndef EXP_CUDA_BLOCK_H
#define EXP_CUDA_BLOCK_H

#include "emulator.h"

#pragma GCC visibility push(hidden)

enum { MAX_THREADS = 1024 }; // of a cluster

// run_cluster runs the threads of a cluster from block `first` of the launch, each block with `shared` bytes from
// the launch. begin_cluster, with the number of its threads, and end_cluster come before and after.
void run_cluster(const struct kernel *k, unsigned long first, unsigned shared, const void *args, int order);
void begin_cluster(int threads);
void end_cluster(void);

// rank is the number of the running thread's block in its cluster, of which there are `blocks`. live_threads
// counts those that have not ended, and is_live says whether a block has any.
int rank(void);
int blocks(void);
int live_threads(void);
int is_live(int of);
char *block_memory(int of);
int order(void);

// turn lets others run, and progress says that waiting has had a point.
void turn(void);
void progress(void);

// at returns the i-th of n in an order, and index_of the indices of element i of a grid.
unsigned long at(unsigned long i, unsigned long n, int order);
struct grid index_of(unsigned long i, struct grid of);

// give_up ends the kernel with a complaint on the running thread.
void give_up(const char *why) __attribute__((noreturn));

#pragma GCC visibility pop

#endif

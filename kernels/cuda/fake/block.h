// block.h runs blocks whose threads wait for each other, for emulator.c.
#ifndef EXP_CUDA_BLOCK_H
#define EXP_CUDA_BLOCK_H

#include "emulator.h"

// run_block runs the threads of block blockIdx, with `shared` bytes from the launch.
void run_block(const struct kernel *k, unsigned shared, const void *args, int order);

// at returns the i-th of n in an order, and index_of the indices of element i of a grid.
unsigned long at(unsigned long i, unsigned long n, int order);
struct grid index_of(unsigned long i, struct grid of);

// give_up ends the kernel with a complaint on the running thread.
void give_up(const char *why) __attribute__((noreturn));

#endif

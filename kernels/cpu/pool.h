// pool.h: the threads that divide an operation: the caller and n-1 of the pool's own. They
// are C threads, because Go's scheduler preempts a goroutine that is long in C and starts
// others that look for work, on the cores that compute.
#ifndef EXP_CPU_POOL_H
#define EXP_CPU_POOL_H

#include "level/args.h"

struct pool;

// pool_open starts the threads, or returns null and sets errno.
struct pool *pool_open(int n);

// pool_close ends the threads and frees the pool.
void pool_close(struct pool *p);

// pool_run calls fn for units 0..units-1, grain at a time, on whichever thread is free
// (tid 0 is the caller), and returns when all are done. Threads take units in order.
// There is one caller at a time.
void pool_run(struct pool *p, kernel fn, const void *args, long units, long grain);

// pool_relax is called in spin loops.
static inline void pool_relax(void) {
#if defined(__x86_64__)
	__builtin_ia32_pause();
#endif
}

#endif

// emulator.h runs kernels on the CPU, for tests: gpu.h includes it where EMULATED is defined. The
// threads of a launch run one after another in one of three orders. Threads of a correct kernel
// write different elements, so every order gives the same bits.
#ifndef EXP_CUDA_EMULATOR_H
#define EXP_CUDA_EMULATOR_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

struct grid {
	unsigned x, y, z;
};

extern struct grid threadIdx, blockIdx, blockDim, gridDim;

// A kernel, and the size of the structure of its arguments.
struct kernel {
	const char *name;
	size_t args;
	void (*call)(const void *args);
};

void register_kernel(struct kernel k);
const struct kernel *find_kernel(const char *name);

// emulate runs a kernel in an order: 0 ascending, 1 descending, 2 shuffled. It returns 0, or
// CUDA_ERROR_ILLEGAL_ADDRESS if a thread touched memory it must not: the message on stderr names
// the thread.
int emulate(const struct kernel *k, struct grid grid, struct grid block, const void *args, int order);

#define __device__

#define KERNEL(name)                                                                               \
	static void name##_thread(const struct name##_args a);                                         \
	static void name##_call(const void *args) { name##_thread(*(const struct name##_args *)args); }  \
	__attribute__((constructor)) static void name##_register(void) {                               \
		register_kernel((struct kernel){#name, sizeof(struct name##_args), name##_call});             \
	}                                                                                              \
	static void name##_thread(const struct name##_args a)

#endif

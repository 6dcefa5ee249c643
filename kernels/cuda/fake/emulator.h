// emulator.h runs kernels on the CPU, for tests: gpu.h includes it where EMULATED is defined. The
// threads of a launch run one after another in one of three orders. Threads of a correct kernel
// write different elements, so every order gives the same bits. Threads of a KERNEL share nothing.
// Those of a BLOCK_KERNEL may meet at barriers, and the lanes of a warp in shuffles and products on
// tensor cores: each runs on a stack of its own until it has to wait.
#ifndef EXP_CUDA_EMULATOR_H
#define EXP_CUDA_EMULATOR_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

// What is not the driver's is called and read directly, not through a table.
#pragma GCC visibility push(hidden)

#include "cluster.h"

struct grid {
	unsigned x, y, z;
};

extern struct grid threadIdx, blockIdx, blockDim, gridDim;

// A kernel, and the size of the structure of its arguments. If its threads may wait for each other,
// threads is how many a block has, else 0, and blocks how many a cluster has.
struct kernel {
	const char *name;
	size_t args;
	void (*call)(const void *args);
	unsigned threads, blocks;
};

void register_kernel(struct kernel k);
const struct kernel *find_kernel(const char *name);

// emulate runs a kernel, with `shared` bytes of memory for each block, in an order: 0 ascending, 1 descending, 2 shuffled. It returns 0, or
// CUDA_ERROR_ILLEGAL_ADDRESS if a thread touched memory it must not, or CUDA_ERROR_LAUNCH_FAILED if
// threads wait for others that never come: the message on stderr names the thread.
int emulate(const struct kernel *k, struct grid grid, struct grid block, unsigned shared, const void *args, int order);

// barrier waits for all threads of the block (__syncthreads).
void barrier(void);

// WARP is the number of lanes of a warp, and MAX_WORDS how many words a lane can exchange.
enum { WARP = 32, MAX_WORDS = 10 };

// exchange waits for all lanes of the warp, each with n words, and returns the words of all. If
// combine is not null, the last lane that comes calls it first, on all words.
typedef uint32_t words[MAX_WORDS];
words *exchange(const uint32_t *v, int n, void (*combine)(words *all));

// running is the number of the calling thread in its cluster, and lane that in its warp.
extern int running;
static inline int lane(void) { return (unsigned)running % WARP; }

// copy_later queues a copy of 16 bytes, or of zeros if from is null, and copy_word_later one of 4.
// commit_copies ends a group of them. await_copies performs all groups but the last n: a kernel that reads too early finds what
// was there before. A thread that ends with copies left is an error.
void copy_later(void *to, const void *from);
void copy_word_later(void *to, const void *from);
void commit_copies(void);
void await_copies(int n);

// matrix_product is what a tensor core adds up for a warp: the lanes' words are fragments of a
// (4 words), of b (2), and of the sums (4), which it replaces.
void matrix_product(words *all);

#define __device__

#define REGISTER(name, threads, blocks)                                                            \
	static void name##_thread(const struct name##_args a);                                         \
	static void name##_call(const void *args) { name##_thread(*(const struct name##_args *)args); }  \
	__attribute__((constructor)) static void name##_register(void) {                               \
		register_kernel((struct kernel){#name, sizeof(struct name##_args), name##_call, threads, blocks}); \
	}                                                                                              \
	static void name##_thread(const struct name##_args a)
#define KERNEL(name) REGISTER(name, 0, 1)
#define BLOCK_KERNEL(name, threads, blocks) REGISTER(name, threads, 1)
#define CLUSTER_KERNEL(name) REGISTER(name, THREADS, CLUSTER)

// load_matrices reads four matrices of 8 × 8 numbers of 16 bits for a warp (ldmatrix).
void load_matrices(uint32_t *r, const void *row, int transposed);

// SHARED declares the array that the threads of a block share. It starts as NaN (0xff) in each block. A kernel
// with LAUNCH_SHARED wants a launch that gives it as many bytes.
void *shared_memory(size_t bytes);
void *launch_shared_memory(size_t bytes);
#define SHARED(type, name, n) type *const name = shared_memory(sizeof(type) * (n))
#define LAUNCH_SHARED(type, name, n) type *const name = launch_shared_memory(sizeof(type) * (n))

#pragma GCC visibility pop

#endif

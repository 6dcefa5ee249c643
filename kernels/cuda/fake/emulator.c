#define _GNU_SOURCE
#include "block.h"
#include "cuda.h"
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct grid threadIdx, blockIdx, blockDim, gridDim;

enum { MAX_KERNELS = 256 };
static struct kernel kernels[MAX_KERNELS];
static int registered;

void register_kernel(struct kernel k) {
	if (registered == MAX_KERNELS) abort();
	kernels[registered++] = k;
}

const struct kernel *find_kernel(const char *name) {
	for (int i = 0; i < registered; i++)
		if (!strcmp(kernels[i].name, name)) return &kernels[i];
	return NULL;
}

// Faults of the thread that emulates end the kernel. Others are the program's own.
static __thread sigjmp_buf *fault;
static struct sigaction previous;

static void on_fault(int sig, siginfo_t *info, void *context) {
	if (fault) siglongjmp(*fault, 1);
	if (previous.sa_flags & SA_SIGINFO) previous.sa_sigaction(sig, info, context);
	else previous.sa_handler(sig);
}

static const char *complaint;

void give_up(const char *why) {
	complaint = why;
	siglongjmp(*fault, 2);
}

// 7919 is a prime above any n of threads in a block, so multiples of it visit all n; a grid may be
// a multiple of it, and runs in ascending order then.
unsigned long at(unsigned long i, unsigned long n, int order) {
	if (order == 1) return n - 1 - i;
	if (order == 2 && n % 7919) return (i + 1) * 7919 % n;
	return i;
}

struct grid index_of(unsigned long i, struct grid of) {
	if (i < of.x) return (struct grid){i, 0, 0};
	return (struct grid){i % of.x, i / of.x % of.y, i / of.x / of.y};
}

static void run_all(const struct kernel *k, unsigned shared, const void *args, int order) {
	const unsigned long blocks = (unsigned long)gridDim.x * gridDim.y * gridDim.z;
	const unsigned long threads = blockDim.x * blockDim.y * blockDim.z;
	const unsigned long clusters = k->threads ? blocks / k->blocks : 0;
	for (unsigned long c = 0; c < clusters; c++) run_cluster(k, at(c, clusters, order) * k->blocks, shared, args, order);
	for (unsigned long b = 0; b < blocks && !k->threads; b++) {
		blockIdx = index_of(at(b, blocks, order), gridDim);
		for (unsigned long t = 0; t < threads; t++) {
			threadIdx = index_of(at(t, threads, order), blockDim);
			k->call(args);
		}
	}
}

int emulate(const struct kernel *k, struct grid grid, struct grid block, unsigned shared, const void *args, int order) {
	struct sigaction act = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	sigjmp_buf back;
	int result = 0;
	gridDim = grid;
	blockDim = block;
	sigaction(SIGSEGV, &act, &previous);
	fault = &back;
	switch (sigsetjmp(back, 1)) {
	case 0: run_all(k, shared, args, order); break;
	case 1:
		fprintf(stderr, "emulator: %s: illegal address in block %u,%u thread %u\n", k->name, blockIdx.x, blockIdx.y,
			threadIdx.x);
		result = CUDA_ERROR_ILLEGAL_ADDRESS;
		break;
	default:
		fprintf(stderr, "emulator: %s: %s in block %u,%u thread %u\n", k->name, complaint, blockIdx.x, blockIdx.y,
			threadIdx.x);
		result = CUDA_ERROR_LAUNCH_FAILED;
	}
	fault = NULL;
	sigaction(SIGSEGV, &previous, NULL);
	return result;
}

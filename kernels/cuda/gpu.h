// gpu.h is what a kernel includes. A kernel is one source for two compilers: clang makes the PTX
// that is committed (ptx.sh), and gcc compiles it as C for the emulator of fake/, so it keeps to
// what C and C++ share. It takes one structure of arguments (args.h), writes as plain C what
// must not fuse and as fmaf what must, and calls no library.
#ifndef EXP_CUDA_GPU_H
#define EXP_CUDA_GPU_H

// DEVICE marks a function that kernels call.
#define DEVICE static inline __device__ __attribute__((unused))

// INLINE marks one that is compiled into each caller: arrays that it is given stay in registers.
#define INLINE DEVICE __attribute__((always_inline))

#if defined(EMULATED)
#include "fake/emulator.h"
#else
typedef unsigned long size_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef int int32_t;
typedef unsigned long uint64_t;
typedef long int64_t;

#define __device__ __attribute__((device))

// A variable whose members read a register of the thread.
#define INDEX(name, register)                                                                      \
	struct name##_t {                                                                              \
		__declspec(property(get = get_x)) unsigned x;                                              \
		__declspec(property(get = get_y)) unsigned y;                                              \
		static __device__ unsigned get_x() { return __nvvm_read_ptx_sreg_##register##_x(); }        \
		static __device__ unsigned get_y() { return __nvvm_read_ptx_sreg_##register##_y(); }        \
	};                                                                                             \
	extern const __device__ struct name##_t name
INDEX(threadIdx, tid);
INDEX(blockIdx, ctaid);
INDEX(blockDim, ntid);
INDEX(gridDim, nctaid);

#define DEFINE(name, ...) extern "C" __attribute__((global, ##__VA_ARGS__)) void name(const struct name##_args a)
#define KERNEL(name) DEFINE(name)

// BLOCK_KERNEL defines a kernel whose threads wait for each other: a block has `threads`, and a
// multiprocessor has registers for `blocks` of them. SHARED declares the array that a block's threads
// share, and LAUNCH_SHARED one whose memory the launch gives.
//
// CLUSTER_KERNEL defines one of THREADS and BLOCKS whose blocks, CLUSTER at a time from a multiple of it, run at the same
// time on neighbours, and reach each other's shared memory. ptx.sh writes so into the PTX, because this compiler cannot.
#define BLOCK_KERNEL(name, threads, blocks) DEFINE(name, launch_bounds(threads, blocks))
#define CLUSTER_KERNEL(name) DEFINE(name, launch_bounds(THREADS, BLOCKS))
#define SHARED(type, name, n) static __attribute__((shared, aligned(128))) type name[n]
#define LAUNCH_SHARED(type, name, n) extern __attribute__((shared, aligned(128))) type name[]

DEVICE float fmaf(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
DEVICE double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
DEVICE float sqrtf(float x) { return __nvvm_sqrt_rn_f(x); }
DEVICE float rintf(float x) { return __builtin_rintf(x); }
DEVICE double rint(double x) { return __builtin_rint(x); }
DEVICE double fabs(double x) { return __builtin_fabs(x); }
#endif

#include "args.h"

// EACH_LANE goes over the lanes of a lane sum, unrolled: an array that is indexed by constants
// lies in registers. ROLLED keeps a loop one, so that the code stays small. The emulator ignores both.
#if defined(EMULATED)
#define UNROLL
#define ROLLED
#else
#define UNROLL _Pragma("unroll")
#define ROLLED _Pragma("unroll 1")
#endif
#define EACH_LANE(j) UNROLL for (int j = 0; j < LANES; j++)

// element is the index of the calling thread in a launch of a row of blocks.
DEVICE long element(void) { return (long)blockIdx.x * blockDim.x + threadIdx.x; }

// bits_of and float_of take a float32 apart and put it together.
DEVICE uint32_t bits_of(float x) {
	union { float f; uint32_t u; } v;
	v.f = x;
	return v.u;
}

DEVICE float float_of(uint32_t u) {
	union { float f; uint32_t u; } v;
	v.u = u;
	return v.f;
}

#endif

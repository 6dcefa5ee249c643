// args.h declares the arguments of each kernel, in device memory where they are pointers. Go fills
// the same structures.
#ifndef EXP_CUDA_ARGS_H
#define EXP_CUDA_ARGS_H

#if defined(EMULATED) || !defined(__CUDA__)
#include <stddef.h>
#include <stdint.h>
#endif

struct add_args {
	float *dst;
	const float *src;
	size_t n;
};

// The four conversions of Copy have arguments of one shape.
struct convert_args {
	void *dst;
	const void *src;
	size_t n;
};

#define f32_to_f64_args convert_args
#define f64_to_f32_args convert_args
#define f32_to_bf16_args convert_args
#define bf16_to_f32_args convert_args

#endif

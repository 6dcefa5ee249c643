// args.h: what the Go side hands to a kernel: one struct per operation and, per
// instruction level, a table of functions. A kernel works on units lo..hi of its
// operation; units may run on any thread in any order. tid numbers the thread, for
// its scratch memory. Kernels keep no state and allocate nothing.
#ifndef EXP_CPU_ARGS_H
#define EXP_CPU_ARGS_H

#include <stdint.h>

struct pack_args {
	float *out; const float *b;
	long k, n, sk, sn; // B [k,n] with its strides
};

struct matmul_args {
	float *c; const float *a, *b, *bias;
	long m, n, k, row_block, panel_groups;
};

#define DW_ROWS 256 // rows that matmul_dw reduces at a time; at least a gradient block

struct matmul_dw_args {
	float *dw, *dbias; const float *dout, *x; const int32_t *block;
	float *scratch; long scratch_len; // per thread
	long n, k, blocks, row_groups;
};

struct embed_args {
	float *out; const float *weight; const int32_t *ids;
	long m, c;
};

struct norm_args {
	float *out, *rstd, *sum; const float *x, *delta, *weight;
	long heads, dim, stride, offset;
	float eps;
};

struct norm_back_args {
	float *dx, *dweight; const float *dout, *x, *weight, *rstd; const int32_t *block;
	long blocks, heads, dim, stride, offset;
	int set;
};

struct swiglu_args {
	float *out; const float *dout, *gate_up;
	long f;
};

struct rope_args {
	float *qkv; const float *cos, *sin; const int32_t *pos;
	long heads, d, stride;
	int inverse;
};

struct attention_args {
	float *out, *stats, *dqkv; const float *qkv, *dout, *aout; const int32_t *offsets;
	float *scratch; long scratch_len; // per thread
	long h, kv, d, stride;
	float scale;
	// paged
	float *keys, *values; const int32_t *slots, *table, *seq, *pos;
	long page, width;
};

struct output_args {
	float *logprob, *entropy, *lse, *dz, *z; const float *h, *w; const int32_t *targets;
	const float *dlogprob, *dentropy;
	int32_t *ids; const float *u;
	float *scratch; long scratch_len; // per thread
	long rows, c, v, chunk, row0;
	float inv_temp;
	int greedy;
};

struct adamw_args {
	float *p, *m, *v; const float *g;
	long n;
	float b1, omb1, b2, omb2, c2, eps, neg_lr_c1, decay, scale;
};

struct vector_args {
	float *dst; const float *src; const int32_t *index; double *partial;
	long n, c;
	float scale;
};

// A kernel runs units lo..hi.
typedef void (*kernel)(const void *args, long lo, long hi, int tid);

struct kernels {
	long mr, nr; // register tile
	kernel pack, matmul, matmul_dw, matmul_dbias;
	kernel embed, embed_backward;
	kernel rmsnorm, add_rmsnorm, rmsnorm_dx, rmsnorm_dw;
	kernel swiglu, swiglu_backward;
	kernel rope, attention, attention_backward, append_kv, paged_attention;
	kernel logits, logprob, logprob_backward, sample;
	kernel adamw, sum_squares, add;
};

extern const struct kernels kernels_avx512, kernels_avx2, kernels_portable;

#endif

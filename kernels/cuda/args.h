// args.h declares the arguments of each kernel. Pointers are addresses in device memory. Go fills
// the same structures. Dims have the names of package kernels.
#ifndef EXP_CUDA_ARGS_H
#define EXP_CUDA_ARGS_H

#define LANES 16        // kernels.Lanes
#define SAMPLE_BLOCK 256 // kernels.SampleBlock
#define SUM_BLOCK 4096   // kernels.SumBlock
#define TILE_TERMS 32    // kernels.TileTerms

// An array of float32 or bf16: an operand (package kernels), or a weight [out,in].
//
// In class cpu/bf16, where operands are bf16, kernels with products have tile set: their sums are
// tile sums. Those on tensor cores have names with matrix.
struct operand {
	void *at;
	int bf16;
};

struct add_args {
	float *dst;
	const float *src;
	long n;
};

// The conversions of Copy have arguments of one shape.
struct convert_args {
	void *dst;
	const void *src;
	long n;
};
#define f32_to_f64_args convert_args
#define f64_to_f32_args convert_args
#define f32_to_bf16_args convert_args
#define bf16_to_f32_args convert_args
#define flush_bf16_args convert_args

// out [M,N] = x [M,K] · wᵀ + bias; w [N,K]. A missing bias is null.
struct matmul_args {
	struct operand out, x, w;
	const float *bias;
	long M, N, K;
	int tile;
};

// dx [M,K] = dout [M,N] · w
struct matmul_dx_args {
	struct operand dx, dout, w;
	long M, N, K;
	int tile;
};

// w [2F,K]; gate_up has no address if it is not wanted.
struct matmul_swiglu_args {
	struct operand act, gate_up, x, w;
	long M, F, K;
	int tile;
};

// w [N,F]
struct matmul_dx_swiglu_args {
	struct operand dgate_up, gate_up, dout, w;
	long M, N, F;
	int tile;
};

struct matmul_dw_args {
	float *dw;
	struct operand dout, x;
	const int *blocks; // [B+1]
	long B, N, K;
};

// A factor on tiles: rows pitch elements apart. On tensor cores they are bf16 and aligned to 16 bytes,
// and zeros follow them up to the pitch. In class cpu/fma they are float32.
struct factor {
	const void *at;
	long pitch;
};

// dst becomes a factor with the values of src [rows,width].
struct pack_args {
	void *dst;
	struct operand src;
	long rows, width, pitch;
};

struct matrix_matmul_args {
	struct operand out;
	struct factor x, w;
	const float *bias;
	long M, N, K;
};

struct matrix_matmul_dx_args {
	struct operand dx;
	struct factor dout, w;
	long M, N, K;
};

struct matrix_matmul_swiglu_args {
	struct operand act, gate_up;
	struct factor x, w;
	long M, F, K;
};

struct matrix_matmul_dx_swiglu_args {
	struct operand dgate_up, gate_up;
	struct factor dout, w;
	long M, N, F;
};

struct matrix_matmul_dw_args {
	float *dw;
	struct factor dout, x;
	const int *blocks; // [B+1]
	long B, N, K;
};

// Kernels of other tiles (tile.h) take the same arguments.
#define chain_matmul_args matrix_matmul_args
#define chain_matmul_dx_args matrix_matmul_dx_args
#define chain_matmul_swiglu_args matrix_matmul_swiglu_args
#define chain_matmul_dx_swiglu_args matrix_matmul_dx_swiglu_args
#define chain_matmul_dw_args matrix_matmul_dw_args
#define chain_logits_args matrix_logits_args
#define chain_logits_backward_args matrix_logits_backward_args
#define large_matmul_args matrix_matmul_args
#define large_matmul_dx_args matrix_matmul_dx_args
#define large_matmul_swiglu_args matrix_matmul_swiglu_args
#define large_matmul_dx_swiglu_args matrix_matmul_dx_swiglu_args
#define large_matmul_dw_args matrix_matmul_dw_args
#define large_logits_args matrix_logits_args
#define large_logits_backward_args matrix_logits_backward_args
#define few_matmul_args matrix_matmul_args
#define few_matmul_swiglu_args matrix_matmul_swiglu_args
#define few_logits_args matrix_logits_args

// A tensor map says where a factor lies, to the engine that copies its tiles (cuTensorMapEncodeTiled).
#if defined(__CUDA_ARCH__)
#define MAP_ALIGNED __attribute__((aligned(64)))
#else
#define MAP_ALIGNED
#endif
struct tensor_map {
	unsigned long word[16];
} MAP_ALIGNED;

// dst [C] gets the blocked plain sum of the rows of x [M,C].
struct column_sums_args {
	float *dst;
	struct operand x;
	const int *blocks;
	long B, C;
};

// Rows of the weight are pitch elements apart. If round is set, they are rounded to bf16.
struct embed_args {
	float *out;
	struct operand w;
	const int *ids;
	long M, C, pitch;
	float scale;
	int round;
};

// Rows of dout go to rows ids of dweight.
struct embed_backward_args {
	float *dweight;
	const float *dout;
	const int *ids;
	long M, C;
	float scale;
};

// kernels.NormShape for M rows.
struct norm_shape {
	long M, heads, dim, stride, offset;
	int unit_offset;
};

// sum and delta are null for RMSNorm.
struct rmsnorm_args {
	struct operand out, x;
	float *rstd, *sum;
	const float *delta, *weight;
	struct norm_shape s;
	float eps;
};

#define rmsnorm_wide_args rmsnorm_args

struct rmsnorm_backward_args {
	struct operand dx, dout, x;
	const float *weight, *rstd;
	struct norm_shape s;
	int set;
};

#define rmsnorm_backward_wide_args rmsnorm_backward_args

struct rmsnorm_dw_args {
	float *dweight;
	struct operand dout, x;
	const float *rstd;
	const int *blocks;
	long B;
	struct norm_shape s;
};

struct layernorm_args {
	float *out, *stats;
	const float *x, *weight, *bias;
	long M, C;
	float eps;
};

struct layernorm_backward_args {
	float *dx;
	const float *dout, *x, *weight, *stats;
	long M, C;
};

struct layernorm_dw_args {
	float *dweight;
	const float *dout, *x, *stats;
	const int *blocks;
	long B, C;
};

struct gelu_args {
	float *out;
	const float *x;
	long n;
};

struct gelu_backward_args {
	float *dx;
	const float *dout, *x;
	long n;
};

struct dropout_args {
	float *out;
	const float *x;
	const int *keys;
	long M, C;
	unsigned layer;
	float scale;
	double p;
};

enum gate_kind { SILU, GELU_TANH, CLAMPED, RELU2, PLAIN_GELU, PLAIN_GELU_TANH };
#define GATE_LIMIT 7.0f
#define GATE_SLOPE 1.702f

struct gate_args {
	struct operand act, gate_up;
	long M, F;
	int kind; // enum gate_kind
};

// The numbers of an xIELU, and their derivatives in the learned parameters.
struct xielu_numbers {
	double positive, negative, beta, eps, d_positive, d_negative;
};

struct xielu_args {
	struct operand act, x;
	long M, F;
	struct xielu_numbers by;
};

// terms [M,2] of dalpha, and the sums of a block's, parts [B,2].
struct xielu_backward_args {
	struct operand dx, x, dact;
	const int *blocks;
	float *terms, *parts;
	long M, F, B;
	struct xielu_numbers by;
};
#define xielu_parts_args xielu_backward_args

// out is dx in backward.
struct clip_args {
	struct operand out, x, dout;
	long n;
	float limit;
};
#define clip_backward_args clip_args

struct gate_backward_args {
	struct operand dgate_up, gate_up, dact;
	long M, F;
	int kind; // enum gate_kind
};

struct columns_args {
	struct operand dst, src;
	long M, n, stride, offset;
	float scale;
};
#define take_columns_args columns_args
#define add_columns_args columns_args

// kernels.AttentionShape; cap is 0 without one. ahead [M] is null without blocks of rows.
struct attention_shape {
	long H, K, D, window;
	float scale, cap, inverse_cap;
	const int *ahead;
};

struct rope_args {
	struct operand qkv;
	const float *cos, *sin;
	const int *pos;
	long M, half;
	struct attention_shape s;
	int inverse, interleaved;
};

// How M rows fall into S sequences and G groups; G is 0 without groups.
struct packing {
	const int *offsets, *groups;
	long M, S, G;
};

struct attention_args {
	struct operand out, qkv;
	float *stats;
	struct packing p;
	struct attention_shape s;
};

// attention_dq sets delta [M,H] to the lane sums of dout·out, and attention_dkv reads them.
struct attention_backward_args {
	struct operand dqkv, dout, out, qkv;
	const float *stats;
	float *delta;
	struct packing p;
	struct attention_shape s;
};
#define attention_dq_args attention_backward_args
#define attention_dkv_args attention_backward_args
#define tile_attention_args attention_args
#define tile_attention_dq_args attention_backward_args
#define tile_attention_dkv_args attention_backward_args

#define matrix_attention_args attention_args
#define panel_attention_args attention_args
#define ahead_attention_args attention_args
#define ahead_attention_dq_args attention_backward_args
#define ahead_attention_dkv_args attention_backward_args
#define tile_ahead_attention_args attention_args
#define tile_ahead_attention_dq_args attention_backward_args
#define tile_ahead_attention_dkv_args attention_backward_args
#define matrix_ahead_attention_args attention_args
#define panel_full_attention_args attention_args
#define wgmma_attention_64_args attention_args
#define wgmma_attention_128_args attention_args
#define WGMMA_ATTENTION_SHARED (1024 + 2 * 16 * 1024 + 4 * (32 * 1024 + 16)) // bytes that a launch gives a block

// delta [n] gets the lane sums of dout·out of n rows and heads.
struct matrix_attention_delta_args {
	float *delta;
	struct operand dout, out;
	long n, D;
};

struct matrix_attention_backward_args {
	struct operand dqkv, dout, qkv;
	const float *stats, *delta;
	struct packing p;
	struct attention_shape s;
};
#define matrix_attention_dq_args matrix_attention_backward_args
#define matrix_attention_dk_args matrix_attention_backward_args
#define matrix_attention_dv_args matrix_attention_backward_args
#define panel_attention_dq_args matrix_attention_backward_args
#define panel_attention_dkv_args matrix_attention_backward_args
#define matrix_ahead_attention_dq_args matrix_attention_backward_args
#define matrix_ahead_attention_dk_args matrix_attention_backward_args
#define matrix_ahead_attention_dv_args matrix_attention_backward_args
#define panel_full_attention_dq_args matrix_attention_backward_args
#define panel_full_attention_dkv_args matrix_attention_backward_args
#define wgmma_attention_dq_64_args matrix_attention_backward_args
#define wgmma_attention_dq_128_args matrix_attention_backward_args
#define wgmma_attention_dkv_64_args matrix_attention_backward_args
#define wgmma_attention_dkv_128_args matrix_attention_backward_args
#define WGMMA_DQ_SHARED (1024 + 2 * 32 * 1024 + 4 * (32 * 1024 + 16))
#define WGMMA_DKV_SHARED (1024 + 2 * 32 * 1024 + 4 * (33 * 1024 + 16))

// A layer's pages; size is the number of positions in one.
struct pages {
	struct operand keys, values;
	long size;
};

struct append_kv_args {
	struct pages pages;
	struct operand qkv;
	const int *slots;
	long M;
	struct attention_shape s;
};

// stats may be null.
struct paged_attention_args {
	struct operand out, qkv;
	float *stats;
	struct pages pages;
	const int *table, *seq, *pos;
	long M, table_width;
	struct attention_shape s;
};

#define tile_paged_attention_args paged_attention_args
#define matrix_paged_attention_args paged_attention_args
#define panel_paged_attention_args paged_attention_args

struct copy_pages_args {
	struct pages pages;
	const int *pairs;
	long n, elements; // pairs, and elements in a page's keys
};

struct rows_args {
	struct operand dst, src;
	const int *rows;
	long M, R, C;
};
#define gather_rows_args rows_args
#define segment_mean_args rows_args
#define segment_mean_backward_args rows_args

// How logits become z; cap is 0 without one.
struct softmax {
	float inverse_temperature, cap, inverse_cap;
};

// z [R,V] of h [R,C] and w [V,C].
struct logits_args {
	float *z;
	struct operand h, w;
	long R, V, C;
	struct softmax x;
	int tile;
};

struct matrix_logits_args {
	float *z;
	struct factor h, w;
	long R, V, C;
	struct softmax x;
};

// logprob and targets are [R,K].
struct scores_args {
	float *logprob, *entropy, *lse;
	const float *z;
	const int *targets;
	long R, V, K;
};

#define scores_few_args scores_args

// Logits z [R,V] are products, before their cap and temperature; dlogprob and targets are [R,K].
struct target_gradients_args {
	struct operand dz;
	const float *z, *dlogprob, *dentropy, *entropy, *lse;
	const int *targets;
	long R, V, K;
	struct softmax x;
};
#define target_gradients_few_args target_gradients_args

// ids are [R,K]. Where a thread has a row, order [R,V] is scratch.
struct top_tokens_args {
	int *ids, *order;
	const float *z;
	long R, V, K;
};
#define top_tokens_few_args top_tokens_args

struct logits_backward_args {
	struct operand dz, h, w;
	const float *dlogprob, *dentropy, *entropy, *lse;
	const int *targets;
	long R, V, C;
	struct softmax x;
	int tile;
};

struct matrix_logits_backward_args {
	struct operand dz;
	struct factor h, w;
	const float *dlogprob, *dentropy, *entropy, *lse;
	const int *targets;
	long R, V, C;
	struct softmax x;
};

// Where a thread has a row, e [R,V] and order [R,V] are scratch. Where a block has one, it sets the scores.
struct sample_args {
	int *ids, *order;
	float *e, *logprob, *entropy, *lse;
	const float *z, *u;
	long R, V, top_k;
	double top_p, min_p;
	int greedy;
};
#define sample_few_args sample_args

// kept [R,K] has what adjust_logits changes in z [R,V], for restore_logits.
struct adjust_logits_args {
	float *z, *kept;
	const int *ids;
	const float *before, *factor, *after;
	long R, V, K;
	float inverse_temperature;
};

struct restore_logits_args {
	float *z;
	const float *kept;
	const int *ids;
	long R, V, K;
};

struct adamw_args {
	float *p, *m, *v;
	const float *g;
	long n;
	float grad_scale, beta1, one_minus1, beta2, one_minus2, c2, eps, step_size, keep_weight;
};

// sums [blocks] of n elements; then out is their sum.
struct sum_squares_args {
	double *sums;
	const float *x;
	long n;
};

struct sum_blocks_args {
	double *out;
	const double *sums;
	long blocks;
};

// kernels.Routing for M rows.
struct routing {
	long M, experts, top;
	long groups, top_groups; // 0: one
	int renorm, shared, gated, sigmoid; // gated: the shared expert has a logit
	float scale, eps;
};

struct route_args {
	int *choice;
	float *weight, *probs;
	const float *logits, *bias; // bias may be null
	struct routing r;
};

struct route_backward_args {
	float *dlogits;
	const float *dweight, *weight, *probs;
	const int *choice;
	struct routing r;
};

struct combine_args {
	float *out;
	const float *x, *weight;
	const int *slot;
	long M, C, J;
};

struct combine_backward_args {
	float *dx, *dweight;
	const float *dout, *x, *weight;
	const int *slot;
	long M, C, J;
};
#define combine_dx_args combine_backward_args
#define combine_dw_args combine_backward_args

// Products by wgmma take the arguments of other tiles behind the maps of both factors.
#define MAPPED_ROOM 192
#define WGMMA_SHARED (1024 + 4 * (48 * 1024 + 16) + 8 * 2560) // bytes that a launch gives a block
#define THIN_SHARED (1024 + 8 * (24 * 1024 + 16) + 4 * 2560)
#define SLIM_SHARED (1024 + 12 * (16 * 1024 + 16) + 4 * 2560)
#define MAPPED(family, name)                                                                          \
	struct family##_##name##_args {                                                                    \
		struct tensor_map map[2];                                                                       \
		struct matrix_##name##_args of;                                                                 \
		char room[MAPPED_ROOM - sizeof(struct matrix_##name##_args)];                                   \
	}
MAPPED(wgmma, matmul);
MAPPED(wgmma, matmul_dx);
MAPPED(wgmma, matmul_swiglu);
MAPPED(wgmma, matmul_dx_swiglu);
MAPPED(wgmma, matmul_dw);
MAPPED(wgmma, logits);
MAPPED(wgmma, logits_backward);
MAPPED(thin, matmul);
MAPPED(thin, matmul_swiglu);
MAPPED(thin, logits);
#define slim_matmul_args thin_matmul_args
#define slim_matmul_swiglu_args thin_matmul_swiglu_args
#define slim_logits_args thin_logits_args

// dst [n] plus parts [B,n], in order.
struct add_parts_args {
	float *dst;
	const float *parts;
	long n, B;
};

// The layout of rows of linear attention (kernels.DeltaShape).
struct delta_shape {
	long keys, values, key_dim, value_dim, taps, mixed, stride;
	int by_key, scan;
};

// u [M,mixed] from x [M,stride] and tails [slots,taps-1,mixed], which has no address without slots [S].
struct short_conv_args {
	struct operand u, x, tails;
	const float *weight, *bias; // [mixed,taps], [mixed] or null
	const int *slots;
	struct packing p;
	struct delta_shape s;
};
#define short_conv_biased_args short_conv_args
#define short_conv_tails_args short_conv_args
#define gated_conv_args short_conv_args
#define gated_conv_tails_args short_conv_args

// short_conv_slopes sets dy [M,mixed]; short_conv_dx, short_conv_dw and short_conv_dbias read it, and likewise for
// gated_conv. parts is [B,mixed,taps], then [B,mixed] of the bias, which may be null.
struct short_conv_backward_args {
	struct operand dx, du, x;
	float *dy, *parts;
	const float *weight, *bias;
	const int *blocks; // [B+1]
	struct packing p;
	struct delta_shape s;
	long B;
};
#define short_conv_slopes_args short_conv_backward_args
#define short_conv_slopes_biased_args short_conv_backward_args
#define short_conv_dx_args short_conv_backward_args
#define short_conv_dw_args short_conv_backward_args
#define short_conv_dbias_args short_conv_backward_args
#define gated_conv_slopes_args short_conv_backward_args
#define gated_conv_dx_args short_conv_backward_args
#define gated_conv_dw_args short_conv_backward_args

// gates [M,2·values], of a scan [M,3·values]; low and high are the limits of a scan's time steps.
struct delta_gates_args {
	float *gates;
	struct operand x;
	const float *logs, *bias, *skip;
	struct delta_shape s;
	long M;
	float low, high;
};
#define scan_gates_args delta_gates_args

// parts is [2,B,values], or [3,B,values] of a scan: of logs, then of bias, then of skip.
struct delta_gates_backward_args {
	struct operand dx, x;
	const float *dgates, *gates, *logs, *bias;
	const int *blocks;
	float *parts;
	struct delta_shape s;
	long B;
	float low, high;
};

#define scan_gates_backward_args delta_gates_backward_args

#define DELTA_THREADS 128 // the most columns of a state in a block
#define DELTA_KEY 128     // channels of the heads whose states lie in registers
#define DELTA_KEEP 32     // rows from one state that is kept to the next

// Elements of a column of states lie `far` apart in memory: DELTA_THREADS where states lie in registers, else `columns`.

// The recurrence. delta_lengths sets lengths [M,2·keys] to 1 over those of queries and keys. A block takes `columns`
// columns from `column` on of one of `heads` value heads, head, head+step and so on, through a sequence. It
// writes out if that has an address, and keeps states before its own rows in `kept` if that has one: those of a head's
// sequence j lie from offsets[j]/DELTA_KEEP+j on.
struct delta_rule_args {
	struct operand out, u;
	const float *gates;
	float *lengths, *states, *kept; // kept [heads,kept_rows,key_dim,far]
	const int *slots;
	struct packing p;
	struct delta_shape s;
	long head, step, heads, column, columns, tiles, kept_rows;
	float scale;
	int zero; // 0
};
#define delta_lengths_args delta_rule_args
#define delta_rule_any_args delta_rule_args
#define scan_rule_args delta_rule_args

// Backwards, for one tile of columns. `ahead` says whether the sequences of a group are computed that follow its first:
// they write starts [heads,S,key_dim,far], the gradients of the states that they began with, and the first ones read them.
// dqk [M,2·keys·key_dim] has the gradients of scaled queries and keys; `first` says that nothing is there yet.
struct delta_rule_backward_args {
	struct operand du, dout, u;
	const float *gates, *lengths, *kept;
	float *dgates, *dqk, *starts, *between; // between [blocks,DELTA_KEEP,key_dim+1,far]
	struct packing p;
	struct delta_shape s;
	long head, step, heads, column, columns, kept_rows;
	float scale;
	int ahead, first, zero; // zero is 0
};
#define delta_rule_backward_any_args delta_rule_backward_args
#define scan_rule_backward_args delta_rule_backward_args
#define delta_unscale_args delta_rule_backward_args

// rstd [M,values]; p are projected rows.
struct gated_norm_args {
	struct operand out, x, p;
	float *rstd;
	const float *weight;
	struct delta_shape s;
	long M;
	float eps;
};

// parts [B,value_dim]
struct gated_norm_backward_args {
	struct operand dx, dp, dout, x, p;
	const float *weight, *rstd;
	const int *blocks;
	float *parts;
	struct delta_shape s;
	long M, B;
};
#define gated_norm_dw_args gated_norm_backward_args

// Of grouped norms rstd is [M,keys] and parts [B,values·value_dim].
#define grouped_norm_args gated_norm_args
#define grouped_norm_backward_args gated_norm_backward_args
#define grouped_norm_dw_args gated_norm_backward_args

// Rows x [M,stride+H·D] with gates, and qkv [M,stride] without; `back` copies to x.
struct move_heads_args {
	struct operand qkv, x;
	struct attention_shape s;
	long M;
	int back;
};

struct latent_shape {
	long H, nope, rope, value;
	int interleaved;
};

struct latent_args {
	struct operand qkv, q, kv, rope;
	struct latent_shape s;
	long M;
};
#define join_latent_args latent_args
#define split_latent_args latent_args

// att [M,H·D] and out [M,H·value]; `back` copies to att.
struct move_values_args {
	struct operand att, out;
	struct latent_shape s;
	long M;
	int back;
};

// att [M,H·D] with its stats, and sinks [H].
struct sink_args {
	struct operand out, att;
	const float *stats, *sinks;
	long M, H, D;
};

// terms [M,H] of dsinks, and the sums of a block's, parts [B,H].
struct sink_backward_args {
	struct operand datt, dout, out;
	const float *stats, *sinks;
	const int *blocks;
	float *terms, *parts;
	long M, H, D, B;
};
#define sink_parts_args sink_backward_args

struct output_gate_args {
	struct operand out, att, x;
	struct attention_shape s;
	long M;
};

struct output_gate_backward_args {
	struct operand datt, dx, dout, att, x;
	struct attention_shape s;
	long M;
};

#endif

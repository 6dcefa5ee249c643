// args.h: the interface between Go and the kernels: one argument struct per operation
// and one table of functions per instruction level. A kernel computes units lo..hi of its
// operation; units may run on any thread in any order (except in queue.h). tid is the
// thread's number, for its scratch memory. Kernels keep no state and allocate nothing.
#ifndef EXP_CPU_ARGS_H
#define EXP_CPU_ARGS_H

#include <stdint.h>

// The memory layout of a product's weights, NR columns per panel.
enum panels {
	PANELS_F32,  // panels of the product's columns: [columns/NR][terms][NR]
	PANELS_BF16, // the same as BF16, a row in pairs (bf16.h)
	ACROSS_F32,  // panels of the product's terms: [terms/NR][columns][NR]
	ACROSS_BF16,
};

// A factor is the B of a product: [terms, columns].
struct factor { const void *at; enum panels form; long terms, columns; };

// Addresses that may be Go memory are uintptr_t: Go's collector looks at pointers that Go code
// overwrites, wherever they are, and must not find stale ones.

struct pack_args {
	void *out; uintptr_t b;
	long k, n, sk, sn; // B [k,n] with its strides
	int b_bf16, out_bf16;
};

// How an operation's rows are divided, in strips: the first `large` blocks have `many` strips
// each, the rest `few`, so that threads that take block after block end nearly together.
struct row_blocks { long strips, large, many, few; };

// block_strip returns the first strip of a block.
static inline long block_strip(const struct row_blocks *r, long b) {
	const long s = b <= r->large ? b * r->many : r->large * r->many + (b - r->large) * r->few;
	return s < r->strips ? s : r->strips;
}

// strip_at returns the first row of strip s of m rows. Heights are even, because a low strip loads
// as much of the other factor as a high one.
static inline long strip_at(long m, long strips, long s) { return s * (m / strips) + (s < m % strips ? s : m % strips); }

// block_row returns the first row of a block in class "cpu/fma", tile_block_row in "cpu/bf16",
// where all strips but the last are TILE_BLOCK rows.
#define TILE_BLOCK 32
static inline long block_row(const struct row_blocks *r, long m, long b) { return strip_at(m, r->strips, block_strip(r, b)); }
static inline long tile_block_row(const struct row_blocks *r, long m, long b) {
	const long i = block_strip(r, b) * TILE_BLOCK;
	return i < m ? i : m;
}

struct matmul_args {
	float *c; const float *a, *bias; struct factor b;
	float *scratch; long scratch_len; // per thread
	struct row_blocks rows;
	long m, n, k, panel_groups, k_part;
	int near; // c is needed at once
};

#define DW_ROWS 256 // rows that matmul_dw reduces at a time; no fewer than in a gradient block

// Rows from one panel of x to the next in matmul_dw: two extra, so that the same row of all
// panels does not map to one cache set.
#define DW_PANEL_ROWS (DW_ROWS + 2)

#define BIAS_VECTORS 8 // vectors of a bias gradient that are summed together

struct matmul_dw_args {
	float *dw, *dbias; const float *dout, *x; const int32_t *block;
	float *scratch; long scratch_len; // per thread
	long n, k, blocks, row_groups, col_groups;
};

struct embed_args {
	void *out; const void *weight; const int32_t *ids;
	long m, c, size; // bytes of an element
	float scale;     // of embed_scaled and embed_scaled_backward
};

// embed_frozen reads rows of BF16 or packed weights.
struct embed_frozen_args {
	float *out; uintptr_t weight; const int32_t *ids;
	long c;
	int packed, bf16;
	float scale;
};

struct norm_args {
	void *out; float *rstd, *sum; const void *x; const float *delta, *weight;
	long heads, dim, stride, offset;
	float eps;
	int x_bf16, out_bf16;
	int unit; // 1 is added to the weight
};

struct norm_back_args {
	void *dx; float *dweight, *parts; const void *dout, *x; const float *weight, *rstd; const int32_t *block;
	long blocks, heads, dim, stride, offset;
	int set, bf16;
	int unit; // 1 is added to the weight
};

// matmul_swiglu computes act from x and B [k,2f]. matmul_dx_swiglu computes dgate_up, gate_up's
// gradients, from dout, passed as x, and B [k,f].
struct swiglu_args {
	void *act, *dgate_up, *gate_up; const void *x; const void *b;
	struct row_blocks rows;
	long m, f, k, panel_groups;
	enum panels form; // of B, in class "cpu/fma"
	int x_bf16;
	float *scratch; long scratch_len; // per thread
};

struct gelu_args {
	float *out; const float *dout, *x;
	long n;
};

#define GATE_PART 1024 // columns in a unit of gates

enum gate_kind { SILU, GELU_TANH, CLAMPED, RELU2, PLAIN_GELU, PLAIN_GELU_TANH };
#define GATE_LIMIT 7.0f
#define GATE_SLOPE 1.702f

struct gate_args {
	void *act, *dgate_up; const void *gate_up, *dact;
	long f, parts; // parts of a row
	enum gate_kind kind;
	int bf16;
};

// act is dx in backward. terms [M][2] of dalpha, and the sums of a block's, sums [blocks][2].
struct xielu_args {
	void *act; const void *x, *dact; float *terms, *sums; const int32_t *block;
	double positive, negative, beta, eps, d_positive, d_negative;
	long f, parts; // parts of a row
	int bf16;
};

#define CLIP_UNIT 1024 // elements in a unit

// out is dx in backward.
struct clip_args {
	void *out; const void *x, *dout;
	long n;
	float limit;
	int bf16;
};

struct columns_args {
	void *dst; const void *src;
	long n, stride, offset;
	float scale;
	int src_bf16, dst_bf16;
};

struct route_args {
	int32_t *choice; float *weight, *probs, *dlogits; const float *logits, *dweight, *bias; // bias: null for none
	long experts, top;
	long groups, top_groups; // 0: one
	int renorm, shared, gated, sigmoid; // gated: the shared expert has a logit
	float scale, eps;
};

struct combine_args {
	float *out, *dx, *dweight; const float *x, *weight, *dout; const int32_t *slot;
	long c, j;
};

// If cap > 0, logits z become cap·tanh(z/cap).
struct cap { float cap, inverse; };

struct cap_args {
	float *z;
	long n; // of a row
	struct cap cap;
};

struct layernorm_args {
	float *out, *stats; const float *x, *weight, *bias;
	long c;
	float eps;
};

struct layernorm_back_args {
	float *dx, *dweight, *dbias; const float *dout, *x, *weight, *stats; const int32_t *block;
	long c, blocks;
};

struct dropout_args {
	float *out; const float *x; const int32_t *keys;
	long c;
	uint32_t layer, limit;
	float scale;
};

struct segment_args {
	float *out; const void *x; const int32_t *segments;
	long c, count;
	int x_bf16;
};

struct rope_args {
	void *qkv; const float *cos, *sin; const int32_t *pos;
	long heads, d, half, stride; // half: pairs of a head that rotate
	int inverse, interleaved, bf16;
};

// Sequences with what comes before them (kernels.Runs). count: groups, or sequences if groups is null.
struct run_list { const int32_t *offsets, *groups, *slots; long count; };

#define CONV_TAPS 16   // most taps of a short convolution
#define CONV_VECTORS 4 // vectors of channels in a strip
#define CONV_STRIP (16 * CONV_VECTORS)

// strip: [strips][3] first mixed channel, first projected column, channels. bias may be null.
struct conv_args {
	void *u, *dx, *tails; const void *x, *du; float *dweight, *dbias; const float *weight, *bias; const int32_t *block, *strip;
	struct run_list runs;
	float *scratch; long scratch_len; // per thread
	long m, mixed, stride, taps, strips;
	int bf16;
};

struct delta_gates_args {
	float *gates, *dlogs, *dbias, *dskip; void *dx; const void *x; const float *dgates, *logs, *bias, *skip; const int32_t *block;
	long heads, keys, stride, at, blocks; // at: the first column of logits
	float low, high; // limits of a scan's time steps
	int scan, by_key, bf16;
};

#define DELTA_ROWS 32 // rows that delta_rule scales queries and keys of at a time
#define DELTA_KEEP 32 // rows from one state that delta_rule_backward keeps to the next
#define DELTA_EPS 1e-6f

struct delta_args {
	void *out, *du; float *states, *dgates; const void *u, *dout; const float *gates;
	struct run_list runs;
	float *scratch; long scratch_len; // per thread
	long keys, values, key_dim, value_dim, mixed;
	long query, key, value, width; // first mixed columns; elements of a row of gates
	long longest, most; // rows of the longest sequence without prefix, and of the largest group
	float scale;
	int scan, bf16;
};

// The gates of value head v begin at column v/per_group·group + at + v%per_group·dim. In a grouped norm heads are groups.
struct gated_norm_args {
	void *out, *dx, *dp; float *rstd, *parts; const void *x, *p, *dout; const float *weight; const int32_t *block;
	float *scratch; long scratch_len; // per thread
	long heads, dim, stride, at, group, per_group;
	float eps;
	int bf16;
};

struct output_gate_args {
	void *qkv, *out, *dx, *x; const void *att, *dout;
	long h, kv, d;
	int back, bf16;
};

// att is attention's output, with the sinks in backward, where out is datt.
struct sink_args {
	void *out; const void *att, *dout; const float *stats, *sinks; float *parts; const int32_t *block;
	long h, d;
	int bf16;
};

// qkv are rows that attention reads, or its result.
struct latent_args {
	void *qkv, *q, *kv, *k_rope;
	long h, nope, rope, value;
	int interleaved, bf16, back;
};

#define ZERO_BYTES 65536 // cleared at a time

struct zero_args { void *at; long bytes; };

struct copy_args {
	char *keys, *values; const int32_t *pairs;
	long count, page, part, parts; // bytes of a page and of a part; parts of a page
};

struct append_args {
	const void *qkv; void *keys, *values; const int32_t *slots;
	long h, kv, d, stride, page, size;
};

struct attention_args {
	float *out, *stats, *dqkv; const float *qkv, *dout, *aout; const int32_t *offsets, *groups, *order;
	float *scratch; long scratch_len; // per thread
	long h, kv, d, stride, window; // window: positions that a query sees; without one, the longest sequence
	int full; // a query sees all of its sequence, which has no prefix
	const int32_t *ahead; // rows behind each that it sees, too; or null
	float scale, cap, inv_cap; // cap: 0 for none
	// For paged attention.
	float *keys, *values; const int32_t *table, *seq, *pos, *slots; // slots: as append_args; or null
	long page, width;
};

#define GRADIENT_PANELS 8 // panels of logits that logprob_backward holds at a time

struct output_args {
	float *logprob, *entropy, *lse, *dz, *z, *dh; const float *h; struct factor w, wt; const int32_t *targets; // [rows][k]
	const float *dlogprob, *dentropy, *dall; // [rows][k], [rows], the sums of dlogprob's rows
	int32_t *ids; const float *u;
	float *scratch; long scratch_len; // per thread
	long rows, c, v, k, chunk, row0;
	int given; // z holds the logits
	float inv_temp;
	struct cap cap;
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

struct peak_args {
	float *out; const float *src;
	long rounds;
};

#define PEAK_READ (1 << 18) // float32 elements in a unit of peak_read: 1 MiB

// A kernel computes units lo..hi.
typedef void (*kernel)(const void *args, long lo, long hi, int tid);

struct kernels {
	long mr, nr; // register tile
	kernel pack, matmul, matmul_dw, matmul_dbias;
	kernel embed, embed_scaled, embed_frozen, embed_backward, embed_scaled_backward;
	kernel rmsnorm, add_rmsnorm, rmsnorm_backward, rmsnorm_dweight;
	kernel layernorm, layernorm_backward, layernorm_dweight, dropout;
	kernel segment_mean, segment_mean_backward;
	kernel matmul_swiglu, matmul_dx_swiglu, gelu, gelu_backward, gate, gate_backward, xielu, xielu_backward, xielu_parts, clip, clip_backward;
	kernel take_columns, add_columns, route, route_backward, combine, combine_backward;
	kernel rope, attention, attention_backward, append_kv, paged_attention;
	kernel logits, cap_logits, logprob, logprob_backward, sample;
	kernel short_conv, short_conv_backward, gated_conv, gated_conv_backward;
	kernel delta_gates, delta_gates_backward, delta_rule, delta_rule_backward;
	kernel gated_norm, gated_norm_backward, grouped_norm, grouped_norm_backward, move_heads, output_gate, sink, sink_backward;
	kernel join_latent, split_latent, move_values;
	kernel adamw, sum_squares, add, zero, copy_pages;
	long peak_chains; // chains of peak_fma
	kernel peak_fma, peak_read;
};

extern const struct kernels kernels_avx512, kernels_avx2, kernels_portable;

// The kernels of class "cpu/bf16", on tilesum.h.

struct tile_pack_args {
	uint16_t *out; uintptr_t w;
	long rows, cols; // of w, float32 or BF16
	int w_bf16;
	int transposed;  // the rows are the terms
};

struct tile_matmul_args {
	void *c; const void *a; const uint16_t *b; const float *bias;
	struct row_blocks rows; // strips of BLOCK rows
	long m, n, k, panel_groups;
	long part; // steps of a chain before the next block
	int a_bf16, c_bf16;
	int near; // c is needed at once
	float *scratch; long scratch_len; // per thread
};

#define DW_PIECES 8 // pieces that tile_matmul_dw packs at a time

struct tile_dw_args {
	float *dw; const void *dout, *x; const int32_t *piece;
	long n, k, pieces, n_block, k_block, k_blocks;
	int dout_bf16, x_bf16;
	int dout_tiles; // dout is tiles of rows [m/BLOCK][n/BLOCK][STEP]
	float *scratch; long scratch_len; // per thread
};

#define QUERY_BLOCKS 4 // blocks of queries that tile_attention_backward takes at a time

struct tile_attention_args {
	uint16_t *out, *dqkv; float *stats; const uint16_t *qkv, *dout, *aout; const int32_t *offsets, *groups, *order;
	float *scratch; long scratch_len; // per thread
	long h, kv, d, stride, window; // see attention_args
	int full;
	const int32_t *ahead;
	float scale, cap, inv_cap;
	// For paged attention.
	uint16_t *keys, *values; const int32_t *table, *seq, *pos, *slots;
	long page, width;
};

struct tile_output_args {
	float *logprob, *entropy, *lse, *z, *e; void *dh; uint16_t *dz; const uint16_t *h, *w, *wt; const int32_t *targets;
	const float *dlogprob, *dentropy, *dall;
	int32_t *ids; const float *u;
	float *scratch; long scratch_len; // per thread
	long rows, c, v, k, row0;
	long row_block, panel_group; // for logprob_backward
	float inv_temp;
	struct cap cap;
	int greedy, dh_bf16;
};

struct tile_kernels {
	kernel pack, across, embed_packed, matmul, matmul_dw, matmul_dbias;
	kernel matmul_swiglu, matmul_dx_swiglu;
	kernel attention, attention_backward, paged_attention;
	kernel logits, logprob, logprob_backward, sample;
	kernel peak; // tile sums or products of pairs in registers; 0 if the level has neither
	double peak_flops; // operations per round
};

int pairs_are_two_fmas(void); // in tiles_avx512bf16

extern const struct tile_kernels tiles_amx, tiles_avx512bf16, tiles_avx512, tiles_avx2, tiles_portable;
extern const struct tile_kernels matrix_avx512, matrix_avx2, matrix_portable;

#endif

// wgmma.h multiplies matrices by wgmma (warpgroup.h), for class matrix/16x25. Both factors lie in shared memory, where
// the device's engine for copies (TMA) brings them.
//
// A cluster of CLUSTER blocks computes a tile of TILE_ROWS × TILE_COLUMNS sums, each block BLOCK_ROWS of its rows. A
// block has 1 + GROUPS warpgroups: one thread of the first queues copies, the others have 64 rows of sums each, in
// registers from the first term to the last. Stages of DEPTH terms go round. Each block fetches its own rows, and
// of the columns a part for all blocks. A cluster goes on with other tiles until none is left. A .cu file defines
// GROUPS, CLUSTER, BLOCKS (for which a multiprocessor has room), TILE_COLUMNS, STAGES, ROOMS and SHARED_BYTES.
#ifndef EXP_CUDA_WGMMA_H
#define EXP_CUDA_WGMMA_H

#include "softmax.h"
#include "warpgroup.h"

#define DEPTH 64 // rows of a box, as in BOX
#include "steps.h"

#define BLOCK_ROWS (GROUPS * GROUP_ROWS)
#define TILE_ROWS (CLUSTER * BLOCK_ROWS)
#define PART_COLUMNS (TILE_COLUMNS / CLUSTER) // that a block fetches for all
#define THREADS ((1 + GROUPS) * GROUP_THREADS)
#define EIGHTS (TILE_COLUMNS / 8)

// A copy brings a box: WIDE elements of each of DEPTH rows, or of as many rows as a block has of a factor.
#define X_BYTES (BLOCK_ROWS * DEPTH * 2)
#define Y_BYTES (TILE_COLUMNS * DEPTH * 2)
#define STAGE_BYTES (X_BYTES + Y_BYTES)
#define ROOM_BYTES (16 * 40 * 4) // of a warp
#if EIGHT_LINES + STAGES * (STAGE_BYTES + 16) + ROOMS * ROOM_BYTES != SHARED_BYTES
#error "SHARED_BYTES is not what stages, barriers and rooms take"
#endif

#if !defined(EMULATED)
DEVICE void expect_bytes(uint64_t *b, int bytes) {
	asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
		::"r"(shared_address(b)), "r"(bytes) : "memory");
}

DEVICE void load_box(void *to, const struct tensor_map *map, int column, int row, uint64_t *b) {
	asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
		"[%0], [%1, {%2, %3}], [%4];"
		::"r"(shared_address(to)), "l"(map), "r"(column), "r"(row), "r"(shared_address(b)) : "memory");
}

DEVICE void load_box_for_all(void *to, const struct tensor_map *map, int column, int row, uint64_t *b) {
	const uint16_t all_blocks = (1 << CLUSTER) - 1;
	asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
		"[%0], [%1, {%2, %3}], [%4], %5;"
		::"r"(shared_address(to)), "l"(map), "r"(column), "r"(row), "r"(shared_address(b)), "h"(all_blocks)
		: "memory");
}

DEVICE void cluster_barrier(void) {
	asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory");
}

#if TILE_COLUMNS == 256
#define WGMMA(x_by_outputs, y_by_outputs)                                                              \
	asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {" NAMES_128 "}, %128, %129"     \
		", 1, 1, 1, " #x_by_outputs ", " #y_by_outputs ";" : SUMS_128 : "l"(x), "l"(y))
#elif TILE_COLUMNS == 128
#define WGMMA(x_by_outputs, y_by_outputs)                                                              \
	asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" NAMES_64 "}, %64, %65"        \
		", 1, 1, 1, " #x_by_outputs ", " #y_by_outputs ";" : SUMS_64 : "l"(x), "l"(y))
#else
#define WGMMA(x_by_outputs, y_by_outputs)                                                              \
	asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" NAMES_32 "}, %32, %33"         \
		", 1, 1, 1, " #x_by_outputs ", " #y_by_outputs ";" : SUMS_32 : "l"(x), "l"(y))
#endif

// wgmma adds 16 products to each of 64 × TILE_COLUMNS sums; x and y are descriptors.
INLINE void wgmma(float sum[EIGHTS][4], int eights, uint64_t x, uint64_t y, int x_by_terms, int y_by_terms) {
	(void)eights; // the emulator needs it
	if (x_by_terms && y_by_terms) WGMMA(0, 0);
	else if (x_by_terms) WGMMA(0, 1);
	else WGMMA(1, 1);
}

// MAPS is the address of a kernel's maps. The engine takes no copy of them.
#define MAPS(kernel)                                                                                   \
	({                                                                                                   \
		const struct tensor_map *maps_;                                                                    \
		asm("{\n\t.reg .b64 at;\n\tmov.b64 at, " #kernel "_param_0;\n\tcvta.param.u64 %0, at;\n\t}" : "=l"(maps_)); \
		maps_;                                                                                             \
	})
#else
#define MAPS(kernel) (a.map)
#endif

// Only where a tile has 256 columns do those that have sums need more registers than all others.
#if TILE_COLUMNS == 256
#define FEWER_REGISTERS() fewer_registers(40)
#define MORE_REGISTERS() more_registers(232)
#else
#define FEWER_REGISTERS()
#define MORE_REGISTERS()
#endif

// The stages of a block. A stage's `full` counts the bytes that come, and its `empty` the warps of all blocks that are
// done with it.
struct pipeline {
	char *stages;
	uint64_t *full, *empty;
	int at, parity; // the next stage, and how often all were filled before, modulo 2
};

#define WARPS_OF_ALL (CLUSTER * GROUPS * GROUP_THREADS / WARP)

INLINE struct pipeline open_pipeline(char *shared) {
	struct pipeline p;
	p.stages = shared + (EIGHT_LINES - shared_address(shared) % EIGHT_LINES) % EIGHT_LINES;
	p.full = (uint64_t *)(p.stages + STAGES * STAGE_BYTES);
	p.empty = p.full + STAGES;
	p.at = p.parity = 0;
	if (threadIdx.x == 0) {
		for (int s = 0; s < STAGES; s++) {
			make_barrier(&p.full[s], 1);
			make_barrier(&p.empty[s], WARPS_OF_ALL);
		}
		publish_barriers();
	}
	cluster_barrier();
	return p;
}

// close_pipeline waits for the other blocks, which may still reach this one's memory.
INLINE void close_pipeline(void) {
	meet();
	cluster_barrier();
}

DEVICE void next_stage(struct pipeline *p) {
	if (++p->at < STAGES) return;
	p->at = 0;
	p->parity ^= 1;
}

// A tile: the block's first row and the cluster's first column.
struct tile {
	long m, n;
};

DEVICE int rank_of_block(void) { return blockIdx.x % CLUSTER; }

DEVICE long up(long x, long y) { return (x + y - 1) / y; }

// tile_at returns tile i of [M,N]. Eight tiles below each other go first: they share the factors of their columns.
DEVICE struct tile tile_at(long i, long M, long N) {
	const long down = up(M, TILE_ROWS), across = up(N, TILE_COLUMNS), group = i / (8 * across);
	const long place = i % (8 * across), high = down - 8 * group < 8 ? down - 8 * group : 8;
	struct tile t;
	t.m = (8 * group + place % high) * TILE_ROWS + rank_of_block() * BLOCK_ROWS;
	t.n = place / high * TILE_COLUMNS;
	return t;
}

// part_of returns the first of the tile's columns that the calling block fetches.
DEVICE long part_of(struct tile t) { return t.n + rank_of_block() * PART_COLUMNS; }

// EACH_TILE goes over the tiles of the calling thread's cluster.
#define EACH_TILE(t, M, N)                                                                             \
	ROLLED for (long tile_ = blockIdx.x / CLUSTER; tile_ < up(M, TILE_ROWS) * up(N, TILE_COLUMNS);        \
		tile_ += gridDim.x / CLUSTER)                                                                      \
		for (struct tile t = tile_at(tile_, M, N), *once_ = &t; once_; once_ = 0)

// A factor is by_terms if a row of the array has an output's terms, else a term of all outputs.

// fetch_rows queues the copies of the block's rows of x, from t.m. Where `half` is not 0, 16 rows are 8 gates and,
// `half` rows further in the array, their ups.
INLINE void fetch_rows(char *x, const struct tensor_map *map, struct tile t, int term, long half, int by_terms,
	uint64_t *full) {
	if (half) {
		UNROLL for (int i = 0; i < BLOCK_ROWS / 8; i++)
			load_box(x + i * EIGHT_LINES, map, term, (int)(t.m / 2 + i / 2 * 8 + i % 2 * half), full);
	} else if (by_terms) {
		load_box(x, map, term, (int)t.m, full);
	} else {
		load_box(x, map, (int)t.m, term, full);
		load_box(x + BOX, map, (int)t.m + WIDE, term, full);
	}
}

// fetch_columns queues the copies of the part of y's columns that the block fetches, from `first`.
INLINE void fetch_columns(char *y, const struct tensor_map *map, long first, int term, int by_terms, uint64_t *full) {
	if (by_terms) {
		load_box_for_all(y, map, term, (int)first, full);
	} else {
		load_box_for_all(y, map, (int)first, term, full);
		load_box_for_all(y + BOX, map, (int)first + WIDE, term, full);
	}
}

// fetch_tile queues the copies of a tile's factors.
INLINE void fetch_tile(struct pipeline *p, const struct tensor_map *map, struct tile t, long first, long half,
	struct steps s, int x_by_terms, int y_by_terms) {
	ROLLED for (; s.next < s.end; advance(&s)) {
		char *x = p->stages + p->at * STAGE_BYTES, *y = x + X_BYTES + rank_of_block() * (Y_BYTES / CLUSTER);
		uint64_t *full = &p->full[p->at];
		await_phase(&p->empty[p->at], p->parity ^ 1);
		expect_bytes(full, STAGE_BYTES);
		fetch_rows(x, &map[0], t, s.next, half, x_by_terms, full);
		fetch_columns(y, &map[1], first, s.next, y_by_terms, full);
		next_stage(p);
	}
}

// FETCH is the part of a kernel's first warpgroup.
#define FETCH(kernel, M, N, first, half, steps, x_by_terms, y_by_terms)                                  \
	FEWER_REGISTERS();                                                                                  \
	if (threadIdx.x == 0)                                                                                \
	EACH_TILE(t, M, N) fetch_tile(&p, MAPS(kernel), t, first, half, steps, x_by_terms, y_by_terms)

// clear_terms sets the terms from n to the end of their step to 0, in the boxes that the calling
// warpgroup multiplies. The other does the same, so it does not matter who comes first.
INLINE void clear_terms(char *stage, int group, int n) {
	const int lines = STEP - n % STEP, thread = threadIdx.x % GROUP_THREADS;
	for (int i = thread; i < (1 + TILE_COLUMNS / WIDE) * lines * 8; i += GROUP_THREADS) {
		const int box = i / (8 * lines), line = n + i / 8 % lines;
		char *from = stage + (box ? X_BYTES + (box - 1) * BOX : group * BOX);
		uint64_t *to = (uint64_t *)(from + line * LINE + i % 8 * 16);
		to[0] = to[1] = 0;
	}
	publish_writes();
	group_barrier(1 + group, GROUP_THREADS);
}

// leave tells all blocks that the calling warp is done with a stage.
DEVICE void leave(struct pipeline *p, int stage) {
	const int lane = threadIdx.x % WARP;
	if (stage >= 0 && lane < CLUSTER) arrive_at(&p->empty[stage], lane);
}

// add_tile adds the products of a tile to the sums of the calling warpgroup. A stage is left when the products of
// the next are under way.
INLINE void add_tile(float sum[EIGHTS][4], struct pipeline *p, struct steps s, int x_by_terms, int y_by_terms) {
	const int group = threadIdx.x / GROUP_THREADS - 1;
	int before = -1;
	hold_sums(sum, EIGHTS);
	ROLLED for (; s.next < s.end; advance(&s)) {
		char *stage = p->stages + p->at * STAGE_BYTES;
		const int terms = s.end - s.next < DEPTH ? s.end - s.next : DEPTH;
		await_phase(&p->full[p->at], p->parity);
		if (!x_by_terms && terms % STEP) clear_terms(stage, group, terms);
		uint64_t x = descriptor(stage + group * BOX, x_by_terms ? 0 : BOX), y = descriptor(stage + X_BYTES, y_by_terms ? 0 : BOX);
		open_products();
		if (terms > DEPTH - STEP) { // in a loop each product would be a group of its own
			UNROLL for (int k = 0; k < DEPTH / STEP; k++)
				wgmma(sum, EIGHTS, x + k * STEP_IN(x_by_terms), y + k * STEP_IN(y_by_terms), x_by_terms, y_by_terms);
			commit_products();
		} else {
			ROLLED for (int k = 0; k < terms; k += STEP) {
				wgmma(sum, EIGHTS, x, y, x_by_terms, y_by_terms);
				x += STEP_IN(x_by_terms);
				y += STEP_IN(y_by_terms);
			}
			commit_products();
		}
		await_products(1);
		leave(p, before);
		before = p->at;
		next_stage(p);
	}
	await_products(0);
	hold_sums(sum, EIGHTS);
	leave(p, before);
}

// EACH_PAIR goes over the sums of the calling thread, two neighbours sum[j][2h] and sum[j][2h+1] at a time, and
// row_of and column_of say where they are.
#define EACH_PAIR(j, h) UNROLL for (int j = 0; j < EIGHTS; j++) UNROLL for (int h = 0; h < 2; h++)

DEVICE long row_of(struct tile t, int h) {
	const int thread = threadIdx.x - GROUP_THREADS;
	return t.m + thread / WARP * 16 + h * 8 + thread % WARP / 4;
}

DEVICE long column_of(struct tile t, int j) { return t.n + j * 8 + threadIdx.x % 4 * 2; }

// Sums leave through memory of their warp, 16 rows of 32 columns at a time: there a lane finds neighbours, which it stores
// at once, and what takes many instructions is written once, in a loop. The code that all tiles run has to stay small:
// unrolled over all sums, it took longer to fetch than a tile of 3,584 terms takes to multiply.
#define ROOM_COLUMNS 32
#define ROOM_PITCH (ROOM_COLUMNS + 8)

// EACH_IN_ROOM goes over the sums in a loop: sum[j] to sum[j+3] are 32 columns of the tile, from `first` on.
#define EACH_IN_ROOM(sum, j, first)                                                                    \
	ROLLED for (int turn_ = 0; turn_ < EIGHTS; turn_ += 8, move_sums(sum, EIGHTS, 8))                     \
		UNROLL for (int j = 0, first = turn_ * 8; j < 8; j += 4, first += ROOM_COLUMNS)

// move_sums moves n sums of 8 columns down by some.
INLINE void move_sums(float (*sum)[4], int n, int by) {
	UNROLL for (int j = 0; j < n - by; j++) UNROLL for (int e = 0; e < 4; e++) sum[j][e] = sum[j + by][e];
}

DEVICE float *room_of(struct pipeline p) {
	return (float *)(p.full + 2 * STAGES) + (threadIdx.x / WARP - GROUP_THREADS / WARP) * 16 * ROOM_PITCH;
}

// Two and four float32, and two words, that one instruction moves.
typedef float pair __attribute__((vector_size(8), may_alias));
typedef float quad __attribute__((vector_size(16), may_alias));
typedef uint32_t two_words __attribute__((vector_size(8), may_alias));

// pair_in_room is where a lane has sums j and j+1 of a row in the room, h in 0 and 1.
DEVICE pair *pair_in_room(float *room, int j, int h) {
	const int lane = threadIdx.x % WARP;
	return (pair *)&room[(lane / 4 + h * 8) * ROOM_PITCH + j * 8 + lane % 4 * 2];
}

// put_sums writes sums of n × 8 columns to the room, from column 8·first on.
INLINE void put_sums(float *room, float (*sum)[4], int first, int n) {
	UNROLL for (int j = 0; j < n; j++) UNROLL for (int h = 0; h < 2; h++) {
		pair w;
		w[0] = sum[j][2 * h], w[1] = sum[j][2 * h + 1];
		*pair_in_room(room, first + j, h) = w;
	}
}

DEVICE long row_in_room(struct tile t, int r) { return t.m + (threadIdx.x - GROUP_THREADS) / WARP * 16 + r; }

// has_quads reports whether four elements from 4i on of each row of x, `width` elements each, can be moved at once.
DEVICE int has_quads(struct operand x, long width) { return width % 4 == 0 && (uint64_t)x.at % (x.bf16 ? 8 : 16) == 0; }

// sign_or is store's rounding of a subnormal, else x.
DEVICE float sign_or(float x) {
	const uint32_t u = bits_of(x);
	return u << 1 < 0x01000000 ? float_of(u & 0x80000000) : x;
}

// round_quad rounds four numbers to bf16, and spread_quad has them as floats.
INLINE two_words round_quad(const float *v) {
	two_words w;
	w[0] = both(sign_or(v[0]), sign_or(v[1])), w[1] = both(sign_or(v[2]), sign_or(v[3]));
	return w;
}

INLINE void spread_quad(float *v, two_words w) {
	UNROLL for (int e = 0; e < 4; e++) v[e] = float_of(e % 2 ? w[e / 2] & 0xffff0000 : w[e / 2] << 16);
}

// store_quad sets elements i to i+3 of x.
INLINE void store_quad(struct operand x, long i, const float *v) {
	if (x.bf16) {
		*(two_words *)((uint16_t *)x.at + i) = round_quad(v);
	} else {
		quad w;
		w[0] = v[0], w[1] = v[1], w[2] = v[2], w[3] = v[3];
		*(quad *)((float *)x.at + i) = w;
	}
}

// store_gates stores four products g and u, and their SwiGLU: of row m, from f on. store_gate does so with one.
INLINE void store_gates(const struct matrix_matmul_swiglu_args *a, long m, long f, float *g, float *u) {
	const two_words gates = round_quad(g), ups = round_quad(u);
	float act[4];
	spread_quad(g, gates);
	spread_quad(u, ups);
	UNROLL for (int e = 0; e < 4; e++) act[e] = g[e] * sigmoid_of(g[e]) * u[e];
	if (a->gate_up.at) {
		uint16_t *const at = (uint16_t *)a->gate_up.at + (m * 2 * a->F + f);
		*(two_words *)at = gates;
		*(two_words *)(at + a->F) = ups;
	}
	*(two_words *)((uint16_t *)a->act.at + m * a->F + f) = round_quad(act);
}

INLINE void store_gate(const struct matrix_matmul_swiglu_args *a, long m, long f, float g, float u) {
	const long gate = m * 2 * a->F + f;
	g = rounded(g), u = rounded(u);
	if (a->gate_up.at) {
		store(a->gate_up, gate, g);
		store(a->gate_up, gate + a->F, u);
	}
	store(a->act, m * a->F + f, g * sigmoid_of(g) * u);
}

// turn_to_logits does so with the products in the room; x may be null.
INLINE void turn_to_logits(float *room, const struct softmax *x) {
	const int lane = threadIdx.x % WARP;
	float y;
	if (!x) return;
	if (x->cap == 0) {
		UNROLL for (int r = 0; r < 16; r += 4)
			*(quad *)&room[(r + lane / 8) * ROOM_PITCH + lane % 8 * 4] *= x->inverse_temperature;
	} else {
		ROLLED for (int r = 0; r < 16; r++) room[r * ROOM_PITCH + lane] = logit_of(room[r * ROOM_PITCH + lane], *x, &y);
	}
	meet();
}

// store_sums sets a tile of out [rows,width] to the sums, or to logits.
INLINE void store_sums(struct operand out, long rows, long width, struct tile t, float sum[EIGHTS][4], float *room,
	const struct softmax *logits) {
	const int quads = has_quads(out, width), lane = threadIdx.x % WARP;
	EACH_IN_ROOM(sum, j, column) {
		const long first = t.n + column, n = first + lane % 8 * 4;
		meet();
		put_sums(room, &sum[j], 0, ROOM_COLUMNS / 8);
		meet();
		turn_to_logits(room, logits);
		if (quads) {
			UNROLL for (int r = 0; r < 16; r += 4) {
				const long m = row_in_room(t, r + lane / 8);
				if (m < rows && n < width)
					store_quad(out, m * width + n, &room[(r + lane / 8) * ROOM_PITCH + lane % 8 * 4]);
			}
		} else {
			ROLLED for (int r = 0; r < 16; r++) {
				const long m = row_in_room(t, r);
				if (m < rows && first + lane < width) store(out, m * width + first + lane, room[r * ROOM_PITCH + lane]);
			}
		}
	}
}

// store_turned sets the transposed tile of out [rows,width]: a sum's row is a column of out.
INLINE void store_turned(struct operand out, long rows, long width, struct tile t, float sum[EIGHTS][4], float *room,
	const struct softmax *logits) {
	const int quads = has_quads(out, width), lane = threadIdx.x % WARP;
	const long n = row_in_room(t, 0);
	EACH_IN_ROOM(sum, j, column) {
		const long m = t.n + column + lane;
		meet();
		put_sums(room, &sum[j], 0, ROOM_COLUMNS / 8);
		meet();
		turn_to_logits(room, logits);
		if (m >= rows) continue;
		if (quads) {
			UNROLL for (int i = 0; i < 16; i += 4) {
				float v[4];
				UNROLL for (int e = 0; e < 4; e++) v[e] = room[(i + e) * ROOM_PITCH + lane];
				if (n + i < width) store_quad(out, m * width + n + i, v);
			}
		} else {
			ROLLED for (int i = 0; i < 16; i++)
				if (n + i < width) store(out, m * width + n + i, room[i * ROOM_PITCH + lane]);
		}
	}
}

// load_sums begins with a tile of x [rows,width]. Branches here would keep the assembler from letting products overlap.
INLINE void load_sums(float sum[EIGHTS][4], const float *x, long rows, long width, struct tile t) {
	UNROLL for (int h = 0; h < 2; h++) {
		const long m = row_of(t, h);
		const float *row = x + m * width;
		UNROLL for (int j = 0; j < EIGHTS; j++) UNROLL for (int e = 0; e < 2; e++) {
			const long n = column_of(t, j) + e;
			sum[j][2 * h + e] = m < rows && n < width ? row[n] : 0;
		}
	}
}

INLINE void no_sums(float sum[EIGHTS][4]) {
	EACH_PAIR(j, h) sum[j][2 * h] = sum[j][2 * h + 1] = 0;
}

#endif

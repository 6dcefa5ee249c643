// tile.h multiplies large matrices. A block computes a tile of the product, each of its warps a part, in
// registers from the first term to the last: nothing is split, so no size of a tile shows in a bit.
// Factors come through shared memory, DEPTH terms at a time in several stages.
//
// A family of kernels says what a tile is. With CHAINS factors are float32 and sums are chains (class
// cpu/fma). Else factors are bf16 and sums are those of tensor cores.
#ifndef EXP_CUDA_TILE_H
#define EXP_CUDA_TILE_H

#include "matrix.h"

// A block has WARPS_DOWN × WARPS_ACROSS warps; a warp has PARTS × EIGHTS parts of 16 × 8 sums.
#if !defined(STAGES)
#define WARPS_DOWN 2
#define WARPS_ACROSS 2
#define PARTS 4
#define EIGHTS 8
#define STAGES 3
#endif
#define TILE_ROWS (WARPS_DOWN * PARTS * 16)
#define WARP_COLUMNS (EIGHTS * 8)
#define TILE_COLUMNS (WARPS_ACROSS * WARP_COLUMNS)
#define TILE_THREADS (WARPS_DOWN * WARPS_ACROSS * WARP)

#if defined(CHAINS)
typedef float number;
#define CHUNK 4 // elements in 16 bytes
#else
typedef uint16_t number;
#define CHUNK 8
#endif
#define DEPTH (4 * CHUNK) // terms in a stage
#include "steps.h"

struct chunk {
	uint32_t word[4];
} __attribute__((aligned(16)));

// The chunks of a stage: 4 for each row and column of the tile. The memory that a block's threads share
// is the launch's where it is more than a kernel may have of its own.
#define STAGE_CHUNKS (4 * (TILE_ROWS + TILE_COLUMNS))
#if STAGES * STAGE_CHUNKS > 48 * 64
#define TILE_MEMORY(name) LAUNCH_SHARED(struct chunk, name, STAGES * STAGE_CHUNKS)
#else
#define TILE_MEMORY(name) SHARED(struct chunk, name, STAGES * STAGE_CHUNKS)
#endif

// A factor with as many rows or columns of the product as outputs. If by_terms is set, a row of the
// array has an output's terms, else a term of all outputs. If half is not 0, a tile has outputs f of
// the first half and half+f of the second, each warp HALF of both. If words is set, rows are not
// aligned to chunks.
#define HALF (WARP_COLUMNS / 2)

struct side {
	const number *at;
	long pitch, outputs, half;
	int by_terms, words;
};

DEVICE struct side side_of(struct factor x, long outputs, int by_terms) {
	struct side s;
	s.at = (const number *)x.at;
	s.pitch = x.pitch;
	s.outputs = outputs;
	s.half = 0;
	s.by_terms = by_terms;
	s.words = CHUNK == 4 && (((uint64_t)x.at | (uint64_t)x.pitch * sizeof(number)) & 15) != 0;
	return s;
}

// slot is where the chunk of terms k… (or of outputs i… of `wide`) lies in a stage, so that what a warp
// reads at once lies in different banks.
DEVICE int slot(int by_terms, int wide, int i, int k) {
	if (by_terms) return i * (DEPTH / CHUNK) + ((k / CHUNK) ^ (i / 2 % 4));
	return k * (wide / CHUNK) + ((i / CHUNK) ^ (k % 8));
}

// fetch_chunk queues the copy of the chunk at term t and output `at`, or of zeros for what lies outside.
INLINE void fetch_chunk(struct chunk *to, struct side f, long at, long limit, long t, long end) {
	const number *from = f.at + (f.by_terms ? at * f.pitch + t : t * f.pitch + at);
	if (!f.words) {
		copy_later(to, at < limit && t < end ? from : 0);
		return;
	}
	UNROLL for (int e = 0; e < 4; e++)
		copy_word_later(&to->word[e], (f.by_terms ? at < limit && t + e < end : at + e < limit && t < end) ? from + e : 0);
}

// fetch queues the copies of a stage of a side.
INLINE void fetch(struct chunk *stage, int wide, struct side f, long first, struct steps s) {
	UNROLL for (int c = 0; c < wide * 4 / TILE_THREADS; c++) {
		const int n = (int)threadIdx.x + c * TILE_THREADS, across = f.by_terms ? DEPTH / CHUNK : wide / CHUNK;
		const int i = f.by_terms ? n / across : n % across * CHUNK, k = f.by_terms ? n % across * CHUNK : n / across;
		long at = first + i, limit = f.outputs;
		if (f.half) {
			const int second = i / HALF % 2;
			at = first / 2 + i / WARP_COLUMNS * HALF + i % HALF + (second ? f.half : 0);
			limit = second ? 2 * f.half : f.half;
		}
		fetch_chunk(&stage[slot(f.by_terms, wide, i, k)], f, at, limit, s.next + k, s.end);
	}
}

// The tile of the calling thread's block, and the part of the thread's warp in it.
struct tile {
	long m, n; // the block's first row and column
	int row, column;
	int x_by_terms, y_by_terms; // how the factors lie (struct side)
};

// tile_of returns the tile of the calling block in a result of N columns. Eight tiles below each
// other go first: they share the factors of their columns.
DEVICE struct tile tile_of(long M, long N, int x_by_terms, int y_by_terms) {
	const long down = (M + TILE_ROWS - 1) / TILE_ROWS, across = (N + TILE_COLUMNS - 1) / TILE_COLUMNS;
	const long group = blockIdx.x / (8 * across), i = blockIdx.x % (8 * across), high = down - 8 * group < 8 ? down - 8 * group : 8;
	const int warp = threadIdx.x / WARP;
	struct tile t;
	t.m = (8 * group + i % high) * TILE_ROWS;
	t.n = i / high * TILE_COLUMNS;
	t.row = warp / WARPS_ACROSS * PARTS * 16;
	t.column = warp % WARPS_ACROSS * WARP_COLUMNS;
	t.x_by_terms = x_by_terms;
	t.y_by_terms = y_by_terms;
	return t;
}

// The sums of a thread. Of tensor cores, sums[i][j] are those of a part as in matrix.h. Of chains,
// sums[i][j][e] is in row_in_part(e) of 16 and column_in_warp(j).
typedef float sums_of_tile[PARTS][EIGHTS][4];

#if defined(CHAINS)
DEVICE int row_in_part(struct tile t, int j, int e) {
	const int lane = threadIdx.x % WARP / 8;
	(void)j;
	return t.x_by_terms ? e * 4 + lane : lane * 4 + e;
}

DEVICE int column_in_warp(struct tile t, int j, int e) {
	const int lane = threadIdx.x % 8;
	(void)e;
	return t.y_by_terms ? j * 8 + lane : j / 4 * 32 + lane * 4 + j % 4;
}

// as_operand is a result as other operations read it.
DEVICE float as_operand(float x) { return x; }
#else
DEVICE int row_in_part(struct tile t, int j, int e) {
	(void)t, (void)j;
	return threadIdx.x % WARP / 4 + e / 2 * 8;
}

DEVICE int column_in_warp(struct tile t, int j, int e) {
	(void)t;
	return j * 8 + threadIdx.x % 4 * 2 + e % 2;
}

DEVICE float as_operand(float x) { return rounded(x); }
#endif

// A warp's sums take turns in its own part of the shared memory, 16 rows at a time.
#define ROOM_PITCH (WARP_COLUMNS + 8)

DEVICE float *room_of(struct chunk *shared) { return (float *)shared + threadIdx.x / WARP * 16 * ROOM_PITCH; }

#define EACH_SUM(j, e) UNROLL for (int j = 0; j < EIGHTS; j++) UNROLL for (int e = 0; e < 4; e++)

// put_sums writes 16 rows of a warp's sums to its room, and take_sums reads them.
INLINE void put_sums(float *room, float sum[EIGHTS][4], struct tile t) {
	meet();
	EACH_SUM(j, e) room[row_in_part(t, j, e) * ROOM_PITCH + column_in_warp(t, j, e)] = sum[j][e];
	meet();
}

INLINE void take_sums(float sum[EIGHTS][4], const float *room, struct tile t) {
	meet();
	EACH_SUM(j, e) sum[j][e] = room[row_in_part(t, j, e) * ROOM_PITCH + column_in_warp(t, j, e)];
	meet();
}

// EACH_PART goes over the parts of 16 rows of a warp's sums, and EACH_32 over 32 elements of one at a
// time, in rows of `width`.
#define EACH_PART(part) UNROLL for (int part = 0; part < PARTS; part++)
#define EACH_32(r, width) ROLLED for (int r = 0; r < 16 * (width) / WARP; r++)

// A place of the result: its row and column, where its sum lies in the room, and whether it exists.
struct place {
	long row, column;
	float *sum;
};

// place_of locates the calling lane's element of turn r of a part.
DEVICE struct place place_of(struct tile t, float *room, int part, int r) {
	const int n = r * WARP + threadIdx.x % WARP;
	struct place p;
	p.row = t.m + t.row + part * 16 + n / WARP_COLUMNS;
	p.column = t.n + t.column + n % WARP_COLUMNS;
	p.sum = &room[n / WARP_COLUMNS * ROOM_PITCH + n % WARP_COLUMNS];
	return p;
}

// gate_of locates a gate, whose up is HALF sums further.
DEVICE struct place gate_of(struct tile t, float *room, int part, int r) {
	const int n = r * WARP + threadIdx.x % WARP;
	struct place p;
	p.row = t.m + t.row + part * 16 + n / HALF;
	p.column = (t.n + t.column) / 2 + n % HALF;
	p.sum = &room[n / HALF * ROOM_PITCH + n % HALF];
	return p;
}

// no_sums sets all sums to 0.
INLINE void no_sums(sums_of_tile acc) {
	EACH_PART(i) EACH_SUM(j, e) acc[i][j][e] = 0;
}

#if defined(CHAINS)
// four returns the elements of a chunk.
DEVICE void four(float *v, const struct chunk *c) {
	const struct chunk w = *c;
	UNROLL for (int e = 0; e < 4; e++) v[e] = float_of(w.word[e]);
}

// load_columns sets b[j][q] to term k+q of the lane's columns, and load_rows a[e][q] to those of its rows in a part.
INLINE void load_columns(float b[EIGHTS][4], struct tile t, const struct chunk *y, int k) {
	if (t.y_by_terms) {
		UNROLL for (int j = 0; j < EIGHTS; j++)
			four(b[j], &y[slot(1, TILE_COLUMNS, t.column + column_in_warp(t, j, 0), k)]);
		return;
	}
	UNROLL for (int q = 0; q < 4; q++) UNROLL for (int j = 0; j < EIGHTS; j += 4) {
		float v[4];
		four(v, &y[slot(0, TILE_COLUMNS, t.column + column_in_warp(t, j, 0), k + q)]);
		UNROLL for (int e = 0; e < 4; e++) b[j + e][q] = v[e];
	}
}

INLINE void load_rows(float a[4][4], struct tile t, const struct chunk *x, int part, int k) {
	UNROLL for (int q = 0; q < 4; q++) {
		if (t.x_by_terms) {
			four(a[q], &x[slot(1, TILE_ROWS, t.row + part * 16 + row_in_part(t, 0, q), k)]);
		} else {
			float v[4];
			four(v, &x[slot(0, TILE_ROWS, t.row + part * 16 + row_in_part(t, 0, 0), k + q)]);
			UNROLL for (int e = 0; e < 4; e++) a[e][q] = v[e];
		}
	}
}

// multiply_stage adds the products of a stage that has n terms. Nothing is added to a chain after its last
// term: a product 0 may change the sign of a zero.
INLINE void multiply_stage(sums_of_tile acc, struct tile t, const struct chunk *x, const struct chunk *y, long n) {
	float b[EIGHTS][4], a[4][4];
	ROLLED for (int k = 0; k < DEPTH && k < n; k += 4) {
		const int terms = n - k < 4 ? (int)(n - k) : 4;
		load_columns(b, t, y, k);
		EACH_PART(i) {
			load_rows(a, t, x, i, k);
			if (terms == 4) {
				UNROLL for (int q = 0; q < 4; q++) EACH_SUM(j, e) acc[i][j][e] = fmaf(a[e][q], b[j][q], acc[i][j][e]);
			} else {
				UNROLL for (int q = 0; q < 3; q++)
					if (q < terms) EACH_SUM(j, e) acc[i][j][e] = fmaf(a[e][q], b[j][q], acc[i][j][e]);
			}
		}
	}
}
#else
// multiply_stage adds the products of a stage that has n terms. Zeros end its last step.
INLINE void multiply_stage(sums_of_tile acc, struct tile t, const struct chunk *x, const struct chunk *y, long n) {
	const int lane = threadIdx.x % WARP, low = lane % 8, mid = lane / 8 % 2 * 8, high = lane / 16 * 8;
	UNROLL for (int k = 0; k < DEPTH; k += STEP) {
		if (k >= n) break;
		uint32_t a[PARTS][4], b[EIGHTS / 2][4];
		EACH_PART(i) {
			const int at = t.row + i * 16;
			load_matrices(a[i], t.x_by_terms ? (const void *)&x[slot(1, TILE_ROWS, at + low + mid, k + high)]
					: (const void *)&x[slot(0, TILE_ROWS, at + mid, k + low + high)], !t.x_by_terms);
		}
		UNROLL for (int j = 0; j < EIGHTS / 2; j++) {
			const int at = t.column + j * 16;
			load_matrices(b[j], t.y_by_terms ? (const void *)&y[slot(1, TILE_COLUMNS, at + low + high, k + mid)]
					: (const void *)&y[slot(0, TILE_COLUMNS, at + high, k + low + mid)], !t.y_by_terms);
		}
		EACH_PART(i) UNROLL for (int j = 0; j < EIGHTS; j++) multiply(acc[i][j], a[i], &b[j / 2][j % 2 * 2]);
	}
}
#endif

// fetch_both queues a stage of both factors, if there is one, and ends the group of its copies.
INLINE void fetch_both(struct chunk *stage, struct tile t, struct side x, struct side y, struct steps *s) {
	if (s->next < s->end) {
		fetch(stage, TILE_ROWS, x, t.m, *s);
		fetch(stage + 4 * TILE_ROWS, TILE_COLUMNS, y, t.n, *s);
		advance(s);
	}
	commit_copies();
}

// tile_products adds the products of x and y, of all terms in order, to the sums of a tile.
INLINE void tile_products(sums_of_tile acc, struct chunk *shared, struct tile t, struct side x, struct side y, struct steps s) {
	const int idle = t.m + t.row >= x.outputs || (!y.half && t.n + t.column >= y.outputs);
	struct steps ahead = s;
	barrier(); // the memory may hold sums
	ROLLED for (int i = 0; i < STAGES - 1; i++) fetch_both(shared + i * STAGE_CHUNKS, t, x, y, &ahead);
	ROLLED for (int stage = 0; s.next < s.end; stage = stage + 1 < STAGES ? stage + 1 : 0) {
		await_copies(STAGES - 2);
		barrier(); // all see this stage, and none still reads the one that is fetched next
		fetch_both(shared + (stage ? stage - 1 : STAGES - 1) * STAGE_CHUNKS, t, x, y, &ahead);
		const struct chunk *from = shared + stage * STAGE_CHUNKS;
		if (!idle) multiply_stage(acc, t, from, from + 4 * TILE_ROWS, s.end - s.next);
		advance(&s);
	}
	await_copies(0);
	barrier();
}

#endif

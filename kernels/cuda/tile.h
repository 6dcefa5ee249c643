// tile.h multiplies large matrices on tensor cores. A block of 4 warps computes 128 × 128 sums, each
// warp 64 × 64 of them, in registers from the first term to the last: nothing is split, so no size
// shows in a bit. Factors come through shared memory, 32 terms at a time in three stages.
#ifndef EXP_CUDA_TILE_H
#define EXP_CUDA_TILE_H

#include "matrix.h"

#define TILE 128 // outputs on a side of a block's tile
#define TILE_THREADS 128
#define DEPTH 32 // terms in a stage
#define STAGES 3
#define CHUNK 8 // elements in 16 bytes
#define STAGE_CHUNKS (TILE * DEPTH / CHUNK)

struct chunk {
	uint32_t word[4];
} __attribute__((aligned(16)));

// The memory that a block's threads share.
#define TILE_MEMORY(name) SHARED(struct chunk, name, 2 * STAGES * STAGE_CHUNKS)

// A factor with as many rows or columns of the product as outputs. If by_terms is set, a row of the
// array has an output's terms, else a term of all outputs. If half is not 0, a tile has outputs f of
// the first half and half+f of the second, each warp 32 of both.
struct side {
	const uint16_t *at;
	long pitch, outputs, half;
	int by_terms;
};

DEVICE struct side side_of(struct factor x, long outputs, int by_terms) {
	struct side s;
	s.at = (const uint16_t *)x.at;
	s.pitch = x.pitch;
	s.outputs = outputs;
	s.half = 0;
	s.by_terms = by_terms;
	return s;
}

// Terms from `next` on, in blocks that end at `end`; blocks is null if there is one.
struct steps {
	const int *blocks;
	int left, next, end;
};

// settle goes to the next block that is not empty.
DEVICE void settle(struct steps *s) {
	while (s->next >= s->end && s->left > 0) {
		s->left--;
		s->next = s->blocks[0];
		s->end = s->blocks[1];
		s->blocks++;
	}
}

DEVICE struct steps steps_of(long terms) {
	struct steps s;
	s.blocks = 0;
	s.left = s.next = 0;
	s.end = (int)terms;
	return s;
}

DEVICE struct steps steps_of_blocks(const int *blocks, long n) {
	struct steps s = steps_of(0);
	s.blocks = blocks;
	s.left = (int)n;
	settle(&s);
	return s;
}

DEVICE void advance(struct steps *s) {
	s->next += DEPTH;
	settle(s);
}

// slot is where the chunk of terms k… (or outputs i…) lies in a stage, so that the rows which a warp
// reads at once lie in different banks.
DEVICE int slot(int by_terms, int i, int k) {
	if (by_terms) return i * (DEPTH / CHUNK) + ((k / CHUNK) ^ (i / 2 % 4));
	return k * (TILE / CHUNK) + ((i / CHUNK) ^ (k % 8));
}

// fetch queues the copies of a stage of a side.
INLINE void fetch(struct chunk *stage, struct side f, long first, struct steps s) {
	UNROLL for (int c = 0; c < STAGE_CHUNKS / TILE_THREADS; c++) {
		const int n = (int)threadIdx.x + c * TILE_THREADS, across = f.by_terms ? DEPTH / CHUNK : TILE / CHUNK;
		const int i = f.by_terms ? n / across : n % across * CHUNK, k = f.by_terms ? n % across * CHUNK : n / across;
		const long t = s.next + k;
		long at = first + i, limit = f.outputs;
		if (f.half) {
			const int second = i / 32 % 2;
			at = first / 2 + i / 64 * 32 + i % 32 + (second ? f.half : 0);
			limit = second ? 2 * f.half : f.half;
		}
		const uint16_t *from = f.at + (f.by_terms ? at * f.pitch + t : t * f.pitch + at);
		copy_later(&stage[slot(f.by_terms, i, k)], at < limit && t < s.end ? from : 0);
	}
}

// The tile of the calling thread's block, and the thread's part of it.
struct tile {
	long m, n; // the block's first row and column
	int row, column;
};

// tile_of returns the tile of the calling block in a result of N columns. Eight tiles below each
// other go first: they share the factors of their columns.
DEVICE struct tile tile_of(long M, long N) {
	const long down = (M + TILE - 1) / TILE, across = (N + TILE - 1) / TILE, group = blockIdx.x / (8 * across);
	const long high = down - 8 * group < 8 ? down - 8 * group : 8, i = blockIdx.x % (8 * across);
	const int warp = threadIdx.x / WARP;
	struct tile t;
	t.m = (8 * group + i % high) * TILE;
	t.n = i / high * TILE;
	t.row = warp / 2 * 64;
	t.column = warp % 2 * 64;
	return t;
}

// A warp's sums take turns in its own part of the shared memory, 16 rows at a time: row r and column
// c are at r·ROOM_PITCH+c.
#define ROOM_PITCH 72

DEVICE float *room_of(struct chunk *shared) { return (float *)shared + threadIdx.x / WARP * 16 * ROOM_PITCH; }

// put_sums writes 16 rows of a warp's sums to its room, and take_sums reads them.
INLINE void put_sums(float *room, float sum[8][4]) {
	const int lane = threadIdx.x % WARP;
	meet();
	UNROLL for (int j = 0; j < 8; j++) UNROLL for (int e = 0; e < 4; e++)
		room[(lane / 4 + e / 2 * 8) * ROOM_PITCH + j * 8 + lane % 4 * 2 + e % 2] = sum[j][e];
	meet();
}

INLINE void take_sums(float sum[8][4], const float *room) {
	const int lane = threadIdx.x % WARP;
	meet();
	UNROLL for (int j = 0; j < 8; j++) UNROLL for (int e = 0; e < 4; e++)
		sum[j][e] = room[(lane / 4 + e / 2 * 8) * ROOM_PITCH + j * 8 + lane % 4 * 2 + e % 2];
	meet();
}

// EACH_PART goes over the parts of 16 rows of a warp's sums, and EACH_ROW over the rows of one, in
// halves of 32 columns.
#define EACH_PART(part) UNROLL for (int part = 0; part < 4; part++)
#define EACH_ROW(r) ROLLED for (int r = 0; r < 32; r++)

// row_of and column_of locate the calling lane's sum of half row r of a part in the product, and
// sum_at in the room.
DEVICE long row_of(struct tile t, int part, int r) { return t.m + t.row + part * 16 + r / 2; }
DEVICE long column_of(struct tile t, int r) { return t.n + t.column + r % 2 * WARP + threadIdx.x % WARP; }
DEVICE float *sum_at(float *room, int r) { return &room[r / 2 * ROOM_PITCH + r % 2 * WARP + threadIdx.x % WARP]; }

// no_sums sets all sums to 0.
INLINE void no_sums(float acc[4][8][4]) {
	EACH_PART(i) UNROLL for (int j = 0; j < 8; j++) UNROLL for (int e = 0; e < 4; e++) acc[i][j][e] = 0;
}

// multiply_stage adds a step's products, terms k of a stage.
INLINE void multiply_stage(float acc[4][8][4], struct tile t, const struct chunk *x, const struct chunk *y, int x_by_terms,
	int y_by_terms, int k) {
	const int lane = threadIdx.x % WARP, low = lane % 8, mid = lane / 8 % 2 * 8, high = lane / 16 * 8;
	uint32_t a[4][4], b[4][4];
	UNROLL for (int i = 0; i < 4; i++) {
		const int at = t.row + i * 16;
		load_matrices(a[i], x_by_terms ? (const void *)&x[slot(1, at + low + mid, k + high)]
				: (const void *)&x[slot(0, at + mid, k + low + high)], !x_by_terms);
	}
	UNROLL for (int j = 0; j < 4; j++) {
		const int at = t.column + j * 16;
		load_matrices(b[j], y_by_terms ? (const void *)&y[slot(1, at + low + high, k + mid)]
				: (const void *)&y[slot(0, at + high, k + low + mid)], !y_by_terms);
	}
	UNROLL for (int i = 0; i < 4; i++)
		UNROLL for (int j = 0; j < 8; j++) multiply(acc[i][j], a[i], &b[j / 2][j % 2 * 2]);
}

// tile_products adds the products of x and y, of all terms in order, to the sums of a tile.
INLINE void tile_products(float acc[4][8][4], struct chunk *shared, struct tile t, struct side x, struct side y, struct steps s) {
	const int idle = t.m + t.row >= x.outputs || (!y.half && t.n + t.column >= y.outputs);
	struct steps ahead = s;
	barrier(); // the memory may hold sums
	ROLLED for (int i = 0; i < STAGES - 1; i++) {
		if (ahead.next < ahead.end) {
			fetch(shared + 2 * i * STAGE_CHUNKS, x, t.m, ahead);
			fetch(shared + (2 * i + 1) * STAGE_CHUNKS, y, t.n, ahead);
			advance(&ahead);
		}
		commit_copies();
	}
	ROLLED for (int stage = 0; s.next < s.end; stage = stage + 1 < STAGES ? stage + 1 : 0) {
		await_copies(STAGES - 2);
		barrier(); // all see this stage, and none still reads the one that is fetched next
		if (ahead.next < ahead.end) {
			const int to = stage ? stage - 1 : STAGES - 1;
			fetch(shared + 2 * to * STAGE_CHUNKS, x, t.m, ahead);
			fetch(shared + (2 * to + 1) * STAGE_CHUNKS, y, t.n, ahead);
			advance(&ahead);
		}
		commit_copies();
		const struct chunk *from = shared + 2 * stage * STAGE_CHUNKS;
		UNROLL for (int k = 0; k < DEPTH; k += STEP)
			if (!idle && s.next + k < s.end) multiply_stage(acc, t, from, from + STAGE_CHUNKS, x.by_terms, y.by_terms, k);
		advance(&s);
	}
	await_copies(0);
	barrier();
}

#endif

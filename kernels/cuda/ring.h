// ring.h has what kernels of attention by wgmma share: a ring of stages in shared memory, which one warpgroup fills with rows of
// heads (span.h) and others multiply. A .cu file defines GROUPS (warpgroups that multiply, 64 rows each), PANEL (rows of a
// head in a stage), STAGE (bytes), STAGES, and OWN_ROOM (bytes behind the stages for the warpgroups' own rows).
#ifndef EXP_CUDA_RING_H
#define EXP_CUDA_RING_H

#include "warpgroup.h"

#define THREADS ((1 + GROUPS) * GROUP_THREADS)
#define BLOCK_ROWS (GROUPS * GROUP_ROWS)
#include "span.h"

#define PANEL_BOX (PANEL * LINE) // bytes of 64 channels of a panel
#define RING_BYTES (EIGHT_LINES + STAGES * (STAGE + 16) + OWN_ROOM)

// The stages of a block. A stage's `full` counts the threads whose copies have come, and its `empty` the lanes that are done with it.
struct ring {
	char *stages;
	int at, parity; // the next stage, and how often all were filled before, modulo 2
	int late;       // whether copies of the stage before are not yet told
};

DEVICE uint64_t *full_of(const struct ring *r, int stage) { return (uint64_t *)(r->stages + STAGES * STAGE + OWN_ROOM) + stage; }
DEVICE uint64_t *empty_of(const struct ring *r, int stage) { return full_of(r, STAGES + stage); }

INLINE struct ring open_ring(char *shared) {
	struct ring r;
	r.stages = shared + (EIGHT_LINES - shared_address(shared) % EIGHT_LINES) % EIGHT_LINES;
	r.at = r.parity = r.late = 0;
	if (threadIdx.x == 0) {
		for (int s = 0; s < STAGES; s++) {
			make_barrier(full_of(&r, s), GROUP_THREADS);
			make_barrier(empty_of(&r, s), GROUPS * GROUP_THREADS);
		}
		publish_barriers();
	}
	barrier();
	return r;
}

DEVICE void next_stage(struct ring *r) {
	if (++r->at < STAGES) return;
	r->at = 0;
	r->parity ^= 1;
}

// place_of is the byte where chunk c of row r of a head of so many rows begins.
DEVICE int place_of(int rows, int r, int c) { return c / 8 * (rows * LINE) + r * LINE + (c % 8 ^ r % 8) * (int)sizeof(struct words_16); }

// fetch_head queues the copies of a head of `rows` positions from `first` on, by a warpgroup. Those from lo to hi exist, others
// are zeros. Of each 64 channels all or none are copied.
INLINE void fetch_head(char *to, int rows, struct head x, int D, struct sequence seq, int first, int lo, int hi) {
	const int l = computed_here(threadIdx.x % GROUP_THREADS), c = l % CHUNKS, r = l / CHUNKS, once = GROUP_THREADS / CHUNKS;
	const int apart = seq.first - seq.prefix, end = first + rows;
	address at = address_of(to) + place_of(rows, r, c);
	if (c / 8 * WIDE >= D) return;
	if (first >= lo && end <= hi && (first >= seq.prefix || end <= seq.prefix)) { // rows one after another
		const int row = first + r + (first < seq.prefix ? seq.prefix_row : apart);
		const uint16_t *from = x.at + ((long)row * x.width + (x.first + c * 8));
		UNROLL for (int i = 0; i < rows; i += once, from += once * x.width) copy_to(at + i * LINE, from, c * 8 < D);
		return;
	}
	ROLLED for (int i = 0; i < rows; i += once, at += once * LINE) {
		const int position = first + r + i, there = (unsigned)(position - lo) < (unsigned)(hi - lo) && c * 8 < D;
		const int row = position + (position < seq.prefix ? seq.prefix_row : apart);
		copy_to(at, x.at + ((long)row * x.width + (x.first + c * 8)), there);
	}
}

// tell_stage says that the copies of the stage before the next have come.
INLINE void tell_stage(struct ring *r) {
	publish_writes();
	arrive_here(full_of(r, (r->at + STAGES - 1) % STAGES));
}

// end_stage ends the copies to a stage, and tells those of the stage before. end_stages waits for the last.
INLINE void end_stage(struct ring *r) {
	commit_copies();
	if (r->late) {
		await_copies(1);
		tell_stage(r);
	}
	next_stage(r);
	r->late = 1;
}

INLINE void end_stages(struct ring *r) {
	await_copies(0);
	if (r->late) tell_stage(r);
}

// EACH_SPAN goes over the spans of a block.
#define EACH_SPAN(p, heads, x)                                                                         \
	ROLLED for (int row_ = 0; span_of_block(p, heads, row_, &x); row_ = row_in_span(x, x.hi))

// sees_all reports whether all of a warpgroup's rows, from position `base` on, see all of a panel.
DEVICE int sees_all(struct step s, int base) {
	return s.position + PANEL - 1 <= base && (s.window == 0 || base + GROUP_ROWS - 1 - s.position < s.window);
}

// leave says that a lane is done with a stage. One could speak for its warp once all have met, but racecheck would not follow,
// and attention would gain 0.8 % at most.
DEVICE void leave(const struct ring *r, int stage) {
	meet();
	if (stage >= 0) arrive_here(empty_of(r, stage));
}

#if !defined(EMULATED)
#define PRODUCTS_OF(shape, names, sums, at_x, at_y, more)                                              \
	asm volatile("wgmma.mma_async.sync.aligned." shape ".f32.bf16.bf16 {" names "}, " at_x ", " at_y      \
		", " #more ", 1, 1, 0, 0;" : sums : "l"(x), "l"(y))
#define PRODUCTS(more)                                                                                 \
	if (eights == 16) PRODUCTS_OF("m64n128k16", NAMES_64, SUMS_64, "%64", "%65", more);                  \
	else if (eights == 8) PRODUCTS_OF("m64n64k16", NAMES_32, SUMS_32, "%32", "%33", more);               \
	else PRODUCTS_OF("m64n32k16", NAMES_16, SUMS_16(0), "%16", "%17", more)
#define PRODUCTS_OF_ROWS(shape, names, sums, words, at_y)                                              \
	asm volatile("wgmma.mma_async.sync.aligned." shape ".f32.bf16.bf16 {" names "}, {" words "}, " at_y  \
		", 1, 1, 1, 1;" : sums : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "l"(y))

INLINE void wgmma(float (*sum)[4], int eights, uint64_t x, uint64_t y, int x_by_terms, int y_by_terms) {
	(void)x_by_terms, (void)y_by_terms; // 1 and 1
	PRODUCTS(1);
}

INLINE void wgmma_from_zero(float (*sum)[4], int eights, uint64_t x, uint64_t y, int x_by_terms, int y_by_terms) {
	(void)x_by_terms, (void)y_by_terms; // 1 and 1
	PRODUCTS(0);
}

INLINE void wgmma_rows(float (*sum)[4], int eights, const uint32_t *x, uint64_t y, int y_by_terms) {
	(void)y_by_terms; // 0
	if (eights == 16) PRODUCTS_OF_ROWS("m64n128k16", NAMES_64, SUMS_64, "%64, %65, %66, %67", "%68");
	else PRODUCTS_OF_ROWS("m64n64k16", NAMES_32, SUMS_32, "%32, %33, %34, %35", "%36");
}
#endif

// dot_head queues products over the channels of a warpgroup's rows and 8·eights rows of a panel. A head takes `boxes` boxes of
// 64 channels; the next of the panel is PANEL_BOX further. Descriptors take no registers all the time.
INLINE void dot_head(float (*z)[4], int eights, const char *own, const char *rows, int boxes) {
	own += computed_here(0);
	rows += computed_here(0);
	UNROLL for (int box = 0; box < boxes; box++) {
		const uint64_t x = descriptor(own + box * BOX, 0), y = descriptor(rows + box * PANEL_BOX, 0);
		UNROLL for (int k = 0; k < WIDE / STEP; k++) {
			if (box + k == 0) wgmma_from_zero(z, eights, x, y, 1, 1);
			else wgmma(z, eights, x + k * STEP_IN(1), y + k * STEP_IN(1), 1, 1);
		}
	}
}

// dot_step sets z to the products of a warp's rows, which begin at row `first` of x, and 16 keys, by mma.sync.
INLINE void dot_step(float z[2][4], const char *x, int first, const char *keys, int key, int boxes) {
	const int l = threadIdx.x % WARP;
	EACH_SCORE(j, e) z[j][e] = 0;
	ROLLED for (int k = 0; k < boxes * WIDE / STEP; k++) {
		uint32_t a[4], b[4];
		load_at(a, address_of((void *)x) + place_of(GROUP_ROWS, first + l % 16, 2 * k + l / 16), 0);
		load_at(b, address_of((void *)keys) + place_of(PANEL, key + l % 8 + l / 16 * 8, 2 * k + l / 8 % 2), 0);
		UNROLL for (int j = 0; j < 2; j++) multiply(z[j], a, &b[2 * j]);
	}
}

// add_seen_rows adds to sums the products of weights and 16 rows of a panel, of which some are infinite or NaN: by mma.sync
// (add_seen).
INLINE void add_seen_rows(float (*sum)[4], const uint32_t *weights, const char *rows, int first, int boxes, struct step s) {
	UNROLL for (int g = 0; g < 8 * boxes; g += 2) {
		const int l = computed_here(threadIdx.x % WARP);
		uint32_t pair[4], (*const b)[2] = (uint32_t (*)[2])pair;
		load_at(pair, address_of((void *)rows) + place_of(PANEL, first + l % 16, g + l / 16), 1);
		if (sees_special(b, 2, s)) add_seen(sum + g, weights, b, 2, s);
		else UNROLL for (int k = 0; k < 2; k++) multiply(sum[g + k], weights, b[k]);
	}
}

// take_stage waits for the next stage and returns its number.
INLINE int take_stage(struct ring *r) {
	const int at = r->at;
	await_phase(full_of(r, at), r->parity);
	next_stage(r);
	return at;
}

// finds_special reports whether one of n numbers in shared memory is infinite or NaN, for any thread of the warpgroup.
INLINE int finds_special(const char *at, int n) {
	const struct words_16 *const x = (const struct words_16 *)at;
	int found = 0;
	ROLLED for (int i = threadIdx.x % GROUP_THREADS; i < n / 8; i += GROUP_THREADS)
		UNROLL for (int k = 0; k < 4; k++) found |= has_special(x[i].w[k]);
	return group_any(threadIdx.x / GROUP_THREADS, GROUP_THREADS, found);
}

#endif

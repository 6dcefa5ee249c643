// panel.h computes attention on tensor cores with its factors in shared memory, for heads of up to 128
// channels, a multiple of 8. heads.h has what heads of any size need.
//
// A kernel says how many PARTS of 16 rows a warp has, and how many STEPS of 16 positions it takes at once.
#ifndef EXP_CUDA_PANEL_H
#define EXP_CUDA_PANEL_H

#include "heads.h"

// A panel holds a head of some positions of a sequence, each in a row of CHUNKS chunks of 8 channels. Positions
// that do not exist and channels from D on are zeros.
#define PANEL (STEPS * STEP)      // positions in a panel that a block fetches while it computes
#define WARP_ROWS (PARTS * STEP)
#define BLOCK_ROWS (HEAD_WARPS * WARP_ROWS)
#include "span.h"

// WANTED is whether a result is read. A device computes the others too, which takes less than a branch; the
// emulator leaves them out.
#if defined(EMULATED)
#define WANTED(x) (x)
#else
#define WANTED(x) 1
#endif

#define EACH_OF_WARP(p) UNROLL for (int p = 0; p < PARTS; p++)
#define EACH_STEP(s) UNROLL for (int s = 0; s < STEPS; s++)

// Products of a warp's rows and a panel's positions, and sums of a warp's rows and all channels. Tile i of the sums has
// channels 8·i to 8·i+7.
typedef float products_of_panel[PARTS][2 * STEPS][4];
typedef float sums_of_panel[PARTS][CHUNKS][4];

// place_in_panel is the byte where chunk c of a row begins, r mod 8 its number: eight rows' chunks, which a warp reads at once,
// are in different banks.
enum { ROW = CHUNKS * (int)sizeof(struct words_16) };
DEVICE int place_in_panel(int r, int c) { return (c ^ r % 8) * (int)sizeof(struct words_16); }

// fetch_heads queues the copies of a head of `rows` positions from `first` on, and if `apart` is not 0 of the one that many
// elements further, to the next panel. Positions from lo to hi exist. Of each 64 channels all or none are copied.
INLINE void fetch_heads(address to, int rows, struct head x, int apart, int D, struct sequence seq, int first, int lo, int hi) {
	const int l = computed_here(threadIdx.x), c = l % CHUNKS, r = l / CHUNKS;
	if (c / 8 * GROUP_CHANNELS >= D) return;
	to += r * ROW + place_in_panel(r, c);
	UNROLL for (int i = 0; i < rows; i += HEAD_THREADS / CHUNKS) {
		const int position = first + r + i, there = (unsigned)(position - lo) < (unsigned)(hi - lo) && c * 8 < D;
		const int row = position + (position < seq.prefix ? seq.prefix_row : seq.first - seq.prefix);
		const uint16_t *const from = x.at + ((long)row * x.width + (x.first + c * 8));
		copy_to(to + i * ROW, from, there);
		if (apart) copy_to(to + (rows + i) * ROW, from + apart, there);
	}
}

// load_rows sets a to channels 16·k to 16·k+15 of 16 rows of x, as rows of a product. load_columns does so as its
// columns: two tiles of 8. load_terms sets b to 16 rows as terms, and to the channels of tiles 2·i and 2·i+1 as columns. The calling
// lane is l.
INLINE void load_rows(uint32_t *a, address x, int l, int k) {
	load_at(a, x + l % 16 * ROW + place_in_panel(l, 2 * k + l / 16), 0);
}

INLINE void load_columns(uint32_t *b, address x, int l, int k) {
	load_at(b, x + (l % 8 + l / 16 * 8) * ROW + place_in_panel(l, 2 * k + l / 8 % 2), 0);
}

INLINE void load_terms(uint32_t *b, address x, int l, int i) {
	load_at(b, x + l % 16 * ROW + place_in_panel(l, 2 * i + l / 16), 1);
}

// dot_panels sets z to the products over D channels of a warp's rows, which begin at x, and the positions of y. Of them
// `parts` and `steps` are wanted.
INLINE void dot_panels(products_of_panel z, address x, address y, int D, int parts, int steps) {
	EACH_OF_WARP(p) UNROLL for (int j = 0; j < 2 * STEPS; j++) UNROLL for (int e = 0; e < 4; e++) z[p][j][e] = 0;
	const int l = computed_here(threadIdx.x % WARP);
	(void)parts, (void)steps;
	ROLLED for (int c = 0; c < D; c += GROUP_CHANNELS, x += 2 * GROUP_CHANNELS, y += 2 * GROUP_CHANNELS) {
		UNROLL for (int k = 0; k < GROUP_CHANNELS / STEP; k++) {
			uint32_t a[4], b[STEPS][4];
			if (!WANTED(c + k * STEP < D)) continue;
			EACH_STEP(s) if (WANTED(s < steps)) load_columns(b[s], y + s * STEP * ROW, l, k);
			EACH_OF_WARP(p) {
				if (!WANTED(p < parts)) continue;
				load_rows(a, x + p * STEP * ROW, l, k);
				EACH_STEP(s) UNROLL for (int j = 0; j < 2; j++)
					if (WANTED(s < steps)) multiply(z[p][2 * s + j], a, &b[s][2 * j]);
			}
		}
	}
}

#define TILES 4 // of 8 channels, at once

// add_panel adds to sums the products of weights of 16 positions and the positions' rows, which begin at y: for
// the `parts` parts from `first` on. Part 0 has the rows of s.
INLINE void add_panel(sums_of_panel sum, uint32_t weights[PARTS][4], address y, int D, struct step s, int first, int parts) {
	const int l = computed_here(threadIdx.x % WARP);
	(void)parts;
	UNROLL for (int g = 0; g < CHUNKS; g += TILES) {
		uint32_t pairs[TILES / 2][4], (*const b)[2] = (uint32_t (*)[2])pairs;
		if (g % GROUP == 0 && g * 8 >= D) break;
		if (!WANTED(g * 8 < D)) continue;
		UNROLL for (int i = 0; i < TILES / 2; i++) load_terms(pairs[i], y, l, g / 2 + i);
		EACH_OF_WARP(p) {
			struct step of_part = s;
			of_part.row = s.row + p * STEP;
			if (p < first || !WANTED(p < parts)) continue;
			if (sees_special(b, TILES, of_part)) add_seen(sum[p] + g, weights[p], b, TILES, of_part);
			else UNROLL for (int i = 0; i < TILES; i++) multiply(sum[p][g + i], weights[p], b[i]);
		}
	}
}

// some_see reports whether some row of a warp, the first of which is s.row, may see the step's first position.
DEVICE int some_see(struct step s) {
#if FULL
	return s.position < s.keys;
#endif
	return s.position <= s.row + (PARTS - 1) * STEP;
}

// row_of_warp is the first row of the calling warp in its block.
DEVICE int row_of_warp(void) { return computed_here(threadIdx.x) / WARP * WARP_ROWS; }

// no_sums_in_panel sets all sums to 0.
INLINE void no_sums_in_panel(sums_of_panel sum) {
	EACH_OF_WARP(p) UNROLL for (int i = 0; i < CHUNKS; i++) UNROLL for (int e = 0; e < 4; e++) sum[p][i][e] = 0;
}

#endif

// matrixunit.h: a slow emulation of the matrix unit's instructions (AMX, BF16) in AVX-512.
// It refuses everything that the processor refuses or is slow at. The build tag emulate_amx
// compiles the kernels of level AMX on it, to test them on machines without the unit. The
// sums are four_rows, as at level portable.

#include <stdio.h>
#include <stdlib.h>

#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbf16ps
#define _tile_loadconfig unit_configure
#define _tile_release unit_release
#define _tile_zero unit_zero
#define _tile_loadd unit_load
#define _tile_stored unit_store
#define _tile_dpbf16ps unit_multiply

#define UNIT_TILES 8
#define UNIT_SUMS 4 // tiles 0..3 hold sums, at any address; factors start on cache lines

static _Thread_local int unit_configured;
static _Thread_local float unit_tile[UNIT_TILES][TILE][LANES] __attribute__((aligned(64)));

static void unit_refuse(const char *what, int tile) {
	fprintf(stderr, "emulated matrix unit: %s (tile %d)\n", what, tile);
	abort();
}
static void unit_ready(int tile) {
	if (!unit_configured) unit_refuse("used without a configuration", tile);
	if (tile < 0 || tile >= UNIT_TILES) unit_refuse("no such tile", tile);
}

static void unit_configure(const void *layout) {
	(void)layout; // always eight whole tiles
	if (unit_configured) unit_refuse("configured twice", -1);
	unit_configured = 1;
	memset(unit_tile, 0, sizeof unit_tile);
}
static void unit_release(void) {
	if (!unit_configured) unit_refuse("released twice", -1);
	unit_configured = 0;
}
static void unit_zero(int tile) {
	unit_ready(tile);
	memset(unit_tile[tile], 0, sizeof unit_tile[tile]);
}
static void unit_load(int tile, const void *from, long line) {
	unit_ready(tile);
	if (tile >= UNIT_SUMS && (uintptr_t)from % 64) unit_refuse("factors that straddle cache lines", tile);
	for (int i = 0; i < TILE; i++) memcpy(unit_tile[tile][i], (const char *)from + i * line, sizeof unit_tile[tile][i]);
}
static void unit_store(int tile, void *to, long line) {
	unit_ready(tile);
	for (int i = 0; i < TILE; i++) memcpy((char *)to + i * line, unit_tile[tile][i], sizeof unit_tile[tile][i]);
}
// unit_multiply adds the product of tiles rows and cols to tile sums.
static void unit_multiply(int sums, int rows, int cols) {
	unit_ready(sums), unit_ready(rows), unit_ready(cols);
	const unsigned mode = flushing();
	for (int i = 0; i < TILE; i += 4)
		four_rows((const bf16 *)unit_tile[rows][i], (const bf16 *)unit_tile[cols], unit_tile[sums][i], LANES, 1, 0);
	not_flushing(mode);
}

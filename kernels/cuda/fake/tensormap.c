// tensormap.c has the maps by which copies find a tile: of arrays of 16-bit numbers in two dimensions,
// with the 128-byte swizzle.
#include "tensormap.h"
#include "cuda.h"
#include "graph.h"
#include <string.h>

enum { MAP = 0x7a9, BYTES = 2, CHUNK = 16, MAX_BOX = 256, BF16 = 9, SWIZZLE_128 = 3 };

struct map {
	uint64_t kind, width, rows, pitch, box_width, box_rows; // pitch in bytes
	const char *at;
};

CUresult cuTensorMapEncodeTiled(CUtensorMap *to, int type, unsigned rank, void *at, const uint64_t *dim,
	const uint64_t *stride, const uint32_t *box, const uint32_t *step, int interleave, int swizzle, int promotion,
	int fill) {
	const struct map m = {MAP, dim[0], dim[1], stride[0], box[0], box[1], at};
	(void)promotion;
	if (!has_maps()) return CUDA_ERROR_NOT_SUPPORTED;
	if ((uintptr_t)to % 64 || type != BF16 || rank != 2 || step[0] != 1 || step[1] != 1) return CUDA_ERROR_INVALID_VALUE;
	if (interleave || swizzle != SWIZZLE_128 || fill) return CUDA_ERROR_INVALID_VALUE;
	if ((uintptr_t)at % CHUNK || !dim[0] || !dim[1] || stride[0] % CHUNK || stride[0] < dim[0] * BYTES)
		return CUDA_ERROR_INVALID_VALUE;
	if (!box[0] || !box[1] || box[0] * BYTES > 128 || box[1] > MAX_BOX) return CUDA_ERROR_INVALID_VALUE;
	memset(to, 0, sizeof *to);
	memcpy(to, &m, sizeof m);
	return CUDA_SUCCESS;
}

int read_box(char *memory, uint32_t to, const struct tensor_map *map, long column, long row) {
	struct map m;
	memcpy(&m, map, sizeof m);
	if (m.kind != MAP) return 0;
	const long width = m.width, rows = m.rows;
	for (uint32_t r = 0; r < m.box_rows; r++) {
		for (uint32_t c = 0; c < m.box_width; c += CHUNK / BYTES) {
			const long y = row + r, x = column + c, left = y < 0 || y >= rows || x < 0 ? 0 : width - x;
			char chunk[CHUNK] = {0};
			if (left > 0) memcpy(chunk, m.at + y * m.pitch + x * BYTES, left < CHUNK / BYTES ? left * BYTES : CHUNK);
			memcpy(memory + swizzled(to + (r * m.box_width + c) * BYTES), chunk, CHUNK);
		}
	}
	return m.box_width * m.box_rows * BYTES;
}

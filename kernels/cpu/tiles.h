// tiles.h: the kernels of class "cpu/bf16" at one instruction level, and their table.
#include "tilesum.h"
#include "tilematmul.h"
#include "tileattention.h"
#include "tileoutput.h"

#if defined(LEVEL_AMX)
// tile_peak runs rounds steps of four tile sums for each unit, on zeros that stay in
// registers: what the matrix unit does at most.
static void tile_peak(const struct peak_args *g, long u0, long u1, int tid) {
	(void)tid;
	tiles_begin(); // clears all tiles
	for (long u = u0; u < u1; u++)
		for (long t = 0; t < g->rounds; t++) {
			_tile_dpbf16ps(0, 4, 6);
			_tile_dpbf16ps(1, 4, 7);
			_tile_dpbf16ps(2, 5, 6);
			_tile_dpbf16ps(3, 5, 7);
		}
	tiles_end();
}
#endif

const struct tile_kernels TILES = {
	.pack = (kernel)tile_pack,
	.matmul = (kernel)tile_matmul,
	.matmul_dw = (kernel)tile_matmul_dw,
	.matmul_dbias = (kernel)tile_matmul_dbias,
	.attention = (kernel)tile_attention,
	.attention_backward = (kernel)tile_attention_backward,
	.paged_attention = (kernel)tile_paged_attention,
	.logits = (kernel)tile_scaled_logits,
	.logprob = (kernel)tile_logprob,
	.logprob_backward = (kernel)tile_logprob_backward,
	.sample = (kernel)tile_sample,
#if defined(LEVEL_AMX)
	.peak = (kernel)tile_peak,
	.peak_flops = 4.0 * 2 * TILE * TILE * TERMS,
#endif
};

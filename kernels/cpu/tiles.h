// tiles.h: the kernels of class "cpu/bf16" at one instruction level, and their table.
#include "tilesum.h"
#include "tilematmul.h"
#include "tileattention.h"
#include "tileoutput.h"

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
};

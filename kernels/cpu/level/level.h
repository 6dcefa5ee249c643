// level.h: the kernels at one instruction level, and their table. With SPARSE, what another instruction set
// makes no faster, or models rarely need, is left to the level below (kernels/cpu/level.go), so that it
// is compiled once less. What knows the layout of panels is never left out.
#include "args.h"
#include "vec.h"
#include "wide.h"
#include "bf16.h"
#include "tile.h"
#include "gate.h"
#include "matmul.h"
#include "embedding.h"
#include "rmsnorm.h"
#include "swiglu.h"
#include "gelu.h"
#include "gates.h"
#include "xielu.h"
#include "pages.h"
#include "window.h"
#include "attention.h"
#include "pagedattention.h"
#include "output.h"
#include "shortconv.h"
#include "deltarule.h"
#include "deltaback.h"
#include "deltagates.h"
#include "gatednorm.h"
#include "peak.h"
#if !defined(SPARSE)
#include "layernorm.h"
#include "clip.h"
#include "columns.h"
#include "experts.h"
#include "dropout.h"
#include "segment.h"
#include "rope.h"
#include "sink.h"
#include "latent.h"
#include "vector.h"
#include "memory.h"
#endif

const struct kernels TABLE = {
	.mr = MR,
	.nr = NR,
	.pack = (kernel)pack,
	.matmul = (kernel)matmul,
	.matmul_dw = (kernel)matmul_dw,
	.matmul_dbias = (kernel)matmul_dbias,
	.embed_frozen = (kernel)embed_frozen,
	.rmsnorm = (kernel)rmsnorm,
	.add_rmsnorm = (kernel)add_rmsnorm,
	.rmsnorm_backward = (kernel)rmsnorm_backward,
	.matmul_swiglu = (kernel)matmul_swiglu,
	.matmul_dx_swiglu = (kernel)matmul_dx_swiglu,
	.gate = (kernel)gate,
	.gate_backward = (kernel)gate_backward,
	.attention = (kernel)attention,
	.attention_backward = (kernel)attention_backward,
	.paged_attention = (kernel)paged_attention,
	.logits = (kernel)logits,
	.logprob = (kernel)logprob,
	.logprob_backward = (kernel)logprob_backward,
	.sample = (kernel)sample,
	.delta_rule = (kernel)delta_rule,
	.delta_rule_backward = (kernel)delta_rule_backward,
	.gelu = (kernel)gelu,
	.gelu_backward = (kernel)gelu_backward,
	.xielu = (kernel)xielu,
	.xielu_backward = (kernel)xielu_backward,
	.gated_norm = (kernel)gated_norm,
	.gated_norm_backward = (kernel)gated_norm_backward,
	.peak_chains = PEAK_CHAINS,
	.peak_fma = (kernel)peak_fma,
	.peak_read = (kernel)peak_read,
#if !defined(SPARSE)
	.embed = (kernel)embed,
	.embed_scaled = (kernel)embed_scaled,
	.embed_backward = (kernel)embed_backward,
	.embed_scaled_backward = (kernel)embed_scaled_backward,
	.rmsnorm_dweight = (kernel)rmsnorm_dweight,
	.layernorm = (kernel)layernorm,
	.layernorm_backward = (kernel)layernorm_backward,
	.layernorm_dweight = (kernel)layernorm_dweight,
	.dropout = (kernel)dropout,
	.segment_mean = (kernel)segment_mean,
	.segment_mean_backward = (kernel)segment_mean_backward,
	.xielu_parts = (kernel)xielu_parts,
	.clip = (kernel)clip,
	.clip_backward = (kernel)clip_backward,
	.take_columns = (kernel)take_columns,
	.add_columns = (kernel)add_columns,
	.route = (kernel)route,
	.route_backward = (kernel)route_backward,
	.combine = (kernel)combine,
	.combine_backward = (kernel)combine_backward,
	.rope = (kernel)rope,
	.append_kv = (kernel)append_kv,
	.cap_logits = (kernel)cap_logits,
	.short_conv = (kernel)short_conv,
	.short_conv_backward = (kernel)short_conv_backward,
	.gated_conv = (kernel)gated_conv,
	.gated_conv_backward = (kernel)gated_conv_backward,
	.delta_gates = (kernel)delta_gates,
	.delta_gates_backward = (kernel)delta_gates_backward,
	.grouped_norm = (kernel)grouped_norm,
	.grouped_norm_backward = (kernel)grouped_norm_backward,
	.move_heads = (kernel)move_heads,
	.output_gate = (kernel)output_gate,
	.sink = (kernel)sink,
	.sink_backward = (kernel)sink_backward,
	.join_latent = (kernel)join_latent,
	.split_latent = (kernel)split_latent,
	.move_values = (kernel)move_values,
	.adamw = (kernel)adamw,
	.sum_squares = (kernel)sum_squares,
	.add = (kernel)add,
	.zero = (kernel)zero,
	.copy_pages = (kernel)copy_pages,
#endif
};

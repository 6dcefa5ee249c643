package megatron

import (
	"fmt"
	"slices"

	"exp/train/checkpoint/torchsave"
	"exp/train/model"
)

// Args are the arguments of Megatron that a checkpoint keeps if they are numbers, texts, truth
// values or lists of numbers; None is absent. Integers are int, others and those of lists
// float64.
type Args map[string]any

// number returns an argument that is a number.
func (a Args) number(name string) (float64, bool) {
	switch v := a[name].(type) {
	case int:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// integer returns an argument that is a positive integer that fits a size, or 0.
func (a Args) integer(name string) int {
	const most = 1 << 30
	if v, ok := a.number(name); ok && v >= 1 && v <= most && v == float64(int(v)) {
		return int(v)
	}
	return 0
}

// flag returns an argument that is true or false, or what counts if it is absent.
func (a Args) flag(name string, absent bool) bool {
	if v, ok := a[name].(bool); ok {
		return v
	}
	return absent
}

// text returns an argument that is a text, or "".
func (a Args) text(name string) string {
	v, _ := a[name].(string)
	return v
}

// size returns the number of ranks along an axis; 1 if the argument is absent.
func (a Args) size(name string) int { return max(a.integer(name), 1) }

// grid returns how the checkpoint spreads the model.
func (a Args) grid() Grid {
	return Grid{TP: a.size("tensor_model_parallel_size"), PP: a.size("pipeline_model_parallel_size"),
		VP: a.size("virtual_pipeline_model_parallel_size"), EP: a.size("expert_model_parallel_size")}
}

// Megatron's --use-rope-scaling is Llama 3.1's: only the factor can be chosen.
const (
	scalingFactor   = 8
	scalingLow      = 1
	scalingHigh     = 4
	scalingOriginal = 8192
)

// changing lists arguments that make Megatron compute something else than package model,
// unless they are absent, false, zero, all zeros or empty.
func changing() []string {
	return []string{"apply_layernorm_1p", "rotary_interleaved", "multi_latent_attention", "attention_output_gate",
		"heterogeneous_layers_config_path", "heterogeneous_layers_config_encoded_json", "mtp_num_layers",
		"qk_l2_norm", "softmax_scale", "no_rope_freq", "linear_attention_freq", "experimental_attention_variant",
		"apply_residual_connection_post_layernorm", "activation_func_clamp_value", "glu_linear_offset",
		"quick_geglu", "squared_relu", "moe_expert_capacity_factor", "moe_router_group_topk",
		"moe_router_topk_limited_devices", "moe_router_enable_expert_bias", "moe_apply_probs_on_input",
		"moe_latent_size"}
}

// unsupported lists what the arguments ask for and package model does not compute.
func (a Args) unsupported() (problems []string) {
	bad := func(is bool, format string, args ...any) {
		if is {
			problems = append(problems, fmt.Sprintf(format, args...))
		}
	}
	norm, position := a.text("normalization"), a.text("position_embedding_type")
	bad(norm != "" && norm != "RMSNorm", "normalization is %s; only RMSNorm is supported", norm)
	bad(position != "" && position != "rope", "position_embedding_type is %s; only rope is supported", position)
	bad(!a.flag("swiglu", true), "swiglu is false: only gated feed-forward blocks with SiLU are supported")
	for _, name := range changing() {
		bad(!a.neutral(name), "%s is %v: not supported", name, a[name])
	}
	window, limited := a["window_size"].([]float64) // positions before and after a query; -1 for all
	bad(limited && len(window) > 0 && window[0] >= 0, "window_size is %v: windows are not supported without the "+
		"model's config.json", window)
	percent, ok := a.number("rotary_percent")
	bad(ok && percent != 1, "rotary_percent is %g: no Hugging Face class rotates a part of Megatron's heads",
		percent)
	softmax := a.text("softmax_type")
	bad(softmax != "" && softmax != "vanilla", "softmax_type is %s; only vanilla is supported", softmax)
	score := a.text("moe_router_score_function")
	bad(score != "" && score != "softmax", "moe_router_score_function is %s; only softmax is supported", score)
	balance := a.text("moe_router_load_balancing_type")
	bad(balance == "sinkhorn", "moe_router_load_balancing_type is sinkhorn, which chooses experts otherwise")
	for _, name := range []string{"rotary_seq_len_interpolation_factor", "moe_router_topk_scaling_factor"} {
		factor, ok := a.number(name)
		bad(ok && factor != 1, "%s is %g: not supported", name, factor)
	}
	return problems
}

// neutral reports whether an argument is absent or as good as absent.
func (a Args) neutral(name string) bool {
	switch v := a[name].(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case []float64:
		return !slices.ContainsFunc(v, func(x float64) bool { return x != 0 })
	}
	n, ok := a.number(name)
	return ok && n == 0
}

// expertsApart reports whether the ranks cut experts otherwise than the other layers.
func (a Args) expertsApart() bool {
	tp := a.integer("expert_tensor_parallel_size")
	return tp > 0 && tp != a.size("tensor_model_parallel_size") && a.integer("num_experts") > 0
}

// args returns the arguments of a checkpoint in a layout, with elements of a type, as
// Megatron's own argument parser would have them.
func (l *Layout) args(dtype string) *torchsave.Object {
	c := l.Config
	d := &torchsave.Dict{}
	set := func(name string, value any) { d.Set(name, value) }
	set("num_layers", c.Layers)
	set("hidden_size", c.Width)
	set("ffn_hidden_size", c.FFN)
	set("num_attention_heads", c.Heads)
	set("group_query_attention", true)
	set("num_query_groups", c.KVHeads)
	set("kv_channels", c.Head)
	set("seq_length", c.MaxPositions)
	set("max_position_embeddings", c.MaxPositions)
	set("swiglu", true)
	set("normalization", "RMSNorm")
	set("norm_epsilon", c.NormEps)
	set("apply_layernorm_1p", false)
	set("add_bias_linear", c.OutBias)
	set("add_qkv_bias", c.QKVBias)
	set("qk_layernorm", c.QKNorm)
	set("position_embedding_type", "rope")
	set("add_position_embedding", true)
	set("rotary_base", whole(c.RopeTheta))
	set("rotary_percent", 1.0)
	set("rotary_interleaved", false)
	set("use_rope_scaling", c.Rope.Kind == "llama3")
	set("rope_scaling_factor", max(c.Rope.Factor, 1))
	set("init_method_std", c.InitStd)
	set("attention_dropout", 0.0)
	set("hidden_dropout", 0.0)
	set("untie_embeddings_and_output_weights", !c.TieEmbeddings)
	l.setGrid(set)
	l.setExperts(set)
	set("make_vocab_size_divisible_by", DivisibleBy)
	set("padded_vocab_size", l.Padded)
	set("vocab_size", c.Vocab)
	set("params_dtype", torchsave.DTypeOf(dtype))
	set("bf16", dtype == "BF16")
	set("fp16", dtype == "F16")
	set("tokenizer_type", "HuggingFaceTokenizer")
	set("transformer_impl", "transformer_engine")
	set("ckpt_format", "torch")
	set("data_parallel_random_init", false)
	set("iteration", iteration)
	set("consumed_train_samples", 0)
	set("consumed_valid_samples", 0)
	return &torchsave.Object{Class: torchsave.Global{Module: "argparse", Name: "Namespace"}, State: d}
}

func (l *Layout) setGrid(set func(name string, value any)) {
	g := l.Grid
	set("tensor_model_parallel_size", g.TP)
	set("pipeline_model_parallel_size", g.PP)
	set("expert_model_parallel_size", g.EP)
	set("expert_tensor_parallel_size", g.TP)
	if g.VP == 1 {
		set("virtual_pipeline_model_parallel_size", nil)
		set("num_layers_per_virtual_pipeline_stage", nil)
		return
	}
	set("virtual_pipeline_model_parallel_size", g.VP)
	set("num_layers_per_virtual_pipeline_stage", l.Config.Layers/(g.PP*g.VP))
}

func (l *Layout) setExperts(set func(name string, value any)) {
	c := l.Config
	if !slices.Contains(c.Sparse, true) {
		set("num_experts", nil)
		return
	}
	set("num_experts", c.Experts.Count)
	set("moe_router_topk", c.Experts.Top)
	set("moe_ffn_hidden_size", c.Experts.FFN)
	set("moe_router_pre_softmax", !c.Experts.Renorm)
	set("moe_router_score_function", "softmax")
	set("moe_grouped_gemm", false)
	freq := make(torchsave.List, c.Layers)
	for i, sparse := range c.Sparse {
		freq[i] = 0
		if sparse {
			freq[i] = 1
		}
	}
	set("moe_layer_freq", freq)
	if c.Experts.Shared > 0 {
		set("moe_shared_expert_intermediate_size", c.Experts.Shared)
		set("moe_shared_expert_gate", true)
	}
}

// whole returns an integer if f is one: Megatron's rotary_base.
func whole(f float64) any {
	if f == float64(int(f)) {
		return int(f)
	}
	return f
}

// Unsaid lists what the model computes and Megatron's arguments cannot say: training there
// would compute something else.
func Unsaid(c model.Config) (notes []string) {
	if slices.Contains(c.Windowed, true) {
		notes = append(notes, fmt.Sprintf("%d of %d layers see a window of %d positions: the arguments do not say so",
			countOf(c.Windowed), c.Layers, c.Window))
	}
	if slices.Contains(c.NoRope, true) {
		notes = append(notes, fmt.Sprintf("%d of %d layers have no rotary positions: the arguments do not say so",
			countOf(c.NoRope), c.Layers))
	}
	s := c.Rope
	llama := s.Kind == "llama3" && s.LowFactor == scalingLow && s.HighFactor == scalingHigh &&
		s.Original == scalingOriginal
	if s.Kind != "" && !llama {
		notes = append(notes, fmt.Sprintf("rotary positions are scaled (%s): Megatron's arguments have only "+
			"Llama 3.1's scaling from %d positions", s.Kind, scalingOriginal))
	}
	return notes
}

func countOf(list []bool) (n int) {
	for _, v := range list {
		if v {
			n++
		}
	}
	return n
}

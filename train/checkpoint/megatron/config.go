package megatron

import (
	"fmt"
	"strings"

	"exp/train/checkpoint/extent"
	"exp/train/model"
)

// ranks holds the tensors of a checkpoint as the ranks stored them.
type ranks struct {
	path   string
	args   Args
	grid   Grid
	chunks map[Rank][]map[string]extent.Tensor // by chunk and canonical name
	layers [][]int                             // of each chunk, [VP][PP]
}

// Limits of sizes that a loop depends on, as for a config.json.
const (
	maxHeads   = 1 << 12
	maxExperts = 1 << 15 // of all layers
)

// config returns what tensors and arguments tell about the model's architecture.
// vocab is the number of tokens, or 0: the arguments may say it, and without it the
// padded vocabulary stands in. problems list unknown and unsupported parts; the tensors
// can be placed nevertheless if placed is true.
func (r *ranks) config(vocab int) (c model.Config, placed bool, problems []string) {
	problems = r.args.unsupported()
	if r.dims(&c, &problems); c.Heads == 0 || c.KVHeads == 0 || c.Head == 0 || c.Width == 0 {
		return c, false, append(problems, "the arguments do not say how many attention heads there are")
	}
	if c.Heads > maxHeads || c.KVHeads > maxHeads || c.Head > maxHeads || c.KVHeads > c.Heads {
		return c, false, append(problems, fmt.Sprintf("%d heads of %d, %d groups: not a model's", c.Heads, c.Head,
			c.KVHeads))
	}
	if c.Vocab = vocab; c.Vocab == 0 {
		c.Vocab = r.args.integer("vocab_size")
	}
	if padded := r.padded(); c.Vocab == 0 || c.Vocab > padded {
		if c.Vocab > padded {
			problems = append(problems, fmt.Sprintf("a vocabulary of %d tokens, but the embedding has %d rows",
				c.Vocab, padded))
		} else {
			problems = append(problems, fmt.Sprintf("the arguments do not say how many of the embedding's %d "+
				"rows are tokens and how many are padding", padded))
		}
		c.Vocab = padded
	}
	if r.blocks(&c, &problems); c.Experts.Count*c.Layers > maxExperts {
		return c, false, append(problems, fmt.Sprintf("%d experts in %d layers: over the limit of %d", c.Experts.Count,
			c.Layers, maxExperts))
	}
	r.numbers(&c, &problems)
	return c, true, problems
}

// dims reads the sizes of the model from the embedding and the arguments.
func (r *ranks) dims(c *model.Config, problems *[]string) {
	if t, ok := r.chunks[Rank{}][0]["embedding.word_embeddings.weight"]; ok && len(t.Shape) == 2 {
		c.Width = t.Shape[1]
	}
	for _, stages := range r.layers {
		for _, n := range stages {
			c.Layers += n
		}
	}
	c.Heads, c.KVHeads = r.args.integer("num_attention_heads"), r.args.integer("num_query_groups")
	if !r.args.flag("group_query_attention", c.KVHeads > 0) {
		c.KVHeads = c.Heads
	}
	if c.Head = r.args.integer("kv_channels"); c.Head == 0 && c.Heads > 0 {
		c.Head = c.Width / c.Heads
	}
	if n := r.args.integer("num_layers"); n > 0 && n != c.Layers {
		*problems = append(*problems, fmt.Sprintf("num_layers is %d, but the ranks hold %d layers", n, c.Layers))
	}
}

// padded returns the rows of the embedding over all ranks.
func (r *ranks) padded() int {
	n := 0
	for t := range r.grid.TP {
		if e := r.chunks[Rank{TP: t}][0]["embedding.word_embeddings.weight"]; len(e.Shape) > 0 {
			n += e.Shape[0]
		}
	}
	return n
}

// blocks reads from the tensors of the first ranks which biases, norms and experts there
// are.
func (r *ranks) blocks(c *model.Config, problems *[]string) {
	number := 0
	sparse := make([]bool, c.Layers)
	some := false
	for v, stages := range r.layers {
		for p, n := range stages {
			tensors := r.chunks[Rank{PP: p}][v]
			for i := range n {
				sparse[number] = r.block(c, tensors, fmt.Sprintf("decoder.layers.%d.", i))
				some = some || sparse[number]
				number++
			}
		}
	}
	if c.FFN == 0 { // of no layer, but every configuration has one
		c.FFN = max(r.args.integer("ffn_hidden_size"), 1)
	}
	if !some {
		return
	}
	c.Sparse = sparse
	if c.Experts.Top = r.args.integer("moe_router_topk"); c.Experts.Top == 0 {
		*problems = append(*problems, "the arguments do not say how many experts compute a token (moe_router_topk)")
		c.Experts.Top = 1
	}
	c.Experts.Renorm = !r.args.flag("moe_router_pre_softmax", false)
}

// block reads one layer, and reports whether it has experts.
func (r *ranks) block(c *model.Config, tensors map[string]extent.Tensor, layer string) (sparse bool) {
	half := func(name string) int { // the width of a gated block
		if t, ok := tensors[layer+name]; ok && len(t.Shape) > 0 {
			return t.Shape[0] * r.grid.TP / 2
		}
		return 0
	}
	has := func(name string) bool { _, ok := tensors[layer+name]; return ok }
	c.QKVBias = c.QKVBias || has("self_attention.linear_qkv.bias")
	c.QKNorm = c.QKNorm || has("self_attention.q_layernorm.weight")
	c.OutBias = c.OutBias || has("self_attention.linear_proj.bias")
	c.FFNBias = c.FFNBias || has("mlp.linear_fc1.bias")
	c.FFN = max(c.FFN, half("mlp.linear_fc1.weight"))
	router, sparse := tensors[layer+"mlp.router.weight"]
	if sparse && len(router.Shape) > 0 {
		c.Experts.Count = router.Shape[0]
		c.Experts.FFN = half("mlp.experts.local_experts.0.linear_fc1.weight")
		c.Experts.Shared = half("mlp.shared_experts.linear_fc1.weight")
	}
	return sparse
}

// numbers reads the settings that no tensor shows.
func (r *ranks) numbers(c *model.Config, problems *[]string) {
	for _, f := range []struct {
		names []string
		v     *float64
	}{{[]string{"norm_epsilon", "layernorm_epsilon"}, &c.NormEps}, {[]string{"rotary_base"}, &c.RopeTheta}} {
		for _, name := range f.names {
			if v, ok := r.args.number(name); ok && *f.v == 0 {
				*f.v = v
			}
		}
		if *f.v == 0 {
			*problems = append(*problems, "the arguments have no "+strings.Join(f.names, " or "))
		}
	}
	if c.MaxPositions = r.args.integer("max_position_embeddings"); c.MaxPositions == 0 {
		c.MaxPositions = r.args.integer("seq_length")
	}
	if c.MaxPositions == 0 {
		*problems = append(*problems, "the arguments have no max_position_embeddings")
	}
	c.InitStd = 0.02
	if v, ok := r.args.number("init_method_std"); ok {
		c.InitStd = v
	}
	_, output := r.chunks[Rank{PP: r.grid.PP - 1}][r.grid.VP-1][outputLayer]
	c.TieEmbeddings = !r.args.flag("untie_embeddings_and_output_weights", output && r.grid.PP*r.grid.VP == 1)
	if r.args.flag("use_rope_scaling", false) {
		c.Rope = model.RopeScaling{Kind: "llama3", Factor: scalingFactor, LowFactor: scalingLow,
			HighFactor: scalingHigh, Original: scalingOriginal}
		if v, ok := r.args.number("rope_scaling_factor"); ok {
			c.Rope.Factor = v
		}
	}
}

package model

import "fmt"

// LayerNames says how a family of transformers names the tensors of its layers.
type LayerNames string

const (
	LlamaNames    LayerNames = ""
	NemotronNames LayerNames = "nemotron_h"       // each layer has a norm and a mixer
	GraniteNames  LayerNames = "granitemoehybrid" // mamba, shared_mlp, block_sparse_moe
	BambaNames    LayerNames = "bamba"            // mamba, feed_forward
	LFMNames      LayerNames = "lfm2"             // conv, feed_forward, operator_norm
	AfmoeNames    LayerNames = "afmoe"            // pre_mlp_layernorm, router.gate
	NanoNames     LayerNames = "nanochat"         // fc1, fc2, and no norms, which have no weights (nanochat.go)
	NeoXNames     LayerNames = "gpt_neox"         // query_key_value, dense, dense_h_to_4h, dense_4h_to_h
	GPT2Names     LayerNames = "gpt2"             // c_attn, c_proj, c_fc
	StarNames     LayerNames = "starcoder2"       // c_fc, c_proj, of feed-forward blocks alone
	PhiNames      LayerNames = "phi"              // dense, fc1, fc2
	ApertusNames  LayerNames = "apertus"          // attention_layernorm, feedforward_layernorm
	HyperNames    LayerNames = "hyperclovax"      // post_norm1, post_norm2
	VaultNames    LayerNames = "vaultgemma"       // pre_feedforward_layernorm, and no norms after the blocks
	// OlmoHybridNames also says where the norms are: before the blocks of layers with linear attention, after the
	// others' (at).
	OlmoHybridNames LayerNames = "olmo_hybrid"
)

// parts returns how the names of a layer's attention, of a scan or convolution and of a dense feed-forward block
// begin, where the layer's own begin with p.
func (n LayerNames) parts(p string) (attention, scan, dense string) {
	switch n {
	case NemotronNames:
		return p + "mixer.", p + "mixer.", p + "mixer."
	case GraniteNames:
		return p + "self_attn.", p + "mamba.", p + "shared_mlp."
	case BambaNames:
		return p + "self_attn.", p + "mamba.", p + "feed_forward."
	case LFMNames:
		return p + "self_attn.", p + "conv.", p + "feed_forward."
	case NeoXNames:
		return p + "attention.", "", p + "mlp."
	case GPT2Names:
		return p + "attn.", "", p + "mlp."
	}
	return p + "self_attn.", "", p + "mlp."
}

// attentionMaps returns the last parts of the names of attention's maps: of queries, keys and values where they are
// one tensor, and of the output.
func (c Config) attentionMaps() (fused, out string) {
	switch c.Names {
	case LFMNames:
		return "qkv_proj", "out_proj"
	case NeoXNames:
		return "query_key_value", "dense"
	case GPT2Names:
		return "c_attn", "c_proj"
	case PhiNames:
		return "qkv_proj", "dense"
	}
	return "qkv_proj", "o_proj"
}

// feedForwardMaps returns the last parts of the names of a feed-forward block: of its gate and up, which are one
// tensor if up is empty, and of its down.
func (c Config) feedForwardMaps() (gate, up, down string) {
	switch {
	case c.Names == GraniteNames:
		return "input_linear", "", "output_linear"
	case c.Names == NanoNames, c.Names == PhiNames:
		return "fc1", "", "fc2"
	case c.Names == NeoXNames:
		return "dense_h_to_4h", "", "dense_4h_to_h"
	case c.Names == GPT2Names, c.Names == StarNames:
		return "c_fc", "", "c_proj"
	case c.Gate.Factors() == 1:
		return "up_proj", "", "down_proj"
	case c.Fused || c.FusedFFN:
		return "gate_up_proj", "", "down_proj"
	}
	_, gate, up, down = c.FeedForwardNames("")
	return gate, up, down
}

// sparseNames returns how names in a sparse layer begin: of its experts, its router, the shared expert's tensors,
// if that has no gate, and the bias that chooses experts.
func (c Config) sparseNames(p string) (experts, router, shared, correction string) {
	names := c.Experts.names()
	begin, _, _, _ := c.FeedForwardNames(p)
	switch {
	case c.Names == NemotronNames:
		begin = p + "mixer."
	case c.Names == GraniteNames:
		begin = p + "block_sparse_moe."
		return begin, begin + "router.layer", p + "shared_mlp.", begin + "router.layer." + correctionPart
	case c.Names == LFMNames:
		names.correction = "expert_bias"
	case c.Names == AfmoeNames:
		names.router, names.correction = "router.gate", "expert_bias"
	case c.Experts.Beside:
		begin = p
	}
	return begin, begin + names.router, begin + names.shared + ".", begin + names.correction
}

// mixes reports whether layer l has attention, linear or not; feeds reports whether it has a feed-forward block.
func (c Config) mixes(l int) bool { return c.NoMixer == nil || !c.NoMixer[l] }

func (c Config) feeds(l int) bool { return c.NoFFN == nil || !c.NoFFN[l] }

// some reports whether a layer is as f says.
func (c Config) some(f func(l int) bool) bool {
	for l := range c.Layers {
		if f(l) {
			return true
		}
	}
	return false
}

// hasBoth reports whether any layer has attention and a feed-forward block.
func (c Config) hasBoth() bool { return c.some(func(l int) bool { return c.mixes(l) && c.feeds(l) }) }

// validateNames reports settings that no family has together.
func (c Config) validateNames() (errs []error) {
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("model: "+format, args...)) }
	switch c.Names {
	case LlamaNames, NemotronNames, GraniteNames, BambaNames, LFMNames, OlmoHybridNames, AfmoeNames,
		NanoNames, NeoXNames, GPT2Names, StarNames, ApertusNames, PhiNames, HyperNames, VaultNames:
	default:
		bad("tensors cannot have the names of %q", string(c.Names))
	}
	if (c.NoMixer != nil || c.NoFFN != nil) && c.Names != NemotronNames {
		bad("only the layers of Nemotron-H can lack attention or a feed-forward block")
	}
	for l := range min(len(c.NoMixer), len(c.NoFFN)) {
		if c.NoMixer[l] && c.NoFFN[l] {
			bad("layer %d has neither attention nor a feed-forward block", l)
		}
	}
	single := len(c.NoMixer) == c.Layers && len(c.NoFFN) == c.Layers && !c.hasBoth()
	if c.Names == NemotronNames && (c.PostNorms || c.latent() || !single) {
		bad("layers of Nemotron-H have one norm and either attention or a feed-forward block")
	}
	if c.Delta.Scan && c.Names == LlamaNames {
		bad("Mamba-2 layers have names of their own")
	}
	if (c.Delta.Conv || c.Delta.Scan) && c.Delta.Conv != (c.Names == LFMNames) {
		bad("gated convolutions and Mamba-2 layers have different names")
	}
	if c.Names == LFMNames && (c.PostNorms || c.latent() || c.OutputGate || c.Fused || c.FusedFFN ||
		c.Gate.Factors() == 1) {
		bad("layers of LFM2 have no norms after the blocks, no output gates and no fused or ungated maps")
	}
	if c.Names == OlmoHybridNames && (!c.PostNorms || !c.NoPreNorms || !c.hasLinear() || c.Delta.ByKey ||
		c.Delta.Scan || c.OutputGate || c.latent()) {
		bad("layers of OLMo Hybrid have linear attention, or plain attention with norms after the blocks alone")
	}
	if c.Names == HyperNames && (!c.PostNorms || c.NoPreNorms) || c.Names == VaultNames && c.PostNorms {
		bad("layers of HyperCLOVA X have norms before and after the blocks, of VaultGemma before them alone")
	}
	fused := c.Fused && c.Names != NeoXNames && c.Names != GPT2Names
	if c.Gate.Factors() == 1 && (fused || c.FusedFFN || c.Experts.Bias) {
		bad("a feed-forward block without gate has one map before its activation")
	}
	return errs
}

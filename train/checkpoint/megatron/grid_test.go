package megatron

import (
	"fmt"
	"strings"
	"testing"

	"exp/kernels"
	"exp/train/model"
)

// What Megatron's layout or arguments cannot say is refused before anything is written.
func TestEvenRefuses(t *testing.T) {
	plain := model.Config{Vocab: 16, Layers: 2, Width: 8, Heads: 2, KVHeads: 2, Head: 4, FFN: 8}
	for _, tt := range []struct {
		name   string
		change func(c *model.Config)
		want   string
	}{
		{"plain", func(*model.Config) {}, ""},
		{"norms after blocks", func(c *model.Config) { c.PostNorms = true }, "one plain norm before each"},
		{"output gates", func(c *model.Config) { c.OutputGate = true }, "plain attention"},
		{"a map of gates", func(c *model.Config) { c.Names, c.GateMap = model.AfmoeNames, true }, "gates of the attention's output"},
		{"Mamba-2", func(c *model.Config) { c.Names = model.GraniteNames }, "hybrids with Mamba-2 layers or short convolutions have no place"},
		{"norms without weights", func(c *model.Config) { c.Names = model.NanoNames }, "nanochat, whose norms have no weights"},
		{"latent attention", func(c *model.Config) { c.Latent.Rank = 4 }, "latent attention or DeepSeek's experts"},
		{"the router's bias", func(c *model.Config) { c.Experts.Corrected = true }, "latent attention or DeepSeek's experts"},
		{"sinks", func(c *model.Config) { c.Sinks = true }, "attention sinks"},
		{"wide norms", func(c *model.Config) { c.QKNorm, c.WideQKNorm = true, true }, "norms all heads together"},
		{"late norms", func(c *model.Config) { c.QKNorm, c.LateQKNorm = true, true }, "after that"},
		{"neighbours", func(c *model.Config) { c.Interleaved = true }, "neighbouring channels"},
		{"scaled embeddings", func(c *model.Config) { c.EmbedScale = 12 }, "factors of its own"},
		{"scaled scores", func(c *model.Config) { c.QueryScale = 0.1 }, "factors of its own"},
		{"scaled blocks", func(c *model.Config) { c.ResidualScale = 0.2 }, "factors of its own"},
		{"divided logits", func(c *model.Config) { c.LogitDivisor = 8 }, "factors of its own"},
		{"some biases", func(c *model.Config) { c.OutBias = true }, "biases on some others"},
		{"another gate", func(c *model.Config) { c.Gate = kernels.GELUTanh }, "gated by another function"},
	} {
		c := plain
		tt.change(&c)
		_, err := Even(c, Grid{TP: 1, PP: 1, VP: 1, EP: 1})
		if text := fmt.Sprint(err); tt.want == "" && err != nil || !strings.Contains(text, tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

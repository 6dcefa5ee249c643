package model

import (
	"slices"
	"strings"
	"testing"

	"exp/kernels"
	"exp/kernels/ref"
)

// No norm is a tensor; LoRA's targets have nanochat's names.
func TestNamesOfNanochat(t *testing.T) {
	c := variants["nanochat"]
	tensors, _ := Layout(c, Heads{LM: true})
	var got []string
	for _, x := range tensors {
		if !strings.HasPrefix(x.Name, "model.layers.1.") {
			got = append(got, strings.TrimPrefix(x.Name, "model.layers.0."))
		}
	}
	want := []string{"model.embed_tokens.weight", "self_attn.q_proj.weight", "self_attn.k_proj.weight",
		"self_attn.v_proj.weight", "self_attn.o_proj.weight", "mlp.fc1.weight", "mlp.fc2.weight", "lm_head.weight"}
	if !slices.Equal(got, want) {
		t.Errorf("tensors are\n%q, want\n%q", got, want)
	}
	targets := []string{"q_proj", "k_proj", "v_proj", "o_proj", "fc1", "fc2"}
	if got := c.AdapterTargets(); !slices.Equal(got, targets) {
		t.Errorf("adapters can be on %q, want %q", got, targets)
	}
}

// A norm takes any factor of the embeddings away, and positions count: they turn the other way than Llama's.
func TestNanochatNormsAndTurns(t *testing.T) {
	c := variants["nanochat"]
	c.NormEps = 1e-12
	be, b := ref.New[float64](), toyBatch(c.Vocab, 8)
	compute := func(c Config, scale float32) []float32 {
		m, err := New(be, c, Heads{LM: true}, false)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(m.Close)
		for _, x := range m.Tensors() {
			v := testInitial(x, c)
			for i := range v {
				if x.Name == embedName {
					v[i] *= scale
				}
			}
			m.Set(x, 0, kernels.Host(v))
		}
		m.Refresh()
		return logProbs(t, be, m, b)
	}
	one, ten := compute(c, 1), compute(c, 10)
	for i := range one {
		if d := one[i] - ten[i]; d > 1e-6 || d < -1e-6 {
			t.Errorf("log-prob %d is %v, of ten times the embeddings %v", i, one[i], ten[i])
		}
	}
	nano, _ := c.Frequencies(c.RopeTheta, c.Rope, 8)
	c.Names = LlamaNames
	llama, _ := c.Frequencies(c.RopeTheta, c.Rope, 8)
	for i := range nano {
		if nano[i] != -llama[i] {
			t.Errorf("frequency %d is %v, Llama's is %v", i, nano[i], llama[i])
		}
	}
}

func TestNanochatValidation(t *testing.T) {
	for _, tt := range []struct {
		change func(c *Config)
		want   string
	}{
		{func(c *Config) { c.UnitOffset = false }, "norms of nanochat add 1 to zeros"},
		{func(c *Config) { c.LateQKNorm = false }, "after the rotary positions"},
		{func(c *Config) { c.Gate = kernels.SiLU }, "have no gates, biases or experts"},
		{func(c *Config) { c.FFNBias = true }, "have no gates, biases or experts"},
		{func(c *Config) { c.Sinks = true }, "layers of nanochat have plain attention"},
		{func(c *Config) { c.ResidualScale = 2 }, "no scale of the residual stream"},
	} {
		c := variants["nanochat"]
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		tt.change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error %v, want %q", err, tt.want)
		}
	}
}

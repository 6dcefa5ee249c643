package model

import (
	"slices"
	"strings"
	"testing"

	"exp/kernels"
	"exp/kernels/ref"
)

// A gate whose map is 0 halves what attention returns: so does an output projection of half the size.
func TestGateOfNothingHalves(t *testing.T) {
	c := variants["afmoe"]
	c.PostNorms, c.Sparse, c.Experts = false, nil, Experts{} // norms would hide a factor
	plain := c
	plain.GateMap, plain.Names = false, LlamaNames
	be := ref.New[float64]()
	b := toyBatch(c.Vocab, 8)
	gated := &Model{Config: c, Heads: Heads{LM: true}, be: be} // New would refuse AFMoE without its norms
	if err := gated.allocate(); err != nil {
		t.Fatal(err)
	}
	other, err := New(be, plain, Heads{LM: true}, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []*Model{gated, other} {
		for _, x := range m.Tensors() {
			v := testInitial(x, c)
			name := strings.Replace(x.Name, "pre_mlp", "post_attention", 1)
			switch {
			case strings.HasSuffix(name, "self_attn.gate_proj.weight"):
				clear(v)
			case strings.HasSuffix(name, "o_proj.weight") && m == other:
				for i := range v {
					v[i] /= 2
				}
			}
			m.Set(x, 0, kernels.Host(v))
		}
		m.Refresh()
	}
	got, want := logProbs(t, be, gated, b), logProbs(t, be, other, b)
	if at := differentBit(got, want); at >= 0 {
		t.Errorf("log-prob %d is %v, want %v", at, got[at], want[at])
	}
}

func TestGateMapValidation(t *testing.T) {
	for _, tt := range []struct {
		change func(c *Config)
		want   string
	}{
		{func(c *Config) { c.GateMap = false }, "layers with AFMoE's names, and no others"},
		{func(c *Config) { c.Names = LlamaNames }, "layers with AFMoE's names, and no others"},
		{func(c *Config) { c.OutputGate = true }, "not supported with gates next to queries"},
		{func(c *Config) { c.PostNorms = false }, "norms before and after their blocks"},
		{func(c *Config) { c.LateQKNorm = true }, "norms before and after their blocks"},
		{func(c *Config) { c.Experts.Ungated = false }, "a shared expert without a gate"},
		{func(c *Config) { c.Experts.Names = HunyuanThree }, "experts of AFMoE have names of their own"},
	} {
		c := variants["afmoe"]
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		tt.change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error %v, want %q", err, tt.want)
		}
	}
}

// A sparse layer has the published names; LoRA's targets include the map of gates.
func TestNamesOfAfmoe(t *testing.T) {
	c := variants["afmoe"]
	c.Experts.Count = 2
	tensors, _ := Layout(c, Heads{LM: true})
	const p = "model.layers.1."
	var got []string
	for _, x := range tensors {
		if name, ok := strings.CutPrefix(x.Name, p); ok {
			got = append(got, strings.TrimSuffix(name, ".weight"))
		}
	}
	want := []string{"input_layernorm", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.q_norm",
		"self_attn.k_norm", "self_attn.gate_proj", "self_attn.o_proj", "post_attention_layernorm", "pre_mlp_layernorm",
		"mlp.router.gate", "mlp.expert_bias", "mlp.experts.0.gate_proj", "mlp.experts.0.up_proj", "mlp.experts.0.down_proj",
		"mlp.experts.1.gate_proj", "mlp.experts.1.up_proj", "mlp.experts.1.down_proj", "mlp.shared_experts.gate_proj",
		"mlp.shared_experts.up_proj", "mlp.shared_experts.down_proj", "post_mlp_layernorm"}
	if !slices.Equal(got, want) {
		t.Errorf("tensors of a layer are\n%q, want\n%q", got, want)
	}
	targets := []string{"q_proj", "k_proj", "v_proj", "gate_proj", "o_proj", "up_proj", "down_proj"}
	if got := c.AdapterTargets(); !slices.Equal(got, targets) {
		t.Errorf("adapters can be on %q, want %q", got, targets)
	}
	c.Sparse = []bool{true, true}
	for target, want := range map[string]bool{"gate_proj": true, "q_proj": false} {
		if got := (Adapters{Targets: []string{target}}).BesideExperts(c); got != want {
			t.Errorf("adapters on %s have a name of the experts' maps: %v", target, got)
		}
	}
}

package model

import (
	"slices"
	"strings"
	"testing"

	"exp/kernels/ref"
)

// Which norms have weights and biases, and which targets adapters have.
func TestLayerNormTensors(t *testing.T) {
	for _, tt := range []struct {
		name  string
		norms []string // without "model.layers.0."
		final []string
	}{
		{"gpt-neox", []string{"input_layernorm.weight", "input_layernorm.bias", "post_attention_layernorm.weight",
			"post_attention_layernorm.bias"}, []string{"model.norm.weight", "model.norm.bias"}},
		{"cohere2", []string{"input_layernorm.weight"}, []string{"model.norm.weight"}},
		{"stablelm", []string{"input_layernorm.weight", "input_layernorm.bias"}, []string{"model.norm.weight", "model.norm.bias"}},
		{"olmo", nil, nil},
	} {
		var norms, final []string
		tensors, _ := Layout(variants[tt.name], Heads{LM: true})
		for _, x := range tensors {
			if rest, ok := strings.CutPrefix(x.Name, "model.layers.0."); ok && strings.Contains(rest, "norm.") {
				norms = append(norms, rest)
			} else if strings.HasPrefix(x.Name, "model.norm.") {
				final = append(final, x.Name)
			}
		}
		if !slices.Equal(norms, tt.norms) || !slices.Equal(final, tt.final) {
			t.Errorf("%s: norms are %q and %q, want %q and %q", tt.name, norms, final, tt.norms, tt.final)
		}
	}
	if got := variants["gpt-neox"].AdapterTargets(); !slices.Equal(got, []string{"query_key_value", "dense", "dense_h_to_4h",
		"dense_4h_to_h"}) {
		t.Errorf("adapters of GPT-NeoX can be on %q", got)
	}
	if got := variants["gpt2"].AdapterTargets(); !slices.Equal(got, []string{"c_attn", "c_proj", "c_fc"}) {
		t.Errorf("adapters of GPT-2 can be on %q", got)
	}
}

// A table of positions is an embedding: no optimizer for matrices that map activations may take it.
func TestPositionsAreNotHidden(t *testing.T) {
	tensors, _ := Layout(variants["gpt2"], Heads{LM: true})
	found := false
	for _, x := range tensors {
		if x.Name == positionTable {
			if found = true; x.Hidden() || x.vector() {
				t.Errorf("%s: hidden %v, vector %v", x.Name, x.Hidden(), x.vector())
			}
		}
	}
	if !found {
		t.Error("GPT-2 has no table of positions")
	}
}

// GPT-2's log-probs depend on the table of positions, and only on rows of positions that there are.
func TestPositionsCount(t *testing.T) {
	c := variants["gpt2"]
	be := ref.New[float32]()
	b := toyBatch(c.Vocab, 8)
	m, err := New(be, c, Heads{LM: true}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	initialised(m)
	before := logProbs(t, be, m, b)
	be.Zero(m.View(positionTable).Slice(9*c.Width, 12*c.Width)) // the longest sequence has 9 tokens
	if at := differentBit(logProbs(t, be, m, b), before); at >= 0 {
		t.Errorf("rows beyond all sequences change log-prob %d", at)
	}
	be.Zero(m.View(positionTable).Slice(0, c.Width))
	if at := differentBit(logProbs(t, be, m, b), before); at < 0 {
		t.Error("the first position changes nothing")
	}
}

func TestLayerNormRefuses(t *testing.T) {
	for _, tt := range []struct {
		change func(c *Config)
		want   string
	}{
		{func(c *Config) {}, ""},
		{func(c *Config) { c.Norm = "batch" }, `"batch" is not a kind of norm`},
		{func(c *Config) { c.Branches = "three" }, `cannot join the residual stream as "three"`},
		{func(c *Config) { c.QKNorm = true }, "LayerNorm, blocks side by side and learned positions go with plain attention"},
		{func(c *Config) { c.PostNorms = true }, "without norms after them"},
		{func(c *Config) { c.ResidualScale = 2 }, "LayerNorm, blocks side by side"},
		{func(c *Config) { c.Learned = true }, "a model with learned positions has no rotary ones"},
	} {
		c := variants["gpt-neox"]
		tt.change(&c)
		err := c.Validate()
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("got %v, want %q", err, tt.want)
		}
	}
}

// A norm that multiplies by 1 + weight begins with weights of 0, others with 1; biases are 0.
func TestInitialLayerNorms(t *testing.T) {
	for name, weight := range map[string]float32{"nemotron": 0, "gpt-neox": 1} {
		tensors, _ := Layout(variants[name], Heads{LM: true})
		norms := 0
		for _, x := range tensors {
			want := weight
			if strings.HasSuffix(x.Name, "norm.bias") {
				want = 0
			} else if !strings.HasSuffix(x.Name, "norm.weight") {
				continue
			}
			norms++
			if got := initial(x, variants[name], 7); slices.ContainsFunc(got, func(v float32) bool { return v != want }) {
				t.Errorf("%s: %s begins as %v, want %g", name, x.Name, got, want)
			}
		}
		if norms != 10 {
			t.Errorf("%s has %d weights and biases of norms", name, norms)
		}
	}
}

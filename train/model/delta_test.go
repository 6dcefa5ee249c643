package model

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"exp/kernels"
	"exp/kernels/ref"
)

// The architecture of a model without linear attention reads as it did before there was any: digests of runs are
// made from it.
func TestPlainArchitecturesKeepTheirText(t *testing.T) {
	text, err := json.Marshal(variants["qwen3"])
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"Linear", "Delta", "OutputGate", "Names", "NoMixer", "NoFFN", "DoubleWrites", "Parallel",
		"Multipliers", "ScanNorm", "ScanBias"} {
		if strings.Contains(string(text), key) {
			t.Errorf("%s has %s", text, key)
		}
	}
	text, err = json.Marshal(variants["qwen3-next"].Delta)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"Keys":2,"Values":4,"KeyDim":5,"ValueDim":3,"Taps":3,"ByKey":true}`
	if string(text) != want {
		t.Errorf("Gated DeltaNet reads %s, want %s", text, want)
	}
}

func TestDeltaValidation(t *testing.T) {
	for _, tt := range []struct {
		change func(c *Config)
		want   string
	}{
		{func(c *Config) { c.Delta.Values = 3; c.Delta.Keys = 2 }, "3 value heads, must be a multiple of its 2 key heads"},
		{func(c *Config) { c.Delta.KeyDim = 0 }, "heads of 0 and 2 channels"},
		{func(c *Config) { c.Delta.Taps = 17 }, "17 taps, must be from 1 to 16"},
		{func(c *Config) { c.QKVBias = true }, "not supported with norms after the blocks, biases"},
		{func(c *Config) { c.Linear = []bool{true} }, "1 entries say which layers are with linear attention"},
	} {
		c := variants["qwen3.5"]
		tt.change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error %v, want %q", err, tt.want)
		}
	}
}

// Layers of OLMo Hybrid have norms where they are, and linear attention of one kind.
func TestOlmoHybridValidation(t *testing.T) {
	for _, tt := range []struct {
		change func(c *Config)
		want   string
	}{
		{func(c *Config) { c.NoPreNorms = false }, "norms after the blocks alone"},
		{func(c *Config) { c.Linear = nil }, "layers of OLMo Hybrid have linear attention"},
		{func(c *Config) { c.Delta.ByKey = true }, "layers of OLMo Hybrid"},
		{func(c *Config) { c.OutputGate = true }, "layers of OLMo Hybrid"},
		{func(c *Config) { c.OutBias = true }, "not supported with norms after the blocks, biases"},
		{func(c *Config) { c.Names = LlamaNames }, "not supported with norms after the blocks"},
		{func(c *Config) { c.DeltaEps = -1 }, "an eps of its own, which is -1"},
	} {
		c := variants["olmo-hybrid"]
		tt.change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error %v, want %q", err, tt.want)
		}
	}
	for _, name := range []string{"bamba", "lfm2"} {
		c := variants[name]
		c.DoubleWrites = true
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "only Gated DeltaNet can write twice as much") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// A layer's norms are before its blocks if it has linear attention, else after them.
func TestNormsOfOlmoHybrid(t *testing.T) {
	tensors, _ := Layout(variants["olmo-hybrid"], Heads{LM: true})
	var norms []string
	for _, x := range tensors {
		if name, ok := strings.CutPrefix(x.Name, "model.layers."); ok && strings.HasSuffix(name, "norm.weight") {
			norms = append(norms, strings.TrimSuffix(name, ".weight"))
		}
	}
	linear := func(l string) []string {
		return []string{l + ".attention_layer_norm", l + ".linear_attn.o_norm", l + ".feedforward_layer_norm"}
	}
	want := slices.Concat(linear("0"), []string{"1.self_attn.q_norm", "1.self_attn.k_norm", "1.post_attention_layernorm",
		"1.post_feedforward_layernorm"}, linear("2"))
	if diff := cmp.Diff(want, norms); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Gated short convolutions have LFM2's names, and no keys.
func TestConvValidation(t *testing.T) {
	for _, tt := range []struct {
		change func(c *Config)
		want   string
	}{
		{func(c *Config) { c.Delta.Taps = 0 }, "0 taps, must be from 1 to 16"},
		{func(c *Config) { c.Delta.Keys = 1 }, "a gated convolution has 6 channels and no keys or states"},
		{func(c *Config) { c.Delta.ValueDim = 0 }, "a gated convolution has 0 channels"},
		{func(c *Config) { c.Names = BambaNames }, "have different names"},
		{func(c *Config) { c.Delta = variants["bamba"].Delta }, "have different names"},
		{func(c *Config) { c.OutBias = true }, "not supported with norms after the blocks, biases"},
		{func(c *Config) { c.OutputGate = true }, "layers of LFM2 have no norms after the blocks, no output gates"},
	} {
		c := variants["lfm2"]
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		tt.change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error %v, want %q", err, tt.want)
		}
	}
}

// The initial tensors of linear attention are transformers': A_log is the logarithm of a uniform number up to 16.
func TestDeltaInitial(t *testing.T) {
	be := ref.New[float64]()
	m, err := New(be, variants["qwen3.5"], Heads{LM: true}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	m.Init(testSeed)
	const p = "model.layers.0.linear_attn."
	conv, logs, bias, norm := p+"conv1d.weight", p+"A_log", p+"dt_bias", p+"norm.weight"
	for _, v := range kernels.Elems[float64](m.View(logs)) {
		if a := math.Exp(v); a < 0.01 || a > 16 {
			t.Errorf("A_log is the logarithm of %g", a)
		}
	}
	for _, name := range []string{bias, norm} {
		for _, v := range kernels.Elems[float64](m.View(name)) {
			if v != 1 {
				t.Errorf("%s is %g", name, v)
			}
		}
	}
	sum := 0.0
	for _, v := range kernels.Elems[float64](m.View(conv)) {
		sum += v * v
	}
	if std := math.Sqrt(sum / float64(m.View(conv).Len())); std < 0.3 || std > 1 {
		t.Errorf("the convolution has standard deviation %g, want about %g", std, m.Config.InitStd)
	}
}

// Initial values of OLMo Hybrid have names of their own, and time steps from 0.001 to 0.1.
func TestOlmoHybridInitial(t *testing.T) {
	be := ref.New[float64]()
	m, err := New(be, variants["olmo-hybrid"], Heads{LM: true}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	m.Init(testSeed)
	const p = "model.layers.0.linear_attn."
	seen := map[float64]bool{}
	for _, v := range kernels.Elems[float64](m.View(p + "dt_bias")) {
		dt := ref.Softplus(v)
		if seen[dt] = true; dt < 0.000999 || dt > 0.1001 {
			t.Errorf("dt_bias %g is of a time step of %g", v, dt)
		}
	}
	if len(seen) != 4 {
		t.Errorf("time steps are %v", seen)
	}
	if got := kernels.Elems[float64](m.View(p + "o_norm.weight")); cmp.Diff([]float64{1, 1, 1, 1, 1}, got) != "" {
		t.Errorf("o_norm is %v", got)
	}
	for name, n := range map[string]int{"q_conv1d.weight": 18, "k_conv1d.weight": 18, "v_conv1d.weight": 60} {
		got := kernels.Elems[float64](m.View(p + name))
		if len(got) != n || got[0] == 0 {
			t.Errorf("%s is %v", name, got)
		}
	}
}

// Initial values of Mamba-2: A is 1, 2, 3 and so on.
func TestScanInitial(t *testing.T) {
	be := ref.New[float64]()
	m, err := New(be, variants["granite hybrid"], Heads{LM: true}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	m.Init(testSeed)
	const p = "model.layers.0.mamba."
	for name, want := range map[string][]float64{"A_log": {0, math.Ln2}, "dt_bias": {1, 1}, "D": {1, 1},
		"norm.weight": {1, 1, 1, 1}, "conv1d.bias": make([]float64, 10)} {
		got := kernels.Elems[float64](m.View(p + name))
		if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-6)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if kernels.Elems[float64](m.View(p + "conv1d.weight"))[0] == 0 {
		t.Error("the convolution has weights 0")
	}
}

// The work of a token does not depend on its position in a layer of linear attention.
func TestDeltaFLOPs(t *testing.T) {
	c := variants["qwen3.5"]
	c.Linear = []bool{true, true}
	if one, many := c.ForwardFLOPs(1, 0), c.ForwardFLOPs(10, 0); many != 10*one {
		t.Errorf("10 tokens take %g operations, one %g", many, one)
	}
}

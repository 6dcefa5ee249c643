package checkpoint

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"exp/kernels"
	"exp/train/model"
)

// goldenDir is where tiny models in the layouts of published ones lie, if at all.
const goldenDir = "../../../shared/data/models/hf"

// goldenFolders returns the folders of the tiny models; none where they are not to be had.
func goldenFolders(t testing.TB) []string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(goldenDir, "*", configFile))
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range dirs {
		dirs[i] = filepath.Dir(d)
	}
	return dirs
}

// goldenFolder returns the folder of one; the test is skipped where it is not to be had.
func goldenFolder(t testing.TB, name string) string {
	t.Helper()
	dir := filepath.Join(goldenDir, name)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("the golden models are not here: %v", err)
	}
	return dir
}

// wantedConfigs are the architectures of the golden models.
func wantedConfigs() map[string]model.Config {
	base := model.Config{Vocab: 509, Layers: 2, Width: 64, Heads: 4, KVHeads: 2, Head: 16, FFN: 144, RopeTheta: 1e4, NormEps: 1e-5, MaxPositions: 4096, InitStd: 0.02}
	with := func(change ...func(c *model.Config)) model.Config {
		c := base
		for _, f := range change {
			f(&c)
		}
		return c
	}
	llama3 := func(factor float64) func(c *model.Config) {
		return func(c *model.Config) {
			c.RopeTheta = 5e5
			c.Rope = model.RopeScaling{Kind: "llama3", Factor: factor, Original: 32, LowFactor: 1, HighFactor: 4}
		}
	}
	qwen2 := func(c *model.Config) { c.QKVBias, c.RopeTheta, c.NormEps, c.MaxPositions = true, 1e6, 1e-6, 32768 }
	qwen3 := func(c *model.Config) {
		c.QKNorm, c.Head, c.RopeTheta, c.NormEps, c.MaxPositions = true, 32, 1e6, 1e-6, 40960
	}
	tied := func(c *model.Config) { c.TieEmbeddings = true }
	window := func(w int, in ...bool) func(c *model.Config) {
		return func(c *model.Config) { c.Window, c.Windowed = w, in }
	}
	gemma := func(c *model.Config) {
		c.UnitOffset, c.PostNorms, c.EmbedScale, c.QueryScale, c.Gate = true, true, 8, math.Pow(40, -0.5), kernels.GELUTanh
		c.TieEmbeddings, c.NormEps = true, 1e-6
	}
	phi3 := func(c *model.Config) { c.Fused = true }
	return map[string]model.Config{
		"llama2":            with(func(c *model.Config) { c.KVHeads = 4 }),
		"llama3.1-rope":     with(llama3(8)),
		"llama3.2-tied":     with(llama3(32), tied, func(c *model.Config) { c.Head = 32 }),
		"llama-bias":        with(func(c *model.Config) { c.QKVBias, c.OutBias, c.FFNBias, c.RopeTheta = true, true, true, 5e5 }),
		"llama-linear-rope": with(func(c *model.Config) { c.Rope = model.RopeScaling{Kind: "linear", Factor: 4} }),
		"llama-dynamic-rope": with(func(c *model.Config) {
			c.Rope, c.MaxPositions = model.RopeScaling{Kind: "dynamic", Factor: 2, Original: 32}, 32
		}),
		"qwen2-tied":   with(qwen2, tied),
		"qwen2.5":      with(qwen2),
		"qwen2-window": with(qwen2, window(10, false, true)),
		"qwen2.5-yarn": with(qwen2, func(c *model.Config) {
			c.MaxPositions = 128
			c.Rope = model.RopeScaling{Kind: "yarn", Factor: 4, Original: 32, BetaFast: 32, BetaSlow: 1, Attention: 0.1*math.Log(4) + 1}
		}),
		"qwen3":          with(qwen3, tied),
		"qwen3-v5":       with(qwen3, tied),
		"mistral-window": with(window(16, true, true), func(c *model.Config) { c.MaxPositions = 32768 }),
		"qwen3-moe": with(qwen3, func(c *model.Config) {
			c.Experts, c.Sparse = model.Experts{Count: 4, Top: 2, FFN: 40, Renorm: true}, []bool{true, true}
		}),
		"qwen2-moe": with(qwen2, func(c *model.Config) {
			c.Experts, c.Sparse = model.Experts{Count: 4, Top: 2, FFN: 40, Shared: 72}, []bool{false, true}
		}),
		"gemma2": with(gemma, window(12, true, false), func(c *model.Config) { c.ScoreCap, c.LogitCap, c.MaxPositions = 4, 6, 8192 }),
		"gemma3": with(gemma, window(12, true, true, false), func(c *model.Config) {
			c.Layers, c.QKNorm, c.RopeTheta, c.LocalTheta, c.MaxPositions = 3, true, 1e6, 1e4, 32768
		}),
		"phi3": with(phi3, window(2047, true, true)),
		"phi3-longrope": with(phi3, window(2047, true, true), func(c *model.Config) {
			c.MaxPositions = 32
			c.Rope = model.RopeScaling{Kind: "longrope", Factor: 4, Original: 32, Attention: math.Sqrt(1 + math.Log(4)/math.Log(32)),
				Short: []float64{1, 1.05, 1.1, 1.15, 1.2, 1.25, 1.3, 1.35},
				Long:  []float64{1, 1.4, 1.8, 2.2, 2.6, 3.0, 3.4000000000000004, 3.8000000000000003}}
		}),
	}
}

func TestReadConfigOfGoldenModels(t *testing.T) {
	for name, want := range wantedConfigs() {
		t.Run(name, func(t *testing.T) {
			got, err := ReadConfig(goldenFolder(t, name))
			if err != nil {
				t.Fatal(err)
			}
			// √C, ln s and the like are computed here in another way than there.
			if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-15, 0)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Each is written as its own class, and with keys of its source changed.
func TestWrittenConfigsOfGoldenModels(t *testing.T) {
	for name := range wantedConfigs() {
		t.Run(name, func(t *testing.T) {
			dir := goldenFolder(t, name)
			source := readFile(t, filepath.Join(dir, configFile))
			c, err := ReadConfig(dir)
			if err != nil {
				t.Fatal(err)
			}
			for what, write := range map[string]func() ([]byte, error){
				"new":  func() ([]byte, error) { return configJSON(c, BF16, []int32{7}) },
				"kept": func() ([]byte, error) { return patchConfig(source, c, BF16, nil) },
			} {
				raw, err := write()
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				got, err := ParseConfig(what, raw)
				if diff := cmp.Diff(c, got); err != nil || diff != "" {
					t.Errorf("%s: %v (-want +got):\n%s", what, err, diff)
				}
				r := settings{}
				if _, r.values, err = asMap(raw); err != nil {
					t.Fatal(err)
				}
				for _, key := range []string{"rope_theta", "rope_parameters", "torch_dtype", "dtype"} {
					if !r.has(key) {
						t.Errorf("%s: %s is missing", what, key)
					}
				}
			}
		})
	}
}

// asMap returns the members of a JSON object in order and by name.
func asMap(raw []byte) (keys []string, byName map[string]json.RawMessage, err error) {
	keys, values, err := members(raw)
	byName = map[string]json.RawMessage{}
	for i, key := range keys {
		byName[key] = values[i]
	}
	return keys, byName, err
}

// A file that is kept loses no key, and only the keys change that must.
func TestPatchConfigKeepsTheRest(t *testing.T) {
	old := []byte(`{"architectures": ["Qwen2ForCausalLM"], "zebra": {"b": 1.50, "a": "é<"}, "vocab_size": 11, "hidden_size": 8, "num_hidden_layers": 1,
"num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 4, "torch_dtype": "bfloat16", "rope_theta": 1000000.0}`)
	c, err := ParseConfig("old", old)
	if err != nil {
		t.Fatal(err)
	}
	got, err := patchConfig(old, c, F32, []int32{5})
	if err != nil {
		t.Fatal(err)
	}
	want := `{
  "architectures": [
    "Qwen2ForCausalLM"
  ],
  "zebra": {
    "b": 1.50,
    "a": "é<"
  },
  "vocab_size": 11,
  "hidden_size": 8,
  "num_hidden_layers": 1,
  "num_attention_heads": 2,
  "num_key_value_heads": 1,
  "intermediate_size": 4,
  "torch_dtype": "float32",
  "rope_theta": 1000000.0,
  "dtype": "float32",
  "rope_parameters": {
    "rope_theta": 1000000.0,
    "rope_type": "default"
  }
}
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

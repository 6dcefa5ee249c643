package checkpoint

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"exp/train/model"
)

// eachLFM is eachHybrid for LFM2.
func eachLFM(t *testing.T, f func(t *testing.T, x family, c model.Config, dir string, tokens []int32)) {
	eachHybrid(t, func(t *testing.T, x family, c model.Config, dir string, tokens []int32) {
		if c.Names == model.LFMNames {
			f(t, x, c, dir, tokens)
		}
	})
}

// Published folders have embedding_norm, and a state dict of transformers 5 has the experts of a layer together.
func TestStateOfLFM(t *testing.T) {
	eachLFM(t, func(t *testing.T, x family, c model.Config, dir string, tokens []int32) {
		var list []Source
		stacks := map[string][]Source{}
		parts := map[string]string{"w1.weight": "gate_up_proj", "w3.weight": "gate_up_proj", "w2.weight": "down_proj"}
		for _, w := range waves(c) { // by name, and so by expert and map
			prefix, rest, ok := strings.Cut(w.Name, "experts.")
			_, part, _ := strings.Cut(rest, ".")
			if ok {
				name := prefix + "experts." + parts[part]
				stacks[name] = append(stacks[name], w)
				continue
			}
			w.Name = strings.Replace(w.Name, "model.norm.", "model.embedding_norm.", 1)
			list = append(list, w)
		}
		for name, parts := range stacks {
			shape := []int{c.Experts.Count, len(parts) / c.Experts.Count * parts[0].Shape[0], parts[0].Shape[1]}
			list = append(list, stackedSource(Tensor{Name: name, DType: F32, Shape: shape}, parts))
		}
		if sparse := countTrue(c.Sparse); len(stacks) != 2*sparse {
			t.Fatalf("%d stacks of experts in %d layers", len(stacks), sparse)
		}
		to := t.TempDir()
		writeFile(t, filepath.Join(to, configFile), readFile(t, filepath.Join(dir, configFile)))
		writeTensors(t, filepath.Join(to, "model.safetensors"), list...)
		sameLogits(t, dir, to, tokens)
	})
}

// tinyLFM returns settings of LFM2, and of its mixture of experts.
func tinyLFM() (plain, sparse jsonObject) {
	plain = jsonObject{"architectures": []string{"Lfm2ForCausalLM"}, "model_type": "lfm2", "hidden_size": 8,
		"block_ff_dim": 6, "num_hidden_layers": 3, "num_attention_heads": 2, "num_key_value_heads": 2,
		"full_attn_idxs": []int{1}}
	sparse = maps.Clone(plain)
	maps.Copy(sparse, jsonObject{"architectures": []string{"Lfm2MoeForCausalLM"}, "model_type": "lfm2_moe",
		"intermediate_size": 6, "moe_intermediate_size": 4, "num_experts": 4, "num_experts_per_tok": 2})
	return plain, sparse
}

// Feed-forward blocks have the published models' widths. Those of 1.2B, 700M and 350M are 8192, 6912 and 4608.
func TestWidthOfLFM(t *testing.T) {
	plain, sparse := tinyLFM()
	for _, tt := range []struct {
		base, changes jsonObject
		want          int
	}{
		{plain, jsonObject{"block_ff_dim": 12288}, 8192},
		{plain, jsonObject{"block_ff_dim": 10240}, 6912},
		{plain, jsonObject{"block_ff_dim": 6656}, 4608},
		{plain, jsonObject{"intermediate_size": 12288, "block_ff_dim": 6656}, 4608},
		{plain, jsonObject{"block_ff_dim": 6656, "block_auto_adjust_ff_dim": false}, 6656},
		{plain, jsonObject{"block_ff_dim": 6656, "block_multiple_of": 10}, 4440},
		{plain, jsonObject{"block_ff_dim": 6656, "block_ffn_dim_multiplier": 1.5, "block_multiple_of": 1}, 6655},
		{plain, jsonObject{"block_ff_dim": 6656, "block_ffn_dim_multiplier": nil}, 4437},
		{sparse, jsonObject{"intermediate_size": 7168, "block_ff_dim": 6}, 7168},
	} {
		config := maps.Clone(tt.base)
		maps.Copy(config, tt.changes)
		c, err := ParseConfig(configFile, compact(config))
		if err != nil || c.FFN != tt.want {
			t.Errorf("%v: width %d, want %d (%v)", tt.changes, c.FFN, tt.want, err)
		}
	}
}

// Layers without convolutions are listed by number or by name; if neither is there, all have attention.
func TestLayersOfLFM(t *testing.T) {
	plain, _ := tinyLFM()
	for _, tt := range []struct {
		changes jsonObject
		want    []bool
	}{
		{nil, []bool{true, false, true}},
		{jsonObject{"layer_types": []string{"full_attention", "conv", "conv"}}, []bool{false, true, true}},
		{jsonObject{"full_attn_idxs": nil}, nil},
		{jsonObject{"layer_types": []string{"full_attention", "full_attention", "full_attention"}}, nil},
		{jsonObject{"full_attn_idxs": []int{}}, []bool{true, true, true}},
	} {
		config := maps.Clone(plain)
		maps.Copy(config, tt.changes)
		c, err := ParseConfig(configFile, compact(config))
		if err != nil || !slices.Equal(c.Linear, tt.want) || !c.TieEmbeddings {
			t.Errorf("%v: convolutions in %v, want %v (%v)", tt.changes, c.Linear, tt.want, err)
			continue
		}
		raw, err := configJSON(c, F32, []int32{7})
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseConfig(configFile, raw)
		if diff := gocmp.Diff(c, got); diff != "" || err != nil {
			t.Errorf("written: %v (-want +got):\n%s", err, diff)
		}
	}
}

func TestLFMRefuses(t *testing.T) {
	plain, sparse := tinyLFM()
	for _, tt := range []struct {
		name    string
		base    jsonObject
		changes jsonObject
		want    string
	}{
		{"nothing", plain, nil, ""},
		{"nothing of experts", sparse, nil, ""},
		{"its own norm's eps", plain, jsonObject{"norm_eps": 0.1, "rms_norm_eps": 0}, ""},
		{"biases", plain, jsonObject{"conv_bias": true}, "conv_bias is true: only false is supported"},
		{"another block", plain, jsonObject{"block_use_swiglu": false}, "block_use_swiglu is false: only true is supported"},
		{"another activation", plain, jsonObject{"hidden_act": "gelu_new"}, `hidden_act is "gelu_new": only "silu"`},
		{"another width of convolutions", plain, jsonObject{"conv_dim": 4}, "conv_dim is 4: transformers takes hidden_size, which is 8"},
		{"a window", plain, jsonObject{"sliding_window": 4}, "sliding_window: windows are not supported in this class"},
		{"another type", plain, jsonObject{"layer_types": []string{"conv", "conv", "mamba"}}, `layer 2 is "mamba"; supported are conv and full_attention`},
		{"too few types", plain, jsonObject{"layer_types": []string{"conv"}}, "layer_types has 1 entries"},
		{"no taps", plain, jsonObject{"conv_L_cache": 0}, "conv_L_cache is 0, must be from 1 to 16"},
		{"no multiple", plain, jsonObject{"block_multiple_of": 0}, "block_multiple_of is 0"},
		{"a negative width", plain, jsonObject{"block_ffn_dim_multiplier": -1}, "blocks would have width -4"},
		{"no width", plain, jsonObject{"block_ff_dim": nil}, "intermediate_size is missing"},
		{"experts", plain, jsonObject{"num_experts": 4}, "experts of this class are not supported"},
		{"too many experts of a token", sparse, jsonObject{"num_experts_per_tok": 5}, "num_experts_per_tok is 5 of 4 experts"},
		{"fewer than no dense layers", sparse, jsonObject{"num_dense_layers": -1}, "num_dense_layers is -1"},
		{"a scale of 0", sparse, jsonObject{"routed_scaling_factor": 0}, "routed_scaling_factor is 0, must be positive"},
		{"LFM3", plain, jsonObject{"architectures": []string{"Lfm3ForCausalLM"}, "model_type": "lfm3"}, "its norms after the blocks"},
		{"LFM2-VL without its text", plain,
			jsonObject{"architectures": []string{"Lfm2VlForConditionalGeneration"}, "model_type": "lfm2_vl"}, "its vision tower"},
	} {
		changed := maps.Clone(tt.base)
		maps.Copy(changed, tt.changes)
		_, err := ParseConfig(configFile, compact(changed))
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}

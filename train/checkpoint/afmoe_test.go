package checkpoint

import (
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/train/model"
)

// tinyAfmoe returns settings of AFMoE with the keys of published files.
func tinyAfmoe() jsonObject {
	return jsonObject{"architectures": []string{"AfmoeForCausalLM"}, "model_type": "afmoe", "vocab_size": 11,
		"hidden_size": 8, "intermediate_size": 6, "num_hidden_layers": 8, "num_attention_heads": 2, "num_key_value_heads": 1,
		"head_dim": 4, "moe_intermediate_size": 4, "num_experts": 4, "num_experts_per_tok": 2, "num_shared_experts": 1,
		"num_dense_layers": 2, "route_scale": 2.826, "route_norm": true, "score_func": "sigmoid", "n_group": 1, "topk_group": 1,
		"num_expert_groups": 1, "num_limited_groups": 1, "load_balance_coeff": 0.001, "mup_enabled": true,
		"global_attn_every_n_layers": 4, "sliding_window": 2048, "rope_theta": 10000, "rope_scaling": nil, "use_grouped_mm": true}
}

func TestReadAfmoe(t *testing.T) {
	c, err := ParseConfig(configFile, compact(tinyAfmoe()))
	if err != nil {
		t.Fatal(err)
	}
	windows := []bool{true, true, true, false, true, true, true, false}
	if !slices.Equal(c.Windowed, windows) || c.Window != 2048 || !slices.Equal(c.NoRope, not(windows)) {
		t.Errorf("windows of %d in %v, no positions in %v", c.Window, c.Windowed, c.NoRope)
	}
	if want := slices.Concat(make([]bool, 2), slices.Repeat([]bool{true}, 6)); !slices.Equal(c.Sparse, want) {
		t.Errorf("experts in %v, want %v", c.Sparse, want)
	}
	e := model.Experts{Count: 4, Top: 2, FFN: 4, Shared: 4, Renorm: true, Sigmoid: true, Corrected: true, Ungated: true, Scale: 2.826}
	if c.Experts != e || c.EmbedScale != math.Sqrt(8) || c.QKVBias || c.OutBias {
		t.Errorf("experts %+v, want %+v; embeddings times %g", c.Experts, e, c.EmbedScale)
	}

	// The class's own values of absent keys.
	absent := jsonObject{"architectures": []string{"AfmoeForCausalLM"}, "hidden_size": 64, "num_hidden_layers": 5,
		"intermediate_size": 6}
	c, err = ParseConfig(configFile, compact(absent))
	if err != nil {
		t.Fatal(err)
	}
	e = model.Experts{Count: 64, Top: 6, FFN: 1408, Shared: 2816, Renorm: true, Sigmoid: true, Corrected: true, Ungated: true, Scale: 1}
	if c.Experts != e || c.EmbedScale != 0 || c.Head != 128 || c.Heads != 16 || c.KVHeads != 16 || c.Window != 1024 ||
		c.Vocab != 200192 || c.MaxPositions != 16384 || !slices.Equal(c.Windowed, []bool{true, true, true, false, true}) ||
		!slices.Equal(c.Sparse, []bool{false, true, true, true, true}) {
		t.Errorf("without its keys the class is %+v", c)
	}
}

func not(list []bool) []bool {
	other := slices.Clone(list)
	for i, v := range list {
		other[i] = !v
	}
	return other
}

func TestAfmoeRefuses(t *testing.T) {
	for _, tt := range []struct {
		name    string
		changes jsonObject
		want    string
	}{
		{"nothing", nil, ""},
		{"biases", jsonObject{"attention_bias": true}, ""},
		{"a pattern that layer_types overrides", jsonObject{"global_attn_every_n_layers": 0, "layer_types": layerTypes(8, 3)}, ""},
		{"every 0th layer", jsonObject{"global_attn_every_n_layers": 0}, "global_attn_every_n_layers is 0, must be at least 1"},
		{"no window", jsonObject{"sliding_window": nil}, "sliding_window is null: transformers needs a number"},
		{"another score", jsonObject{"score_func": "softmax"}, `score_func is "softmax": only "sigmoid" is supported`},
		{"weights that do not sum to 1", jsonObject{"route_norm": false}, "route_norm is false: only true is supported"},
		{"groups", jsonObject{"n_group": 2}, "n_group is 2: only 1 is supported"},
		{"groups of a token", jsonObject{"topk_group": 2}, "topk_group is 2"},
		{"groups by another name", jsonObject{"num_expert_groups": 4}, "num_expert_groups is 4"},
		{"and of a token", jsonObject{"num_limited_groups": 4}, "num_limited_groups is 4"},
		{"no shared expert", jsonObject{"num_shared_experts": 0}, "num_shared_experts is 0, must be from 1"},
		{"a scale of 0", jsonObject{"route_scale": 0}, "route_scale is 0, must be positive"},
		{"fewer than no dense layers", jsonObject{"num_dense_layers": -1}, "num_dense_layers is -1, must not be negative"},
		{"too many experts of a token", jsonObject{"num_experts_per_tok": 5}, "num_experts_per_tok is 5 of 4 experts"},
		{"experts without width", jsonObject{"moe_intermediate_size": 0}, "moe_intermediate_size is 0"},
		{"wide shared experts", jsonObject{"moe_intermediate_size": 1 << 20, "num_shared_experts": 2}, "together a width from 1"},
		{"no head", jsonObject{"head_dim": nil}, "head_dim is null"},
		{"another kind of layer", jsonObject{"layer_types": slices.Repeat([]string{"chunked_attention"}, 8)}, `layer 0 has "chunked_attention"`},
		{"Mamba", jsonObject{"ssm_cfg": jsonObject{"a": 1}}, "ssm_cfg: Mamba layers are not supported"},
	} {
		changed := maps.Clone(tinyAfmoe())
		maps.Copy(changed, tt.changes)
		_, err := ParseConfig(configFile, compact(changed))
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}

// What training writes has the published names and settings, and the same logits.
func TestAfmoeIsPublished(t *testing.T) {
	eachFamily(t, func(t *testing.T, x family, dir string, tokens []int32) {
		if x.Name != "afmoe" {
			return
		}
		c, err := ReadConfig(dir)
		if err != nil {
			t.Fatal(err)
		}
		weights, err := OpenFolder(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer weights.Close()
		to := trainedFolder(t, c, weights, MergeOptions{})
		sameLogits(t, dir, to, tokens)
		shapes := storedShapes(t, filepath.Join(to, "model.safetensors"))
		for name, shape := range map[string][]int{"self_attn.gate_proj.weight": {32, 12}, "mlp.router.gate.weight": {6, 12},
			"mlp.expert_bias": {6}, "mlp.experts.5.down_proj.weight": {12, 7}, "mlp.shared_experts.up_proj.weight": {7, 12},
			"pre_mlp_layernorm.weight": {12}, "post_mlp_layernorm.weight": {12}} {
			if got := shapes["model.layers.1."+name]; !slices.Equal(got, shape) {
				t.Errorf("%s is %v, want %v", name, got, shape)
			}
		}
		text := string(readFile(t, filepath.Join(to, configFile)))
		for _, want := range []string{`"score_func": "sigmoid"`, `"route_norm": true`, `"n_group": 1`, `"topk_group": 1`,
			`"mup_enabled": true`, `"num_dense_layers": 1`, `"route_scale": 2.826`, `"sliding_window": 4`} {
			if !strings.Contains(text, want) {
				t.Errorf("config.json lacks %s:\n%s", want, text)
			}
		}
	})
}

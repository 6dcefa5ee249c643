package checkpoint

import (
	"strings"
	"testing"

	"exp/train/model"
)

func TestSharedExpertsRefuse(t *testing.T) {
	class := func(class, kind string, more jsonObject) jsonObject {
		list := jsonObject{"architectures": []string{class}, "model_type": kind, "num_hidden_layers": 2,
			"num_experts": 4, "num_key_value_heads": 4, "head_dim": 16}
		for k, v := range more {
			list[k] = v
		}
		return list
	}
	ernie := func(more jsonObject) jsonObject { return class("Ernie4_5_MoeForCausalLM", "ernie4_5_moe", more) }
	hunyuan := func(more jsonObject) jsonObject { return class("HunYuanMoEV1ForCausalLM", "hunyuan_v1_moe", more) }
	solar := func(more jsonObject) jsonObject { return class("SolarOpenForCausalLM", "solar_open", more) }
	for _, tt := range []struct {
		name    string
		changes jsonObject
		want    string
	}{
		{"ERNIE", ernie(jsonObject{"num_experts": 64}), ""},
		{"ERNIE with biases", ernie(jsonObject{"use_bias": true}), "use_bias: biases are not supported"},
		{"a large bound of weights", ernie(jsonObject{"moe_norm_min": 0.1}), "moe_norm_min is 0.1"},
		{"every 0th layer", ernie(jsonObject{"moe_layer_interval": 0}), "moe_layer_interval is 0"},
		{"wide shared experts", ernie(jsonObject{"moe_num_shared_experts": 1 << 40}), "together a width from 1"},
		{"more experts than there are", ernie(jsonObject{"moe_k": 65}), "num_experts_per_tok is 65 of 4 experts"},
		{"Hunyuan", hunyuan(jsonObject{"moe_topk": []int{2, 2}}), ""},
		{"other numbers in other layers", hunyuan(jsonObject{"moe_topk": []int{2, 1}}), "moe_topk must be one number"},
		{"too short a list", hunyuan(jsonObject{"moe_topk": []int{2}}), "moe_topk must be one number"},
		{"experts of another width", hunyuan(jsonObject{"moe_intermediate_size": []int{5, 5}}), "moe_intermediate_size"},
		{"two shared experts", hunyuan(jsonObject{"num_shared_expert": 2}), "num_shared_expert must be 1"},
		{"no shared expert", hunyuan(jsonObject{"use_mixed_mlp_moe": false}), "use_mixed_mlp_moe true"},
		{"keys of another layer", hunyuan(jsonObject{"use_cla": true}), "use_cla must be false"},
		{"Solar", solar(nil), ""},
		{"dense layers", solar(jsonObject{"first_k_dense_replace": 1}), "first_k_dense_replace must be 0"},
		{"part of a head", solar(jsonObject{"partial_rotary_factor": 0.5}), "partial_rotary_factor is 0.5"},
		{"Hunyuan 3 with dense layers", class("HYV3ForCausalLM", "hy_v3", jsonObject{"first_k_dense_replace": 2,
			"num_experts": 8}), "first_k_dense_replace is 2: transformers ignores it"},
		{"Hunyuan 3, weights that do not sum to 1", class("HYV3ForCausalLM", "hy_v3",
			jsonObject{"norm_topk_prob": false, "num_experts": 8}), "norm_topk_prob"},
		{"FlexOlmo, clipped", class("FlexOlmoForCausalLM", "flex_olmo", jsonObject{"clip_qkv": 8,
			"num_experts": 7}), "clip_qkv"},
		{"MiMo without biases", class("MiMoForCausalLM", "mimo", jsonObject{"attention_bias": false,
			"num_experts": 0}), "attention_bias is false"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ParseConfig(configFile, edit(t, tt.changes))
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// A head_dim that is null is no 128.
func TestNullHead(t *testing.T) {
	for class, kind := range map[string]string{"Ernie4_5ForCausalLM": "ernie4_5", "InternLM3ForCausalLM": "internlm3",
		"IQuestCoderForCausalLM": "iquestcoder"} {
		c, err := ParseConfig(configFile, edit(t, jsonObject{"architectures": []string{class}, "model_type": kind,
			"head_dim": nil}))
		if err != nil || c.Head != c.Width/c.Heads {
			t.Errorf("%s: %v, heads of %d channels, want %d", class, err, c.Head, c.Width/c.Heads)
		}
	}
}

// Layers that predict further tokens are left out under all their names.
func TestFurtherLayersByName(t *testing.T) {
	for name, want := range map[string]bool{"mtp.layers.0.norm.weight": true, "model.mtp_layers.0.x.weight": true,
		"model.layers.1.mlp.mtp.weight": false, "model.layers.2.mlp.gate.weight": false} {
		if got := furtherLayers(model.Config{Layers: 2}, name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

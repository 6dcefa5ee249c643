package checkpoint

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"exp/kernels"
	"exp/kernels/ref"
	"exp/train/model"
)

// family is a tiny model of testdata/families.json. DeepSeek MoE's logits are those of a model written in torch, in
// float64, as arXiv:2401.06066 describes it, since transformers has no such class.
// Element i of the k-th tensor by name is
// sin(0.37·i·(1+k%3) + k), halved; in norms, 1 and 0.3 times it. Logits are transformers' after the
// last token, in float64 throughout.
type family struct {
	Name   string
	Config map[string]any
	Logits []float64
}

// eachFamily calls f with every family and its folder.
func eachFamily(t *testing.T, f func(t *testing.T, x family, dir string, tokens []int32)) {
	var all struct {
		Tokens []int32
		Models []family
	}
	if err := json.Unmarshal(readFile(t, filepath.Join("testdata", "families.json")), &all); err != nil {
		t.Fatal(err)
	}
	for _, x := range all.Models {
		t.Run(x.Name, func(t *testing.T) {
			dir := t.TempDir()
			raw, err := json.Marshal(x.Config)
			if err != nil {
				t.Fatal(err)
			}
			writeFile(t, filepath.Join(dir, configFile), raw)
			c, err := ReadConfig(dir)
			if err != nil {
				t.Fatal(err)
			}
			writeTensors(t, filepath.Join(dir, "model.safetensors"), waves(c)...)
			f(t, x, dir, all.Tokens)
		})
	}
}

// waves are the weights of a family.
func waves(c model.Config) (list []Source) {
	tensors, _ := model.Layout(c, model.Heads{LM: true})
	slices.SortFunc(tensors, func(a, b model.Tensor) int { return cmp.Compare(a.Name, b.Name) })
	for k, tensor := range tensors {
		var raw []byte
		for i := range tensor.Len() {
			v := math.Sin(0.37*float64(i)*float64(1+k%3) + float64(k))
			if v /= 2; strings.Contains(tensor.Name, "norm") {
				v = 1 + 0.6*v
			}
			raw = appendF32(raw, float32(v))
		}
		list = append(list, source(tensor.Name, F32, tensor.Shape, string(raw)))
	}
	return list
}

func appendF32(b []byte, v float32) []byte {
	u := math.Float32bits(v)
	return append(b, byte(u), byte(u>>8), byte(u>>16), byte(u>>24))
}

func TestFamiliesComputeAsTransformers(t *testing.T) {
	eachFamily(t, func(t *testing.T, x family, dir string, tokens []int32) {
		for _, b := range []struct {
			be    kernels.Backend
			limit float64
		}{{ref.New[float64](), 1e-6}, {openCPU(t, kernels.F32), 1e-5}} {
			m := openGolden(t, b.be, dir, false)
			got := logitsOf(t, b.be, m, tokens)
			got = got[len(got)-len(x.Logits):]
			worst := 0.0
			for i, w := range x.Logits {
				worst = max(worst, math.Abs(got[i]-w))
			}
			if !(worst <= b.limit) {
				t.Errorf("%s: logits differ by %g from transformers', over %g", b.be.Name(), worst, b.limit)
			}
			m.Close()
		}
	})
}

// TestFamiliesKeepTheirConfig writes the architecture anew and over the file that it came from.
func TestFamiliesKeepTheirConfig(t *testing.T) {
	eachFamily(t, func(t *testing.T, x family, dir string, _ []int32) {
		want, err := ReadConfig(dir)
		if err != nil {
			t.Fatal(err)
		}
		fresh, err := configJSON(want, F32, []int32{2})
		if err != nil {
			t.Fatal(err)
		}
		patched, err := patchConfig(readFile(t, filepath.Join(dir, configFile)), want, BF16, []int32{2})
		if err != nil {
			t.Fatal(err)
		}
		for name, raw := range map[string][]byte{"fresh": fresh, "patched": patched} {
			got, err := ParseConfig(configFile, raw)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	})
}

func TestFamiliesRefuse(t *testing.T) {
	class := func(class, kind string, more jsonObject) jsonObject {
		list := jsonObject{"architectures": []string{class}, "model_type": kind}
		for k, v := range more {
			list[k] = v
		}
		return list
	}
	for _, tt := range []struct {
		name    string
		changes jsonObject
		want    string
	}{
		{"OLMo 3 of another base", class("Olmo3ForCausalLM", "olmo3", jsonObject{"rope_theta": 1e6}),
			"rope_theta is 1e+06: transformers 5 takes 500000 for windowed layers"},
		{"OLMo 3 without a base", class("Olmo3ForCausalLM", "olmo3", jsonObject{"rope_theta": nil}),
			"rope_theta is missing: transformers 4 takes 10000, transformers 5 takes 500000"},
		{"flat parameters of OLMo 3", class("Olmo3ForCausalLM", "olmo3", jsonObject{"rope_theta": 5e5,
			"rope_parameters": jsonObject{"rope_theta": 5e5, "rope_type": "default"}}), "under full_attention and sliding_attention"},
		{"the old name of a rope type in OLMo 3", class("Olmo3ForCausalLM", "olmo3", jsonObject{"rope_theta": 5e5,
			"rope_scaling": jsonObject{"type": "yarn", "factor": 2, "original_max_position_embeddings": 1024}}),
			"rope_scaling: type is \"yarn\": transformers 5 ignores it in this class"},
		{"and in Gemma 3", class("Gemma3ForCausalLM", "gemma3_text",
			jsonObject{"rope_scaling": jsonObject{"type": "linear", "factor": 8}}),
			"rope_scaling: type is \"linear\": transformers 5 ignores it in this class"},
		{"SmolLM3 of too few layers", class("SmolLM3ForCausalLM", "smollm3", jsonObject{"no_rope_layers": []int{1, 0}}),
			"no_rope_layers has 2 entries, num_hidden_layers is 28"},
		{"SmolLM3 of interval 0", class("SmolLM3ForCausalLM", "smollm3", jsonObject{"no_rope_layer_interval": 0}),
			"no_rope_layer_interval is 0"},
		{"a window that SmolLM3 does not use", class("SmolLM3ForCausalLM", "smollm3",
			jsonObject{"use_sliding_window": false, "layer_types": layerTypes(28, 3)}), "no sliding_window is in use"},
		{"EXAONE's pattern as a text", class("Exaone4ForCausalLM", "exaone4", jsonObject{"sliding_window_pattern": "LLLG"}),
			"sliding_window_pattern is \"LLLG\""},
		{"Mellum without positions", class("MellumForCausalLM", "mellum", jsonObject{"rope_theta": nil}), "rope_parameters must say"},
		{"Mellum of the old spelling", class("MellumForCausalLM", "mellum", jsonObject{"rope_theta": 1e4, "rope_parameters": jsonObject{
			"full_attention": jsonObject{"rope_theta": 1e4, "rope_type": "default"}}}), "without rope_theta and rope_scaling"},
		{"HyperCLOVA X of no logits", class("HyperCLOVAXForCausalLM", "hyperclovax", jsonObject{"logits_scaling": 0}), "logits_scaling is 0"},
		{"HyperCLOVA X with two ways to scale what a block adds", class("HyperCLOVAXForCausalLM", "hyperclovax",
			jsonObject{"residual_multiplier": 0.5}), "cannot be together with a scale of the residual stream"},
		{"clipped queries", class("OlmoeForCausalLM", "olmoe", jsonObject{"clip_qkv": 8}), "clip_qkv"},
		{"more experts than there are", class("MixtralForCausalLM", "mixtral", jsonObject{"num_experts_per_tok": 9}),
			"num_experts_per_tok is 9 of 8 experts"},
		{"no experts", class("MixtralForCausalLM", "mixtral", jsonObject{"num_local_experts": 0}), "there are 0 experts"},
		{"two gates of Gemma", class("GemmaForCausalLM", "gemma", jsonObject{"hidden_act": "gelu", "hidden_activation": "silu"}),
			"hidden_activation is \"silu\""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ParseConfig(configFile, edit(t, tt.changes))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// The layers after the model's own, which predict further tokens, may be in the files of DeepSeek-V3; others may not.
// What training writes lacks them, and says so.
func TestFurtherLayersAreIgnored(t *testing.T) {
	eachFamily(t, func(t *testing.T, x family, dir string, tokens []int32) {
		if x.Name != "deepseek-v3" && x.Name != "deepseek-v2" {
			return
		}
		c, err := ReadConfig(dir)
		if err != nil {
			t.Fatal(err)
		}
		writeTensors(t, filepath.Join(dir, "model.safetensors"), append(waves(c),
			source("model.layers.3.eh_proj.weight", F32, []int{1}, "abcd"))...)
		weights, err := OpenFolder(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer weights.Close()
		if err := weights.Fits(c); (err == nil) != (x.Name == "deepseek-v3") {
			t.Errorf("a tensor of layer 3: %v", err)
		}
		if x.Name != "deepseek-v3" {
			return
		}
		origin, err := ReadOrigin(dir)
		if err != nil {
			t.Fatal(err)
		}
		to := trainedFolder(t, c, weights, MergeOptions{Origin: origin})
		if text := string(readFile(t, filepath.Join(to, configFile))); !strings.Contains(text, `"num_nextn_predict_layers": 0`) {
			t.Errorf("the trained model's config.json is %s", text)
		}
	})
}

func TestDeepseekRefuses(t *testing.T) {
	base := jsonObject{"architectures": []string{"DeepseekV3ForCausalLM"}, "model_type": "deepseek_v3", "vocab_size": 11,
		"hidden_size": 8, "intermediate_size": 6, "num_hidden_layers": 2, "num_attention_heads": 2, "moe_intermediate_size": 4,
		"n_routed_experts": 8, "num_experts_per_tok": 2, "first_k_dense_replace": 1}
	another := func(class, kind, key string, value any) jsonObject {
		return jsonObject{"architectures": []string{class}, "model_type": kind, key: value}
	}
	v2 := func(key string, value any) jsonObject {
		return another("DeepseekV2ForCausalLM", "deepseek_v2", key, value)
	}
	yarnless := jsonObject{"rope_type": "linear", "factor": 4.0, "mscale_all_dim": 1.0}
	for _, tt := range []struct {
		name    string
		changes jsonObject
		want    string
	}{
		{"nothing", nil, ""},
		{"biases", jsonObject{"attention_bias": true}, "attention_bias: latent attention with biases"},
		{"no rank", jsonObject{"kv_lora_rank": 0}, "kv_lora_rank is 0, must be from 1"},
		{"no rank of queries", jsonObject{"q_lora_rank": 0}, "q_lora_rank is 0, must be from 1"},
		{"wide values", jsonObject{"v_head_dim": 200}, "invalid latent attention"},
		{"a width beyond all", jsonObject{"moe_intermediate_size": 1 << 62, "n_shared_experts": 4}, "together a width from 1"},
		{"groups that do not divide", jsonObject{"n_group": 3}, "8 experts cannot be in 3 groups"},
		{"another router", jsonObject{"scoring_func": "softmax"}, `scoring_func is "softmax"`},
		{"a scale below 0", jsonObject{"routed_scaling_factor": -1.0}, "routed_scaling_factor is -1"},
		{"experts in some layers", jsonObject{"moe_layer_freq": 2}, "moe_layer_freq is 2"},
		{"wide heads", jsonObject{"qk_nope_head_dim": 4096}, "together over the limit of 4096"},
		{"another rope with a scale", jsonObject{"rope_scaling": yarnless}, "mscale_all_dim is 1: only yarn"},
		{"Flash, more dense layers", another("Glm4MoeLiteForCausalLM", "glm4_moe_lite", "first_k_dense_replace", 2), "first_k_dense_replace is 2: transformers ignores it"},
		{"V2, another score", v2("scoring_func", "sigmoid"), `scoring_func is "sigmoid"`},
		{"V2, not interleaved", v2("rope_interleave", false), "rope_interleave must be true"},
		{"FP8", jsonObject{"quantization_config": jsonObject{"quant_method": "fp8"}}, ""},
		{"MXFP4", jsonObject{"quantization_config": jsonObject{"quant_method": "mxfp4"}}, "of quantized weights only FP8"},
		{"V2, normalised", v2("norm_topk_prob", true), "norm_topk_prob is true: transformers ignores it"},
		{"the first, a scale", another("DeepseekForCausalLM", "deepseek", "routed_scaling_factor", 2.5), "are not settings of this class"},
		{"the first, another score", another("DeepseekForCausalLM", "deepseek", "scoring_func", "sigmoid"), `scoring_func is "sigmoid"`},
		{"V2, two numbers", v2("num_experts", 3), "n_routed_experts is 8, but num_experts, another name of it, is 3"},
		{"V2, another router", v2("topk_method", "noaux_tc"), `topk_method is "noaux_tc"`},
	} {
		changed := maps.Clone(base)
		maps.Copy(changed, tt.changes)
		_, err := ParseConfig(configFile, compact(changed))
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}

// trainedFolder writes what training makes of weights and returns the folder.
func trainedFolder(t *testing.T, c model.Config, weights *Tensors, o MergeOptions) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "trained")
	trained := Trained{Config: c, Heads: model.Heads{LM: true}, Weights: weights, Learned: weights}
	if _, err := MergeTensors(ref.New[float32](), trained, to, o); err != nil {
		t.Fatal(err)
	}
	return to
}

package checkpoint

import (
	"github.com/google/go-cmp/cmp"

	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/kernels"
	"exp/train/model"
)

func TestConfigGolden(t *testing.T) {
	for name, c := range map[string]model.Config{"llama": toyLlama, "qwen2": toyQwen2, "qwen3": toyQwen3} {
		raw, err := configJSON(c, F32, []int32{0})
		if err != nil {
			t.Fatal(err)
		}
		golden(t, "config_"+name, raw)
		got, err := ParseConfig("config.json", raw)
		if err != nil || !cmp.Equal(got, c) {
			t.Errorf("%s: read back %+v, %v; want %+v", name, got, err, c)
		}
	}
}

// No class has biases on q, k and v alone, and norms.
func TestConfigUnwritable(t *testing.T) {
	both := toyQwen2
	both.QKNorm = true
	if _, err := configJSON(both, F32, nil); err == nil {
		t.Error("biases on q, k and v alone, and norms: no error, but no class has both")
	}
}

func TestGenerationJSON(t *testing.T) {
	for want, ids := range map[string][]int32{"null": nil, "0": {0}, "[\n    5,\n    3\n  ]": {5, 3}} {
		if got := string(generationJSON(ids)); got != "{\n  \"eos_token_id\": "+want+"\n}\n" {
			t.Errorf("%v: %s", ids, got)
		}
	}
}

// Published files, as transformers 4 wrote them.
const (
	qwen25Published = `{
  "architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 151643, "eos_token_id": 151643,
  "hidden_act": "silu", "hidden_size": 3584, "initializer_range": 0.02, "intermediate_size": 18944,
  "max_position_embeddings": 131072, "max_window_layers": 28, "model_type": "qwen2", "num_attention_heads": 28,
  "num_hidden_layers": 28, "num_key_value_heads": 4, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0,
  "sliding_window": 131072, "tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.40.1",
  "use_cache": true, "use_mrope": false, "use_sliding_window": false, "vocab_size": 152064
}`
	qwen3Published = `{
  "architectures": ["Qwen3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 151643,
  "eos_token_id": 151645, "head_dim": 128, "hidden_act": "silu", "hidden_size": 1024, "initializer_range": 0.02,
  "intermediate_size": 3072, "max_position_embeddings": 40960, "max_window_layers": 28, "model_type": "qwen3",
  "num_attention_heads": 16, "num_hidden_layers": 28, "num_key_value_heads": 8, "rms_norm_eps": 1e-06,
  "rope_scaling": null, "rope_theta": 1000000, "sliding_window": null, "tie_word_embeddings": true,
  "torch_dtype": "bfloat16", "transformers_version": "4.51.0", "use_cache": true, "use_sliding_window": false,
  "vocab_size": 151936
}`
)

// edit returns the Qwen2.5 file with keys changed; nil removes one.
func edit(t *testing.T, changes map[string]any) []byte {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(qwen25Published), &m); err != nil {
		t.Fatal(err)
	}
	for k, v := range changes {
		if m[k] = v; v == nil {
			delete(m, k)
		}
	}
	raw, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

type jsonObject = map[string]any

// class are the changes that make a file one of another class.
func class(name string, more jsonObject) jsonObject {
	c := jsonObject{"architectures": []string{name}}
	if a, ok := architectureNamed(name, ""); ok {
		c["model_type"] = a.kind
	}
	maps.Copy(c, more)
	return c
}

// layerTypes is a layer_types of n layers; the named ones have a window.
func layerTypes(n int, windowed ...int) []string {
	types := make([]string, n)
	for i := range types {
		types[i] = "full_attention"
		if slices.Contains(windowed, i) {
			types[i] = "sliding_attention"
		}
	}
	return types
}

func TestParseConfigVariants(t *testing.T) {
	tests := []struct {
		name    string
		changes jsonObject
		check   func(model.Config) bool
	}{
		{"theta in rope_parameters", jsonObject{"rope_theta": nil, "rope_parameters": jsonObject{"rope_theta": 5e5, "rope_type": "default"}},
			func(c model.Config) bool { return c.RopeTheta == 5e5 }},
		{"theta nowhere", jsonObject{"rope_theta": nil}, func(c model.Config) bool { return c.RopeTheta == 1e4 }},
		{"scaling named default", jsonObject{"rope_scaling": jsonObject{"type": "default"}}, func(c model.Config) bool { return c.RopeTheta == 1e6 }},
		{"window in use nowhere", jsonObject{"use_sliding_window": true, "max_window_layers": 28}, func(c model.Config) bool { return c.Layers == 28 }},
		{"full layer types", jsonObject{"use_sliding_window": true, "max_window_layers": 1, "layer_types": layerTypes(28)},
			func(c model.Config) bool { return c.Windowed == nil && c.Window == 0 }},
		{"window from layer 21", jsonObject{"use_sliding_window": true, "max_window_layers": 21},
			func(c model.Config) bool { return !c.Windowed[20] && c.Windowed[21] && c.Window == 131072 }},
		{"window of default width", jsonObject{"use_sliding_window": true, "max_window_layers": 21, "sliding_window": nil},
			func(c model.Config) bool { return c.Windowed[27] && c.Window == 4096 }},
		{"windowed layer types", jsonObject{"use_sliding_window": true, "layer_types": layerTypes(28, 3, 5)},
			func(c model.Config) bool { return c.Windowed[3] && !c.Windowed[4] && c.Windowed[5] }},
		{"model_type alone", jsonObject{"architectures": nil}, func(c model.Config) bool { return c.QKVBias }},
		{"head size", jsonObject{"head_dim": 64}, func(c model.Config) bool { return c.Head == 64 }},
		{"all heads have keys", jsonObject{"num_key_value_heads": json.RawMessage("null")}, func(c model.Config) bool { return c.KVHeads == 28 }},
		{"key heads of the class", jsonObject{"num_key_value_heads": nil, "num_attention_heads": 64}, func(c model.Config) bool { return c.KVHeads == 32 }},
		{"a class of a backbone", jsonObject{"architectures": []string{"Qwen2Model"}}, func(c model.Config) bool { return c.QKVBias }},
		{"theta in both spellings", jsonObject{"rope_parameters": jsonObject{"rope_theta": 1e6, "rope_type": "default"}}, func(c model.Config) bool { return c.RopeTheta == 1e6 }},
		{"Llama's biases", jsonObject{"architectures": []string{"LlamaForCausalLM"}, "model_type": "llama", "attention_bias": true, "mlp_bias": true},
			func(c model.Config) bool { return c.QKVBias && c.OutBias && c.FFNBias }},
		{"Qwen3's biases", jsonObject{"architectures": []string{"Qwen3ForCausalLM"}, "model_type": "qwen3", "attention_bias": true},
			func(c model.Config) bool { return c.QKVBias && c.OutBias && c.QKNorm }},
		{"linear, old spelling", jsonObject{"rope_scaling": jsonObject{"type": "linear", "factor": 2}},
			func(c model.Config) bool { return c.Rope.Kind == "linear" && c.Rope.Factor == 2 }},
		{"yarn added by hand", jsonObject{"max_position_embeddings": 32768, "rope_scaling": jsonObject{"type": "yarn", "factor": 4, "original_max_position_embeddings": 32768}},
			func(c model.Config) bool { return c.MaxPositions == 131072 && c.Rope.Original == 32768 }},
		{"yarn that the file counts", jsonObject{"max_position_embeddings": 200000, "rope_scaling": jsonObject{"type": "yarn", "factor": 4, "original_max_position_embeddings": 32768}},
			func(c model.Config) bool { return c.MaxPositions == 200000 }},
		{"yarn over all positions", jsonObject{"max_position_embeddings": 4096, "rope_scaling": jsonObject{"type": "yarn", "factor": 4}},
			func(c model.Config) bool { return c.MaxPositions == 4096 && c.Rope.Original == 4096 }},
		{"another gate", jsonObject{"hidden_act": "gelu_pytorch_tanh"}, func(c model.Config) bool { return c.Gate == kernels.GELUTanh }},
		{"defaults", jsonObject{"rms_norm_eps": nil, "initializer_range": nil, "max_position_embeddings": nil, "tie_word_embeddings": nil},
			func(c model.Config) bool {
				return c.NormEps == 1e-6 && c.InitStd == 0.02 && c.MaxPositions == 32768 && !c.TieEmbeddings
			}},
		{"Llama", jsonObject{"architectures": []string{"LlamaForCausalLM"}, "model_type": "llama", "max_position_embeddings": nil},
			func(c model.Config) bool { return !c.QKVBias && !c.QKNorm && c.Head == 128 && c.MaxPositions == 2048 }},
		{"InternLM3's biases by their old names", class("InternLM3ForCausalLM", jsonObject{"qkv_bias": true, "bias": true}),
			func(c model.Config) bool { return c.QKVBias && c.OutBias && c.FFNBias }},
		{"Gemma's own gate", class("GemmaForCausalLM", jsonObject{"hidden_act": nil}), func(c model.Config) bool { return c.Gate == kernels.GELUTanh }},
		{"Arcee's own gate", class("ArceeForCausalLM", jsonObject{"hidden_act": nil}), func(c model.Config) bool { return c.Gate == kernels.ReLU2 }},
		{"Gemma's frequencies under full attention", class("Gemma3ForCausalLM", jsonObject{"original_max_position_embeddings": 64, "rope_theta": nil,
			"rope_parameters": jsonObject{"full_attention": jsonObject{"rope_theta": 1e6, "rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4}}}),
			func(c model.Config) bool { return c.Rope.Original == 131072 }},
		{"Seed's null head size", class("SeedOssForCausalLM", jsonObject{"head_dim": json.RawMessage("null"), "num_attention_heads": 56}),
			func(c model.Config) bool { return c.Head == 64 }},
		{"Granite's multipliers of 1", class("GraniteForCausalLM", jsonObject{"embedding_multiplier": 1, "logits_scaling": 1.0}),
			func(c model.Config) bool {
				return c.EmbedScale == 0 && c.LogitDivisor == 0 && c.ResidualScale == 0 && c.QueryScale == 1
			}},
		{"CWM's windows", class("CwmForCausalLM", jsonObject{"sliding_window": 64, "rope_parameters": jsonObject{"rope_theta": 1e6}}),
			func(c model.Config) bool { return !c.Windowed[0] && c.Windowed[1] && !c.Windowed[4] && c.Window == 64 }},
		{"CWM without windows", class("CwmForCausalLM", jsonObject{"sliding_window": 0, "rope_scaling": jsonObject{"rope_type": "default"}}),
			func(c model.Config) bool { return c.Windowed == nil }},
		{"Hunyuan's frequencies", class("HunYuanDenseV1ForCausalLM", jsonObject{"rope_theta": 1e4, "num_experts": 1,
			"rope_scaling": jsonObject{"type": "dynamic", "alpha": 1000}}),
			func(c model.Config) bool {
				return c.Rope.Kind == "" && math.Abs(c.RopeTheta-1e4*math.Pow(1000, 128./126)) < 1e-3
			}},
		{"MiniMax's part of a head", class("MiniMaxM2ForCausalLM", jsonObject{"num_key_value_heads": 4, "num_local_experts": 4, "num_experts_per_tok": 2, "rotary_dim": 64}),
			func(c model.Config) bool {
				return c.Rotary == 64 && c.Experts.Corrected && c.Experts.Mixtral && c.Experts.Top == 2
			}},
		{"GLM's part of a head", class("Glm4ForCausalLM", nil),
			func(c model.Config) bool { return c.Rotary == 64 && c.Interleaved && c.QKVBias && !c.OutBias }},
		{"Qwen3's head size", jsonObject{"architectures": []string{"Qwen3ForCausalLM"}, "model_type": "qwen3", "hidden_size": 1000}, func(c model.Config) bool { return c.QKNorm && c.Head == 128 }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := ParseConfig("config.json", edit(t, tt.changes))
			if err != nil || !tt.check(c) {
				t.Errorf("got %+v, %v", c, err)
			}
		})
	}
}

func TestParseConfigRefuses(t *testing.T) {
	null := json.RawMessage("null")
	yarn := func(more jsonObject) jsonObject {
		y := jsonObject{"rope_type": "yarn", "factor": 4}
		maps.Copy(y, more)
		return jsonObject{"rope_scaling": y}
	}
	tests := []struct {
		name    string
		changes jsonObject
		want    string
	}{
		{"latent attention with other heads", class("DeepseekV3ForCausalLM", jsonObject{"kv_lora_rank": 512}), "num_key_value_heads is 4: each of the 28 heads"},
		{"DeepSeek's sparse attention", class("DeepseekV32ForCausalLM", nil), "only V2 and V3"},
		{"InternLM3, other biases", class("InternLM3ForCausalLM", jsonObject{"qkv_bias": true}), "qkv_bias is true and bias false"},
		{"IQuest's clipping", class("IQuestCoderForCausalLM", jsonObject{"clip_qkv": 8.0}), "clip_qkv: clipping"},
		{"CWM without scaling", class("CwmForCausalLM", nil), "rope_parameters are missing: transformers takes llama3"},
		{"MiniMax's router", class("MiniMaxM2ForCausalLM", jsonObject{"use_routing_bias": false}), "use_routing_bias and use_qk_norm true"},
		{"a multiplier of 0", class("GraniteForCausalLM", jsonObject{"residual_multiplier": 0}), "residual_multiplier is 0, must be from"},
		{"a multiplier whose square leaves float32", class("GraniteForCausalLM", jsonObject{"residual_multiplier": 1e-20}),
			"residual_multiplier is 1e-20, must be from 1e-06 to 1e+06"},
		{"no part of heads", class("Glm4ForCausalLM", jsonObject{"partial_rotary_factor": json.RawMessage("null")}), "partial_rotary_factor is null"},
		{"Ministral's queries without yarn", class("Ministral3ForCausalLM", jsonObject{"rope_parameters": jsonObject{
			"rope_type": "default", "rope_theta": 1e6, "llama_4_scaling_beta": 0.1}}), "llama_4_scaling_beta is 0.1: only with yarn"},
		{"Ministral's queries unscaled", class("Ministral3ForCausalLM", jsonObject{"rope_parameters": jsonObject{
			"rope_type": "yarn", "rope_theta": 1e6, "factor": 16.0, "original_max_position_embeddings": 64}}),
			"llama_4_scaling_beta missing: this class needs yarn"},
		{"Hunyuan's experts", class("HunYuanDenseV1ForCausalLM", jsonObject{"num_experts": 16}), "num_experts is 16"},
		{"Hunyuan's shared attention", class("HunYuanDenseV1ForCausalLM", jsonObject{"use_cla": true}), "use_cla must be false"},
		{"Hunyuan's base", class("HunYuanDenseV1ForCausalLM", jsonObject{"rope_scaling": jsonObject{"type": "dynamic", "alpha": 1e308}}), "alpha is 1e+308"},
		{"latent attention by its key", jsonObject{"kv_lora_rank": 512}, "kv_lora_rank is 512"},
		{"Mamba", class("JambaForCausalLM", nil), "its Mamba layers"},
		{"images", class("LlavaForConditionalGeneration", nil), "its vision tower"},
		{"images of Gemma", class("Gemma4ForConditionalGeneration", nil), "only its text part is supported"},
		{"an unknown class", class("FooForCausalLM", nil), "architecture is FooForCausalLM, qwen2; supported are LlamaForCausalLM"},
		{"no architecture", jsonObject{"architectures": nil, "model_type": nil}, "neither architectures nor model_type"},
		{"architectures without end", jsonObject{"architectures": slices.Repeat([]string{strings.Repeat("X", 100)}, 100)}, "X…, 97 more"},
		{"two architectures", jsonObject{"architectures": []string{"Qwen2ForCausalLM", "X"}}, "architecture is Qwen2ForCausalLM, X"},
		{"yarn without factor", jsonObject{"rope_scaling": jsonObject{"rope_type": "yarn"}}, "rope_scaling: yarn needs a factor"},
		{"yarn's betas", yarn(jsonObject{"beta_fast": 1}), "beta_fast is 1"},
		{"yarn's attention", yarn(jsonObject{"attention_factor": -1}), "attention_factor is -1"},
		{"yarn's original", yarn(jsonObject{"original_max_position_embeddings": 0}), "original_max_position_embeddings is 0"},
		{"llama3 without factors", jsonObject{"rope_scaling": jsonObject{"rope_type": "llama3", "factor": 8}}, "llama3 needs a low_freq_factor"},
		{"llama3 upside down", jsonObject{"rope_scaling": jsonObject{"rope_type": "llama3", "factor": 8, "low_freq_factor": 4, "high_freq_factor": 1}}, "high_freq_factor is 1"},
		{"longrope without lists", jsonObject{"rope_scaling": jsonObject{"rope_type": "longrope"}}, "longrope needs a short_factor"},
		{"longrope's lists", jsonObject{"rope_scaling": jsonObject{"rope_type": "longrope", "short_factor": []float64{1}, "long_factor": []float64{1}}}, "short_factor has 1 numbers, a head has 64"},
		{"unknown scaling", jsonObject{"rope_parameters": jsonObject{"rope_type": "proportional"}}, `rope_parameters: rope type "proportional" is not supported`},
		{"negative factor", jsonObject{"rope_scaling": jsonObject{"type": "linear", "factor": -2}}, "factor is -2"},
		{"rope by layer", jsonObject{"rope_parameters": jsonObject{"full_attention": jsonObject{"rope_theta": 1e6}}}, "differ by layer"},
		{"rope by another layer", jsonObject{"rope_parameters": jsonObject{"main": jsonObject{"rope_theta": 1e6}}}, "differ by layer"},
		{"two thetas", jsonObject{"rope_parameters": jsonObject{"rope_theta": 5e5}}, "rope_theta is 1e+06, but another place in the file says 500000"},
		{"partial rotary", jsonObject{"partial_rotary_factor": 0.5}, "partial_rotary_factor is 0.5"},
		{"partial rotary inside", jsonObject{"rope_parameters": jsonObject{"partial_rotary_factor": 0.25}}, "partial_rotary_factor is 0.25"},
		{"rope is a number", jsonObject{"rope_scaling": 2}, "rope_scaling is 2"},
		{"layer types of another number", jsonObject{"layer_types": layerTypes(2)}, "layer_types has 2 entries"},
		{"windowed layers without window", jsonObject{"layer_types": layerTypes(28, 1)}, "no sliding_window is in use"},
		{"unknown layers", jsonObject{"layer_types": append(layerTypes(27), "linear_attention")}, `layer 27 has "linear_attention"`},
		{"windows of a class without", class("LlamaForCausalLM", jsonObject{"layer_types": layerTypes(28, 1)}), "same attention in all layers"},
		{"window of nothing", class("MistralForCausalLM", jsonObject{"sliding_window": 0}), "sliding_window is 0"},
		{"disputed windows", class("Qwen2MoeForCausalLM", jsonObject{"use_sliding_window": true}), "transformers 4 and 5 give windows to different layers"},
		{"experts in all layers", class("Qwen3MoeForCausalLM", jsonObject{"num_experts": 16384, "num_hidden_layers": 4096}), "num_experts is 16384 in 4096 layers"},
		{"another scaling of Phi-3", class("Phi3ForCausalLM", jsonObject{"rope_scaling": jsonObject{"type": "linear", "factor": 2}}), "Phi3ForCausalLM supports only longrope"},
		{"Phi-3's word elsewhere", jsonObject{"rope_scaling": jsonObject{"type": "su"}}, `rope type "su" is not supported`},
		{"two types", jsonObject{"rope_scaling": jsonObject{"type": "llama3", "rope_type": "linear", "factor": 8}}, "type is \"llama3\", but rope_type is \"linear\""},
		{"two spellings", jsonObject{"rope_scaling": jsonObject{"type": "linear", "factor": 8}, "rope_parameters": jsonObject{"rope_type": "linear", "factor": 4}}, "rope_scaling and rope_parameters differ"},
		{"theta in an odd place", jsonObject{"rope_theta": nil, "rope_scaling": jsonObject{"type": "linear", "factor": 8, "rope_theta": 5}}, "rope_theta is in rope_scaling only"},
		{"theta out of sight", jsonObject{"rope_theta": nil, "rope_scaling": jsonObject{"type": "linear", "factor": 8}, "rope_parameters": jsonObject{"rope_type": "linear", "factor": 8, "rope_theta": 5}},
			"rope_theta is in rope_parameters only"},
		{"yarn's original at the top", jsonObject{"original_max_position_embeddings": 32768, "rope_scaling": jsonObject{"type": "yarn", "factor": 4}}, "would be 131072 to transformers 4 and 32768 to 5"},
		{"two originals", jsonObject{"original_max_position_embeddings": 32768, "rope_scaling": jsonObject{"type": "yarn", "factor": 4, "original_max_position_embeddings": 4096}},
			"would be 4096 to transformers 4 and 32768 to 5"},
		{"longrope's original inside", jsonObject{"rope_scaling": jsonObject{"type": "longrope", "original_max_position_embeddings": 4096}}, "takes 131072; write it there too"},
		{"not causal", jsonObject{"is_causal": false}, "is_causal is false"},
		{"two minds", jsonObject{"model_type": "mistral"}, "architectures says Qwen2ForCausalLM, but model_type says mistral"},
		{"Gemma's rope for all layers", class("Gemma3ForCausalLM", jsonObject{"rope_theta": nil, "rope_parameters": jsonObject{"rope_theta": 1e6}}), "has them under full_attention"},
		{"Gemma's original at the top", class("Gemma3ForCausalLM", jsonObject{"original_max_position_embeddings": 4096, "rope_theta": nil,
			"rope_parameters": jsonObject{"full_attention": jsonObject{"rope_theta": 1e6, "rope_type": "longrope", "short_factor": slices.Repeat([]float64{1}, 128),
				"long_factor": slices.Repeat([]float64{2}, 128)}}}), "transformers 5 takes 131072: write it in both places"},
		{"ERNIE's two numbers", class("Ernie4_5_MoeForCausalLM", jsonObject{"moe_k": 2, "num_experts_per_tok": 3}), "moe_k is 2, but num_experts_per_tok, another name of it, is 3"},
		{"Hunyuan's two numbers", class("HunYuanMoEV1ForCausalLM", jsonObject{"num_experts": 4, "moe_topk": []int{2, 2}, "num_experts_per_tok": 3}),
			"another name of it, is 3"},
		{"both ways", class("Gemma2ForCausalLM", jsonObject{"use_bidirectional_attention": true}), "only causal attention"},
		{"caps of zero", class("Gemma2ForCausalLM", jsonObject{"final_logit_softcapping": 0}), "final_logit_softcapping is 0"},
		{"scalar of zero", class("Gemma2ForCausalLM", jsonObject{"query_pre_attn_scalar": 0}), "query_pre_attn_scalar is 0"},
		{"a cap that is ignored", class("Gemma3ForCausalLM", jsonObject{"attn_logit_softcapping": 50}), "attn_logit_softcapping: transformers ignores it"},
		{"pattern of nothing", class("Gemma3ForCausalLM", jsonObject{"sliding_window_pattern": 0}), "sliding_window_pattern is 0"},
		{"more chosen than there are", class("Qwen3MoeForCausalLM", jsonObject{"num_experts": 2, "num_experts_per_tok": 3}), "num_experts_per_tok is 3 of 2"},
		{"no step", class("Qwen3MoeForCausalLM", jsonObject{"decoder_sparse_step": 0}), "decoder_sparse_step is 0"},
		{"many experts", class("Qwen3MoeForCausalLM", jsonObject{"num_experts": 1 << 30}), "over the limits"},
		{"activation", jsonObject{"hidden_act": "gelu"}, `hidden_act is "gelu"`},
		{"experts", jsonObject{"num_experts": 8}, "num_experts is 8"},
		{"quantized", jsonObject{"quantization_config": jsonObject{"bits": 4}}, "quantization_config"},
		{"layers of their own", jsonObject{"per_layer_config": jsonObject{"0": jsonObject{"rms_norm_eps": 0.5}}},
			"per_layer_config: layers with settings of their own"},
		{"no width", jsonObject{"hidden_size": nil}, "hidden_size is missing"},
		{"null epsilon", jsonObject{"rms_norm_eps": null}, "rms_norm_eps is null"},
		{"null head size", class("Qwen3ForCausalLM", jsonObject{"head_dim": null}), "head_dim is null"},
		{"width is a string", jsonObject{"hidden_size": "3584"}, `hidden_size is "3584"`},
		{"width is a fraction", jsonObject{"hidden_size": 0.5}, "hidden_size is 0.5"},
		{"theta is a string", jsonObject{"rope_theta": "x"}, "rope_theta"},
		{"heads do not divide", jsonObject{"num_attention_heads": 27}, "not a multiple of num_attention_heads 27"},
		{"keys do not divide", jsonObject{"num_key_value_heads": 5}, "not a multiple of kv_heads 5"},
		{"no heads", jsonObject{"num_attention_heads": 0}, "heads is 0"},
		{"negative", jsonObject{"num_hidden_layers": -1}, "layers is -1"},
		{"vast", jsonObject{"vocab_size": 1 << 40}, "vocab_size is 1099511627776, over the limit"},
		{"vast depth", jsonObject{"num_hidden_layers": 1 << 40, "use_sliding_window": true}, "num_hidden_layers is 1099511627776, over the limit"},
		{"epsilon", jsonObject{"rms_norm_eps": 0}, "norm_eps 0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := ParseConfig("some/config.json", edit(t, tt.changes))
			var e *ConfigError
			if !errors.As(err, &e) {
				t.Fatalf("got %+v, %v; want a *ConfigError", c, err)
			}
			if !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "some/config.json") {
				t.Errorf("error %q does not say %q", err, tt.want)
			}
		})
	}
}

// All that stands in the way comes in one error, in a fixed order.
func TestParseConfigListsAllProblems(t *testing.T) {
	raw := edit(t, jsonObject{"rope_scaling": jsonObject{"rope_type": "yarn"}, "hidden_act": "relu", "num_experts": 4, "vocab_size": nil, "layer_types": layerTypes(1)})
	var e *ConfigError
	if _, err := ParseConfig("config.json", raw); !errors.As(err, &e) {
		t.Fatalf("got %v, want a *ConfigError", err)
	}
	var keys []string
	for _, p := range e.Problems {
		keys = append(keys, strings.Fields(p)[0])
	}
	if want := []string{"vocab_size", "hidden_act", "layer_types", "rope_scaling:", "num_experts"}; !slices.Equal(keys, want) {
		t.Errorf("problems with %q, want %q", keys, want)
	}
	raw = edit(t, class("SmolLM3ForCausalLM", jsonObject{"no_rope_layer_interval": 0})) // which is read twice
	if _, err := ParseConfig("config.json", raw); !errors.As(err, &e) || len(e.Problems) != 1 {
		t.Errorf("got %v, want one problem", err)
	}
}

func TestReadConfigErrors(t *testing.T) {
	dir := t.TempDir()
	if _, err := ReadConfig(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent: %v", err)
	}
	path := writeFile(t, filepath.Join(dir, "config.json"), []byte(qwen25Published[:40]))
	var e *Error
	if _, err := ReadConfig(dir); !errors.Is(err, ErrCorrupt) || !errors.As(err, &e) || e.Path != path {
		t.Errorf("truncated: %v, want ErrCorrupt about %s", err, path)
	}
}

// An accepted configuration is a possible model and writes a file that reads the same, unless
// no class can express it.
func FuzzParseConfig(f *testing.F) {
	f.Add([]byte(qwen25Published))
	f.Add([]byte(qwen3Published))
	f.Add([]byte(`{"model_type":"llama","vocab_size":1,"hidden_size":8,"num_hidden_layers":1,"num_attention_heads":2,"intermediate_size":1,"rope_parameters":{"rope_theta":3}}`))
	f.Add([]byte(`{"model_type":"gemma3_text","vocab_size":1,"hidden_size":8,"num_hidden_layers":2,"num_attention_heads":4,"intermediate_size":1,"layer_types":["full_attention","sliding_attention"],"rope_parameters":{"full_attention":{"rope_theta":3},"sliding_attention":{"rope_theta":2}}}`))
	f.Add([]byte(`{"model_type":"qwen3_moe","vocab_size":1,"hidden_size":8,"num_hidden_layers":2,"num_attention_heads":4,"intermediate_size":1,"mlp_only_layers":[1]}`))
	f.Add([]byte(`{"model_type":"phi3","vocab_size":1,"hidden_size":8,"num_hidden_layers":2,"num_attention_heads":2,"intermediate_size":1,"original_max_position_embeddings":7,"rope_scaling":{"type":"su","short_factor":[1,2],"long_factor":[3,4]}}`))
	for _, dir := range goldenFolders(f) {
		f.Add(readFile(f, filepath.Join(dir, configFile)))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, err := ParseConfig("f", raw)
		if err != nil {
			return
		}
		if err := c.Validate(); err != nil {
			t.Fatalf("accepted %+v: %v", c, err)
		}
		Notes(c)
		again, err := configJSON(c, F32, nil)
		if err != nil {
			return
		}
		if got, err := ParseConfig("f", again); err != nil || !cmp.Equal(got, c) {
			t.Fatalf("written and read: %+v, %v; want %+v", got, err, c)
		}
		patched, err := patchConfig(raw, c, BF16, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ParseConfig("f", patched); err != nil || !cmp.Equal(got, c) {
			t.Fatalf("changed and read: %+v, %v; want %+v", got, err, c)
		}
	})
}

// A file without a config.json is no model.
func TestReadConfigOfFile(t *testing.T) {
	path := writeFile(t, filepath.Join(t.TempDir(), "model.yaml"), []byte("x: 1"))
	if _, err := ReadConfig(path); err == nil || !strings.Contains(err.Error(), path+": is a file, and no config.json lies next to it; name a folder") {
		t.Errorf("%v", err)
	}
}

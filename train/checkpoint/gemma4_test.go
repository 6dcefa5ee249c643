package checkpoint

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/kernels/ref"
	"exp/train/model"
)

// gemmaFourFolder calls f with the tiny mixture of experts of Gemma 4 in families.json.
func gemmaFourFolder(t *testing.T, f func(x family, dir string, tokens []int32, c model.Config)) {
	eachFamily(t, func(t *testing.T, x family, dir string, tokens []int32) {
		if x.Name != "gemma4-moe" {
			return
		}
		c, err := ReadConfig(dir)
		if err != nil {
			t.Fatal(err)
		}
		f(x, dir, tokens, c)
	})
}

// stackedExperts are the tensors of a folder as it is published: all experts of a layer in one.
func stackedExperts(t *testing.T, c model.Config) (list []Source) {
	t.Helper()
	raw := map[string]string{}
	for _, w := range waves(c) {
		if !strings.Contains(w.Name, ".experts.") {
			list = append(list, w)
			continue
		}
		var b sliceWriter
		if err := w.Raw(&b); err != nil {
			t.Fatal(err)
		}
		raw[w.Name] = string(b.bytes)
	}
	E, C, F := c.Experts.Count, c.Width, c.Experts.FFN
	for l := range c.Layers {
		p := fmt.Sprintf("model.layers.%d.experts.", l)
		var gateUp, down string
		for e := range E {
			own := fmt.Sprintf("%s%d.", p, e)
			gateUp += raw[own+"gate_proj.weight"] + raw[own+"up_proj.weight"]
			down += raw[own+"down_proj.weight"]
		}
		list = append(list, source(p+"gate_up_proj", F32, []int{E, 2 * F, C}, gateUp),
			source(p+"down_proj", F32, []int{E, C, F}, down))
	}
	return list
}

// A folder of Gemma 4 with experts is read, merged, cut over ranks and written again with the bytes that it had.
func TestStackedExperts(t *testing.T) {
	gemmaFourFolder(t, func(x family, dir string, tokens []int32, c model.Config) {
		file := filepath.Join(dir, weightsFile)
		writeTensors(t, file, stackedExperts(t, c)...)
		published := string(readFile(t, file))
		be := ref.New[float64]()
		m := openGolden(t, be, dir, false)
		got := logitsOf(t, be, m, tokens)
		wantNear(t, got[len(got)-len(x.Logits):], x.Logits, 1e-6)
		m.Close()

		same := func(folder string) {
			if string(readFile(t, filepath.Join(folder, weightsFile))) != published {
				t.Errorf("%s has other bytes than the published folder", folder)
			}
		}
		found := func(path string) *Container {
			x, err := FindContainer(path)
			if err != nil {
				t.Fatal(err)
			}
			return x
		}
		merged, ranks, back := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b"), filepath.Join(t.TempDir(), "c")
		if _, err := Pack(context.Background(), found(dir), merged, PackOptions{}); err != nil {
			t.Fatal(err)
		}
		same(merged)
		if _, err := Spread(context.Background(), found(dir), ranks, SpreadOptions{FSDP: 3, Prove: true}); err != nil {
			t.Fatal(err)
		}
		if _, err := Pack(context.Background(), found(ranks), back, PackOptions{}); err != nil {
			t.Fatal(err)
		}
		same(back)

		split, err := OpenFolder(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer split.Close()
		to := filepath.Join(t.TempDir(), "trained")
		trained := Trained{Config: c, Heads: model.Heads{LM: true}, Weights: split, Learned: split}
		if _, err := MergeTensors(ref.New[float32](), trained, to, MergeOptions{DType: F32}); err != nil {
			t.Fatal(err)
		}
		same(to)
	})
}

// The text part of a Gemma 4 of text and images, whose experts are in one tensor.
func TestTextOfGemma4(t *testing.T) {
	gemmaFourFolder(t, func(x family, dir string, tokens []int32, c model.Config) {
		text := maps.Clone(x.Config)
		delete(text, "architectures")
		writeFile(t, filepath.Join(dir, configFile), compact(jsonObject{"model_type": "gemma4", "text_config": text,
			"architectures": []string{"Gemma4ForConditionalGeneration"}, "vision_config": jsonObject{}}))
		list := stackedExperts(t, c)
		for i, s := range list {
			list[i].Name = strings.Replace(s.Name, "model.", "model.language_model.", 1)
		}
		list = append(list, source("model.vision_tower.std_bias", F32, []int{1}, "\x00\x00\x00\x00"))
		writeTensors(t, filepath.Join(dir, weightsFile), list...)
		got, err := ReadTextConfig(dir)
		if err != nil || got.Global != c.Global || got.Experts != c.Experts {
			t.Fatal(got, err)
		}
		weights, err := OpenTextFolder(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer weights.Close()
		if err := weights.Fits(c); err != nil {
			t.Error(err)
		}
	})
}

// The text part of 12B, which has a class of its own, is written as the class that computes the same.
func TestTextOfGemma4Unified(t *testing.T) {
	eachFamily(t, func(t *testing.T, x family, dir string, _ []int32) {
		if x.Name != "gemma4-unified" {
			return
		}
		c, err := ReadConfig(dir)
		if err != nil {
			t.Fatal(err)
		}
		whole := compact(jsonObject{"model_type": "gemma4_unified", "text_config": x.Config,
			"architectures": []string{"Gemma4UnifiedForConditionalGeneration"}})
		writeFile(t, filepath.Join(dir, configFile), whole)
		written, err := patchConfig(whole, c, BF16, []int32{1})
		if err != nil {
			t.Fatal(err)
		}
		if class := classOf(written); class != "Gemma4ForCausalLM" || !strings.HasSuffix(TextNote(dir), "plain "+class) {
			t.Errorf("written as %s; the note says %q", class, TextNote(dir))
		}
	})
}

// Folders may hold keys and values of layers that read those of another.
func TestUnreadKeys(t *testing.T) {
	eachFamily(t, func(t *testing.T, x family, dir string, tokens []int32) {
		if x.Name != "gemma4-e2b" {
			return
		}
		c, err := ReadConfig(dir)
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]bool{"model.layers.3.self_attn.k_proj.weight": true,
			"model.layers.2.self_attn.v_proj.weight": true, "model.layers.3.self_attn.k_norm.weight": true,
			"model.layers.3.self_attn.x_proj.weight": false, "model.layers.4.self_attn.k_proj.weight": false} {
			writeTensors(t, filepath.Join(dir, weightsFile), append(waves(c), source(name, F32, []int{1}, "abcd"))...)
			weights, err := OpenFolder(dir)
			if err != nil {
				t.Fatal(err)
			}
			if err := weights.Fits(c); (err == nil) != want {
				t.Errorf("%s: %v", name, err)
			}
			weights.Close()
		}
	})
}

func TestGemma4Refuses(t *testing.T) {
	base := jsonObject{"architectures": []string{"Gemma4ForCausalLM"}, "model_type": "gemma4_text", "vocab_size": 11,
		"hidden_size": 8, "intermediate_size": 6, "num_hidden_layers": 6, "num_attention_heads": 2, "num_key_value_heads": 2,
		"head_dim": 4, "global_head_dim": 8, "hidden_size_per_layer_input": 0}
	rope := func(full jsonObject) jsonObject {
		return jsonObject{"rope_parameters": jsonObject{"full_attention": full,
			"sliding_attention": jsonObject{"rope_type": "default", "rope_theta": 1e4}}}
	}
	layers := func(value any) jsonObject { return jsonObject{"per_layer_config": value} }
	all := slices.Repeat([]string{fullScope}, 6)
	for _, tt := range []struct {
		name    string
		changes jsonObject
		want    string
	}{
		{"nothing", nil, ""},
		{"embeddings of layers", jsonObject{"hidden_size_per_layer_input": 8, "vocab_size_per_layer_input": 11}, ""},
		{"of other tokens", jsonObject{"hidden_size_per_layer_input": 8},
			"vocab_size_per_layer_input is 262144, vocab_size 11"},
		{"by default", jsonObject{"hidden_size_per_layer_input": nil}, "hidden_size_per_layer_input is null"},
		{"too wide ones", jsonObject{"hidden_size_per_layer_input": 1 << 20}, "hidden_size_per_layer_input is 1048576"},
		{"shared keys of no layer", jsonObject{"num_kv_shared_layers": 2}, "no layer has keys and values of the kind"},
		{"shared keys", jsonObject{"num_kv_shared_layers": 2, "layer_types": layerTypes(6, 3)}, ""},
		{"shared keys of all", jsonObject{"num_kv_shared_layers": 6}, "num_kv_shared_layers is 6 of 6 layers"},
		{"biases", jsonObject{"attention_bias": true}, "attention_bias: biases"},
		{"all tokens at once", jsonObject{"use_bidirectional_attention": "all"}, `use_bidirectional_attention is "all"`},
		{"images at once", jsonObject{"use_bidirectional_attention": "vision"}, ""},
		{"no window", jsonObject{"layer_types": all}, "needs layers with a window"},
		{"a window in the last layer", jsonObject{"layer_types": append(slices.Clone(all[:5]), windowScope)},
			"layer_types: the last layer must be full_attention"},
		{"wide heads", jsonObject{"global_head_dim": 1 << 13}, "key heads of 8192 channels, over the limits"},
		{"odd heads", jsonObject{"global_head_dim": 7}, "no channels of 7"},
		{"keys of no heads", jsonObject{"attention_k_eq_v": true, "num_global_key_value_heads": 3}, "have 3 key heads"},
		{"experts without a number", jsonObject{"enable_moe_block": true}, "num_experts is missing"},
		{"experts of no width", jsonObject{"enable_moe_block": true, "num_experts": 4, "top_k_experts": 2,
			"moe_intermediate_size": 0}, "moe_intermediate_size is 0"},
		{"another gate", jsonObject{"enable_moe_block": true, "num_experts": 4, "top_k_experts": 2,
			"moe_intermediate_size": 4, "hidden_activation": "silu"}, "another gate than silu"},
		{"the old theta", jsonObject{"rope_theta": 1e5}, "rope_theta and rope_scaling: transformers ignores them"},
		{"yarn", rope(jsonObject{"rope_type": "yarn", "factor": 4.0, "rope_theta": 1e6}), `rope type "yarn"`},
		{"no part", rope(jsonObject{"rope_type": "proportional", "partial_rotary_factor": 0.1, "rope_theta": 1e6}),
			"partial_rotary_factor is 0.1: no channels of 8"},
		{"no factor", rope(jsonObject{"rope_type": "proportional", "factor": 0.0, "rope_theta": 1e6}), "factor is 0"},
		{"layers", layers(jsonObject{"5": jsonObject{"head_dim": 8}}), ""},
		{"a layer with a window", layers(jsonObject{"4": jsonObject{"head_dim": 8}}), "per_layer_config: layer 4"},
		{"another setting", layers(jsonObject{"5": jsonObject{"head_dim": 8, "intermediate_size": 8}}),
			"per_layer_config: layer 5: only head_dim"},
	} {
		changed := maps.Clone(base)
		maps.Copy(changed, tt.changes)
		_, err := ParseConfig(configFile, compact(changed))
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}

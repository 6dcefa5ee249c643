package checkpoint

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"
)

// A config.json with scaled rotary positions keeps its class, its token ids and keys that
// this program does not know; the spelling of rotary positions that is missing gets the
// values of the other.
func TestPatchConfigKeepsScaledFiles(t *testing.T) {
	const dims = `"vocab_size": 11, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4,
		"num_key_value_heads": 2, "intermediate_size": 8, "max_position_embeddings": 128, "bos_token_id": 5,
		"eos_token_id": 6, "pad_token_id": 7, "zebra": 8, "torch_dtype": "float32"`
	const yarn, factors = `"factor": 4.0, "beta_slow": 2`, `"short_factor": [1, 1], "long_factor": [2, 3]`
	for _, tt := range []struct{ class, rope, params, scaling string }{
		{"Qwen2ForCausalLM", `"rope_theta": 500.0, "rope_scaling": {"type": "yarn", ` + yarn + `}`,
			`{"rope_type": "yarn", "rope_theta": 500.0, ` + yarn + `}`, ""},
		{"MistralForCausalLM", `"sliding_window": null, "rope_parameters": {"rope_type": "yarn", "rope_theta": 500.0,
			"original_max_position_embeddings": 64, ` + yarn + `}`, "",
			`{"type": "yarn", "rope_type": "yarn", "original_max_position_embeddings": 64, ` + yarn + `}`},
		{"Qwen2ForCausalLM", `"rope_scaling": {"type": "default", "mrope_section": [1, 1]}`,
			`{"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [1, 1]}`, ""},
		{"Gemma3ForCausalLM", `"head_dim": 8, "rope_scaling": {"rope_type": "linear", "factor": 8}`,
			`{"full_attention": {"rope_type": "linear", "rope_theta": 1000000.0, "factor": 8},
			"sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}`, ""},
		{"Phi3ForCausalLM", `"partial_rotary_factor": 0.55, "original_max_position_embeddings": 64,
			"rope_scaling": {"type": "longrope", ` + factors + `}`, `{"rope_type": "longrope", "rope_theta": 10000.0,
			"partial_rotary_factor": 0.55, ` + factors + `}`, ""},
		{"Phi3ForCausalLM", `"original_max_position_embeddings": 64, "rope_parameters": {"rope_type": "longrope",
			"rope_theta": 10000.0, "original_max_position_embeddings": 64, "partial_rotary_factor": 0.5, ` + factors + `}`, "", `{"type": "longrope", ` + factors + `}`},
	} {
		old := fmt.Sprintf(`{"architectures": [%q], %s, %s}`, tt.class, dims, tt.rope)
		c, err := ParseConfig("old", []byte(old))
		if err != nil {
			t.Fatal(err)
		}
		raw, err := patchConfig([]byte(old), c, F32, nil)
		if err != nil {
			t.Fatal(err)
		}
		var was, is map[string]any
		if err := json.Unmarshal([]byte(old), &was); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(raw, &is); err != nil {
			t.Fatal(err)
		}
		for key, v := range was {
			if !reflect.DeepEqual(is[key], v) {
				t.Errorf("%s: %s is %v, was %v", old, key, is[key], v)
			}
		}
		for key, want := range map[string]string{"rope_parameters": tt.params, "rope_scaling": tt.scaling} {
			var v any
			if want != "" && (json.Unmarshal([]byte(want), &v) != nil || !reflect.DeepEqual(is[key], v)) {
				t.Errorf("%s: %s is %v, want %v", old, key, is[key], v)
			}
		}
		// It can also be written without the old file.
		if _, err := configJSON(c, F32, nil); err != nil {
			t.Errorf("%s: %v", old, err)
		}
	}
}

// transformers needs a window in these classes even if no layer has one.
func TestWrittenConfigsHaveWindows(t *testing.T) {
	for name, key := range map[string]string{"Gemma3ForCausalLM": "hidden_act", "GptOssForCausalLM": "num_local_experts"} {
		c, err := ParseConfig(configFile, edit(t, class(name, jsonObject{"rope_theta": nil, "layer_types": layerTypes(28),
			key: nil, "rope_parameters": nil})))
		if err != nil {
			t.Fatal(err)
		}
		raw, err := configJSON(c, F32, nil)
		if err != nil {
			t.Fatal(err)
		}
		r := settings{}
		if _, r.values, err = asMap(raw); err != nil || !r.has("sliding_window") || c.Windowed != nil {
			t.Errorf("%s: %v, windows %v: %s", name, err, c.Windowed, raw)
		}
	}
}

// transformers 4 looks for longrope's number of positions at the top of a file, transformers 5 in the parameters of
// these layers.
func TestWrittenConfigsOfLongrope(t *testing.T) {
	list := slices.Repeat([]float64{1}, 128)
	c, err := ParseConfig(configFile, edit(t, class("Gemma3ForCausalLM", jsonObject{"rope_theta": nil, "hidden_act": nil,
		"rope_parameters": jsonObject{"full_attention": jsonObject{"rope_theta": 1e6, "rope_type": "longrope",
			"short_factor": list, "long_factor": list, originalKey: 4096}}})))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := configJSON(c, F32, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := settings{}
	if _, r.values, err = asMap(raw); err != nil {
		t.Fatal(err)
	}
	for _, in := range []*settings{&r, r.inner("rope_scaling"), r.inner("rope_parameters").inner(fullScope)} {
		if n := 0; !in.maybe(originalKey, &n) || n != 4096 {
			t.Errorf("%s is %d in %s", originalKey, n, raw)
		}
	}
}

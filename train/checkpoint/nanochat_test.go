package checkpoint

import (
	"maps"
	"strings"
	"testing"

	"exp/kernels"
	"exp/train/model"
)

// tinyNanochat returns settings of nanochat with the keys of published files.
func tinyNanochat() jsonObject {
	return jsonObject{"architectures": []string{"NanoChatForCausalLM"}, "model_type": "nanochat", "vocab_size": 11,
		"hidden_size": 8, "intermediate_size": 6, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1,
		"attention_bias": false, "hidden_act": "relu2", "final_logit_softcapping": 15.0, "rms_norm_eps": 1e-6,
		"max_position_embeddings": 2048, "rope_theta": 10000.0, "tie_word_embeddings": false}
}

func TestReadNanochat(t *testing.T) {
	c, err := ParseConfig(configFile, compact(tinyNanochat()))
	if err != nil {
		t.Fatal(err)
	}
	if c.Names != model.NanoNames || !c.UnitOffset || !c.LateQKNorm || c.Gate != kernels.ReLU2 || c.LogitCap != 15 || c.Head != 4 {
		t.Errorf("read %+v", c)
	}
	// The class's own values of absent keys.
	c, err = ParseConfig(configFile, compact(jsonObject{"architectures": []string{"NanoChatForCausalLM"}, "hidden_size": 48,
		"num_hidden_layers": 1, "intermediate_size": 6}))
	if err != nil || c.Heads != 6 || c.KVHeads != 6 || c.Vocab != 50304 || c.MaxPositions != 2048 || c.NormEps != 1e-6 ||
		c.LogitCap != 15 || c.TieEmbeddings || c.Gate != kernels.ReLU2 {
		t.Errorf("without its keys the class is %+v, %v", c, err)
	}
	text := strings.Join(Words(c, "NanoChatForCausalLM"), "\n")
	for _, part := range []string{"norms without weights", "squared ReLU", "logits capped at 15"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in its words:\n%s", part, text)
		}
	}
}

func TestNanochatRefuses(t *testing.T) {
	for _, tt := range []struct {
		name    string
		changes jsonObject
		want    string
	}{
		{"nothing", nil, ""},
		{"no cap", jsonObject{"final_logit_softcapping": nil}, ""},
		{"another activation", jsonObject{"hidden_act": "silu"}, `hidden_act is "silu": only "relu2"`},
		{"a cap of 0", jsonObject{"final_logit_softcapping": 0}, "final_logit_softcapping is 0"},
		{"a part of a head", jsonObject{"partial_rotary_factor": 0.5}, "partial_rotary_factor is 0.5, only 1"},
		{"windows", jsonObject{"layer_types": []string{"sliding_attention", "full_attention"}}, "same attention in all layers"},
		{"experts", jsonObject{"num_experts": 4}, "experts of this class are not supported"},
	} {
		changed := tinyNanochat()
		maps.Copy(changed, tt.changes)
		_, err := ParseConfig(configFile, compact(changed))
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}

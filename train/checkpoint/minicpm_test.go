package checkpoint

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The logits of minicpm and minicpm4 in testdata/families.json are those of a model written in torch, in float64, as
// arXiv:2404.06395 describes MiniCPM, since transformers has no such class; without longrope they are also those of
// transformers' Granite with the same factors, to 2·10⁻⁷, the rounding of its rotary positions. Those of minicpm3 are
// transformers'.

func TestMiniCPMRefuses(t *testing.T) {
	base := jsonObject{"architectures": []string{"MiniCPMForCausalLM"}, "model_type": "minicpm", "vocab_size": 11,
		"hidden_size": 16, "intermediate_size": 6, "num_hidden_layers": 2, "num_attention_heads": 4}
	third := maps.Clone(base)
	third["architectures"], third["model_type"] = []string{"MiniCPM3ForCausalLM"}, "minicpm3"
	for _, tt := range []struct {
		name    string
		base    jsonObject
		changes jsonObject
		want    string
	}{
		{"nothing", base, nil, ""},
		{"nothing of MiniCPM3", third, nil, ""},
		{"a depth of 0", base, jsonObject{"scale_depth": 0}, "scale_depth is 0, must be from"},
		{"a huge scale", base, jsonObject{"scale_emb": 1e9}, "scale_emb is 1e+09, must be from"},
		{"a width below 0", third, jsonObject{"dim_model_base": -256}, "dim_model_base is -256, must be from"},
		{"MiniCPM-S", base, jsonObject{"hidden_act": "fatrelu"}, `hidden_act is "fatrelu"`},
		{"MiniCPM-MoE", base, jsonObject{"num_experts": 8}, "num_experts is 8: experts of this class are not supported"},
		{"biases of MiniCPM3", third, jsonObject{"mlp_bias": true}, "mlp_bias is true: only false is supported"},
		{"and of its attention", third, jsonObject{"attention_bias": true}, "latent attention with biases"},
	} {
		changed := maps.Clone(tt.base)
		maps.Copy(changed, tt.changes)
		_, err := ParseConfig(configFile, compact(changed))
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
	c, err := ParseConfig(configFile, compact(base))
	if err != nil || c.EmbedScale != 0 || c.LogitDivisor != 16 || !c.TieEmbeddings {
		t.Errorf("a file without factors: %+v, %v; want MiniCPM's own defaults, logits divided by 16", c, err)
	}
}

// The authors' code looks for longrope's positions before scaling next to its factors, and nowhere else.
func TestLongropeOfMiniCPMIsWrittenWhole(t *testing.T) {
	eachFamily(t, func(t *testing.T, x family, dir string, _ []int32) {
		if x.Name != "minicpm4" && x.Name != "minicpm3-one-map" {
			return
		}
		c, err := ReadConfig(dir)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := configJSON(c, F32, nil)
		r := settings{}
		if err == nil {
			err = json.Unmarshal(raw, &r.values)
		}
		n := 0
		if in := r.inner("rope_scaling"); err != nil || in == nil || !in.maybe(originalKey, &n) || n != 16 {
			t.Errorf("rope_scaling is %s, %v", r.values["rope_scaling"], err)
		}
	})
}

// MiniCPM 4.1 has sparse attention for long sequences, which no reader can miss: a note says that it is not computed.
func TestSparseAttentionIsNoted(t *testing.T) {
	dir := t.TempDir()
	noted := func(config string) bool {
		writeFile(t, filepath.Join(dir, configFile), []byte(config))
		return slices.ContainsFunc(fileNotes(dir, false), func(s string) bool { return strings.Contains(s, "attention is dense here") })
	}
	if !noted(`{"model_type": "minicpm", "sparse_config": {"dense_len": 8192}}`) || noted(`{"sparse_config": null}`) {
		t.Error("a note of sparse attention, or its lack, is missing")
	}
}

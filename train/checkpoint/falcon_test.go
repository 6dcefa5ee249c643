package checkpoint

import (
	"maps"
	"math"
	"strings"
	"testing"

	"exp/kernels/ref"
)

// Each number of each multiplier counts: with 1 in its place the logits are no longer transformers'.
func TestFalconMultipliersCount(t *testing.T) {
	eachFamily(t, func(t *testing.T, x family, dir string, tokens []int32) {
		if x.Name != "falcon-h1" && x.Name != "falcon-h1-bias" {
			return
		}
		be, count := ref.New[float64](), 0
		c, err := ReadConfig(dir)
		if err != nil {
			t.Fatal(err)
		}
		for i, f := range falconFactors(&c) {
			for j := range f.to {
				m := openGolden(t, be, dir, false)
				changed := m.Config
				*falconFactors(&changed)[i].to[j] = 0
				m.Close()
				own := maps.Clone(x.Config)
				falconValues(own, architecture{}, changed)
				writeFile(t, dir+"/"+configFile, compact(own))
				m = openGolden(t, be, dir, false)
				got := logitsOf(t, be, m, tokens)
				m.Close()
				worst := 0.0
				for k, w := range x.Logits {
					worst = max(worst, math.Abs(got[len(got)-len(x.Logits)+k]-w))
				}
				if count++; worst < 1e-4 {
					t.Errorf("without number %d of %s logits differ by %g only", j, f.key, worst)
				}
				writeFile(t, dir+"/"+configFile, compact(x.Config))
			}
		}
		if count != 14 {
			t.Errorf("there are %d numbers, want 14", count)
		}
	})
}

func TestFalconRefuses(t *testing.T) {
	base := jsonObject{"architectures": []string{"FalconH1ForCausalLM"}, "model_type": "falcon_h1", "vocab_size": 11,
		"hidden_size": 8, "intermediate_size": 6, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2,
		"mamba_d_ssm": 12, "mamba_n_heads": 4, "mamba_d_head": 3, "rope_theta": 1e11}
	for _, tt := range []struct {
		name    string
		changes jsonObject
		want    string
	}{
		{"nothing", nil, ""},
		{"multipliers of null", jsonObject{"mlp_multipliers": nil, "key_multiplier": nil}, ""},
		{"too few", jsonObject{"ssm_multipliers": []float64{1, 2}}, "ssm_multipliers has 2 numbers, must have 5"},
		{"a multiplier of 0", jsonObject{"key_multiplier": 0}, "key_multiplier is 0, must be from 1e-06"},
		{"biases of Mamba-2's input", jsonObject{"mamba_proj_bias": true}, "mamba_proj_bias is true: only false"},
		{"no bias of the convolution", jsonObject{"mamba_conv_bias": false}, "mamba_conv_bias is false: only true"},
		{"no blocks", jsonObject{"mamba_use_mlp": false}, "mamba_use_mlp is false"},
		{"no base", jsonObject{"rope_theta": nil}, "rope_theta is missing: transformers 4 takes 100000"},
		{"another width", jsonObject{"mamba_d_ssm": 16}, "must be mamba_d_ssm 16"},
		{"another activation", jsonObject{"hidden_act": "gelu_new"}, "hidden_act must be silu"},
	} {
		changed := maps.Clone(base)
		maps.Copy(changed, tt.changes)
		_, err := ParseConfig(configFile, compact(changed))
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}

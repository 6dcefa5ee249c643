package checkpoint

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"exp/train/checkpoint/fsdp"
	"exp/train/model"
)

// eachOlmoHybrid is eachHybrid for OLMo Hybrid.
func eachOlmoHybrid(t *testing.T, f func(t *testing.T, x family, c model.Config, dir string, tokens []int32)) {
	eachHybrid(t, func(t *testing.T, x family, c model.Config, dir string, tokens []int32) {
		if c.Names == model.OlmoHybridNames {
			f(t, x, c, dir, tokens)
		}
	})
}

// joinedConvolutions gives each layer of a list one convolution, and other names to its tensors.
func joinedConvolutions(list []Source, rename func(name string) string) []Source {
	return moduleOlmoHybrid(list, sourceTensor, func(to Tensor, parts []Source) Source {
		if len(parts) == 1 { // the name stays for rename
			to.Name = parts[0].Name
		}
		to.Name = rename(to.Name)
		return stackedSource(to, parts)
	})
}

// moduleNames are those of transformers' modules.
func moduleNames(name string) string {
	return strings.NewReplacer("attention_layer_norm", "input_layernorm", "feedforward_layer_norm",
		"post_attention_layernorm").Replace(name)
}

// savedConvolutions are as transformers 5.24 saves them: thirds of all channels, and one name too many replaced.
func savedConvolutions(list []Source) (out []Source) {
	for _, x := range joinedConvolutions(list, func(name string) string { return name }) {
		x.Name = strings.Replace(x.Name, "post_attention_layernorm", "feedforward_layer_norm", 1)
		prefix, ok := strings.CutSuffix(x.Name, joinedConvolution)
		if !ok {
			out = append(out, x)
			continue
		}
		raw := &sliceWriter{}
		if err := x.Raw(raw); err != nil {
			panic(err)
		}
		n := x.Shape[0]
		size := len(raw.bytes) / n
		third := (n + 2) / 3
		for i, name := range olmoConvolutions() {
			lo, hi := third*i, min(third*(i+1), n)
			out = append(out, source(prefix+name, F32, []int{hi - lo, 1, x.Shape[2]}, string(raw.bytes[lo*size:hi*size])))
		}
	}
	return out
}

// A state dict of transformers 5, what transformers 5.24 saves, and a backbone that AutoModel would save read as
// published folders.
func TestStateOfOlmoHybrid(t *testing.T) {
	eachOlmoHybrid(t, func(t *testing.T, x family, c model.Config, dir string, tokens []int32) {
		for name, list := range map[string][]Source{
			"modules": joinedConvolutions(waves(c), moduleNames),
			"saved":   savedConvolutions(waves(c)),
			"bare": joinedConvolutions(waves(c), func(name string) string {
				return strings.TrimPrefix(moduleNames(name), backbonePrefix)
			}),
		} {
			to := t.TempDir()
			writeFile(t, filepath.Join(to, configFile), readFile(t, filepath.Join(dir, configFile)))
			if name == "bare" { // the others of its tensors, too
				for i := range list {
					list[i].Name = strings.TrimPrefix(list[i].Name, backbonePrefix)
				}
			}
			writeTensors(t, filepath.Join(to, "model.safetensors"), list...)
			shapes := storedShapes(t, filepath.Join(to, "model.safetensors"))
			if _, ok := shapes["model.layers.0.linear_attn.v_conv1d.weight"]; ok != (name == "saved") {
				t.Fatalf("%s: %v", name, sortedKeys(shapes))
			}
			sameLogits(t, dir, to, tokens)
		}
	})
}

// Convolutions that have not the channels of queries, keys and values, or lack those, are no model's.
func TestOlmoHybridMisfits(t *testing.T) {
	eachOlmoHybrid(t, func(t *testing.T, x family, c model.Config, dir string, _ []int32) {
		const p = "model.layers.0.linear_attn."
		one := source(p+"k_conv1d.weight", F32, []int{1, 1, c.Delta.Taps}, strings.Repeat("x", 4*c.Delta.Taps))
		of := func(name string) func(s Source) bool { return func(s Source) bool { return s.Name == p+name } }
		for name, list := range map[string][]Source{
			"keys of one channel": append(slices.DeleteFunc(waves(c), of("k_conv1d.weight")), one),
			"no keys":             slices.DeleteFunc(joinedConvolutions(waves(c), moduleNames), of("k_proj.weight")),
			"no values":           slices.DeleteFunc(waves(c), of("v_conv1d.weight")),
			"two convolutions":    append(waves(c), source(p+joinedConvolution, F32, []int{1, 1, 1}, "abcd")),
		} {
			writeTensors(t, filepath.Join(dir, "model.safetensors"), list...)
			weights, err := OpenFolder(dir)
			if err != nil {
				t.Fatal(err)
			}
			if err := weights.Fits(c); err == nil || !strings.Contains(err.Error(), p) {
				t.Errorf("%s: %v", name, err)
			}
			weights.Close()
		}
	})
}

// Ranks of FSDP have the names of transformers' modules, and read back.
func TestOlmoHybridOverRanks(t *testing.T) {
	eachOlmoHybrid(t, func(t *testing.T, x family, c model.Config, dir string, tokens []int32) {
		found, err := FindContainer(dir)
		if err != nil {
			t.Fatal(err)
		}
		ranks := filepath.Join(t.TempDir(), "ranks")
		if _, err := Spread(t.Context(), found, ranks, SpreadOptions{FSDP: 3, Prove: true}); err != nil {
			t.Fatal(err)
		}
		files, list, err := fsdp.Open(ranks, func(string) ([]int, bool) { return nil, false })
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			f.Close()
		}
		var got, want []string
		for _, x := range list {
			got = append(got, x.Name)
		}
		for _, x := range joinedConvolutions(waves(c), func(name string) string { return name }) {
			if want = append(want, x.Name); strings.Contains(x.Name, "layer_norm") {
				want[len(want)-1] = moduleNames(x.Name)
			}
		}
		if c.TieEmbeddings {
			want = append(want, lmHead)
		}
		slices.Sort(got)
		slices.Sort(want)
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if found, err = FindContainer(ranks); err != nil {
			t.Fatal(err)
		}
		back := filepath.Join(t.TempDir(), "back")
		if _, err := Pack(t.Context(), found, back, PackOptions{}); err != nil {
			t.Fatal(err)
		}
		sameLogits(t, dir, back, tokens)
	})
}

// olmoHybrid7B returns the settings of Olmo-Hybrid-7B that are not the class's own.
func olmoHybrid7B() jsonObject {
	types := slices.Repeat([]string{linearScope, linearScope, linearScope, fullScope}, 8)
	return jsonObject{"architectures": []string{"OlmoHybridForCausalLM"}, "model_type": "olmo_hybrid", "vocab_size": 100352,
		"hidden_size": 3840, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 30,
		"num_key_value_heads": 30, "layer_types": types, "rope_parameters": jsonObject{"rope_theta": nil, "rope_type": "default"}}
}

// Keys that are null or absent mean what they do in transformers, whose model of this size has 7,430,870,688 parameters.
func TestSizeOfOlmoHybrid(t *testing.T) {
	want, err := ParseConfig(configFile, compact(olmoHybrid7B()))
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := model.Parameters(want, model.Heads{LM: true}); n != 7_430_870_688 {
		t.Errorf("%d parameters", n)
	}
	d := want.Delta
	if d.Keys != 30 || d.Values != 30 || d.KeyDim != 96 || d.ValueDim != 192 || d.Taps != 4 || !want.DoubleWrites {
		t.Errorf("linear attention is %+v, doubled: %v", d, want.DoubleWrites)
	}
	config := olmoHybrid7B()
	maps.Copy(config, jsonObject{"layer_types": nil, "num_key_value_heads": nil, "vocab_size": nil, "num_attention_heads": nil,
		"linear_num_key_heads": nil, "linear_num_value_heads": nil, "linear_key_head_dim": nil, "linear_value_head_dim": nil})
	got, err := ParseConfig(configFile, compact(config))
	if diff := gocmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	maps.Copy(config, jsonObject{"num_hidden_layers": 2, "linear_num_key_heads": 15, "linear_key_head_dim": 64})
	if got, err = ParseConfig(configFile, compact(config)); err != nil {
		t.Fatal(err)
	}
	if d := got.Delta; !slices.Equal(got.Linear, []bool{true, false}) || d.Keys != 15 || d.Values != 30 || d.ValueDim != 128 {
		t.Errorf("%v %+v", got.Linear, d)
	}
}

// Positions are rotated unless the base is null, wherever that stands. What is written says so, too.
func TestPositionsOfOlmoHybrid(t *testing.T) {
	for _, tt := range []struct {
		name    string
		changes jsonObject
		theta   float64 // 0: none
	}{
		{"null inside", nil, 0},
		{"null at the top", jsonObject{"rope_parameters": nil, "rope_theta": nil}, 0},
		{"null at the top, a type inside", jsonObject{"rope_parameters": jsonObject{"rope_type": "default"}, "rope_theta": nil}, 0},
		{"inside", jsonObject{"rope_parameters": jsonObject{"rope_theta": 500.0, "rope_type": "default"}}, 500},
		{"at the top", jsonObject{"rope_parameters": nil, "rope_theta": 600.0}, 600},
		{"scaled", jsonObject{"rope_parameters": jsonObject{"rope_theta": 700.0, "rope_type": "linear", "factor": 2.0}}, 700},
	} {
		config := olmoHybrid7B()
		maps.Copy(config, tt.changes)
		raw := compact(config)
		c, err := ParseConfig(configFile, raw)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if (c.NoRope == nil) != (tt.theta > 0) || tt.theta > 0 && c.RopeTheta != tt.theta || countTrue(c.NoRope)%32 != 0 {
			t.Errorf("%s: theta %g, none in %v", tt.name, c.RopeTheta, c.NoRope)
		}
		fresh, err := configJSON(c, BF16, []int32{7})
		if err != nil {
			t.Fatal(err)
		}
		patched, err := patchConfig(raw, c, BF16, []int32{7})
		if err != nil {
			t.Fatal(err)
		}
		for _, raw := range [][]byte{fresh, patched} {
			if got, err := ParseConfig(configFile, raw); err != nil || gocmp.Diff(c, got) != "" {
				t.Errorf("%s: written as %s: %v", tt.name, raw, err)
			}
		}
	}
}

func TestOlmoHybridRefuses(t *testing.T) {
	few := func(layers ...string) jsonObject {
		return jsonObject{"num_hidden_layers": len(layers), "layer_types": layers}
	}
	for _, tt := range []struct {
		name    string
		changes jsonObject
		want    string
	}{
		{"nothing", nil, ""},
		{"biases", jsonObject{"attention_bias": true}, "attention_bias is true: only false"},
		{"no gates", jsonObject{"linear_use_gate": false}, "linear_use_gate is false: only true"},
		{"another activation", jsonObject{"hidden_act": "gelu_new"}, "hidden_act must be silu"},
		{"a window", jsonObject{"sliding_window": 4}, "sliding_window: windows are not supported in this class"},
		{"a windowed layer", few(linearScope, windowScope), `layer 1 has "sliding_attention"; supported are linear_attention`},
		{"too few types", jsonObject{"layer_types": []string{fullScope}}, "layer_types has 1 entries, num_hidden_layers is 32"},
		{"linear attention alone", few(linearScope, linearScope), "are both needed"},
		{"no linear attention", few(fullScope, fullScope), "are both needed"},
		{"no base", jsonObject{"rope_parameters": nil}, "rope_theta is missing: transformers takes 10000"},
		{"no base inside", jsonObject{"rope_parameters": jsonObject{"rope_type": "default"}}, "rope_theta is missing"},
		{"a base outside", jsonObject{"rope_theta": 1e4}, "rope_theta is null in one place"},
		{"a base inside", jsonObject{"rope_theta": nil, "rope_parameters": jsonObject{"rope_theta": 1e4}}, "rope_theta is null"},
		{"scaled positions without a base", jsonObject{"rope_theta": nil, "rope_parameters": nil,
			"rope_scaling": jsonObject{"rope_type": "linear", "factor": 2.0}}, "there are no rotary positions"},
		{"partly rotated", jsonObject{"rope_parameters": jsonObject{"rope_theta": 1e4, "partial_rotary_factor": 0.5}},
			"partial_rotary_factor is 0.5, only 1"},
		{"heads that do not divide", jsonObject{"linear_num_key_heads": 7}, "30 value heads, must be a multiple of its 7 key heads"},
		{"no heads", jsonObject{"linear_num_key_heads": 0}, "linear_num_key_heads is 0"},
		{"wide keys", jsonObject{"linear_key_head_dim": 5000}, "linear_key_head_dim is 5000"},
		{"a wide convolution", jsonObject{"linear_conv_kernel_dim": 17}, "linear_conv_kernel_dim is 17"},
		{"experts", jsonObject{"num_experts": 4}, "experts of this class are not supported"},
	} {
		config := olmoHybrid7B()
		maps.Copy(config, tt.changes)
		_, err := ParseConfig(configFile, compact(config))
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}

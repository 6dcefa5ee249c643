package checkpoint

import (
	"encoding/json"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"exp/kernels"
	"exp/kernels/ref"
	"exp/train/model"
)

// imagesOf turns the folder of a text model into one of text and images, as they are published.
func imagesOf(t *testing.T, x family, dir, class, kind string) {
	t.Helper()
	text := maps.Clone(x.Config)
	delete(text, "architectures")
	text["mtp_num_hidden_layers"] = 1
	raw, err := json.Marshal(jsonObject{"architectures": []string{class}, "model_type": kind, "text_config": text,
		"tie_word_embeddings": text["tie_word_embeddings"], "vision_config": jsonObject{"depth": 2}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := ReadConfig(dir)
	if err != nil {
		t.Fatal(err)
	}
	list := waves(c)
	for i := range list {
		if name, ok := strings.CutPrefix(list[i].Name, "model."); ok {
			list[i].Name = "model.language_model." + name
		}
	}
	list = fusedExperts(list)
	for _, name := range []string{"model.visual.merger.norm.weight", "mtp.fc.weight", "mtp.layers.0.input_layernorm.weight"} {
		list = append(list, source(name, F32, []int{1}, "abcd"))
	}
	writeFile(t, filepath.Join(dir, configFile), raw)
	writeTensors(t, filepath.Join(dir, "model.safetensors"), list...)
}

// fusedExperts joins the experts of each layer into one tensor of gates and ups and one of downs.
func fusedExperts(list []Source) (out []Source) {
	joined := map[string][]Source{}
	for _, x := range list {
		prefix, rest, ok := strings.Cut(x.Name, ".mlp.experts.")
		if !ok {
			out = append(out, x)
			continue
		}
		name := prefix + ".mlp.experts.gate_up_proj" // sorted by expert, then down, gate, up
		if strings.Contains(rest, "down_proj") {
			name = prefix + ".mlp.experts.down_proj"
		}
		joined[name] = append(joined[name], x)
	}
	for _, name := range slices.Sorted(maps.Keys(joined)) {
		parts := joined[name]
		shape := []int{len(parts), parts[0].Shape[0], parts[0].Shape[1]}
		if strings.HasSuffix(name, "gate_up_proj") {
			shape[0], shape[1] = shape[0]/2, 2*shape[1]
		}
		out = append(out, Source{Tensor: Tensor{Name: name, DType: F32, Shape: shape}, Raw: func(w io.Writer) error {
			for _, x := range parts {
				if err := x.Raw(w); err != nil {
					return err
				}
			}
			return nil
		}})
	}
	return out
}

// The text part of Qwen3.5 is read from the folder of the whole model, and written as a text model.
func TestTextPartOfQwen35(t *testing.T) {
	eachFamily(t, func(t *testing.T, x family, dir string, tokens []int32) {
		if !strings.HasPrefix(x.Name, "qwen3.5") {
			return
		}
		want, err := ReadConfig(dir)
		if err != nil {
			t.Fatal(err)
		}
		class, kind := "Qwen3_5ForConditionalGeneration", "qwen3_5"
		if want.Sparse != nil {
			class, kind = "Qwen3_5MoeForConditionalGeneration", "qwen3_5_moe"
		}
		imagesOf(t, x, dir, class, kind)
		c, err := ReadConfig(dir)
		if err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff(want, c); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		be := ref.New[float64]()
		m := openGolden(t, be, dir, false)
		got := logitsOf(t, be, m, tokens)
		wantNear(t, got[len(got)-len(x.Logits):], x.Logits, 1e-6)
		m.Close()

		d, err := Describe(dir)
		if err != nil || !d.Known {
			t.Fatal(err, d.Reason)
		}
		notes := strings.Join(d.Notes, "\n")
		for _, part := range []string{"this is the text part of " + class, "plain Qwen3_5", "(mtp) are left out"} {
			if !strings.Contains(notes, part) {
				t.Errorf("notes are %q, want %q", notes, part)
			}
		}
		if _, err := ReadTextConfig(dir); err == nil || !strings.Contains(err.Error(), "leave out model.part") {
			t.Errorf("its text part on request: %v", err)
		}
		raw, err := patchConfig(readFile(t, filepath.Join(dir, configFile)), c, BF16, []int32{2})
		if err != nil {
			t.Fatal(err)
		}
		var written jsonObject
		if err := json.Unmarshal(raw, &written); err != nil {
			t.Fatal(err)
		}
		if written["vision_config"] != nil || written["model_type"] != kind+"_text" {
			t.Errorf("written config.json: %s", raw)
		}
	})
}

// wantNear reports the first number that is further than abs from the wanted one.
func wantNear(t *testing.T, got, want []float64, abs float64) {
	t.Helper()
	for i, w := range want {
		if !(got[i]-w <= abs && w-got[i] <= abs) {
			t.Fatalf("number %d is %g, want %g", i, got[i], w)
		}
	}
}

// A frozen base has its vectors and convolutions, in float32, and its matrices.
func TestFrozenLinearAttention(t *testing.T) {
	eachFamily(t, func(t *testing.T, x family, dir string, tokens []int32) {
		c, err := ReadConfig(dir)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(x.Name, "qwen3.5") && c.Names == model.LlamaNames {
			return
		}
		be := openCPU(t, kernels.F32)
		weights, err := OpenFolder(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer weights.Close()
		base, err := LoadBackbone(be, c, true, weights.Frozen(), weights)
		if err != nil {
			t.Fatal(err)
		}
		m, err := model.NewOn(base, model.Heads{LM: true}, false)
		if err != nil {
			t.Fatal(err)
		}
		m.OwnBackbone()
		defer m.Close()
		own := openGolden(t, be, dir, false)
		defer own.Close()
		if got := logitsOf(t, be, m, tokens); !slices.Equal(got, logitsOf(t, be, own, tokens)) {
			t.Error("logits of a frozen base differ from the model's")
		}
	})
}

func TestLinearLayersRefuse(t *testing.T) {
	base := jsonObject{"architectures": []string{"Qwen3_5ForCausalLM"}, "model_type": "qwen3_5_text", "head_dim": 128,
		"sliding_window": nil, "use_sliding_window": nil}
	for _, tt := range []struct {
		name    string
		changes jsonObject
		want    string
	}{
		{"too few kinds of layers", jsonObject{"layer_types": []string{"full_attention"}}, "layer_types has 1 entries"},
		{"an unknown kind", jsonObject{"layer_types": layerTypes(28, 3)}, `has "sliding_attention"; supported are linear_attention`},
		{"heads that do not divide", jsonObject{"linear_num_value_heads": 24}, "24 value heads, must be a multiple of its 16 key heads"},
		{"a wide convolution", jsonObject{"linear_conv_kernel_dim": 17}, "linear_conv_kernel_dim is 17"},
		{"no output gate", jsonObject{"attn_output_gate": false}, "attn_output_gate is false"},
		{"biases", jsonObject{"attention_bias": true}, "linear attention is not supported with norms after the blocks, biases"},
		{"another activation", jsonObject{"hidden_act": "gelu_new"}, "hidden_act must be silu"},
		{"interval 0", jsonObject{"full_attention_interval": 0}, "full_attention_interval is 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			changes := maps.Clone(base)
			maps.Copy(changes, tt.changes)
			_, err := ParseConfig(configFile, edit(t, changes))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

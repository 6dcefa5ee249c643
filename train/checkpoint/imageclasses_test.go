package checkpoint

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/kernels"
	"exp/kernels/ref"
	"exp/train/model"
)

// Weights and logits of testdata/imageclasses.json are those of families.json, its config.json the whole model's.
// A name that ends in -4 has it as transformers 4 wrote it.
func TestTextPartsComputeAsTransformers(t *testing.T) {
	var all struct {
		Tokens []int32
		Models []family
	}
	if err := json.Unmarshal(readFile(t, filepath.Join("testdata", "imageclasses.json")), &all); err != nil {
		t.Fatal(err)
	}
	for _, x := range all.Models {
		for _, layout := range []string{"transformers 4", "transformers 5", "beside a vision tower", "turned experts"} {
			t.Run(x.Name+"/"+layout, func(t *testing.T) {
				dir := t.TempDir()
				writeFile(t, filepath.Join(dir, configFile), compact(x.Config))
				c, err := ReadTextConfig(dir)
				if err != nil {
					t.Fatal(err)
				}
				writeTensors(t, filepath.Join(dir, "model.safetensors"), wholeModel(c, layout)...)
				be := ref.New[float64]()
				m := openText(t, be, dir, c)
				defer m.Close()
				got := logitsOf(t, be, m, all.Tokens)
				got = got[len(got)-len(x.Logits):]
				for i, w := range x.Logits {
					if !(math.Abs(got[i]-w) <= 1e-6) {
						t.Errorf("logit %d is %g, of transformers %g", i, got[i], w)
					}
				}
			})
		}
	}
}

func openText(t *testing.T, be kernels.Backend, dir string, c model.Config) *model.Model {
	t.Helper()
	weights, err := OpenTextFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer weights.Close()
	if err := weights.Fits(c); err != nil {
		t.Fatal(err)
	}
	m, err := model.New(be, c, model.Heads{LM: true}, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := LoadWeights(be, m, weights, Plain); err != nil {
		t.Fatal(err)
	}
	return m
}

// wholeModel returns a text model's waves with the names of a layout, and a tensor of the vision tower.
func wholeModel(c model.Config, layout string) (list []Source) {
	list = waves(c)
	vision := "model.visual.merger.norm.weight"
	if layout == "beside a vision tower" {
		vision = strings.TrimPrefix(vision, "model.")
	} else {
		list = stackExperts(list, c, layout == "turned experts")
		for i := range list {
			if c.Names == model.LFMNames && list[i].Name == lastNorm {
				list[i].Name = "model.embedding_norm.weight"
			}
			rest, inner := strings.CutPrefix(list[i].Name, "model.")
			switch {
			case layout == "transformers 4":
				list[i].Name = "language_model." + list[i].Name
			case inner:
				list[i].Name = "model.language_model." + rest
			}
		}
	}
	return append(list, source(vision, F32, []int{1}, "\x00\x00\x00\x00"))
}

// stackExperts joins the experts of each layer into experts.gate_up_proj [E,2F,C] and experts.down_proj [E,C,F], or
// [E,C,2F] and [E,F,C] if turned, as Qwen3-VL has them. Experts next to a shared one stay apart, as GLM-4.5V has them.
func stackExperts(list []Source, c model.Config, turned bool) (out []Source) {
	E, F, C := c.Experts.Count, c.Experts.FFN, c.Width
	if E == 0 || c.Experts.Shared > 0 {
		return list
	}
	fused := map[string][]byte{}
	for _, x := range list {
		prefix, rest, ok := strings.Cut(x.Name, expertsOf)
		if !ok {
			out = append(out, x)
			continue
		}
		var e int
		var part string
		fmt.Sscanf(strings.Replace(rest, ".", " ", 1), "%d %s", &e, &part)
		part = strings.TrimSuffix(part, ".weight")
		name, rows, cols, all, at := prefix+expertsOf+"gate_up_proj", F, C, 2*F, 0
		switch part {
		case "up_proj":
			at = F
		case "down_proj":
			name, rows, cols, all = prefix+expertsOf+"down_proj", C, F, C
		}
		if fused[name] == nil {
			fused[name] = make([]byte, 4*E*all*cols)
		}
		var raw strings.Builder
		if err := x.Raw(&raw); err != nil {
			panic(err)
		}
		for r := range rows {
			for k := range cols {
				to := (e*all+at+r)*cols + k
				if turned {
					to = (e*cols+k)*all + at + r
				}
				copy(fused[name][4*to:], raw.String()[4*(r*cols+k):][:4])
			}
		}
	}
	for _, name := range sortedKeys(fused) {
		shape := []int{E, C, F}
		if strings.HasSuffix(name, "gate_up_proj") {
			shape = []int{E, 2 * F, C}
		}
		if turned {
			shape[1], shape[2] = shape[2], shape[1]
		}
		out = append(out, source(name, F32, shape, string(fused[name])))
	}
	return out
}

// As many channels as an expert has gates leave the order of experts' tensors to the shape of their gates.
func TestTurnedExpertsOfEvenWidth(t *testing.T) {
	config := jsonObject{"architectures": []string{"Qwen3VLMoeForConditionalGeneration"}, "text_config": jsonObject{"vocab_size": 7,
		"hidden_size": 4, "intermediate_size": 6, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1,
		"head_dim": 2, "rms_norm_eps": 1e-6, "max_position_embeddings": 64, "rope_theta": 1e4, "num_experts": 3,
		"num_experts_per_tok": 2, "moe_intermediate_size": 4, "norm_topk_prob": true}}
	var want []float64
	for _, layout := range []string{"beside a vision tower", "transformers 5", "turned experts"} {
		dir := t.TempDir()
		writeFile(t, filepath.Join(dir, configFile), compact(config))
		c, err := ReadTextConfig(dir)
		if err != nil {
			t.Fatal(err)
		}
		writeTensors(t, filepath.Join(dir, "model.safetensors"), wholeModel(c, layout)...)
		be := ref.New[float64]()
		m := openText(t, be, dir, c)
		got := logitsOf(t, be, m, []int32{1, 2, 3})
		m.Close()
		if want == nil { // from tensors of single experts
			want = got
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: other logits", layout)
		}
	}
}

// A setting whose default is another one for the text model alone must be there.
func TestTextPartsNeedTheirSettings(t *testing.T) {
	text := func() jsonObject {
		return jsonObject{"vocab_size": 7, "hidden_size": 4, "intermediate_size": 6, "num_hidden_layers": 1,
			"num_attention_heads": 2, "num_key_value_heads": 1, "rms_norm_eps": 1e-6, "max_position_embeddings": 64,
			"partial_rotary_factor": 0.5, "rope_parameters": jsonObject{"rope_theta": 1e4, "rope_type": "default"}}
	}
	for key, class := range map[string]string{"rms_norm_eps": "Qwen2VL", "num_key_value_heads": "Qwen2_5_VL",
		"max_position_embeddings": "Qwen3VL", "rope_parameters": "Qwen3VLMoe", "partial_rotary_factor": "Glm4v"} {
		dir, part := t.TempDir(), text()
		delete(part, key)
		writeFile(t, filepath.Join(dir, configFile), compact(jsonObject{"architectures": []string{class + "ForConditionalGeneration"},
			"vision_config": jsonObject{}, "text_config": part}))
		want := strings.Replace(key, "rope_parameters", "rope_theta", 1) + " is missing"
		if _, err := ReadTextConfig(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s without %s: %v", class, key, err)
		}
	}
	for class, tt := range map[string]struct {
		key   string
		value any
		want  string
	}{
		"Qwen3VLMoe": {"norm_topk_prob", false, "norm_topk_prob is false: transformers ignores it"},
		"Glm4v":      {"head_dim", 3, "head_dim is 3: transformers takes hidden_size / num_attention_heads = 2"},
	} {
		dir, part := t.TempDir(), text()
		part[tt.key] = tt.value
		writeFile(t, filepath.Join(dir, configFile), compact(jsonObject{"architectures": []string{class + "ForConditionalGeneration"},
			"text_config": part}))
		if _, err := ReadTextConfig(dir); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", class, err)
		}
	}
}

package checkpoint

import (
	"path/filepath"
	"strings"
	"testing"

	"exp/kernels"
	"exp/kernels/ref"
)

// A Mistral 3 of text and images is read as the text model inside it, whichever version of transformers named its
// tensors.
func TestTextOfMistral3(t *testing.T) {
	rope := jsonObject{"rope_type": "yarn", "factor": 16.0, "original_max_position_embeddings": 64,
		"llama_4_scaling_beta": 0.1, "rope_theta": 1e6}
	text := jsonObject{"model_type": "ministral3", "vocab_size": 7, "hidden_size": 4, "intermediate_size": 6, "head_dim": 4,
		"num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "rope_parameters": rope}
	whole := jsonObject{"architectures": []string{"Mistral3ForConditionalGeneration"}, "model_type": "mistral3",
		"vision_config": jsonObject{"image_size": 64}, "text_config": text}
	for _, v5 := range []bool{false, true} {
		dir := t.TempDir()
		writeFile(t, filepath.Join(dir, configFile), compact(whole))
		if _, err := ReadConfig(dir); err == nil || !strings.Contains(err.Error(), `hidden_act is "gelu" in vision_config`) {
			t.Errorf("without asking for the part: %v", err)
		}
		c, err := ReadTextConfig(dir)
		if err != nil || c.MaxPositions != 64 || c.Rope.QueryBeta != 0.1 || c.TieEmbeddings {
			t.Fatal(c, err)
		}
		list := waves(c)
		want := map[string]Source{}
		for i, x := range list {
			want[x.Name] = x
			switch rest, inner := strings.CutPrefix(x.Name, "model."); {
			case !v5:
				list[i].Name = "language_model." + x.Name
			case inner:
				list[i].Name = "model.language_model." + rest
			}
		}
		list = append(list, source("vision_tower.weight", F32, []int{1}, "\x00\x00\x00\x00"))
		writeTensors(t, filepath.Join(dir, "model.safetensors"), list...)
		weights, err := OpenTextFolder(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer weights.Close()
		if err := weights.Fits(c); err != nil {
			t.Fatal(err)
		}
		for name, x := range want {
			got := make([]float32, x.Len())
			if err := weights.Read(ref.New[float32](), name, kernels.Host(got)); err != nil {
				t.Fatal(err)
			}
			var raw strings.Builder
			if err := x.Raw(&raw); err != nil || raw.String() != floats(got...) {
				t.Errorf("v5 %v: %s is another tensor", v5, name)
			}
		}
		if note := TextNote(dir); !strings.Contains(note, "the text part of Mistral3ForConditionalGeneration") || !strings.Contains(note, "plain Ministral3ForCausalLM") {
			t.Errorf("note %q", note)
		}
	}
	dir := t.TempDir()
	text["model_type"] = "mamba"
	writeFile(t, filepath.Join(dir, configFile), compact(whole))
	if _, err := ReadTextConfig(dir); err == nil || !strings.Contains(err.Error(), "it has no text part to extract") {
		t.Errorf("a text part of an unknown class: %v", err)
	}
}

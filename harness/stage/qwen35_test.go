package stage

import (
	"os"
	"path/filepath"
	"testing"

	"exp/harness/config"
)

// Runs of Qwen3.5's text keep their ids: the architecture that enters them is the one from before images were read.
func TestArchitectureOfQwen35(t *testing.T) {
	dir := t.TempDir()
	text := `{"architectures": ["Qwen3_5ForConditionalGeneration"], "model_type": "qwen3_5", "image_token_id": 260,
 "tie_word_embeddings": true, "text_config": {"model_type": "qwen3_5_text", "vocab_size": 264, "hidden_size": 32,
  "intermediate_size": 48, "num_hidden_layers": 2, "layer_types": ["linear_attention", "full_attention"],
  "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16, "linear_num_key_heads": 1,
  "linear_num_value_heads": 2, "linear_key_head_dim": 16, "linear_value_head_dim": 16, "rms_norm_eps": 1e-6,
  "max_position_embeddings": 256, "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0,
   "partial_rotary_factor": 0.5, "mrope_section": [2, 1, 1], "mrope_interleaved": true}},
 "vision_config": {"depth": 2, "hidden_size": 16, "intermediate_size": 24, "num_heads": 2, "patch_size": 4,
  "out_hidden_size": 32, "num_position_embeddings": 16}}`
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ part, want string }{
		{config.PartWhole, "f2b96956"},
		{config.PartImages, "9c486749"},
	} {
		arch, err := ReadArchitecture(&config.Run{Model: config.Model{Init: "pretrained", Base: dir, Part: tt.part}})
		if err != nil {
			t.Fatal(err)
		}
		if d, err := architectureDigest(arch); err != nil || d.Short() != tt.want {
			t.Errorf("%s: %s, %v; want %s", tt.part, d.Short(), err, tt.want)
		}
	}
}

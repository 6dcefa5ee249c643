package translate

import (
	"strings"
	"testing"
)

// verl's column of images is the recipe's; the default is not written.
func TestImageKey(t *testing.T) {
	const script = "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=./m data.train_files=geo3k.parquet " +
		"trainer.total_training_steps=1 data.image_key="
	for key, want := range map[string]bool{"photos": true, "images": false} {
		r := translated(t, "run.sh", script+key, nil)
		if got := strings.Contains(r.Text, `image_key: "`+key+`"`); got != want {
			t.Errorf("%s: written %t, want %t", key, got, want)
		}
	}
}

// verl trains the vision tower of a model that reads images, unless told not to or with adapters.
func TestVisionTower(t *testing.T) {
	const script = "python3 -m verl.trainer.main_ppo data.train_files=geo3k.parquet trainer.total_training_steps=1 " +
		"actor_rollout_ref.model.path="
	for _, tt := range []struct {
		more  string
		wrote bool
		note  string
	}{
		{"Qwen/Qwen2.5-VL-7B-Instruct data.image_key=images", true, "verl trains the vision tower"},
		{"models/GLM-4.5V data.image_key=images actor_rollout_ref.actor.freeze_vision_tower=False", true, "take that key out"},
		{"Qwen/Qwen3-VL-4B data.image_key=images actor_rollout_ref.actor.freeze_vision_tower=True", false, ""},
		{"Qwen/Qwen3-VL-4B data.image_key=images actor_rollout_ref.model.lora_rank=8", true, "verl's adapters are on the linear maps"},
		{"Qwen/Qwen3-VL-4B data.image_key=images actor_rollout_ref.model.lora_rank=8 " +
			"actor_rollout_ref.model.exclude_modules='.*visual.*'", false, ""},
		{"Qwen/Qwen3-VL-4B data.image_key=images actor_rollout_ref.model.lora_rank=8 " +
			"actor_rollout_ref.actor.freeze_vision_tower=True", false, ""},
		{"Qwen/Qwen3-VL-4B data.image_key=images actor_rollout_ref.model.lora_rank=8 " +
			"actor_rollout_ref.model.exclude_modules='.*merger.*'", true, "not translated: actor_rollout_ref.model.exclude_modules"},
		{"Qwen/Qwen3-VL-4B data.image_key=images actor_rollout_ref.model.lora_rank=8 " +
			"actor_rollout_ref.model.exclude_modules=[qkv,up_proj]", true, "not translated: actor_rollout_ref.model.exclude_modules"},
		{"Qwen/Qwen3-VL-4B data.image_key=images actor_rollout_ref.model.lora_rank=8 " +
			"actor_rollout_ref.model.target_modules=[q_proj,up_proj]", false, ""}, // the tower has other names
		{"Qwen/Qwen2.5-VL-3B data.image_key=images actor_rollout_ref.model.lora_rank=8 " +
			"actor_rollout_ref.model.target_modules=[q_proj,up_proj]", true, "verl's adapters are on the linear maps"},
		{"OpenGVLab/InternVL3-1B-hf data.image_key=images actor_rollout_ref.model.lora_rank=8 " +
			"actor_rollout_ref.model.target_modules=[q_proj]", true, "verl's adapters are on the linear maps"},
		{"Qwen/Qwen3-VL-4B", false, ""},
		{"Qwen/Qwen3-4B data.image_key=images", false, ""},
		{"me/novelty data.image_key=images", false, ""},
	} {
		r := translated(t, "run.sh", script+tt.more, nil)
		if got := strings.Contains(r.Text, "vision: trained\n"); got != tt.wrote {
			t.Errorf("%s: written %t, want %t:\n%s", tt.more, got, tt.wrote, r.Text)
		}
		notes := strings.Join(r.Notes, "\n")
		if !strings.Contains(notes, tt.note) || tt.note == "" && strings.Contains(notes, "vision") {
			t.Errorf("%s: notes %q, want %q", tt.more, notes, tt.note)
		}
	}
}

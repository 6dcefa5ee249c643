package run

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/harness/config"
	"exp/harness/plan"
	"exp/harness/prompt/prompttest"
	"exp/harness/stage"
	"exp/kernels/ref"
	"exp/train/checkpoint"
)

// qwen35Config is a Qwen3.5 of toy size for prompttest.ModelFolder, whose <pad> stands for images.
const qwen35Config = `{"architectures": ["Qwen3_5ForConditionalGeneration"], "model_type": "qwen3_5",
 "image_token_id": 260, "vision_start_token_id": 256, "vision_end_token_id": 257, "tie_word_embeddings": true,
 "text_config": {"model_type": "qwen3_5_text", "vocab_size": 264, "hidden_size": 32, "intermediate_size": 48,
  "num_hidden_layers": 2, "layer_types": ["linear_attention", "full_attention"], "num_attention_heads": 2,
  "num_key_value_heads": 1, "head_dim": 16, "linear_num_key_heads": 1, "linear_num_value_heads": 2,
  "linear_key_head_dim": 16, "linear_value_head_dim": 16, "linear_conv_kernel_dim": 4, "rms_norm_eps": 1e-6,
  "max_position_embeddings": 256, "mtp_num_hidden_layers": 1, "rope_parameters": {"rope_type": "default",
   "rope_theta": 10000.0, "partial_rotary_factor": 0.5, "mrope_section": [2, 1, 1], "mrope_interleaved": true}},
 "vision_config": {"model_type": "qwen3_5", "depth": 2, "hidden_size": 16, "intermediate_size": 24, "num_heads": 2,
  "in_channels": 3, "patch_size": 4, "spatial_merge_size": 2, "temporal_patch_size": 2, "out_hidden_size": 32,
  "num_position_embeddings": 16, "deepstack_visual_indexes": [], "hidden_act": "gelu_pytorch_tanh"}}`

// Qwen3.5 reads images where model.part asks for them: it learns from them, the sampler has the trainer's bits, a run
// that starts from its merged folder reads them, too, and that folder has the class and the tower.
func TestQwen35ReadsImages(t *testing.T) {
	l, dir, data := newLab(t), prompttest.PictureFolder(t, qwen35Config), squares(t)
	sets := func(dir string) []string {
		return imageSets(dir, data, "model.part=images", "sft={steps: 2, problems_per_step: 4, optim: {lr: 0.01}}",
			"train.lora={rank: 4, alpha: 8, targets: [in_proj_qkv, q_proj]}")
	}
	p := l.plan(0, sets(dir)...)
	if !p.External.Images || p.External.Vision.IsZero() {
		t.Fatalf("images %v, vision %s", p.External.Images, p.External.Vision.Short())
	}
	res, _ := l.execute(p)
	if v := l.verify(p, VerifyOptions{Level: LevelFull}); !v.OK {
		t.Errorf("verify: %+v", v)
	}
	merged := filepath.Join(l.db.RunDir(res.Run.RID), stage.MergedDir)
	c, err := checkpoint.ReadImageConfig(merged)
	if err != nil || !c.ReadsImages() {
		t.Fatalf("merged: %+v, %v", c, err)
	}
	tower, err := checkpoint.LoadTower(ref.New[float32](), merged)
	if err != nil {
		t.Fatal(err)
	}
	tower.Close()
	again := l.plan(0, sets(merged)...)
	if again.RID == p.RID || again.External.Vision != p.External.Vision {
		t.Errorf("of the merged folder: id %s, vision %s; of the source %s", again.RID.Short(),
			again.External.Vision.Short(), p.External.Vision.Short())
	}
}

// Without a request it is the language model that it was: no tower is in a run's id, merged folders are text models, and
// problems that show images are refused with the words that help.
func TestQwen35IsATextModel(t *testing.T) {
	l, dir, data := newLab(t), prompttest.PictureFolder(t, qwen35Config), squares(t)
	_, err := plan.New(smoke(t, imageSets(dir, data)...), 0, l.be.Class(), l.sources)
	if err == nil || !strings.Contains(err.Error(), "model.part: images reads them") {
		t.Errorf("problems with images: %v", err)
	}
	sets := imageSets(dir, data, "data.image_key=none", "train.steps=1", "eval.final.suites=[]", "train.prompts_per_step=4",
		"eval.online.problems=4")
	p := l.plan(0, sets...)
	if p.External.Images || !p.External.Vision.IsZero() {
		t.Errorf("images %v, vision %s", p.External.Images, p.External.Vision.Short())
	}
	res, _ := l.execute(p)
	merged := filepath.Join(l.db.RunDir(res.Run.RID), stage.MergedDir)
	d, err := checkpoint.Describe(merged)
	if err != nil || d.Class != "Qwen3_5ForCausalLM" || slices.ContainsFunc(d.Tensors, func(x checkpoint.DescribedTensor) bool {
		return strings.Contains(x.Name, "visual")
	}) {
		t.Errorf("merged: %+v, %v", d, err)
	}
	if with := l.plan(0, append(sets, "model.part="+config.PartImages)...); with.RID == p.RID {
		t.Error("a run that reads images has the same id")
	}
}

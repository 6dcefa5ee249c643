package run

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/harness/config"
	"exp/harness/plan"
	"exp/harness/prompt/prompttest"
)

// films writes problems that show videos made of the frames of squares: three frames, five of a folder's sixteen, and
// two videos with an image between them.
func films(t *testing.T) string {
	t.Helper()
	dir := filepath.Dir(squares(t))
	shots := filepath.Join(dir, "shots")
	if err := os.Mkdir(shots, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range 16 {
		b, err := os.ReadFile(filepath.Join(dir, fmt.Sprint(i/3*3, ".png")))
		if err == nil {
			err = os.WriteFile(filepath.Join(shots, fmt.Sprint(i, ".png")), b, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var rows []string
	for i := range 16 {
		text, videos, images := "<video>Side?", fmt.Sprintf(`[["%d.png","%d.png","%d.png"]]`, i%13, i%13+3, i%13), "[]"
		if i%4 == 1 {
			videos = `[{"frames": "shots", "fps": 6}]`
		}
		if i%4 == 3 {
			text, images = "<video>or<image>or<video>?", fmt.Sprintf(`["%d.png"]`, i)
			videos = strings.TrimSuffix(videos, "]") + `, {"frames": ["0.png", "3.png"], "sample_fps": 1}]`
		}
		rows = append(rows, fmt.Sprintf(`{"prompt": [{"role": "user", "content": %q}], "videos": %s, "images": %s, "reward_model": `+
			`{"style": "rule", "ground_truth": "%d"}, "data_source": "films", "target": "\\boxed{%[4]d}"}`, text, videos, images, i%6))
	}
	path := filepath.Join(dir, "films.jsonl")
	if err := os.WriteFile(path, []byte(strings.Join(rows, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// Models learn from videos, in adapters, in all weights and with the tower: the sampler draws what the trainer has, bit for
// bit (every step checks it), and the record verifies.
func TestVideos(t *testing.T) {
	l, data := newLab(t), films(t)
	confs := append(prompttest.OtherPictureConfigs(), prompttest.PictureConfig)
	for i, conf := range confs {
		sets := imageSets(prompttest.VideoFolder(t, conf), data, fmt.Sprint("name=videos", i), "data.max_prompt_tokens=200")
		if i == 1 {
			sets = slices.DeleteFunc(sets, func(s string) bool { return strings.HasPrefix(s, "train.lora=") })
			sets = append(sets, "model.vision=trained", "train.steps=1",
				"sft={steps: 1, problems_per_step: 2, optim: {lr: 0.01}}")
		}
		p := l.plan(0, sets...)
		res, _ := l.execute(p)
		if v := l.verify(p, VerifyOptions{Level: LevelFull}); !v.OK {
			t.Errorf("%d: verify: %+v", i, v)
		}
		names := 0
		for _, s := range l.trainSamples(res.Run.ID) {
			names += strings.Count(s.prompt, "<video ")
		}
		if names == 0 {
			t.Errorf("%d: no prompt names its video", i)
		}
	}
}

// How videos are read is part of a run's id if its problems show some, and else is not.
func TestVideosInIdentity(t *testing.T) {
	l, data := newLab(t), films(t)
	dir := prompttest.VideoFolder(t, prompttest.PictureConfig)
	sets := imageSets(dir, data, "data.max_prompt_tokens=200")
	ids := map[string]string{}
	note := func(name string, more ...string) {
		id := l.plan(0, append(slices.Clone(sets), more...)...).RID.String()
		if other, known := ids[id]; known {
			t.Errorf("%s has the id of %s", name, other)
		}
		ids[id] = name
	}
	note("own")
	note("frames of a second", "data.video_fps=4")
	note("frames", "data.video_max_frames=4")
	note("pixels", "data.video_max_pixels=512")
	settings := filepath.Join(dir, "video_preprocessor_config.json")
	still := imageSets(dir, squares(t))
	before := l.plan(0, still...).RID
	if err := os.WriteFile(settings, []byte(`{"patch_size": 4, "max_frames": 5, "size": {"shortest_edge": 64, "longest_edge": 4096}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	note("another file of the model's")
	if after := l.plan(0, still...).RID; after != before {
		t.Error("how videos are read changes the id of a run with images")
	}
}

func TestVideosRefused(t *testing.T) {
	l, data := newLab(t), films(t)
	whole, still := prompttest.VideoFolder(t, prompttest.PictureConfig), pictureFolder(t)
	broken := prompttest.VideoFolder(t, prompttest.PictureConfig)
	if err := os.WriteFile(filepath.Join(broken, "video_preprocessor_config.json"), []byte(`{"num_frames": 3}`), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ dir, data, set, want string }{
		{still, data, "", "the model reads images alone"},
		{whole, data, "data.video_max_frames=2", "at most 2 are"},
		{whole, data, "data.video_max_pixels=10", "one token's"},
		{broken, data, "", "num_frames: 3"},
		{broken, squares(t), "", ""},
	} {
		sets := imageSets(tt.dir, tt.data, "data.max_prompt_tokens=200")
		if tt.set != "" {
			sets = append(sets, tt.set)
		}
		r, err := config.Load(config.Input{File: "../../configs/smoke_cpu.yaml", Sets: sets})
		if err == nil {
			_, err = plan.New(r, 0, l.be.Class(), l.sources)
		}
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", tt.set, err, tt.want)
		}
	}
}

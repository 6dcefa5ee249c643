package run

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/eval/suite"
	"exp/experiments/blob"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/dataset"
	"exp/harness/plan"
	"exp/harness/prompt/prompttest"
	"exp/harness/stage"
	"exp/harness/suites"
	"exp/train/checkpoint"
)

func pictureFolder(t *testing.T) string { return prompttest.PictureFolder(t, prompttest.PictureConfig) }

func squares(t *testing.T) string { return prompttest.Squares(t) }

// imageSets are loraSets for a model of text and images.
func imageSets(dir, data string, more ...string) []string {
	return append(append(loraSets(dir, data, "grpo"), "data.max_prompt_tokens=96", "train.steps=2",
		"rollout.max_new_tokens=8", "eval.final.max_new_tokens=8", "eval.final.n=2", "store.samples.train=all"), more...)
}

// Adapters are trained on problems that show images, and all weights are: what the sampler draws has the trainer's
// bits (every step checks it), the record verifies, and texts of the record name the images.
func TestImages(t *testing.T) {
	l := newLab(t)
	dir, data := pictureFolder(t), squares(t)
	p := l.plan(0, imageSets(dir, data)...)
	if !p.External.Images || p.External.Vision.IsZero() {
		t.Fatalf("images %v, vision %s", p.External.Images, p.External.Vision.Short())
	}
	res, q := l.execute(p)
	t.Logf("warnings %q", q.warnings)
	out := l.outputs(res.Run.ID)
	a, err := blob.OpenAlbum(l.db.Blobs.Path(out["prepare[]/images"]))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if n := len(a.Names()); n != 15 { // 16 files; no row shows one of them
		t.Errorf("the album has %d images, want 15", n)
	}
	l.checkRoles(res.Run.ID, config.SFT, config.RewardModel, config.Prefer, config.PassRate, config.Select)
	if v := l.verify(p, VerifyOptions{Level: LevelFull}); !v.OK {
		t.Errorf("verify: %+v", v)
	}
	samples := l.trainSamples(res.Run.ID)
	if len(samples) == 0 || !strings.Contains(samples[0].prompt, "<image ") || !strings.Contains(samples[0].prompt, "×24 sha256:") {
		t.Errorf("%d samples, the first %+v", len(samples), samples[:1])
	}
	merged := filepath.Join(l.db.RunDir(res.Run.RID), stage.MergedDir)
	c, err := checkpoint.ReadConfig(merged)
	if err != nil || !c.ReadsImages() {
		t.Errorf("merged: %+v, %v", c, err)
	}
	if again, _ := l.execute(l.plan(0, imageSets(dir, data)...)); again.Executed != 0 {
		t.Errorf("the same again executes %d stages", again.Executed)
	}
	for kind, use := range l.memoryOf(res.Run.ID) {
		t.Logf("%s: %.2f times the planned memory", kind, float64(use.Peak)/float64(use.Planned))
	}
}

// All weights of the language model learn from images, by each kind of stage.
func TestImagesInStages(t *testing.T) {
	l, dir, data := newLab(t), pictureFolder(t), squares(t)
	talks, pairs := taughtSquares(t, data)
	for i, more := range [][]string{
		{"ppo"},
		{"grpo", "sft={steps: 2, problems_per_step: 4, optim: {lr: 0.01}}"},
		{"flowrl", "compute.recompute=true", "data.pass_rate={samples: 2, min: 0, max: 1}",
			"sft={steps: 1, problems_per_step: 2, source: " + talks + ", optim: {lr: 0.01}}",
			"prefer={steps: 1, pairs_per_step: 2, source: " + pairs + ", optim: {lr: 0.01}}"},
		{"grpo", "train.steps=0", "eval.final.suites=[]",
			"prefer={steps: 1, loss: kto, answers_per_step: 4, source: " + pairs + ", lora: {rank: 2}, optim: {lr: 0.01}}"},
	} {
		sets := slices.DeleteFunc(imageSets(dir, data, "algo={kind: "+more[0]+"}", fmt.Sprint("name=images", i)),
			func(s string) bool { return strings.HasPrefix(s, "train.lora=") })
		res, _ := l.execute(l.plan(0, append(sets, more[1:]...)...))
		if res.Run.Steps != 2 && more[1] != "train.steps=0" {
			t.Errorf("%q: %d steps", more, res.Run.Steps)
		}
		if v := l.verify(l.plan(0, append(sets, more[1:]...)...), VerifyOptions{Level: LevelFull}); !v.OK {
			t.Errorf("%q: verify: %+v", more, v)
		}
	}
}

// taughtSquares writes conversations and pairs that show images next to the data, and returns their files.
func taughtSquares(t *testing.T, data string) (talks, pairs string) {
	t.Helper()
	write := func(name string, rows ...string) string {
		path := filepath.Join(filepath.Dir(data), name)
		if err := os.WriteFile(path, []byte(strings.Join(rows, "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const user, said = `{"role": "user", "content": "%s"}`, `{"role": "assistant", "content": "%s"}`
	text := func(list ...string) string {
		for i, s := range list {
			list[i] = fmt.Sprintf([]string{user, said}[i%2], s)
		}
		return strings.Join(list, ",")
	}
	return write("talks.jsonl", `{"messages": [`+text("<image>Side?", "4", "<image>or<image>?", "5")+`], "images": ["0.png", "1.png", "15.png"]}`,
			`{"messages": [`+text("6*7?", "42")+`]}`),
		write("pairs.jsonl", `{"prompt": [`+text("<image>Side?")+`], "chosen": [`+fmt.Sprintf(said, "4")+
			`], "rejected": [`+fmt.Sprintf(said, "5")+`], "images": ["0.png"]}`,
			`{"chosen": [`+text("<image>Side?", "7", "<image>?", "8")+
				`], "rejected": [`+text("<image>Side?", "7", "<image>?", "9")+`], "images": ["2.png", "3.png"]}`)
}

// The other classes learn, too.
func TestImagesOfClasses(t *testing.T) {
	l, data := newLab(t), squares(t)
	tiled := []string{prompttest.TiledPictureConfig, prompttest.SplitPictureConfig, prompttest.SquarePictureConfig}
	for i, conf := range append(prompttest.OtherPictureConfigs(), tiled...) {
		dir := prompttest.PictureFolder(t, conf)
		for _, lora := range []bool{true, false} {
			if !lora && slices.Contains(tiled, conf) {
				continue
			}
			sets := imageSets(dir, data, fmt.Sprintf("name=class%d-%t", i, lora))
			if conf == prompttest.SplitPictureConfig { // the places of tiles are spelled
				sets = append(sets, "data.max_prompt_tokens=200")
			}
			sets = slices.DeleteFunc(sets,
				func(s string) bool { return !lora && strings.HasPrefix(s, "train.lora=") })
			p := l.plan(0, sets...)
			res, _ := l.execute(p)
			if v := l.verify(p, VerifyOptions{Level: LevelFull}); !v.OK {
				t.Errorf("%d, %t: verify: %+v", i, lora, v)
			}
			if c, err := checkpoint.ReadConfig(filepath.Join(l.db.RunDir(res.Run.RID), stage.MergedDir)); err != nil || !c.ReadsImages() {
				t.Errorf("%d, %t: merged: %v", i, lora, err)
			}
		}
	}
}

// A run that is stopped goes on to the same bits.
func TestImagesResume(t *testing.T) {
	l, dir, data := newLab(t), pictureFolder(t), squares(t)
	sets := imageSets(dir, data, "checkpoint.every_steps=1", "eval.final.suites=[]")
	want, _ := l.execute(l.plan(0, sets...))
	other := newLab(t)
	p := other.plan(0, sets...)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stopping := &quiet{progress: func(stage string, done int) {
		if stage == "train" && done == 1 {
			cancel()
		}
	}}
	if _, err := other.try(ctx, p, stopping); err == nil {
		t.Fatal("the run was not stopped")
	}
	other.options.Resume = true
	res, _ := other.execute(p)
	sameOutputs(t, l.outputs(want.Run.ID), other.outputs(res.Run.ID))
}

// What reads images is part of a run's id, and so is what sizes them.
func TestImagesInIdentity(t *testing.T) {
	l, dir, data := newLab(t), pictureFolder(t), squares(t)
	own := l.plan(0, imageSets(dir, data)...)
	ids := map[string]string{own.RID.String(): "own"}
	note := func(name string, p *plan.Run) {
		if other, known := ids[p.RID.String()]; known {
			t.Errorf("%s has the id of %s", name, other)
		}
		ids[p.RID.String()] = name
	}
	note("data.image_max_pixels", l.plan(0, imageSets(dir, data, "data.image_max_pixels=512")...))
	path := filepath.Join(dir, "preprocessor_config.json")
	if err := os.WriteFile(path, []byte(strings.Replace(prompttest.PictureProcessor, "4096", "512", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	note("the processor", l.plan(0, imageSets(dir, data)...))
	if err := os.WriteFile(path, []byte(prompttest.PictureProcessor), 0o644); err != nil {
		t.Fatal(err)
	}
	if again := l.plan(0, imageSets(dir, data)...); again.RID != own.RID {
		t.Error("the same plan has another id")
	}
	picture := filepath.Join(filepath.Dir(data), "3.png")
	b, err := os.ReadFile(filepath.Join(filepath.Dir(data), "4.png"))
	if err == nil {
		err = os.WriteFile(picture, b, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	note("an image", l.plan(0, imageSets(dir, data)...))
	if err := os.WriteFile(picture, b[:20], 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = plan.New(smoke(t, imageSets(dir, data)...), 0, l.be.Class(), l.sources)
	if err == nil || !strings.Contains(err.Error(), "squares.jsonl:4") {
		t.Errorf("a broken image: %v", err)
	}
	if err := os.WriteFile(picture, b[:len(b)-20], 0o644); err != nil { // its header is whole
		t.Fatal(err)
	}
	_, err = l.try(t.Context(), l.plan(0, imageSets(dir, data)...), &quiet{})
	if err == nil || !strings.Contains(err.Error(), "data.train: problem 3: image 1: PNG image") {
		t.Errorf("an image that is cut off: %v", err)
	}
}

// A suite keeps the images of its problems.
func TestImageSuite(t *testing.T) {
	l, dir, data := newLab(t), pictureFolder(t), squares(t)
	s, err := suite.Read("squares", data, suite.Options{Images: dataset.SuiteImages()})
	if err != nil {
		t.Fatal(err)
	}
	digest, text, err := suites.Digest(s)
	if err != nil {
		t.Fatal(err)
	}
	row, err := suites.Add(t.Context(), l.db, s, digest, text)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Dir(data)); err != nil { // the store has the images
		t.Fatal(err)
	}
	r := smoke(t, "name=suite", "task={kind: math}", "reward={correct: 1}", "sft.steps=0", "train.steps=0",
		"data.train={source: none, size: 0}", "data.val={source: none, size: 0}", "data.test={source: none, size: 0}", "eval.online.every_steps=0",
		"data.max_prompt_tokens=128", "tokenizer.kind=model", "model={init: pretrained, base: "+dir+"}",
		"eval.final={suites: [squares], n: 2, max_new_tokens: 8}")
	p, err := plan.New(r, 0, l.be.Class(), l.sources, stage.Suite{Name: row.Name, Version: row.Version, Digest: row.Digest,
		Graders: strings.Split(row.Scorer, ",")})
	if err != nil {
		t.Fatal(err)
	}
	res, _ := l.execute(p)
	samples, err := l.db.Samples(t.Context(), res.Run.ID, store.SampleQuery{Scope: "eval"})
	if err != nil || len(samples) != 32 {
		t.Errorf("%d samples, %v; want 32", len(samples), err)
	}
}

// Training reads a benchmark of pictures in its published columns, and its graders see the options, which the prompt does
// not show.
func TestPictureBenchmark(t *testing.T) {
	l, dir := newLab(t), pictureFolder(t)
	squares := filepath.Dir(squares(t))
	var rows []string
	for i := range 16 {
		b, err := os.ReadFile(filepath.Join(squares, fmt.Sprint(i, ".png")))
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, fmt.Sprintf(`{"id":"test_Art_%d","image":{"bytes":%q,"path":null},"options":"['%d', 'none']","answer":"A","subject":"Art"}`,
			i, base64.StdEncoding.EncodeToString(b), 4+i%6))
	}
	data := filepath.Join(squares, "vision.jsonl")
	if err := os.WriteFile(data, []byte(strings.Join(rows, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	p := l.plan(0, imageSets(dir, data, "task.math.grader=mmmu_pro", "train.steps=1", "eval.final.suites=[]")...)
	if !p.External.Images {
		t.Fatal("no images")
	}
	res, _ := l.execute(p)
	samples := l.trainSamples(res.Run.ID)
	if len(samples) == 0 || strings.Count(samples[0].prompt, "<image ") != 1 || strings.Contains(samples[0].prompt, "none") {
		t.Errorf("%d samples, the first %+v", len(samples), samples[:min(1, len(samples))])
	}
}

// What cannot read images is refused before any work, at its key.
func TestImagesRefused(t *testing.T) {
	l, dir, data := newLab(t), pictureFolder(t), squares(t)
	square := prompttest.PictureFolder(t, prompttest.SquarePictureConfig)
	_, pairs := taughtSquares(t, data)
	for _, tt := range []struct{ set, want string }{
		{"model.part=text", "it shows an image, and the model reads text alone"},
		{"model.vision=trained", "adapters on the vision tower have no dropout, and train.lora.dropout is not 0"},
		{"data.chat=none", "name a template: data.chat"},
		{"algo={kind: grpo, kl: {loss_coef: 0.1}, reference: " + dir + "}", "a teacher reads text alone, and problems show images"},
		{"data.image_max_pixels=30", "max_pixels: 30 is less than min_pixels, 64"},
		{"merge={format: fsdp, ranks: 2}", "merge.format fsdp has no place for models of text and images"},
		{"merge={format: megatron, tp: 1, pp: 1}", "merge.format megatron has no place"},
		{"data.max_prompt_tokens=40", "prompts with images are not cut"},
		{"reward_model={steps: 1, pairs_per_step: 2, source: " + pairs + ", optim: {lr: 0.01}}", `field "images": the problem has images`},
		{"model.base=" + square + "; data.image_min_pixels=100", "brings every image to 16×16 pixels"},
	} {
		r, err := config.Load(config.Input{File: "../../configs/smoke_cpu.yaml", Sets: imageSets(dir, data,
			append([]string{"data.filter_overlong=false"}, strings.Split(tt.set, "; ")...)...)})
		if err == nil {
			_, err = plan.New(r, 0, l.be.Class(), l.sources)
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.set, err, tt.want)
		}
	}
}

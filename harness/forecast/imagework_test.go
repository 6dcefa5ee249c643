package forecast

import (
	"math"
	"strings"
	"testing"

	"exp/harness/config"
	"exp/harness/prompt"
	"exp/harness/prompt/prompttest"
	"exp/harness/stage"
)

// pictured loads a recipe that trains on problems with images of 16 tokens.
func pictured(t *testing.T, dir string, sets ...string) *config.Resolved {
	t.Helper()
	const training = "train={steps: 10, prompts_per_step: 8, prompts_per_update: 4, optim: {lr: 0.01}}"
	r, err := config.Load(config.Input{File: "../../configs/smoke_cpu.yaml", Sets: append([]string{"task={kind: math, math: {grader: exp}}",
		"reward={correct: 1}", "tokenizer.kind=model", "model={init: pretrained, base: " + dir + "}",
		"data.train={source: " + dir + "/a.jsonl, size: 0}",
		"data.val={source: none, size: 0}", "data.test={source: none, size: 0}", "eval.online.every_steps=0", "eval.final={suites: [none]}",
		"data.max_prompt_tokens=96", "sft.steps=0", "algo={kind: grpo}", training,
		"rollout={n: 4, max_new_tokens: 8}"}, sets...)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A frozen tower encodes an image once while features stay; one that learns encodes the images of a mini-batch again
// after each update, and goes back through each image once for each slice that shows it.
func TestImageWork(t *testing.T) {
	dir := prompttest.PictureFolder(t, prompttest.PictureConfig)
	shown := func(different int) *prompt.ImagePlan { // 2 images for each of 100 problems
		return &prompt.ImagePlan{Images: 200, Tokens: 3200, Most: 16, Row: 3, Rows: 100, Different: 16 * different}
	}
	for _, tt := range []struct {
		name              string
		images            *prompt.ImagePlan
		sets              []string
		encodings, passes float64
	}{
		{"frozen", shown(40), nil, 4, 0},                                      // all 40 within ten steps
		{"many", shown(200), nil, 16, 0},                                      // each of the 160 that steps show
		{"no room", shown(1 << 30), []string{"train.steps=100000000"}, 16, 0}, // 3.2 TB of features
		{"learned", shown(40), []string{"model.vision=trained"}, 16 + 8, 16},  // two updates
		{"one update", shown(40), []string{"model.vision=trained", "train.prompts_per_update=8"}, 16, 16},
		{"two epochs", shown(40), []string{"model.vision=trained", "algo.epochs=2"}, 16 + 24, 32},
		{"a critic", shown(40), []string{"model.vision=trained", "algo={kind: ppo}"}, 2 * (16 + 8), 32},
		{"a reference", shown(40), []string{"model.vision=trained", "algo.kl.loss_coef=0.1"}, 16 + 8 + 4, 16},
		{"adapters", shown(40), []string{"model.vision=trained", "train.lora={rank: 2}"}, 16 + 8, 16},
	} {
		r := pictured(t, dir, tt.sets...)
		c := &r.Run
		e, err := Of(r, 1).Estimate()
		if err != nil {
			t.Fatal(err)
		}
		e.Show(c, prompt.Plan{Images: tt.images})
		x := e.Images
		if x == nil || x.Images != 16 || x.Tokens != 16 || x.Encodings != tt.encodings || x.Passes != tt.passes {
			t.Errorf("%s: %+v, want %g encodings and %g passes", tt.name, x, tt.encodings, tt.passes)
			continue
		}
		forward, backward := stage.ImageFLOPs(c, 16, c.Train.LoRA.Rank > 0)
		if want := tt.encodings*forward + tt.passes*backward; forward == 0 || math.Abs(x.FLOPs-want) > 1e-9*want {
			t.Errorf("%s: %g operations, want %g", tt.name, x.FLOPs, want)
		}
		if text := e.Text(""); !strings.Contains(text, "images   16 a step, of 16 tokens on average: the vision tower encodes") {
			t.Errorf("%s: %s", tt.name, text)
		}
		if len(e.Phases) != 0 {
			t.Errorf("%s: phases of a CPU: %+v", tt.name, e.Phases)
		}
	}
	r := pictured(t, dir)
	e, err := Of(r, 1).Estimate()
	if err != nil {
		t.Fatal(err)
	}
	if e.Show(&r.Run, prompt.Plan{}); e.Images != nil {
		t.Errorf("texts: %+v", e.Images)
	}
}

// The phases of a step on a GPU have the time of towers, which groups of ranks share.
func TestPhasesOfImages(t *testing.T) {
	dir := prompttest.PictureFolder(t, prompttest.PictureConfig)
	phases := func(ranks int, sets ...string) (found map[string]float64, x *ImageWork) {
		r := pictured(t, dir, append(sets, noGPU, "model.vision=trained")...)
		e, err := Of(r, ranks).Estimate()
		if err != nil {
			t.Fatal(err)
		}
		e.Show(&r.Run, prompt.Plan{Images: &prompt.ImagePlan{Images: 10, Tokens: 160, Most: 16, Row: 1, Rows: 10, Different: 160}})
		found = map[string]float64{}
		for _, p := range e.Phases {
			found[p.Name] = p.Seconds
		}
		if last := e.Phases[len(e.Phases)-1]; last.Name != "gradients and parameters" {
			t.Errorf("the last phase is %s", last.Name)
		}
		return found, e.Images
	}
	one, x := phases(1)
	near := func(got, want float64) bool { return want > 0 && math.Abs(got-want) < 1e-9*want }
	if !near(one["features of images"], x.Encodings*x.forward/gpuFLOPs) ||
		!near(one["backward passes of images"], x.Passes*x.backward/gpuFLOPs) {
		t.Errorf("%v", one)
	}
	four, _ := phases(4)
	if !near(4*four["features of images"], one["features of images"]) {
		t.Errorf("on four ranks %v", four)
	}
	shared, _ := phases(4, "compute.tensor_parallel=2")
	if !near(2*shared["features of images"], one["features of images"]) {
		t.Errorf("in groups of two ranks %v", shared)
	}
	apart, _ := phases(3, "compute.rollout_ranks=1", "rollout.staleness=1")
	if got := apart["features of images for sampling"]; !near(got, 8*x.forward/gpuFLOPs) {
		t.Errorf("with a rank that only samples %v", apart)
	}
}

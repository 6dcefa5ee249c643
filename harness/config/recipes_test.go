package config

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/train/rl"
)

const recipes = "../../configs/"

func TestRecipesLoad(t *testing.T) {
	files, err := filepath.Glob(recipes + "*.yaml")
	if err != nil || len(files) < 12 {
		t.Fatalf("recipes: %v, %v", files, err)
	}
	names := map[string]string{}
	for _, file := range files {
		r := load(t, Input{File: file})
		if other := names[r.Run.Name]; other != "" {
			t.Errorf("%s and %s are both called %s", file, other, r.Run.Name)
		}
		names[r.Run.Name] = file
		want := strings.ReplaceAll(strings.TrimSuffix(filepath.Base(file), ".yaml"), "_cpu", "")
		if got := strings.ReplaceAll(r.Run.Name, "-", "_"); got != want {
			t.Errorf("%s is called %s", file, r.Run.Name)
		}
	}
}

// TestTreatmentIsTheWholeDiff: recipes that differ in the algorithm differ in
// nothing else.
func TestTreatmentIsTheWholeDiff(t *testing.T) {
	for _, pair := range [][2]string{
		{"countdown_cpu_flowrl", "countdown_cpu_ppo"},
		{"countdown_cpu_flowrl", "countdown_cpu_grpo"},
		{"words_cpu_flowrl", "words_cpu_ppo"},
		{"words_cpu_flowrl", "words_cpu_grpo"},
		{"stories_cpu_flowrl", "stories_cpu_ppo"},
		{"stories_cpu_flowrl", "stories_cpu_grpo"},
		{"code_cpu_flowrl", "code_cpu_ppo"},
		{"code_cpu_flowrl", "code_cpu_grpo"},
		{"flowrl_7b_math", "ppo_7b_math"},
		{"flowrl_7b_math", "grpo_7b_math"},
	} {
		a, b := load(t, Input{File: recipes + pair[0] + ".yaml"}), load(t, Input{File: recipes + pair[1] + ".yaml"})
		treatments := 0
		for _, d := range Diff(a, b) {
			switch {
			case d.Class == Treatment:
				treatments++
			case d.Key.Path != "name" && d.Key.Path != "algo.flowrl.preset":
				t.Errorf("%v differ in %s: %q (%s)", pair, d.Key.Path, d.Values, d.Class)
			}
		}
		if treatments == 0 {
			t.Errorf("%v do not differ", pair)
		}
		for _, s := range []Stage{Prepare, Init, SFT, EvalGen, EvalScore} {
			if diff := cmp.Diff(a.Params(s), b.Params(s)); diff != "" {
				t.Errorf("%v do not share stage %s:\n%s", pair, s, diff)
			}
		}
		if diff := cmp.Diff(a.Protocol(), b.Protocol()); diff != "" {
			t.Errorf("%v have different protocols:\n%s", pair, diff)
		}
	}
}

// TestAlgorithmsAgreeAcrossTasks: the words, stories and code recipes train as the countdown ones.
func TestAlgorithmsAgreeAcrossTasks(t *testing.T) {
	for _, algo := range []string{"flowrl", "ppo", "grpo"} {
		a := load(t, Input{File: recipes + "countdown_cpu_" + algo + ".yaml"})
		for _, task := range []string{"words", "stories", "code"} {
			b := load(t, Input{File: recipes + task + "_cpu_" + algo + ".yaml"})
			if diff := cmp.Diff(a.Run.Algo, b.Run.Algo); diff != "" {
				t.Errorf("%s (-countdown +%s):\n%s", algo, task, diff)
			}
		}
	}
}

// TestPublishedNumbers holds the recipes to the published scripts: FlowRL
// @decbc57b, verl@FlowRL/command/training, and its evaluation settings.
func TestPublishedNumbers(t *testing.T) {
	type numbers struct {
		base                string
		perStep, perUpdate  int
		n, prompt, response int
		temperature, lr     float64
		warmup              int
		decay, clip, beta   float64
		layers              int
		save, validate      int
		suites              string
	}
	math := numbers{"hub:Qwen/Qwen2.5-7B@main", 512, 32, 8, 2048, 8192, 1.0, 1e-6, 10, 0.1, 1.0, 15, 3, 50, 5, "aime24 aime25 amc23 math500 minerva olympiad"}
	large, code := math, math
	large.base = "hub:Qwen/Qwen2.5-32B@main"
	code.base, code.perStep, code.temperature, code.save, code.validate = "hub:deepseek-ai/DeepSeek-R1-Distill-Qwen-7B@main", 64, 0.6, 25, 10
	code.suites = "livecodebench codeforces humanevalplus"
	for name, want := range map[string]numbers{"flowrl_7b_math": math, "flowrl_32b_math": large, "flowrl_7b_code": code} {
		r := load(t, Input{File: recipes + name + ".yaml"}).Run
		got := numbers{
			r.Model.Base, r.Train.PromptsPerStep, r.Train.PromptsPerUpdate, r.Rollout.N, r.Data.MaxPromptTokens, r.Rollout.MaxNewTokens,
			r.Rollout.Temperature, r.Train.Optim.LR, r.Train.Optim.WarmupSteps, r.Train.Optim.WeightDecay, r.Train.Optim.GradClip,
			r.Algo.Settings.Float(rl.FlowBeta), r.Algo.Settings.Int(rl.LogZLayers), r.Checkpoint.EverySteps, r.Eval.Online.EverySteps, strings.Join(r.Eval.Final.Suites, " "),
		}
		if got != want {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
		if s := r.Algo.Settings; s.Float(rl.FlowWeightLow) != 0 || s.Float(rl.FlowWeightHigh) < 1e300 {
			t.Errorf("%s: weight in %v, want the released code's: not clipped", name, s)
		}
		if f := r.Eval.Final; f.N != 16 || f.Temperature != 0.6 || f.TopP != 0.95 || f.TopK != 50 || f.MaxNewTokens != 8192 {
			t.Errorf("%s: protocol %+v", name, f)
		}
		if o := r.Eval.Online; o.N != 1 || o.Temperature != 0 || r.Data.Truncate != "left" {
			t.Errorf("%s: validation %+v, truncate %s", name, o, r.Data.Truncate)
		}
		if o := r.Train.Optim; o.Beta1 != 0.9 || o.Beta2 != 0.999 || o.Eps != 1e-8 || o.Schedule != "constant" {
			t.Errorf("%s: optimizer %+v", name, o)
		}
	}
	ppo := load(t, Input{File: recipes + "ppo_7b_math.yaml"}).Run.Algo
	if ppo.Settings["clip.low"] != 0.2 || ppo.Settings["gamma"] != 1.0 || ppo.Settings["lambda"] != 1.0 || ppo.Critic.Optim.LR != 1e-5 ||
		ppo.Settings.Float(rl.ValueClip) != 0.5 || ppo.Settings.Int(rl.CriticWarmup) != 0 || ppo.KL.LossCoef != 0.001 || ppo.KL.LossEstimator != "k3" {
		t.Errorf("ppo: %+v", ppo)
	}
}

package stage

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exp/harness/config"
	"exp/train"
	"exp/train/rl"
)

func load(t *testing.T, file string, sets ...string) *config.Resolved {
	t.Helper()
	r, err := config.Load(config.Input{File: "../../configs/" + file, Sets: sets})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestTrainConfig(t *testing.T) {
	flow := TrainConfig(&load(t, "flowrl_7b_math.yaml").Run)
	if flow.Loss != "flowrl" || flow.PromptsPerStep != 512 || flow.PromptsPerUpdate != 32 || flow.Samples != 8 ||
		flow.Policy.LR != 1e-6 || flow.Policy.WeightDecay != 0.1 || flow.Policy.Schedule.Warmup != 10 || flow.Settings.Float(rl.FlowBeta) != 15 ||
		!math.IsInf(flow.Settings.Float(rl.FlowWeightHigh), 1) || flow.LogZ.Layers != 3 || flow.LogZ.Dropout != 0.1 || flow.Advantage != "" || flow.Settings.Word(rl.FlowReward) != "advantage" {
		t.Errorf("flowrl_7b_math: %+v", flow)
	}
	if n := flow.Needs(); !n.Reference || n.Critic || !n.LogZ {
		t.Errorf("FlowRL needs %+v", n)
	}
	ppo := TrainConfig(&load(t, "ppo_7b_math.yaml").Run)
	if rl.ClipOf(ppo.Settings) != (rl.Clip{Low: 0.2, High: 0.2, Dual: 3}) || ppo.Settings["gamma"] != 1.0 || ppo.Settings["lambda"] != 1.0 || ppo.Critic.LR != 1e-5 ||
		ppo.Settings.Float(rl.ValueClip) != 0.5 || ppo.Aggregation != rl.TokenMean || ppo.KL.LossCoef != 0.001 || ppo.KL.LossEstimator.Kind != rl.KLK3 {
		t.Errorf("ppo_7b_math: %+v", ppo)
	}
	if n := ppo.Needs(); !n.Reference || !n.Critic || n.LogZ {
		t.Errorf("PPO needs %+v", n)
	}
	for _, tt := range []struct {
		set  string
		look func(c train.Config) bool
	}{
		{"algo.flowrl.weight.level=mean", func(c train.Config) bool { return c.Settings.Word(rl.FlowWeightLevel) == "mean" }},
		{"algo.flowrl.reference=old", func(c train.Config) bool { return c.Settings.Word(rl.FlowReference) == "old" && !c.Needs().Reference }},
		{"algo.flowrl.use_logz=false", func(c train.Config) bool { return !c.Settings.Bool(rl.FlowLogZ) && !c.Needs().LogZ }},
		{"algo.flowrl.reward=raw", func(c train.Config) bool { return c.Settings.Word(rl.FlowReward) == "raw" }},
		{"algo.flowrl.token_mask=cispo", func(c train.Config) bool { return c.Settings.Word(rl.FlowTokenMask) == "cispo" }},
		{"algo.flowrl.preset=paper", func(c train.Config) bool {
			return c.Settings.Float(rl.FlowWeightLow) == 0.8 && c.Settings.Float(rl.FlowWeightHigh) == 1.2
		}},
		{"algo.flowrl.logz.pool=all", func(c train.Config) bool { return c.LogZ.PoolAll }},
		{"data.order=sequential", func(c train.Config) bool { return !c.Shuffled }},
	} {
		if c := TrainConfig(&load(t, "smoke_cpu.yaml", tt.set).Run); !tt.look(c) {
			t.Errorf("--set %s has no effect: %+v", tt.set, c)
		}
	}
}

// Two outcomes, reference 3/4 and 1/4, rewards 0 and ln(3)/β: the optimum is even.
func TestTarget(t *testing.T) {
	p := []OutcomeProb{{RefLogProb: math.Log(0.75), Reward: 0}, {RefLogProb: math.Log(0.25), Reward: math.Log(3) / 15}}
	Target(p, 15)
	for i, o := range p {
		if math.Abs(o.Target-0.5) > 1e-12 {
			t.Errorf("target %d = %v, want 1/2", i, o.Target)
		}
	}
	huge := []OutcomeProb{{RefLogProb: -1, Reward: 1000}, {RefLogProb: -1, Reward: 0}}
	if Target(huge, 15); huge[0].Target != 1 || huge[1].Target != 0 {
		t.Errorf("large rewards: %v", huge)
	}
}

// Everything that a configuration names is checked before any work; each error names its
// key.
func TestExternalErrors(t *testing.T) {
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "p.jsonl")
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	few := file(`{"nums": [2, 3, 4], "target": 10}` + "\n" + `{"nums": [5, 3, 4], "target": 12}` + "\n")
	for _, tt := range []struct {
		name string
		sets []string
		want []string // one for each error
	}{
		{"missing", []string{"data.train={source: nowhere.jsonl, size: 0}"}, []string{"nowhere.jsonl: no such file"}},
		{"two", []string{"data.train={source: nowhere.jsonl, size: 0}", "data.test={source: " + file("[3]") + ", size: 0}"}, []string{"nowhere.jsonl", "p.jsonl: item 1: a number, not an object"}},
		{"empty", []string{"data.test={source: " + file("") + ", size: 0}"}, []string{"p.jsonl holds no problems"}},
		{"size", []string{"data.test={source: " + few + ", size: 3}"}, []string{"has 2 problems, data.test.size asks for 3"}},
		{"step", []string{"data.train={source: " + few + ", size: 0}", "sft.steps=0"}, []string{"has 2 problems, train.prompts_per_step asks for 8"}},
		{"sft", []string{"data.train={source: " + few + ", size: 0}", "train={prompts_per_step: 2, prompts_per_update: 1}"}, []string{"has 2 problems, sft.problems_per_step asks for 16"}},
		{"online", []string{"data.val={source: " + few + ", size: 0}"}, []string{"has 2 problems, eval.online.problems asks for 8"}},
		{"prompt", []string{"data.test={source: " + few + ", size: 0}", "data.max_prompt_tokens=3"}, []string{"max_prompt_tokens is 3"}},
	} {
		_, err := Externals(load(t, "smoke_cpu.yaml", tt.sets...))
		var errs config.Errors
		if !errors.As(err, &errs) || len(errs) != len(tt.want) {
			t.Errorf("%s: %v, want %d config errors", tt.name, err, len(tt.want))
			continue
		}
		for i, e := range errs {
			if !strings.Contains(e.Message, tt.want[i]) || !strings.HasPrefix(e.Place(), "--set #") {
				t.Errorf("%s: %s: %s, want %q", tt.name, e.Place(), e.Message, tt.want[i])
			}
		}
	}
	if _, err := Externals(load(t, "smoke_cpu.yaml", "data.test={source: "+few+", size: 0}")); err != nil {
		t.Errorf("a good file: %v", err)
	}
}

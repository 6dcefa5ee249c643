package run

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"exp/experiments/recorded"
	"exp/experiments/store"
	"exp/harness/stage"
	"exp/train/rollout"
)

// A run learns from rewards of single steps by its own process reward model. Its record has their scores, which the
// reward model gives again, and the plan says what steps earn.
func TestRewardsOfStepsRun(t *testing.T) {
	l := newLab(t)
	sets := append(chatSets(l, testTemplate, "reward={kind: trained, steps: mean, split: '1', credit: sum, outcome_weight: 2, step_right: 0.5}"),
		"algo.kind=grpo_process", "store.samples.train=all", "eval.final.suites=[]", "rollout.staleness=1", "train.steps=3",
		"reward_model={kind: steps, steps: 4, answers_per_step: 4, max_tokens: 60, separator: '|', optim: {lr: 0.01}}",
		"reward_model.source="+stepFile(t))
	p := l.plan(0, sets...)
	const note = "formatted by the run's chat template; each step earns -1 (wrong) to 0.5 (right), and the answer 2 times its verdict"
	if got := stage.RewardNote(&p.Config.Run, p.External); !strings.HasSuffix(got, note) {
		t.Errorf("the plan says %q", got)
	}
	res, _ := l.execute(p)
	l.samplesAgain(p)
	if v := l.verify(p, VerifyOptions{Level: LevelFull}); !v.OK {
		t.Errorf("%+v", v.Findings)
	}
	list, _, err := recorded.Completions{DB: l.db, Run: res.Run, Query: store.SampleQuery{Scope: "train"}}.Read(context.Background(), 0)
	if err != nil {
		t.Fatal(err)
	}
	several := 0
	for _, c := range list {
		reward, at := 0.0, 0
		if c.Correct != nil && *c.Correct {
			reward = 2
		}
		for _, s := range c.Steps {
			if want := 1.5*s.Right - 1; s.End < at || math.Abs(s.Reward-want) > 1e-12 || !(s.Right > 0 && s.Right < 1) {
				t.Fatalf("%s, sample %d: steps %+v", c.Item, c.K, c.Steps)
			}
			at, reward = s.End, reward+s.Reward
		}
		if at != len(c.TokenIDs) || math.Abs(reward-c.Reward) > 1e-9 || !strings.Contains(c.StepScores(), " earned ") {
			t.Fatalf("%s, sample %d: steps %+v earn %v of %v and end at %d of %d", c.Item, c.K, c.Steps, reward, c.Reward, at, len(c.TokenIDs))
		}
		if len(c.Steps) > 1 {
			several++
		}
	}
	if len(list) == 0 || several == 0 {
		t.Errorf("%d of %d completions have several steps", several, len(list))
	}
	for _, set := range []string{"reward.outcome_weight=1", "reward.step_wrong=-2", "reward.step_weight=2", "algo.grpo_process.weight=2"} {
		if l.plan(0, append(sets, set)...).XID == p.XID {
			t.Errorf("%s is the same experiment", set)
		}
	}
}

// A step whose score or reward is another than the recorded one is told, though the sum of rewards is the same.
func TestStepsAreCompared(t *testing.T) {
	steps := []rollout.Step{{End: 2, Right: 0.75, Reward: 0.5}, {End: 4, Right: 0.5}}
	for name, change := range map[string]func(s []rollout.Step){
		"": func([]rollout.Step) {}, "rewards": func(s []rollout.Step) { s[0].Reward, s[1].Reward = 0, 0.5 },
		"places": func(s []rollout.Step) { s[0].End = 3 }, "scores": func(s []rollout.Step) { s[1].Right = 0.25 },
	} {
		again := slices.Clone(steps)
		change(again)
		v := &verifier{}
		v.compareReward("here", &keptRollout{row: store.Sample{Reward: 0.5}, text: keptSample{Steps: steps}},
			&stage.Redrawn{Verdict: &rollout.Verdict{Status: rollout.Graded, Reward: 0.5, Steps: again}})
		if got := len(v.v.Findings); got != min(1, len(name)) || got == 1 && !strings.Contains(v.v.Findings[0].What, "the recorded list of steps differs") {
			t.Errorf("other %s: %+v", name, v.v.Findings)
		}
	}
}

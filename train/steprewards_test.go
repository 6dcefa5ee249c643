package train

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"exp/train/rl"
	"exp/train/rollout"
)

// stepwise makes the grader of a toy reward steps: each ends with a B, and is the righter the more A it has.
func (r *toyRun) stepwise() *toyRun {
	grade := r.grade
	r.grade = func(p *rollout.Problem, c *rollout.Completion) rollout.Verdict {
		v := grade(p, c)
		v.Outcome = 2 * v.Reward
		from := 0
		for k, id := range c.Tokens {
			if id != 2 && k+1 < len(c.Tokens) {
				continue
			}
			s := rollout.Step{End: k + 1}
			for _, x := range c.Tokens[from : k+1] {
				if x == 1 {
					s.Right += 1 / float64(k+1-from)
				}
			}
			s.Reward = 0.1*float64(len(v.Steps)) - s.Right/3
			v.Steps, from = append(v.Steps, s), k+1
		}
		v.Reward = v.Outcome + rollout.Earned(v.Steps)
		return v
	}
	return r
}

// stepping are ways of learning from rewards of steps.
func stepping() map[string]func(c *Config) {
	return map[string]func(c *Config){
		"process": func(c *Config) { c.Advantage = "grpo_process" },
		"process, ahead, less a KL": func(c *Config) {
			c.Advantage, c.Staleness, c.KL.RewardCoef, c.Settings = "grpo_process", 1, 0.1, with(c.Settings, "grpo_process.weight", 0.5)
		},
		"PURE": func(c *Config) {
			c.Advantage, c.Overlong = "pure", rl.Overlong{MaxResponse: 6, Buffer: 4, Penalty: 1}
		},
		"tokens": func(c *Config) { c.Advantage = "reinforce_plus_plus" },
	}
}

// Steps by hand: two end in one token, one takes the last token, which has the outcome and a penalty, too.
func TestRewardsOfSteps(t *testing.T) {
	problem := &rollout.Problem{ID: "p"}
	graded := func(tokens int, outcome float64, steps ...rollout.Step) Trajectory {
		return Trajectory{Problem: problem, Completion: &rollout.Completion{Tokens: make([]int32, tokens), LogProbs: make([]float32, tokens)},
			Verdict: rollout.Verdict{Status: rollout.Graded, Steps: steps, Outcome: outcome, Reward: outcome + rollout.Earned(steps)}}
	}
	all := []Trajectory{
		graded(4, 1, rollout.Step{End: 2, Reward: 0.5}, rollout.Step{End: 2, Reward: 0.25}, rollout.Step{End: 4, Reward: -0.5}),
		graded(1, 0, rollout.Step{End: 1, Reward: 2}), graded(0, 0, rollout.Step{Reward: 1}),
	}
	b := newBatch(all, rl.Overlong{MaxResponse: 4, Buffer: 2, Penalty: 1}, nil)
	if want := []float32{0, 0.75, 0, -0.5, 2}; !slices.Equal(b.reward, want) { // 1 - 1 for the length
		t.Errorf("token rewards %v, want %v", b.reward, want)
	}
	if got := b.totals(false); !slices.Equal(got, []float32{0.25, 2, 1}) {
		t.Errorf("scores %v", got)
	}
	if got := b.outcomes(false); !slices.Equal(got, []float32{0, 0, 1}) {
		t.Errorf("outcomes %v", got)
	}
	b.reward[0] -= 0.125 // a KL
	if got := b.totals(true); !slices.Equal(got, []float32{0.125, 2, 0}) {
		t.Errorf("scores less a KL %v", got)
	}
	if got := b.outcomes(true); !slices.Equal(got[:2], []float32{-0.125, 0}) {
		t.Errorf("outcomes less a KL %v", got)
	}
	x, err := b.steps()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(x.Row, []int{0, 0, 0, 1}) || !slices.Equal(x.Last, []int{1, 1, 3, 4}) || !slices.Equal(x.Reward, []float64{0.5, 0.25, -0.5, 2}) {
		t.Errorf("%+v", x)
	}
	all[0].Verdict.Steps = nil
	if _, err := b.steps(); err == nil || !strings.Contains(err.Error(), "problem p, sample 0: no process reward model has scored") {
		t.Errorf("without steps: %v", err)
	}
}

// Rewards of steps without an outcome leave none, however they round, so that nothing is divided by a rounding error.
func TestStepsLeaveNoOutcome(t *testing.T) {
	var all []Trajectory
	problem := &rollout.Problem{}
	for _, rewards := range [][]float64{{0.1, 0.2, 0.7}, {0.7, 0.2, 0.1}, {0.3, 0.3, 0.3}} {
		c := &rollout.Completion{Tokens: make([]int32, 3), LogProbs: make([]float32, 3)}
		var steps []rollout.Step
		for k, r := range rewards {
			steps = append(steps, rollout.Step{End: k + 1, Reward: r})
		}
		all = append(all, Trajectory{Problem: problem, Completion: c,
			Verdict: rollout.Verdict{Status: rollout.Graded, Reward: rollout.Earned(steps), Steps: steps}})
	}
	b := newBatch(all, rl.Overlong{}, nil)
	if got := b.outcomes(false); !slices.Equal(got, []float32{0, 0, 0}) {
		t.Errorf("outcomes %v", got)
	}
}

// Threads, micro-batches and ranks change no bit, and steps stay with verdicts that wait in a checkpoint.
func TestStepsChangeNoBit(t *testing.T) {
	for name, change := range stepping() {
		whole := newToyRun(t, GRPO, 1).stepwise()
		whole.setUp(change)
		whole.cfg.Steps = 4
		whole.run()
		got := newToyRun(t, GRPO, 3).stepwise()
		got.cfg = whole.cfg
		got.cfg.MicroBatchTokens, got.options.MaxSequences = 11, 5
		got.run()
		if a, b := trace(got.steps), trace(whole.steps); a != b || !slices.Equal(got.params(), whole.params()) {
			t.Errorf("%s: %s", name, firstLineThatDiffers(a, b))
		}
		continues(t, whole)
		build := func() *toyRun {
			r := rankedToy(t, GRPO).stepwise()
			r.setUp(change)
			r.cfg.Steps = 1
			return r
		}
		runRanked(t, 2, build).same(t, runRanked(t, 1, build), "%s, 2 ranks", name)
	}
}

// Plain loops over the recorded steps of a step find the advantages that grpo_process used, and the metrics.
func TestGRPOProcessOfCompletions(t *testing.T) {
	r := newToyRun(t, GRPO, 2).stepwise()
	r.cfg.Advantage, r.cfg.Steps = "grpo_process", 1
	r.run()
	s := r.steps[0]
	var most float64
	var steps, right, unsound, agree, earned, outcome float64
	for i := 0; i < len(s.Trajectories); i += r.cfg.Samples {
		var outcomes, rewards []float64
		for _, tr := range s.Trajectories[i : i+r.cfg.Samples] {
			outcomes = append(outcomes, tr.Verdict.Outcome)
			sound := true
			for _, x := range tr.Verdict.Steps {
				rewards = append(rewards, x.Reward)
				steps, right, earned, sound = steps+1, right+x.Right, earned+x.Reward, sound && x.Right >= 0.5
			}
			outcome += tr.Verdict.Outcome
			if !sound {
				unsound++
			}
			if sound == tr.Verdict.Correct {
				agree++
			}
		}
		scaled := func(x float64, group []float64) float64 {
			var mean float64
			for _, y := range group {
				mean += y / float64(len(group))
			}
			return (x - mean) / (rl.StdDev(group) + 1e-6)
		}
		for _, tr := range s.Trajectories[i : i+r.cfg.Samples] {
			for tok := range tr.Completion.Tokens {
				adv := scaled(tr.Verdict.Outcome, outcomes)
				for _, x := range tr.Verdict.Steps {
					if x.End > tok {
						adv += scaled(x.Reward, rewards)
					}
				}
				most = max(most, adv)
			}
		}
	}
	n := float64(len(s.Trajectories))
	for name, want := range map[string]float64{"critic/advantages/max": most, "reward/steps": steps / n, "reward/step_right": right / steps,
		"reward/unsound": unsound / n, "reward/steps_agree": agree / n, "reward/step_sum": earned / n, "reward/outcome": outcome / n,
		"critic/score/mean": (earned + outcome) / n} {
		if got := metric(t, s, name); math.Abs(got-want) > 1e-5 || want == 0 {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}

func TestStepsNeedRewards(t *testing.T) {
	for text, change := range map[string]func(c *Config){
		"pure reads rewards of steps": func(c *Config) { c.Advantage, c.Turns = "pure", true },
		"grpo_process reads rewards":  func(c *Config) { c.Advantage, c.Self = "grpo_process", RewardConfidence },
	} {
		c := toyConfig(GRPO)
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("Validate = %v, want %q", err, text)
		}
	}
	if text := fmt.Sprint(stepMetrics(nil)); text != "[]" {
		t.Errorf("metrics of nothing: %s", text)
	}
}

package train

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"exp/train/rl"
	"exp/train/rollout"
)

// With staleness 2, the first three steps are sampled from the policy before any
// update, and every later one from the policy two updates before its own.
func TestStaleness(t *testing.T) {
	stale := newToyRun(t, FlowRL, 1)
	stale.cfg.Steps, stale.cfg.Staleness, stale.cfg.Policy.LR = 6, 2, 2e-2
	stale.run()
	still := newToyRun(t, FlowRL, 1)
	still.cfg.Steps, still.cfg.Policy.LR = 6, 0
	still.run()
	same := func(step int) bool {
		a, b := stale.steps[step-1].Trajectories, still.steps[step-1].Trajectories
		return slices.EqualFunc(a, b, func(x, y Trajectory) bool {
			return x.Problem.ID == y.Problem.ID && slices.Equal(x.Completion.LogProbs, y.Completion.LogProbs)
		})
	}
	for step := 1; step <= 6; step++ {
		if want := step <= 3; same(step) != want {
			t.Errorf("step %d: sampled from the first policy: %v", step, !want)
		}
		diff := metric(t, stale.steps[step-1], "training/rollout_probs_diff_mean")
		if (diff > 0) != (step > 1) {
			t.Errorf("step %d: mean difference of probabilities %v", step, diff)
		}
		if step > 1 {
			if got, want := metric(t, stale.steps[step-1], "training/off_policy/trajectory_staleness/mean"), float64(min(step-1, 2)); got != want {
				t.Errorf("step %d: staleness %v, want %v", step, got, want)
			}
		}
	}
	if n := len(stale.trainer.pending); n != 0 {
		t.Errorf("%d steps were sampled and not taken", n)
	}
	// The policy that a stale step updates is the one before it, not the sampler's: the
	// ratio of the first update is 1.
	one := newToyRun(t, GRPO, 1)
	one.cfg.Steps, one.cfg.Staleness, one.cfg.PromptsPerUpdate, one.cfg.Policy.LR = 3, 1, 4, 2e-2
	one.run()
	if got := metric(t, one.steps[2], "actor/ppo_kl"); got != 0 {
		t.Errorf("actor/ppo_kl %v, want 0", got)
	}
	one = newToyRun(t, GRPO, 1)
	one.cfg.Steps, one.cfg.Staleness, one.cfg.PromptsPerUpdate, one.cfg.Policy.LR = 3, 1, 4, 2e-2
	one.cfg.Correction.Bypass = rl.BypassPPO
	one.run()
	if got := metric(t, one.steps[2], "actor/ppo_kl"); got == 0 {
		t.Error("in bypass mode the sampler is the old policy, but actor/ppo_kl is 0")
	}
}

// Steps that were sampled ahead are part of a checkpoint.
func TestStopAndContinueStale(t *testing.T) {
	for _, kind := range []Kind{FlowRL, PPO, Prime} {
		whole := newToyRun(t, kind, 2)
		whole.cfg.Steps, whole.cfg.Staleness = 6, 2
		whole.run()
		continues(t, whole)
	}
	whole := newToyRun(t, GRPO, 2)
	whole.cfg.Steps, whole.cfg.Staleness, whole.cfg.Advantage = 5, 1, "remax"
	grade := whole.grade
	whole.grade = func(p *rollout.Problem, c *rollout.Completion) rollout.Verdict {
		if len(c.Tokens) == 4 {
			return rollout.Verdict{Reason: "four letters"}
		}
		return grade(p, c)
	}
	whole.run()
	continues(t, whole)
	whole = newToyRun(t, GRPO, 2)
	whole.cfg.Steps, whole.cfg.Staleness = 5, 2
	cutWithin(whole)
	whole.run()
	continues(t, whole)
}

// Texts read back exactly, also from the strings of older checkpoints.
func TestExactText(t *testing.T) {
	for _, x := range []ExactText{"", "a €\u2028<\x00\ufffd", "a \xe2\x82", "{"} {
		b, err := json.Marshal(PendingVerdict{Answer: x})
		var got PendingVerdict
		if err := errors.Join(err, json.Unmarshal(b, &got)); err != nil || got.Answer != x {
			t.Errorf("%q is %q in JSON and %q again: %v", x, b, got.Answer, err)
		}
	}
	old, err := json.Marshal(rollout.Verdict{Status: rollout.Graded, Reward: 2, Answer: "€", Reason: "right"})
	var got PendingVerdict
	if err := errors.Join(err, json.Unmarshal(old, &got)); err != nil || got.Answer != "€" || got.Reason != "right" ||
		got.Reward != 2 {
		t.Errorf("%s reads as %+v, %v", old, got, err)
	}
}

func TestRestoreOfOtherData(t *testing.T) {
	r := newToyRun(t, GRPO, 1)
	r.cfg.Staleness = 1
	r.run()
	tr := r.start()
	err := tr.Restore(State{Step: 1, Pending: []Pending{{Step: 2, Rows: []PendingRow{{Problem: "q7"}}}}})
	if err == nil || !strings.Contains(err.Error(), "q7") {
		t.Errorf("Restore = %v, want an error that names q7", err)
	}
	err = tr.Restore(State{Step: 1, Pending: []Pending{{Step: 2, Groups: []int{0}}}})
	if err == nil || !strings.Contains(err.Error(), "0 completions") {
		t.Errorf("Restore = %v, want an error that counts completions", err)
	}
}

// Σ_v π(v)² comes from the exact distribution of the first token.
func TestSumPiSquared(t *testing.T) {
	r := newToyRun(t, GRPO, 1)
	r.cfg.Advantage, r.cfg.Sampling.Temperature = "tir_optimal_token_baseline", 1
	tr := r.start()
	traj, err := tr.sample(t.Context(), 1, []int{0, 1, 2}, func(int) int { return tr.cfg.Samples })
	if err != nil {
		t.Fatal(err)
	}
	for i := range traj {
		traj[i].Verdict.Status = rollout.Graded
	}
	b := newBatch(traj, rl.Overlong{}, nil)
	got := tr.passes.scores(tr.Policy, b, 1, true)
	for i, x := range b.traj {
		var want float64
		for _, p := range r.policy(tr.Policy, x.Problem.Prompt) {
			want += p * p
		}
		if x := float64(got.sumPiSquared[b.rows[i]]); math.Abs(x-want) > 1e-6*want {
			t.Errorf("row %d: %v, want %v", i, x, want)
		}
	}
	if !slices.Equal(got.logProb, b.roll) {
		t.Error("log-probs are not the sampler's")
	}
}

// In bypass mode too a token baseline weighs tokens by one policy: its weights are not negative, and so the baseline
// lies between the returns that it is a mean of, which are within [0, 1].
func TestTokenBaselineInBypassMode(t *testing.T) {
	r := newToyRun(t, GRPO, 1)
	r.cfg.Advantage, r.cfg.Correction.Bypass = "tir_optimal_token_baseline", rl.BypassPPO
	r.cfg.Steps, r.cfg.Staleness, r.cfg.Policy.LR = 8, 2, 3e-2
	r.run()
	for _, s := range r.steps {
		high, low := metric(t, s, "critic/advantages/max"), metric(t, s, "critic/advantages/min")
		if high > 1+1e-6 || low < -1-1e-6 {
			t.Errorf("step %d: advantages from %v to %v", s.Step, low, high)
		}
		if w := metric(t, s, "variance_proxy/expected_w"); !(w >= 0) {
			t.Errorf("step %d: expected_w %v", s.Step, w)
		}
	}
}

// The proxies are recorded where they are asked for, and with the token baselines.
func TestVarianceProxies(t *testing.T) {
	for _, change := range []func(c *Config){
		func(c *Config) { c.VarianceProxies = true },
		func(c *Config) { c.Advantage = "optimal_token_baseline" },
	} {
		r := newToyRun(t, GRPO, 1)
		r.cfg.Steps = 1
		change(&r.cfg)
		r.run()
		s := r.steps[0]
		if got, want := metric(t, s, "variance_proxy/proxy1_signal_strength"), metric(t, s, "actor/grad_norm"); math.Abs(got-want*want) > 1e-12 {
			t.Errorf("signal %v, want the square of %v", got, want)
		}
		if got := metric(t, s, "variance_proxy/expected_w"); !(got > 0) {
			t.Errorf("expected_w %v", got)
		}
	}
}

package train

import (
	"context"
	"math"
	"slices"
	"testing"

	"exp/kernels"
	"exp/train/rl"
	"exp/train/rollout"
)

// primeToy has problems whose completions are right and wrong about equally often.
func primeToy(t *testing.T, steps int) *toyRun {
	r := newToyRun(t, Prime, 2)
	r.cfg.Steps, r.cfg.Samples, r.cfg.KL.LossCoef = steps, 16, 0
	r.cfg.Process.LR = 1e-2
	grade := r.grade
	r.grade = func(p *rollout.Problem, c *rollout.Completion) rollout.Verdict {
		v := grade(p, c)
		v.Correct = v.Reward >= 0.25
		v.Reward = 0
		if v.Correct {
			v.Reward = 1
		}
		return v
	}
	return r
}

// The process reward model starts as the reference, so its first rewards are 0 if it learns after them. It learns which
// completions are right, and the policy learns from both.
func TestProcessRewardModelLearns(t *testing.T) {
	for _, loss := range []string{"ce", "dpo", "bon_acc", "bon_rm"} {
		r := primeToy(t, 12)
		r.cfg.Settings = with(r.cfg.Settings, "prime.update", "after", "prime.loss", loss, "prime.beta", 0.5)
		r.cfg.Process.PromptsPerUpdate = r.cfg.PromptsPerStep
		r.run()
		first, last := r.steps[0], r.steps[11]
		for name, want := range map[string]float64{"reward_model/reward": 0, "reward_model/raw_reward": 0, "reward_model/dpo_acc": 0.5,
			"reward_model/dpo_acc_abs": 0.5} {
			if got := metric(t, first, name); got != want {
				t.Errorf("%s: %s is %v at first, want %v", loss, name, got, want)
			}
		}
		if got := metric(t, first, "reward_model/dpo_loss"); loss[0] != 'b' && math.Abs(got-math.Ln2) > 1e-12 {
			t.Errorf("%s: the loss begins at %v, want log 2", loss, got)
		}
		ranked := 0.0
		for _, s := range r.steps[4:] {
			if hasMetric(s, "reward_model/dpo_acc") { // some completions are wrong
				ranked = metric(t, s, "reward_model/dpo_acc")
			}
		}
		if ranked < 0.8 {
			t.Errorf("%s: completions are ranked right to %.3f at last", loss, ranked)
		}
		if a, b := metric(t, first, "critic/score/mean"), metric(t, last, "critic/score/mean"); b < a+0.1 {
			t.Errorf("%s: reward went from %.3f to %.3f", loss, a, b)
		}
	}
}

// A model that learns first has rewards in the first step already; what a step is told before is what the other
// order rewards with.
func TestProcessUpdateOrder(t *testing.T) {
	run := func(update string) *Step {
		r := primeToy(t, 1)
		r.cfg.Process.PromptsPerUpdate = r.cfg.PromptsPerStep
		r.cfg.Settings = with(r.cfg.Settings, "prime.update", update)
		r.run()
		return r.steps[0]
	}
	before, after := run("before"), run("after")
	if a, b := metric(t, before, "reward_model/dpo_acc"), metric(t, after, "reward_model/dpo_acc"); a <= 0.5 || b != 0.5 {
		t.Errorf("ranked right: %v after an update, %v before any", a, b)
	}
	for _, name := range []string{"reward_model/dpo_loss", "reward_model/dpo_acc_before", "reward_model/grad_norm"} {
		if a, b := metric(t, before, name), metric(t, after, name); a != b {
			t.Errorf("%s of the same update: %v and %v", name, a, b)
		}
	}
	if metric(t, before, "actor/grad_norm") == metric(t, after, "actor/grad_norm") {
		t.Error("the policy learns the same from other rewards")
	}
}

// The gradient of the process reward model is the slope of its loss along the gradient.
func TestProcessGradient(t *testing.T) {
	for _, loss := range []string{"ce", "bon_rm"} {
		r := primeToy(t, 1)
		r.cfg.Settings = with(r.cfg.Settings, "prime.loss", loss, "prime.beta", 1.0)
		tr := r.start()
		got, err := tr.collect(context.Background(), 1, newStopwatch(tr.Clock))
		if err != nil {
			t.Fatal(err)
		}
		b := got.batch(r.cfg)
		tr.refer(b, 1, 0)
		c := rl.PrimeOf(tr.cfg.Settings)
		sums := rl.RowRewards(tr.processLogProbs(b, 1), b.ref, b.mask, b.rows, c.Beta)
		b.target = rl.PrimeTargets(sums, b.right(), b.group, c.Loss)
		mini := b.slice(0, len(b.traj), r.cfg.Slices, tr.passes.bundle)
		tr.processGradient(mini, "x")
		params, grads := r.host(tr.Process.Params()), r.host(tr.Process.Grads())
		var square float64
		for _, g := range grads {
			square += float64(g) * float64(g)
		}
		at := func(h float64) float64 {
			moved := slices.Clone(params)
			for i, g := range grads {
				moved[i] += float32(h * float64(g))
			}
			r.be.Copy(tr.Process.Params(), kernels.Host(moved))
			tr.Process.Refresh()
			return tr.processGradient(mini, "x")[0].Value
		}
		h := 3e-3 / math.Sqrt(square)
		if slope := (at(h) - at(-h)) / (2 * h); math.Abs(slope/square-1) > 2e-3 {
			t.Errorf("%s: the loss rises by %g along its gradient, want %g", loss, slope, square)
		}
	}
}

// A step that keeps nothing does not change the process reward model, nor say how it judges.
func TestProcessOfNothing(t *testing.T) {
	r := primeToy(t, 1)
	r.cfg.MaskTruncated = true
	r.grade = func(_ *rollout.Problem, c *rollout.Completion) rollout.Verdict {
		c.Finish = rollout.FinishLength
		return rollout.Verdict{Status: rollout.Graded, Correct: len(c.Tokens)%2 == 0}
	}
	tr := r.start()
	start := r.host(tr.Process.Params())
	rec, err := tr.Step(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(start, r.host(tr.Process.Params())) || tr.State().ProcessUpdates != 0 {
		t.Errorf("the process reward model learned in %d updates", tr.State().ProcessUpdates)
	}
	for _, name := range []string{"reward_model/dpo_loss", "reward_model/dpo_acc", "reward_model/reward"} {
		if hasMetric(rec, name) {
			t.Errorf("there is %s", name)
		}
	}
}

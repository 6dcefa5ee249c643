package train

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"exp/train/rl"
	"exp/train/rollout"
)

// tracks makes a toy train by tracked values.
func (r *toyRun) tracks(first int) *toyRun {
	r.cfg.Advantage, r.cfg.Samples, r.cfg.Steps = "spo", 1, 6
	r.cfg.Settings = with(r.cfg.Settings, "spo.first", first)
	r.cfg.Policy.LR = 2e-2
	return r
}

// A run's metrics equal a tracker's that follows its completions, one problem after the other.
func TestTracks(t *testing.T) {
	r := newToyRun(t, GRPO, 2).tracks(0)
	r.run()
	c := rl.SPOSettings(r.trainer.cfg.Settings)
	known, visits := map[string]rl.BetaValue{}, map[string]int{}
	moved := 0.0
	for i, s := range r.steps {
		seen := map[string]bool{}
		var values, first float64
		for _, tr := range s.Trajectories {
			id := tr.Problem.ID
			if seen[id] {
				t.Fatalf("step %d has problem %s twice", i+1, id)
			}
			seen[id] = true
			b, ok := known[id]
			if !ok {
				b = c.Start(0, 0)
			}
			values += b.Value() / 4
			if visits[id]++; visits[id] == 1 {
				first += 0.25
				known[id] = b.Update(c.RhoMax, tr.Verdict.Reward)
				continue
			}
			delete(known, id) // its rho depends on the policy
			known[id] = r.trackedIn(t, id, i, b, tr.Verdict.Reward)
		}
		if got := metric(t, s, "spo/p_hats"); math.Abs(got-values) > 1e-12 {
			t.Errorf("step %d: mean value %v, want %v", i+1, got, values)
		}
		if got := metric(t, s, "spo/first_sampled_ratio"); got != first {
			t.Errorf("step %d: first visits %v, want %v", i+1, got, first)
		}
		moved += metric(t, s, "spo/D")
		if rho := metric(t, s, "spo/rho_clipped"); rho < c.RhoMin || rho > c.RhoMax || i == 0 && rho != c.RhoMax {
			t.Errorf("step %d: rho %v", i+1, rho)
		}
	}
	if moved == 0 {
		t.Error("the policy has not moved between visits")
	}
}

// trackedIn returns the value of a problem after a further visit in a step, counted from 0: from the weight that the
// tracker then has, if no later step visits it, else from a run that ends there.
func (r *toyRun) trackedIn(t *testing.T, id string, step int, b rl.BetaValue, reward float64) rl.BetaValue {
	t.Helper()
	short := newToyRun(t, GRPO, 1)
	short.cfg = r.cfg
	short.cfg.Steps = step + 1
	short.run()
	at := short.trainer.problemIndex()[id]
	got := short.trainer.tracker.known[at]
	// Both parts were decayed by one rho within the bounds.
	rho := (got.Alpha - reward) / b.Alpha
	if other := (got.Beta - 1 + reward) / b.Beta; math.Abs(rho-other) > 1e-12 || rho < 0.875-1e-12 || rho > 0.96+1e-12 {
		t.Errorf("problem %s in step %d: alpha decays by %v, beta by %v", id, step+1, rho, other)
	}
	return got.BetaValue
}

// First values are of completions of every problem, whose tokens are counted and which are not recorded.
func TestFirstValues(t *testing.T) {
	r := newToyRun(t, GRPO, 2).tracks(3)
	r.cfg.Steps = 1
	asked := map[string]int{}
	grade := r.grade
	r.grade = func(p *rollout.Problem, c *rollout.Completion) rollout.Verdict {
		v := grade(p, c)
		if p.ID == "p3" {
			return rollout.Verdict{Reason: "no verdict"}
		}
		return v
	}
	r.run()
	tr := r.trainer
	if got := tr.tracker.known[3].BetaValue; got != (rl.BetaValue{Alpha: 0.5, Beta: 0.5}) {
		t.Errorf("a problem without a verdict has %v", got)
	}
	for _, x := range r.steps[0].Trajectories {
		asked[x.Problem.ID]++
	}
	for i, k := range tr.tracker.known {
		if n := k.Alpha + k.Beta; asked[r.problems[i].ID] == 0 && i != 3 && math.Abs(n-8) > 1e-12 {
			t.Errorf("first values of problem %d weigh %v, want 8", i, n)
		}
	}
	if n := r.steps[0].GreedyTokens; n < 30 || n > 180 {
		t.Errorf("%d tokens for 30 first completions of 1 to 6", n)
	}
	// They belong to step 0, whatever else is sampled.
	again := newToyRun(t, GRPO, 1).tracks(3)
	x := again.start()
	all, err := x.sample(context.Background(), 0, []int{7}, func(int) int { return 3 })
	if err != nil {
		t.Fatal(err)
	}
	var sum float64
	for _, c := range all {
		sum += again.grade(c.Problem, c.Completion).Reward
	}
	if want := rl.SPOSettings(x.cfg.Settings).Start(sum, 3); asked["p7"] == 0 && tr.tracker.known[7].BetaValue != want {
		t.Errorf("problem p7 starts at %v, want %v", tr.tracker.known[7].BetaValue, want)
	}
}

// Uncertain problems come more often than those that are always right.
func TestTrackedDraws(t *testing.T) {
	r := newToyRun(t, GRPO, 2).tracks(8)
	r.cfg.Steps, r.cfg.PromptsPerStep, r.cfg.PromptsPerUpdate = 60, 2, 2
	r.grade = func(p *rollout.Problem, c *rollout.Completion) rollout.Verdict {
		v := rollout.Verdict{Status: rollout.Graded, Reward: 1}
		if p.ID < "p5" {
			v.Reward = float64(len(c.Tokens) % 2)
		}
		return v
	}
	r.run()
	var unsure, sure int
	for _, s := range r.steps {
		for _, x := range s.Trajectories {
			if x.Problem.ID < "p5" {
				unsure++
			} else {
				sure++
			}
		}
	}
	if 2*unsure < 3*sure {
		t.Errorf("%d draws of uncertain problems, %d of certain ones", unsure, sure)
	}
}

// The tracker is part of what a checkpoint holds, with steps that were sampled ahead.
func TestStopAndContinueTracked(t *testing.T) {
	for _, ahead := range []int{0, 2} {
		whole := newToyRun(t, GRPO, 2).tracks(2)
		whole.cfg.Staleness = ahead
		cutWithin(whole)
		whole.run()
		continues(t, whole)
	}
	whole := newToyRun(t, GRPO, 2).tracks(0)
	whole.cfg.Settings = with(whole.cfg.Settings, "spo.rho_max", 0.875)
	whole.run()
	continues(t, whole)
	for _, m := range whole.steps[5].Metrics {
		if m.Name == "spo/D" {
			t.Error("a constant rho scores last visits")
		}
	}
	if n := slices.IndexFunc(whole.trainer.tracker.known, func(x tracked) bool { return x.last != nil }); n >= 0 {
		t.Error("a constant rho keeps completions")
	}
}

func TestTrackerRefuses(t *testing.T) {
	for want, change := range map[string]func(r *toyRun){
		"one completion per problem, not 2": func(r *toyRun) { r.cfg.Samples = 2 },
		"cannot be recorded ones":           func(r *toyRun) { r.recorded = &Recording{} },
		"cannot be filtered":                func(r *toyRun) { r.cfg.Filter = Filter{By: FilterScore, MaxBatches: 1} },
		"completions give themselves":       func(r *toyRun) { r.cfg.Self = RewardConfidence },
	} {
		r := newToyRun(t, GRPO, 1).tracks(0)
		change(r)
		_, err := New(r.cfg, Parts{Backend: r.be, Problems: r.problems, Prompt: letters{}.prompt, Seed: hashSeed(1),
			Policy: newToyRun(t, GRPO, 1).start().Policy, Recorded: r.recorded})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	r := newToyRun(t, GRPO, 1).tracks(1)
	r.grade = func(*rollout.Problem, *rollout.Completion) rollout.Verdict {
		return rollout.Verdict{Status: rollout.Graded, Reward: -1}
	}
	if err := r.start().Run(context.Background(), nil); err == nil || !strings.Contains(err.Error(), "from 0 to 1") {
		t.Errorf("a reward of -1: %v", err)
	}
	r = newToyRun(t, GRPO, 1).tracks(0)
	tr := r.start()
	if err := tr.Restore(State{Step: 1}); err == nil || !strings.Contains(err.Error(), "values of 0 problems") {
		t.Errorf("a state without values: %v", err)
	}
}

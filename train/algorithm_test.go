package train

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"exp/train/rl"
	"exp/train/rollout"
)

// variants are all estimators and losses, and what else a step may do, as changes of
// a toy.
func variants() map[string]func(c *Config) {
	all := map[string]func(c *Config){
		"pf_ppo": func(c *Config) { c.Advantage, c.Settings = "gae", with(c.Settings, "pf_ppo.method", "pow") },
		"vapo": func(c *Config) {
			c.Advantage, c.SFTWeight = "gae", 0.1
			c.Settings = with(c.Settings, "lambda_alpha", 0.5, "critic.lambda", 1.0, "clip.high", 0.28)
		},
		"overlong": func(c *Config) { c.Overlong = rl.Overlong{MaxResponse: 6, Buffer: 4, Penalty: 1} },
		"filter":   func(c *Config) { c.Filter = Filter{By: FilterScore, MaxBatches: 2} },
		"filter by final reward": func(c *Config) {
			c.Filter, c.KL.RewardCoef = Filter{By: FilterFinal, MaxBatches: 2}, 0.1
		},
		"stale": func(c *Config) {
			c.Staleness, c.Correction = 1, rl.Correction{Weights: rl.TokenWeights, High: 2}
		},
		"stale bypass": func(c *Config) {
			c.Staleness, c.Correction = 1, rl.Correction{Bypass: rl.BypassPPO}
		},
		"weights": func(c *Config) { c.Correction = rl.Correction{Weights: rl.SequenceWeights, High: 2, Normalize: true} },
		"bypass ppo": func(c *Config) {
			c.Correction = rl.Correction{Bypass: rl.BypassPPO, Reject: []rl.Rejection{{Span: rl.SpanMean, Kind: rl.KLK3, High: 0.01}}}
		},
		"bypass reinforce": func(c *Config) {
			c.Loss, c.Correction = "reinforce", rl.Correction{Bypass: rl.BypassReinforce, Weights: rl.TokenWeights, Low: 0.5, High: 5, Normalize: true}
		},
		"flowrl tokens": func(c *Config) {
			c.Advantage, c.Loss = "", "flowrl"
			c.Settings = with(c.Settings, "flowrl.terms", "token", "flowrl.use_logz", false, "flowrl.surrogate", true, "clip.high", 0.28)
		},
	}
	for _, e := range rl.Estimators() {
		// gdpo wants a grader of several: TestGDPO; gigpo an agent: earning; grpo_process and pure one of steps: stepping
		if !e.Components && !e.Turns && !e.Steps {
			all["advantage "+e.Name] = func(c *Config) {
				if c.Advantage = e.Name; e.Tracks {
					c.Samples = 1
				}
			}
		}
	}
	for _, l := range rl.PolicyLosses() {
		all["loss "+l.Name] = func(c *Config) {
			if c.Loss = l.Name; l.Advantages != nil {
				c.Advantage = ""
			}
		}
	}
	return all
}

// with returns settings with other values, given as keys and values.
func with(s rl.Settings, pairs ...any) rl.Settings {
	for i := 0; i < len(pairs); i += 2 {
		s = s.With(rl.Setting{Key: pairs[i].(string)}, pairs[i+1])
	}
	return s
}

// parts is a grader of two components: the share of A, and whether the completion is
// short.
type parts struct{ graderFunc }

func (parts) Components() []string { return []string{"a", "short"} }

func (g parts) Grade(ctx context.Context, p *rollout.Problem, c *rollout.Completion) (rollout.Verdict, error) {
	v, err := g.graderFunc.Grade(ctx, p, c)
	short := 0.0
	if len(c.Tokens) < 4 {
		short = 1
	}
	v.Components = []float64{v.Reward, short}
	return v, err
}

// GDPO's advantages are its parts' advantages, weighted, then whitened.
func TestGDPO(t *testing.T) {
	r := newToyRun(t, GRPO, 1)
	r.cfg.Advantage, r.cfg.Steps, r.cfg.Settings = "gdpo", 2, with(r.cfg.Settings, "gdpo.weights", []float64{1, 0.5})
	r.parts = true
	r.run()
	s := r.steps[0]
	b := newBatch(s.Trajectories, rl.Overlong{}, nil)
	want := make([]float32, len(b.mask))
	if err := rl.GDPO(want, b.components(), []float64{1, 0.5}, b.group, b.mask, b.rows, true); err != nil {
		t.Fatal(err)
	}
	lo, hi := slices.Min(want), slices.Max(want)
	if got := metric(t, s, "critic/advantages/max"); got != float64(hi) {
		t.Errorf("greatest advantage %v, want %v", got, hi)
	}
	if got := metric(t, s, "critic/advantages/min"); got != float64(lo) {
		t.Errorf("least advantage %v, want %v", got, lo)
	}
	if got := metric(t, s, "reward/short/mean"); !(got > 0 && got < 1) {
		t.Errorf("reward/short/mean %v", got)
	}

	r = newToyRun(t, GRPO, 1)
	r.cfg.Advantage = "gdpo"
	p := Parts{Backend: r.be, Problems: r.problems, Grader: r.grade, Prompt: letters{}.prompt}
	if _, err := New(r.cfg, p); err == nil || !strings.Contains(err.Error(), "0 reward components") {
		t.Errorf("New = %v, want an error that counts components", err)
	}
}

// setUp makes a toy move farther in a step, and changes it.
func (r *toyRun) setUp(change func(c *Config)) {
	c := &r.cfg
	c.Epochs, c.Policy.LR = 2, 1e-2
	change(c)
}

// Threads and the cut into micro-batches change no bit of any estimator or loss: what
// looks at all tokens of a mini-batch looks at them before its first micro-batch.
func TestAllSizesChangeNoBit(t *testing.T) {
	seed := uint64(0)
	all := variants()
	all["demonstrations"] = demonstrated // which go with no tools
	for name, change := range all {
		seed++
		t.Run(name, func(t *testing.T) {
			want := newToyRun(t, GRPO, 1)
			want.setUp(change)
			want.cfg.Steps = 2
			want.run()
			r := rand.New(rand.NewPCG(seed, 0))
			got := newToyRun(t, GRPO, 1+r.IntN(4))
			got.cfg = want.cfg
			got.cfg.MicroBatchTokens = 8 + r.IntN(60)
			got.options.MaxSequences = 1 + r.IntN(40)
			got.run()
			if a, b := trace(got.steps), trace(want.steps); a != b {
				t.Error(firstLineThatDiffers(a, b))
			}
			if !slices.Equal(got.params(), want.params()) {
				t.Error("parameters differ")
			}
		})
	}
}

// A toy whose first problems get equal answers refills its steps with other problems, and
// continues after those.
func TestFilterGroups(t *testing.T) {
	filtered := func() *toyRun {
		r := newToyRun(t, GRPO, 1)
		r.grade = func(p *rollout.Problem, c *rollout.Completion) rollout.Verdict {
			v := rollout.Verdict{Status: rollout.Graded, Reward: float64(len(c.Tokens))}
			if p.ID < "p4" {
				v.Reward = 0.5
			}
			return v
		}
		r.cfg.PromptsPerStep, r.cfg.PromptsPerUpdate, r.cfg.Steps, r.cfg.Shuffled, r.cfg.Policy.LR = 2, 1, 5, false, 1e-6
		r.cfg.Filter = Filter{By: FilterScore, MaxBatches: 3}
		return r
	}
	r := filtered()
	r.run()
	// Steps take p0 … p3 | p4 p5; p6 p7; p8 p9; p0 … p5; p6 p7.
	want := []struct{ batches, groups float64 }{{3, 6}, {1, 2}, {1, 2}, {3, 6}, {1, 2}}
	for i, s := range r.steps {
		if got := metric(t, s, "train/filter_batches"); got != want[i].batches {
			t.Errorf("step %d took %v batches, want %v", i+1, got, want[i].batches)
		}
		if got := float64(len(s.Trajectories)) / 8; got != want[i].groups {
			t.Errorf("step %d recorded %v groups, want %v", i+1, got, want[i].groups)
		}
		if got := metric(t, s, "train/filter_passed"); got != 2/want[i].groups {
			t.Errorf("step %d: a share of %v passed, want %v", i+1, got, 2/want[i].groups)
		}
		if got := metric(t, s, "critic/advantages/max"); got == 0 {
			t.Errorf("step %d trained on groups without an advantage", i+1)
		}
	}
	if r.steps[3].Trajectories[0].Problem.ID != "p0" || metric(t, r.steps[3], "training/epoch") != 1 {
		t.Error("the fourth step does not start over on the data")
	}

	continues(t, r)
	// A state of before batches were counted has one for each step.
	if err := r.trainer.Restore(State{Step: 3}); err != nil || r.trainer.batches != 3 {
		t.Errorf("%d batches after 3 steps", r.trainer.batches)
	}

	// Where no group passes, the step is filled up, and says so.
	none := filtered()
	none.cfg.Steps, none.cfg.Filter = 1, Filter{By: FilterCorrect, MaxBatches: 20}
	none.grade = func(*rollout.Problem, *rollout.Completion) rollout.Verdict {
		return rollout.Verdict{Status: rollout.Graded}
	}
	none.run()
	s := none.steps[0]
	if len(s.Trajectories) != 10*8 { // each problem once
		t.Errorf("%d completions, want 80", len(s.Trajectories))
	}
	if !slices.ContainsFunc(s.Events, func(e Event) bool { return e.Kind == "filter-groups" && strings.Contains(e.Text, "0 of 10 groups") }) {
		t.Errorf("events %+v", s.Events)
	}
	if got := metric(t, s, "actor/grad_norm"); math.IsNaN(got) {
		t.Error("no update")
	}
}

func TestInformative(t *testing.T) {
	group := func(rewards ...float64) []Trajectory {
		var g []Trajectory
		for i, x := range rewards {
			g = append(g, Trajectory{Completion: &rollout.Completion{Tokens: make([]int32, 1+i)},
				Verdict: rollout.Verdict{Status: rollout.Graded, Reward: x, Correct: x > 0.5}})
		}
		return g
	}
	ungraded := group(0, 1)
	ungraded[1].Verdict = rollout.Verdict{}
	for _, tt := range []struct {
		by    FilterBy
		group []Trajectory
		want  bool
	}{
		{FilterNone, group(1, 1), true},
		{FilterScore, group(1, 1), false}, {FilterScore, group(0, 0.1), true},
		{FilterCorrect, group(0, 0.1), false}, {FilterCorrect, group(0, 0.6), true},
		{FilterOverlong, group(1, 1), true}, // the second one is longer
		{FilterScore, ungraded, false},
	} {
		c := Config{Samples: 2, Filter: Filter{By: tt.by}, Overlong: rl.Overlong{MaxResponse: 2, Buffer: 1, Penalty: 1}}
		if got := (&Trainer{cfg: c}).informative(tt.group, new(spreads))[0]; got != tt.want {
			t.Errorf("metric %d of %+v: %v", tt.by, tt.group, got)
		}
	}
	if !(&Trainer{cfg: Config{Samples: 1, Filter: Filter{By: FilterScore}}}).informative(group(1), new(spreads))[0] {
		t.Error("a group of one completion is dropped")
	}
}

// A filter may also want a share of right completions within bounds, or none that the token limit cut off.
func TestFilterBounds(t *testing.T) {
	group := func(right, wrong, ungraded, cut int) (g []Trajectory) {
		for i := range right + wrong + ungraded {
			v := rollout.Verdict{Status: rollout.Graded, Correct: i < right, Reward: float64(i)}
			if i >= right+wrong {
				v = rollout.Verdict{}
			}
			c := &rollout.Completion{Finish: rollout.FinishStop}
			if i < cut {
				c.Finish = rollout.FinishLength
			}
			g = append(g, Trajectory{Completion: c, Verdict: v})
		}
		return g
	}
	demonstrated := func(g []Trajectory) []Trajectory {
		g[0].Completion.Finish = rollout.FinishShown
		return g
	}
	bounds := Filter{By: FilterCorrect, Low: 0.2, High: 0.8}
	for _, tt := range []struct {
		f     Filter
		group []Trajectory
		want  bool
	}{
		{bounds, group(1, 4, 0, 0), true}, {bounds, group(4, 1, 0, 0), true}, // the bounds themselves pass
		{bounds, group(1, 5, 0, 0), false}, {bounds, group(5, 1, 0, 0), false},
		{bounds, group(1, 4, 3, 0), true},               // those without a verdict do not count
		{bounds, demonstrated(group(5, 1, 0, 0)), true}, // nor does a demonstration
		{bounds, demonstrated(group(1, 4, 0, 0)), false},
		{Filter{By: FilterCorrect, High: 1}, group(4, 0, 0, 0), false}, // all alike
		{Filter{By: FilterScore, Low: 0.2, High: 0.8}, group(1, 9, 0, 0), true},
		{Filter{By: FilterScore, Complete: true}, group(1, 1, 0, 1), false},
		{Filter{By: FilterScore, Complete: true}, group(1, 1, 0, 0), true},
		{Filter{By: FilterScore}, group(1, 1, 0, 1), true},
		{Filter{Complete: true}, group(1, 1, 0, 1), true}, // off
	} {
		c := Config{Samples: len(tt.group), Filter: tt.f}
		if got := (&Trainer{cfg: c}).informative(tt.group, &spreads{})[0]; got != tt.want {
			t.Errorf("%+v of %d completions: %v, want %v", tt.f, len(tt.group), got, tt.want)
		}
	}
}

// With one token per completion, ReMax's advantage is the score less the score of the
// greedy completion; a problem without a greedy completion is left out.
func TestReMax(t *testing.T) {
	r := newToyRun(t, GRPO, 1)
	r.cfg.Advantage, r.cfg.Steps, r.cfg.Sampling.MaxNewTokens = "remax", 2, 1
	r.run()
	for _, s := range r.steps {
		want := metric(t, s, "critic/score/mean") - metric(t, s, "train/greedy_score")
		if got := metric(t, s, "critic/advantages/mean"); math.Abs(got-want) > 1e-6 {
			t.Errorf("step %d: mean advantage %v, want %v", s.Step, got, want)
		}
		if s.GreedyTokens != 4 { // one a problem
			t.Errorf("step %d: %d tokens of the baseline, want 4", s.Step, s.GreedyTokens)
		}
	}

	r = newToyRun(t, GRPO, 1)
	r.cfg.Advantage, r.cfg.Steps = "remax", 1
	grade := r.grade
	var calls atomic.Int32
	var left *rollout.Problem
	r.grade = func(p *rollout.Problem, c *rollout.Completion) rollout.Verdict {
		if calls.Add(1) == 4*8+1 { // one of the greedy ones
			left = p
			return rollout.Verdict{Reason: "away"}
		}
		return grade(p, c)
	}
	r.run()
	var kept float64
	for _, tr := range r.steps[0].Trajectories {
		if tr.Problem != left {
			kept += tr.Verdict.Reward / 24
		}
	}
	if got := metric(t, r.steps[0], "critic/score/mean"); math.Abs(got-kept) > 1e-6 {
		t.Errorf("mean score %v, want %v, the three other problems'", got, kept)
	}
}

// If no baseline has a verdict, or only problems without verdicts have baselines, the step's error says why.
func TestReMaxWithoutBaselines(t *testing.T) {
	for _, tt := range []struct {
		name   string
		greedy func(problem int) bool // graded
		want   string
	}{
		{"no baseline", func(int) bool { return false }, "grading the baseline: none of 4 completions could be graded: away"},
		{"of the wrong problem", func(problem int) bool { return problem == 0 }, "none of 8 completions could be graded: no verdict"},
	} {
		r := newToyRun(t, GRPO, 1)
		r.cfg.Advantage, r.cfg.Steps = "remax", 1
		grade := r.grade
		problems := map[*rollout.Problem]int{} // by their order in the step
		n := 0
		r.grade = func(p *rollout.Problem, c *rollout.Completion) rollout.Verdict {
			k, ok := problems[p]
			if !ok {
				k = len(problems)
				problems[p] = k
			}
			switch n++; {
			case n > 4*8 && !tt.greedy(k):
				return rollout.Verdict{Reason: "away"}
			case n <= 4*8 && k == 0:
				return rollout.Verdict{Reason: "no verdict"}
			}
			return grade(p, c)
		}
		tr := r.start()
		tr.Grader = inOrder{r.grade}
		if err := tr.Run(t.Context(), nil); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestPick(t *testing.T) {
	b := &batch{traj: make([]*Trajectory, 3), group: []int{0, 0, 1}, rows: rl.Rows{0, 2, 3, 5}, mask: []bool{true, true, false, true, true},
		old: []float32{1, 2, 3, 4, 5}, score: []float32{7, 8, 9}, context: []int{4, 5, 6}}
	b.pick([]int{2, 0, 2, 1}, 2)
	if !slices.Equal(b.rows, rl.Rows{0, 2, 4, 6, 7}) || !slices.Equal(b.old, []float32{4, 5, 1, 2, 4, 5, 3}) ||
		!slices.Equal(b.mask, []bool{true, true, true, true, true, true, false}) || !slices.Equal(b.score, []float32{9, 7, 9, 8}) ||
		!slices.Equal(b.context, []int{6, 4, 6, 5}) || !slices.Equal(b.group, []int{0, 0, 1, 1}) || b.ref != nil {
		t.Errorf("%+v", b)
	}
}

// PF-PPO by best and worst trains on nothing else.
func TestResample(t *testing.T) {
	r := newToyRun(t, PPO, 1)
	r.cfg.Steps, r.cfg.Settings = 1, with(r.cfg.Settings, "pf_ppo.method", "max_min")
	r.run()
	s := r.steps[0]
	low, high, mean := metric(t, s, "critic/score/min"), metric(t, s, "critic/score/max"), metric(t, s, "critic/score/mean")
	var sum float64
	for _, tr := range s.Trajectories {
		if x := float64(float32(tr.Verdict.Reward)); x < low || x > high {
			t.Errorf("a score of %v is beyond [%v, %v]", x, low, high)
		}
		sum += tr.Verdict.Reward
	}
	// Of 32 rows k have the greatest score, the others the least.
	if k := (mean - low) / (high - low) * 32; math.Abs(k-math.Round(k)) > 1e-4 || math.Abs(mean-sum/32) < 1e-6 {
		t.Errorf("mean score %v of %v and %v, of all %v", mean, low, high, sum/32)
	}
}

// The sampler records what the trainer computes: rollout correction weighs
// nothing and rejects nothing until the policy has moved.
func TestRolloutCorrection(t *testing.T) {
	plain, corrected := newToyRun(t, GRPO, 1), newToyRun(t, GRPO, 1)
	corrected.cfg.Correction = rl.Correction{Weights: rl.SequenceWeights, High: 2, Reject: []rl.Rejection{{Span: rl.SpanMean, Kind: rl.KLK1, Low: 0.999, High: 1.001}}}
	plain.run()
	corrected.run()
	if !slices.Equal(plain.params(), corrected.params()) {
		t.Error("a correction of nothing changes the training")
	}
	for _, s := range corrected.steps {
		if metric(t, s, "rollout_corr/rollout_is_max") != 1 || metric(t, s, "rollout_corr/rollout_rs_masked_fraction") != 0 || metric(t, s, "rollout_corr/kl") != 0 {
			t.Errorf("step %d: %v", s.Step, s.Metrics)
		}
	}
	bypass := newToyRun(t, GRPO, 1)
	bypass.cfg.Epochs, bypass.cfg.Policy.LR = 4, 1e-2
	bypass.cfg.Correction = corrected.cfg.Correction
	bypass.cfg.Correction.Bypass = rl.BypassPPO
	bypass.run()
	if got := metric(t, bypass.steps[2], "rollout_corr/rollout_rs_masked_fraction"); !(got > 0 && got < 1) {
		t.Errorf("bypass mode rejects a share of %v, want some: the policy moves within the step", got)
	}
}

// A completion that rollout correction rejects is not trained on, but the reward that
// it got stays in the mean and the deviation of its group.
func TestRejectedRowsCountInBaselines(t *testing.T) {
	r := newToyRun(t, GRPO, 1)
	r.cfg.Steps = 1
	r.run()
	b := newBatch(r.steps[0].Trajectories, rl.Overlong{}, nil)
	want := b.rewardSums()
	rl.GroupAdvantage(want, want, b.group, true)
	rejected := slices.IndexFunc(want, func(a float32) bool { return a != 0 })
	if rejected < 0 {
		t.Fatalf("advantages %v: all rewards are equal", want)
	}
	clear(b.mask[b.rows[rejected]:b.rows[rejected+1]])
	if _, err := advantages(r.cfg, b); err != nil {
		t.Fatal(err)
	}
	for i, a := range want {
		if i == rejected {
			a = 0
		}
		for k := b.rows[i]; k < b.rows[i+1]; k++ {
			if b.adv[k] != a {
				t.Fatalf("row %d: advantage %v, want %v", i, b.adv[k], a)
			}
		}
	}
}

// Overlong completions lose reward, not their verdict.
func TestOverlong(t *testing.T) {
	r := newToyRun(t, GRPO, 1)
	r.cfg.Steps, r.cfg.Overlong = 1, rl.Overlong{MaxResponse: 6, Buffer: 3, Penalty: 0.9}
	r.run()
	s := r.steps[0]
	var verdicts, loss, over float64
	for _, tr := range s.Trajectories {
		verdicts += tr.Verdict.Reward / 32
		if n := len(tr.Completion.Tokens); n > 3 {
			loss += 0.3 * float64(n-3) / 32
			over += 1. / 32
		}
	}
	if got := metric(t, s, "critic/score/mean"); math.Abs(got-(verdicts-loss)) > 1e-6 || loss == 0 {
		t.Errorf("mean score %v, want %v - %v", got, verdicts, loss)
	}
	if got := metric(t, s, "train/overlong_reward"); math.Abs(got+loss) > 1e-6 || metric(t, s, "train/overlong") != over {
		t.Errorf("overlong_reward %v, overlong %v; want %v, %v", got, metric(t, s, "train/overlong"), -loss, over)
	}
}

func TestBadAlgorithm(t *testing.T) {
	for want, change := range map[string]func(c *Config){
		"advantage estimator": func(c *Config) { c.Advantage = "gaee" },
		"policy loss":         func(c *Config) { c.Loss = "ppoo" },
		"its own advantages":  func(c *Config) { c.Loss = "flowrl" },
		"bypass mode":         func(c *Config) { c.Loss, c.Correction.Bypass = "gspo", rl.BypassPPO },
		"0 batches":           func(c *Config) { c.Filter.By = FilterScore },
	} {
		c := toyConfig(GRPO)
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", want, err)
		}
	}
}

// If rollout correction rejects every token of a step, the step learns nothing from rewards and says so, and the run
// goes on.
func TestAllRejected(t *testing.T) {
	for _, advantage := range []string{"grpo", "reinforce_plus_plus", "gae"} {
		t.Run(advantage, func(t *testing.T) {
			kind := GRPO
			if advantage == "gae" {
				kind = PPO
			}
			r := newToyRun(t, kind, 1)
			r.cfg.Advantage, r.cfg.Staleness, r.cfg.Policy.LR, r.cfg.Policy.Schedule.Warmup = advantage, 1, 3e-2, 0
			r.cfg.Correction.Reject = []rl.Rejection{{Span: rl.SpanMean, Kind: rl.KLK3, High: 1e-12}}
			r.run()
			if len(r.steps) != r.cfg.Steps {
				t.Fatalf("%d steps, want %d", len(r.steps), r.cfg.Steps)
			}
			last := r.steps[len(r.steps)-1]
			if got := metric(t, last, "rollout_corr/rollout_rs_masked_fraction"); got < 0.999 {
				t.Fatalf("a share of %v is rejected, want all", got)
			}
			want := "too-few-tokens" // to whiten
			if advantage == "grpo" {
				want = "no-tokens"
			}
			if len(last.Events) != 1 || last.Events[0].Kind != want {
				t.Errorf("events %v, want %s", last.Events, want)
			}
			for _, m := range last.Metrics {
				if math.IsNaN(m.Value) {
					t.Errorf("%s is NaN", m.Name)
				}
			}
			if slices.ContainsFunc(r.params(), func(p float32) bool { return p != p }) {
				t.Error("a weight is NaN")
			}
		})
	}
}

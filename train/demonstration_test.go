package train

import (
	"math"
	"slices"
	"strings"
	"testing"

	"exp/train/rl"
	"exp/train/rollout"
)

// ofA demonstrates As, then D: one A after one letter; after two letters too many, after three nothing.
func ofA(p *rollout.Problem) (*rollout.Completion, error) {
	switch len(p.Prompt) {
	case 1:
		return &rollout.Completion{Tokens: []int32{1, 4, 0}, Text: "AD"}, nil
	case 2:
		return &rollout.Completion{Tokens: []int32{1, 1, 1, 1, 1, 4, 0}, Text: "AAAAAD"}, nil
	}
	return nil, nil
}

func demonstrated(c *Config) { c.Demonstrations = rl.Demonstrations{Weight: 1, Shaping: 0.1} }

// The last completion of a group is the demonstration, with the policy's log-probs. The others are those that the
// policy samples without any. No metric of completions counts it, and the step says which problems have none.
func TestDemonstrations(t *testing.T) {
	var steps [2]*Step
	for i := range steps {
		r := newToyRun(t, GRPO, 1)
		r.cfg.Steps, r.cfg.PromptsPerStep, r.cfg.PromptsPerUpdate, r.cfg.VerifyRate = 1, 8, 8, 1
		r.cfg.TopEntropy, r.cfg.Overlong = 0.25, rl.Overlong{MaxResponse: 6, Buffer: 4, Penalty: 1}
		if i == 1 {
			demonstrated(&r.cfg)
		}
		r.run()
		steps[i] = r.steps[0]
	}
	shown := 0
	var own []Trajectory
	for i, got := range steps[1].Trajectories {
		want := steps[0].Trajectories[i]
		if got.Problem.ID != want.Problem.ID || got.Sample != want.Sample {
			t.Fatalf("trajectory %d is sample %d of %s", i, got.Sample, got.Problem.ID)
		}
		if is := len(got.Problem.Prompt) == 1 && got.Sample == 7; !is {
			own = append(own, want)
			if c, w := got.Completion, want.Completion; !slices.Equal(c.Tokens, w.Tokens) || !slices.Equal(c.LogProbs, w.LogProbs) ||
				c.Finish != w.Finish {
				t.Errorf("%s, sample %d: %+v, sampled %+v", got.Problem.ID, got.Sample, c, w)
			}
			continue
		}
		shown++
		c := got.Completion
		if !slices.Equal(c.Tokens, []int32{1, 4, 0}) || c.Finish.String() != "shown" || got.Verdict.Reward != float64(1)/3 || len(c.Entropies) != 3 {
			t.Errorf("demonstration %+v, %+v", c, got.Verdict)
		}
	}
	if shown < 2 {
		t.Fatalf("%d demonstrations", shown)
	}
	var correct, over float64
	var entropies []float64
	for _, x := range own {
		if x.Verdict.Correct {
			correct++
		}
		if len(x.Completion.Tokens) > 2 {
			over++
		}
		for _, h := range x.Completion.Entropies {
			entropies = append(entropies, float64(h))
		}
	}
	b, stats := newBatch(own, rl.Overlong{}, nil), rl.CorrectionStats{}
	rl.Correct(nil, b.mask, b.old, b.roll, b.mask, b.rows, rl.Correction{}, &stats)
	for _, want := range append(stats.Metrics(), rl.Metric{Name: "train/accuracy", Value: correct / float64(len(own))},
		rl.Metric{Name: "train/overlong", Value: over / float64(len(own))},
		rl.Metric{Name: "actor/entropy_threshold", Value: quantile(entropies, 0.75)}) {
		if got := metric(t, steps[1], want.Name); math.Abs(got-want.Value) > 1e-15 {
			t.Errorf("%s is %v, want %v", want.Name, got, want.Value)
		}
	}
	event := ""
	for _, e := range steps[1].Events {
		event += e.Kind + " " + e.Text
	}
	if want := "no-demonstration step 1: of 8 problems "; !strings.Contains(event, want) || !strings.Contains(event, "one of more than 6 tokens") {
		t.Errorf("events %q, want %q", event, want)
	}
}

// A demonstration may have as many tokens as a completion.
func TestLongestDemonstration(t *testing.T) {
	tr := &Trainer{Parts: Parts{Problems: []rollout.Problem{{Prompt: "A"}}, Demonstration: ofA}}
	for limit, want := range map[int]int{2: 0, 3: 1} {
		tr.cfg.Sampling.MaxNewTokens = limit
		var events []Event
		list, err := tr.demonstrations(1, []int{0}, &events)
		if err != nil || len(list) != want || len(events) != 1-want {
			t.Errorf("at most %d tokens: %v, %v, %v", limit, list, events, err)
		}
	}
}

// Every step compares a row of the sampler with the trainer, and a step whose only verdicts are of demonstrations goes
// on.
func TestVerifySampledRows(t *testing.T) {
	r := newToyRun(t, GRPO, 1)
	demonstrated(&r.cfg)
	r.cfg.VerifyRate = 1e-3
	tr := r.start()
	got, err := tr.collect(t.Context(), 1, newStopwatch(tr.Clock))
	if err != nil {
		t.Fatal(err)
	}
	b := got.batch(r.cfg)
	for i, x := range b.traj {
		if !x.isShown() {
			b.roll[b.rows[i]]++
		}
	}
	for i := range b.traj {
		if tr.verify(b, i+1) == nil {
			t.Errorf("step %d compares no sampled row", i+1)
		}
	}

	r = newToyRun(t, GRPO, 1)
	demonstrated(&r.cfg)
	r.cfg.Steps, r.cfg.PromptsPerStep, r.cfg.PromptsPerUpdate = 1, 8, 8
	r.grade = func(_ *rollout.Problem, c *rollout.Completion) (v rollout.Verdict) {
		if c.Finish == rollout.FinishShown {
			v.Status = rollout.Graded
		}
		return v
	}
	r.run()
	if got := metric(t, r.steps[0], "train/not_graded"); got != 1 {
		t.Errorf("not graded: %v", got)
	}
}

// A policy that is never right learns from demonstrations alone, the less their weight is.
func TestDemonstrationsTeach(t *testing.T) {
	probs := func(weight float64) (first, last float64) {
		r := newToyRun(t, GRPO, 1)
		r.cfg.Steps, r.cfg.KL.LossCoef, r.cfg.Policy.LR, r.cfg.PromptsPerUpdate = 16, 0, 1e-2, 4
		demonstrated(&r.cfg)
		r.cfg.Demonstrations.Weight = weight
		for i := range r.problems {
			r.problems[i].Prompt = "A"
		}
		r.grade = func(_ *rollout.Problem, c *rollout.Completion) rollout.Verdict {
			v := rollout.Verdict{Status: rollout.Graded}
			if v.Correct = c.Finish == rollout.FinishShown; v.Correct { // sparse: the policy is never right
				v.Reward = 1
			}
			return v
		}
		r.run()
		n := len(r.steps) - 1
		if metric(t, r.steps[n], "train/accuracy") != 0 {
			t.Error("demonstrations count as the policy's")
		}
		return metric(t, r.steps[0], "actor/demonstration_prob"), metric(t, r.steps[n], "actor/demonstration_prob")
	}
	first, last := probs(1)
	if !(last > 1.5*first) {
		t.Errorf("the probability of demonstrations' tokens goes from %v to %v", first, last)
	}
	if again, slow := probs(0.01); again != first || !(slow < last) {
		t.Errorf("with a small weight from %v to %v, with weight 1 from %v to %v", again, slow, first, last)
	}
}

// The objective of a mini-batch has the losses of its rows without demonstrations, by the denominators of all, and the
// term.
func TestDemonstrationObjective(t *testing.T) {
	c := toyConfig(GRPO)
	demonstrated(&c)
	c.Settings, c.SFTWeight, c.EntropyCoef = listed(c), 0.1, 0.1
	c.Distill = rl.Distillation{Coef: 1, Max: math.Inf(1), Floor: math.Inf(-1)}
	traj := []Trajectory{
		{Problem: &rollout.Problem{}, Completion: &rollout.Completion{Tokens: []int32{1, 2}, LogProbs: []float32{-1, -2}}},
		{Problem: &rollout.Problem{}, Completion: &rollout.Completion{Tokens: []int32{3, 4, 0}, LogProbs: []float32{-1, -3, -2},
			Finish: rollout.FinishShown}},
	}
	for i := range traj {
		traj[i].Verdict = rollout.Verdict{Status: rollout.Graded, Correct: true, Reward: float64(i)}
	}
	b := newBatch(traj, rl.Overlong{}, nil)
	copy(b.adv, []float32{-0.5, -0.5, 0.5, 0.5, 0.5})
	b.ref, b.mask[4] = slices.Repeat([]float32{-1.5}, 5), false
	tr := &Trainer{cfg: c}
	loss := tr.newLoss(b, "")
	g := gradients{logProb: make([]float32, 5), entropy: make([]float32, 5), student: make([]float32, 5)}
	for row := range 2 { // each a micro-batch
		lo, hi := b.rows[row], b.rows[row+1]
		student := slices.Repeat([]float32{-1}, hi-lo)
		taught := rl.Taught{K: 1, Teacher: make([]float32, hi-lo), Student: student}
		loss.add(b.part(row, row+1, b.old[lo:hi]), slices.Repeat([]float32{1}, hi-lo), nil, taught,
			gradients{logProb: g.logProb[lo:hi], entropy: g.entropy[lo:hi], student: g.student[lo:hi]})
	}

	for i, lp := range []float64{-1, -2, -1, -3, -2} {
		// PPO at ratio 1, k3 at distance d to the reference, NLL over two tokens of right completions; means over four.
		d := -1.5 - lp
		want, one := 0.5/4+0.01*(1-math.Exp(d))/4-0.1/2, float32(1)
		if i >= 2 {
			p := math.Exp(lp)
			want = -0.5 / 4 * p * 0.1 / ((p + 0.1) * (p + 0.1))
		}
		if !b.mask[i] {
			want, one = 0, 0
		}
		if math.Abs(float64(g.logProb[i])-want) > 1e-7 {
			t.Errorf("derivative %d is %v, want %v", i, g.logProb[i], want)
		}
		if g.entropy[i] != -0.025*one || g.student[i] != -0.25*one {
			t.Errorf("token %d: derivatives %v of the entropy, %v of the teacher's token", i, g.entropy[i],
				g.student[i])
		}
	}
	for _, m := range loss.metrics() {
		want := (math.Exp(-1) + math.Exp(-3)) / 2
		if m.Name == "actor/demonstration_prob" && math.Abs(m.Value-want) > 1e-7 {
			t.Errorf("%s is %v, want %v", m.Name, m.Value, want)
		}
	}
}

func TestDemonstrationsRefused(t *testing.T) {
	for want, change := range map[string]func(r *toyRun){
		"more than 0":                   func(r *toyRun) { r.cfg.Demonstrations.Shaping = 0 },
		"groups of one":                 func(r *toyRun) { r.cfg.Samples = 1 },
		"the loss gspo":                 func(r *toyRun) { r.cfg.Loss = "gspo" },
		"the loss flowrl":               func(r *toyRun) { r.cfg.Loss, r.cfg.Advantage = "flowrl", "" },
		"the loss megatron":             func(r *toyRun) { r.cfg.Loss, r.cfg.Advantage = "megatron", "megatron" },
		"the estimator gae":             func(r *toyRun) { r.cfg.Advantage = "gae" },
		"the estimator prime":           func(r *toyRun) { r.cfg.Advantage = "prime" },
		"give themselves":               func(r *toyRun) { r.cfg.Self = RewardMajority },
		"a KL in the reward":            func(r *toyRun) { r.cfg.KL.RewardCoef = 0.1 },
		"bypass":                        func(r *toyRun) { r.cfg.Correction.Bypass = rl.BypassPPO },
		"stale":                         func(r *toyRun) { r.cfg.Staleness = 1 },
		"tools":                         func(r *toyRun) { r.cfg.Turns = true },
		"no demonstrations of problems": func(r *toyRun) {},
	} {
		r := newToyRun(t, GRPO, 1)
		demonstrated(&r.cfg)
		change(r)
		r.cfg.Process.PromptsPerUpdate = 2
		_, err := New(r.cfg, Parts{Backend: r.be, Policy: newToyRun(t, GRPO, 1).start().Policy, Prompt: letters{}.prompt,
			Problems: r.problems, Seed: hashSeed(1)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", want, err)
		}
	}
	for want, p := range map[string]Parts{
		"recorded rollouts":       {Demonstration: ofA, Recorded: &Recording{}},
		"no rank can only sample": {Demonstration: ofA, Samplers: 1},
	} {
		err := p.checkDemonstrations(Config{Demonstrations: rl.Demonstrations{Weight: 1}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", want, err)
		}
	}
}

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
// policy samples without any. No metric of completions counts it, and the step says where there is none.
func TestDemonstrations(t *testing.T) {
	var steps [2]*Step
	for i := range steps {
		r := newToyRun(t, GRPO, 1)
		r.cfg.Steps, r.cfg.PromptsPerStep, r.cfg.PromptsPerUpdate, r.cfg.VerifyRate = 1, 8, 8, 1
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
			if c := got.Completion; !slices.Equal(c.Tokens, want.Completion.Tokens) || !slices.Equal(c.LogProbs, want.Completion.LogProbs) || c.Finish != want.Completion.Finish {
				t.Errorf("%s, sample %d: %+v, sampled %+v", got.Problem.ID, got.Sample, c, want.Completion)
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
	correct := 0.0
	for _, x := range own {
		if x.Verdict.Correct {
			correct++
		}
	}
	if got, want := metric(t, steps[1], "train/accuracy"), correct/float64(len(own)); math.Abs(got-want) > 1e-15 {
		t.Errorf("accuracy %v, want %v", got, want)
	}
	event := ""
	for _, e := range steps[1].Events {
		event += e.Kind + " " + e.Text
	}
	if want := "no-demonstration step 1: of 8 problems "; !strings.Contains(event, want) || !strings.Contains(event, "one of more than 6 tokens") {
		t.Errorf("events %q, want %q", event, want)
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
	c.Settings, c.SFTWeight = listed(c), 0.1
	traj := []Trajectory{
		{Problem: &rollout.Problem{}, Completion: &rollout.Completion{Tokens: []int32{1, 2}, LogProbs: []float32{-1, -2}}},
		{Problem: &rollout.Problem{}, Completion: &rollout.Completion{Tokens: []int32{3, 4, 0}, LogProbs: []float32{-1, -3, -2}, Finish: rollout.FinishShown}},
	}
	for i := range traj {
		traj[i].Verdict = rollout.Verdict{Status: rollout.Graded, Correct: true, Reward: float64(i)}
	}
	b := newBatch(traj, rl.Overlong{}, nil)
	copy(b.adv, []float32{-0.5, -0.5, 0.5, 0.5, 0.5})
	b.ref = slices.Repeat([]float32{-1.5}, 5)
	tr := &Trainer{cfg: c}
	loss := tr.newLoss(b, "")
	g := gradients{logProb: make([]float32, 5), entropy: make([]float32, 5)}
	loss.add(b.part(0, 2, b.old), []float32{1, 1, 1, 1, 1}, nil, rl.Taught{}, g)

	for i, lp := range []float64{-1, -2, -1, -3, -2} {
		// PPO at ratio 1, k3 at distance d to the reference, NLL over two tokens of right completions; means over five.
		d := -1.5 - lp
		want := 0.5/5 + 0.01*(1-math.Exp(d))/5 - 0.1/2
		if i >= 2 {
			p := math.Exp(lp)
			want = -0.5 / 5 * p * 0.1 / ((p + 0.1) * (p + 0.1))
		}
		if math.Abs(float64(g.logProb[i])-want) > 1e-7 {
			t.Errorf("derivative %d is %v, want %v", i, g.logProb[i], want)
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
		_, err := New(r.cfg, Parts{Backend: r.be, Policy: newToyRun(t, GRPO, 1).start().Policy, Prompt: letters{}.prompt, Problems: r.problems, Seed: hashSeed(1)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", want, err)
		}
	}
}

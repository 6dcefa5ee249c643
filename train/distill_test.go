package train

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"exp/train/model"
)

// A policy that learns from a teacher alone, deeper than itself, comes close to it: in the metric and in the exact
// probabilities of first tokens. Rewards teach it nothing.
func TestDistills(t *testing.T) {
	r := newToyRun(t, Distill, 2)
	r.cfg.Steps, r.cfg.Samples, r.cfg.Policy.LR = 300, 16, 5e-3
	trainer := r.start()
	before := r.fromTeacher()
	if err := trainer.Run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	first, last := metric(t, r.steps[0], "kl/ref_k1"), metric(t, r.steps[299], "kl/ref_k1")
	if !(first > 0.1 && last < first/5) {
		t.Errorf("the distance to the teacher went from %.4f to %.4f", first, last)
	}
	if after := r.fromTeacher(); after > before/3 {
		t.Errorf("the policies of first tokens were %.3f nats from the teacher's, then %.3f", before, after)
	}
	if adv := metric(t, r.steps[0], "critic/advantages/mean"); math.Abs(adv+first) > 1e-6 {
		t.Errorf("the mean advantage is %.6f, less than the teacher's %.6f", adv, -first)
	}
}

// With its likeliest tokens in the loss the policy comes closer in fewer steps.
func TestDistillsTopK(t *testing.T) {
	r := newToyRun(t, Distill, 2)
	r.cfg.Steps, r.cfg.Samples, r.cfg.Policy.LR, r.cfg.Distill.TopK = 100, 16, 5e-3, 6
	trainer := r.start()
	before := r.fromTeacher()
	if err := trainer.Run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	first, last := r.steps[0], r.steps[99]
	if a, b := metric(t, first, "actor/distill_loss"), metric(t, last, "actor/distill_loss"); !(a > 0.1 && b < a/5) {
		t.Errorf("the loss went from %.4f to %.4f", a, b)
	}
	if after := r.fromTeacher(); after > before/5 {
		t.Errorf("the policies of first tokens were %.3f nats from the teacher's, then %.3f", before, after)
	}
	if adv := metric(t, first, "critic/advantages/mean"); adv != 0 {
		t.Errorf("the mean advantage is %g, want 0", adv)
	}
	// The policy knows 6 of the teacher's 8 tokens.
	if mass := metric(t, last, "distill/teacher_mass"); !(mass > 0.3 && mass <= 1) {
		t.Errorf("the teacher's mass is %g", mass)
	}
}

// ofSources gives the problems data sources; two of them have teachers of their own.
func (r *toyRun) ofSources() {
	r.sources = []string{"B", "C"}
	for i := range r.problems {
		if x := &r.problems[i]; len(x.Prompt) > 1 {
			x.Data = json.RawMessage(fmt.Sprintf(`{"source": %q}`, x.Prompt[len(x.Prompt)-1:]))
		}
	}
}

// The completions of each data source are compared with its teacher, and others with the reference.
func TestTeachersOfSources(t *testing.T) {
	for _, k := range []int{0, 4} {
		r := newToyRun(t, Distill, 2)
		r.ofSources()
		r.cfg.Distill.TopK, r.cfg.PromptsPerStep = k, 10
		trainer := r.start()
		if err := trainer.material(t.Context(), newStopwatch(trainer.Clock)); err != nil {
			t.Fatal(err)
		}
		b, seen := trainer.pending[0].batch(trainer.cfg), map[string]bool{}
		trainer.refer(b, 1, k)
		for i, x := range trainer.references {
			all, likeliest := trainer.referred(x, b, 0, k)
			for row, tr := range b.traj {
				lo, hi := b.rows[row], b.rows[row+1]
				of := x.model == map[string]*model.Model{"A": r.ref, "AB": r.tutors["B"], "ABC": r.tutors["C"]}[tr.Problem.Prompt]
				seen[tr.Problem.Prompt] = seen[tr.Problem.Prompt] || of
				if slices.Equal(b.ref[lo:hi], all[lo:hi]) != of {
					t.Errorf("row %d of prompt %s, reference %d: log-probs %v, that one's are %v", row, tr.Problem.Prompt, i,
						b.ref[lo:hi], all[lo:hi])
				}
				if of && k > 0 && !reflect.DeepEqual(b.taught.between(lo, hi), likeliest.between(lo, hi)) {
					t.Errorf("row %d of prompt %s, reference %d: other likeliest tokens", row, tr.Problem.Prompt, i)
				}
			}
		}
		if len(seen) != 3 {
			t.Errorf("prompts %v were sampled: the test wants all", seen)
		}
		if x := trainer.references; len(x) != 3 || x[2].passes != trainer.passes || x[1].own || x[1].passes != x[0].passes {
			t.Errorf("references %+v: want 3 that share passes by architecture", x)
		}
	}
}

// distance returns how far the policy is from a model, on the first token after a prompt.
func (r *toyRun) distance(m *model.Model, prompt string) (kl float64) {
	p, q := r.policy(r.trainer.Policy, prompt), r.policy(m, prompt)
	for v, x := range p {
		kl += x * math.Log(x/q[v])
	}
	return kl
}

// fromTeacher returns the mean distance of the policy from the reference, on the first tokens after all prompts.
func (r *toyRun) fromTeacher() (kl float64) {
	prompts := []string{"A", "AB", "ABC"}
	for _, prompt := range prompts {
		kl += r.distance(r.ref, prompt) / float64(len(prompts))
	}
	return kl
}

// With an estimator of its own, a token's advantage is the sum of both parts.
func TestDistillAddsToRewards(t *testing.T) {
	mean := func(change func(c *Config)) float64 {
		r := newToyRun(t, Distill, 1)
		r.cfg.Steps, r.cfg.Advantage = 1, "score"
		change(&r.cfg)
		r.run()
		return metric(t, r.steps[0], "critic/advantages/mean")
	}
	both := mean(func(*Config) {})
	reward := mean(func(c *Config) { c.Distill.Coef = 0 })
	teacher := mean(func(c *Config) { c.Advantage = "none" })
	if math.Abs(both-reward-teacher) > 1e-5 || reward == 0 || teacher == 0 {
		t.Errorf("mean advantage %.6f, of rewards %.6f, of the teacher %.6f", both, reward, teacher)
	}
}

func TestTeacherThatCannotFollow(t *testing.T) {
	for want, change := range map[string]func(r *toyRun){
		"the reference has 5 tokens": func(r *toyRun) { r.teacher.Vocab = 5 },
		"the reference holds":        func(r *toyRun) { r.teacher.MaxPositions = 8 },
		"top_k is 7, but the model":  func(r *toyRun) { r.cfg.Distill.TopK = 7 },
	} {
		r := newToyRun(t, Distill, 1)
		change(r)
		r.cfg.Settings = listed(r.cfg)
		_, err := New(r.cfg, Parts{Backend: r.be, Policy: newToyRun(t, GRPO, 1).start().Policy, Reference: r.reference(r.be, nil),
			Prompt: letters{}.prompt, Problems: r.problems, Seed: hashSeed(1)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", want, err)
		}
	}
}

package train

import (
	"context"
	"slices"
	"strings"
	"testing"

	"exp/train/rl"
	"exp/train/rollout"
)

// Completions that the limit cut off keep their rewards, which others are compared with, and teach nothing: the step
// is the same whatever their tokens' advantages would have done, and all cut off is an event.
func TestMaskTruncated(t *testing.T) {
	r := newToyRun(t, GRPO, 1)
	r.cfg.MaskTruncated = true
	tr := &Trainer{cfg: r.cfg}
	traj := []Trajectory{
		{Problem: &r.problems[0], Completion: &rollout.Completion{Tokens: make([]int32, 2), LogProbs: make([]float32, 2), Finish: rollout.FinishLength}},
		{Problem: &r.problems[0], Sample: 1, Completion: &rollout.Completion{Tokens: make([]int32, 3), LogProbs: make([]float32, 3)}},
	}
	for i := range traj {
		traj[i].Verdict = rollout.Verdict{Status: rollout.Graded, Reward: float64(i)}
	}
	b := newBatch(traj, rl.Overlong{}, nil)
	tr.maskTruncated(b)
	if want := []bool{false, false, true, true, true}; !slices.Equal(b.mask, want) {
		t.Errorf("mask %v, want %v", b.mask, want)
	}
	if !slices.Equal(b.score, []float32{0, 1}) {
		t.Errorf("scores %v", b.score)
	}
	tr.cfg.MaskTruncated = false
	b = newBatch(traj, rl.Overlong{}, nil)
	if tr.maskTruncated(b); slices.Contains(b.mask, false) {
		t.Errorf("off: mask %v", b.mask)
	}
}

// With every completion cut off a step learns nothing, and says so.
func TestAllTruncated(t *testing.T) {
	for _, kind := range []Kind{GRPO, PPO, FlowRL, Prime} {
		r := newToyRun(t, kind, 1)
		r.cfg.Steps, r.cfg.MaskTruncated = 1, true
		grade := r.grade
		r.grade = func(p *rollout.Problem, c *rollout.Completion) rollout.Verdict {
			c.Finish = rollout.FinishLength
			return grade(p, c)
		}
		tr := r.start()
		before := slices.Clone(r.params())
		if err := tr.Run(context.Background(), nil); err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, e := range r.steps[0].Events {
			text += e.Kind + " " + e.Text + "\n"
		}
		if !strings.Contains(text, "-tokens step 1: algo.mask_truncated ") {
			t.Errorf("%s: events %s", kind, text)
		}
		if kind == GRPO && differentBit(before, r.params()) >= 0 {
			t.Errorf("%s: parameters changed", kind)
		}
	}
}

// Of ten tokens on with entropies 0 to 9, the top 30 % begin at 0.7·9 = 6.3.
func TestTopEntropy(t *testing.T) {
	b := &batch{mask: make([]bool, 12), entropy: make([]float32, 12), weight: make([]float32, 12)}
	for i := range b.mask {
		b.mask[i], b.entropy[i], b.weight[i] = i > 1, float32(i-2), 0.5
	}
	b.entropy[0] = 100 // not on: not counted
	tr := &Trainer{cfg: Config{TopEntropy: 0.3}}
	got := tr.keepEntropic(b)
	if len(got) != 1 || got[0].Name != "actor/entropy_threshold" || got[0].Value < 6.3-1e-12 || got[0].Value > 6.3+1e-12 {
		t.Errorf("metrics %v", got)
	}
	if want := []float32{0.5, 0, 0, 0, 0, 0, 0, 0, 0, 0.5, 0.5, 0.5}; !slices.Equal(b.weight, want) {
		t.Errorf("weights %v, want %v", b.weight, want)
	}
	b.weight = nil
	if tr.keepEntropic(b); b.weight[0] != 1 || b.weight[8] != 0 || b.weight[9] != 1 {
		t.Errorf("weights without others: %v", b.weight)
	}
	// Of three tokens the median is a token's own entropy, which stays.
	three := &batch{mask: []bool{true, true, true}, entropy: []float32{1, 3, 2}}
	tr.cfg.TopEntropy = 0.5
	if tr.keepEntropic(three); !slices.Equal(three.weight, []float32{0, 1, 1}) {
		t.Errorf("weights at the threshold: %v", three.weight)
	}
	b.weight, tr.cfg.TopEntropy = nil, 1
	if m := tr.keepEntropic(b); m != nil || b.weight != nil {
		t.Errorf("of all: %v, %v", m, b.weight)
	}
}

// Estimators that read weights, such as the token baselines, do not see the weights of certain tokens.
func TestTopEntropyAfterAdvantages(t *testing.T) {
	advantages := func(share float64) (list []float64) {
		r := newToyRun(t, GRPO, 1)
		r.cfg.Steps, r.cfg.TopEntropy, r.cfg.Advantage = 1, share, "tir_optimal_token_baseline"
		r.run()
		for _, m := range r.steps[0].Metrics {
			if strings.HasPrefix(m.Name, "critic/advantages/") {
				list = append(list, m.Value)
			}
		}
		return list
	}
	if all, some := advantages(1), advantages(0.2); len(all) == 0 || !slices.Equal(all, some) {
		t.Errorf("advantages %v, with the top fifth of the entropies %v", all, some)
	}
}

// numpy.quantile([1, 2, 4, 8], [0, 0.5, 0.9, 1]) = 1, 3, 6.8, 8.
func TestQuantile(t *testing.T) {
	for q, want := range map[float64]float64{0: 1, 0.5: 3, 0.9: 6.8, 1: 8} {
		if got := quantile([]float64{8, 1, 4, 2}, q); got < want-1e-12 || got > want+1e-12 {
			t.Errorf("quantile %g: %g, want %g", q, got, want)
		}
	}
	if got := quantile([]float64{5}, 0.3); got != 5 {
		t.Errorf("of one: %g", got)
	}
}

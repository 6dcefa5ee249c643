package train

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"exp/train/rl"
	"exp/train/rollout"
)

// recordingOf holds what a run's steps sampled, with its rewards.
func recordingOf(steps []*Step, logProbs bool) *Recording {
	r := &Recording{LogProbs: logProbs, Problems: map[string][]Recorded{}}
	for _, s := range steps {
		for i := range s.Trajectories {
			tr := &s.Trajectories[i]
			c := *tr.Completion
			c.Entropies, c.LogProbs = nil, slices.Clone(c.LogProbs)
			if !logProbs {
				c.LogProbs = nil
			}
			reward := tr.Verdict.Reward
			r.Problems[tr.Problem.ID] = append(r.Problems[tr.Problem.ID], Recorded{Completion: c, Reward: &reward})
		}
	}
	return r
}

// A first step on what our own engine sampled is the step that sampled it, bit for
// bit: with its log-probs, and with the policy's own in their place. The rewards are
// the recording's, whatever the grader now thinks.
func TestRecordedFirstStep(t *testing.T) {
	for _, kind := range []Kind{FlowRL, PPO, GRPO, Prime} {
		for _, logProbs := range []bool{true, false} {
			own := newToyRun(t, kind, 1)
			own.cfg.Steps = 1
			own.run()
			again := newToyRun(t, kind, 1)
			again.cfg.Steps = 1
			again.recorded = recordingOf(own.steps, logProbs)
			again.grade = func(p *rollout.Problem, c *rollout.Completion) rollout.Verdict {
				v := own.grade(p, c)
				v.Reward = -1
				return v
			}
			again.run()
			if !slices.Equal(again.params(), own.params()) {
				t.Errorf("%s, log-probs %v: the policy differs after the step", kind, logProbs)
			}
			shared := 0
			for _, m := range again.steps[0].Metrics {
				if !hasMetric(own.steps[0], m.Name) { // the sampler's distance, measured
					continue
				}
				shared++
				if want := metric(t, own.steps[0], m.Name); math.Float64bits(m.Value) != math.Float64bits(want) {
					t.Errorf("%s, log-probs %v: %s is %v, want %v", kind, logProbs, m.Name, m.Value, want)
				}
			}
			if shared < 40 {
				t.Errorf("%s, log-probs %v: %d metrics compared", kind, logProbs, shared)
			}
			if got := hasMetric(again.steps[0], "rollout_corr/kl"); got != logProbs {
				t.Errorf("%s, log-probs %v: rollout_corr/kl recorded: %v", kind, logProbs, got)
			}
			event := slices.ContainsFunc(again.steps[0].Events, func(e Event) bool { return e.Kind == "recorded-rollouts" })
			if event == logProbs {
				t.Errorf("%s, log-probs %v: events %v", kind, logProbs, again.steps[0].Events)
			}
		}
	}
}

// A sampler that gave every token the log-prob of the policy less 0.1: the ratio of
// each token is exp(0.1), its sequence's exp(0.1 T).
func TestRecordedCorrection(t *testing.T) {
	own := newToyRun(t, GRPO, 1)
	own.cfg.Steps, own.cfg.PromptsPerUpdate, own.cfg.KL.LossCoef = 1, 4, 0
	own.run()
	run := func(change func(c *Config)) *toyRun {
		r := newToyRun(t, GRPO, 1)
		r.cfg = own.cfg
		r.recorded = recordingOf(own.steps, true)
		for _, list := range r.recorded.Problems {
			for i := range list {
				for k := range list[i].Completion.LogProbs {
					list[i].Completion.LogProbs[k] -= 0.1
				}
			}
		}
		change(&r.cfg)
		r.run()
		return r
	}
	token := run(func(c *Config) { c.Correction = rl.Correction{Weights: rl.TokenWeights, High: 2} })
	for name, want := range map[string]float64{
		"rollout_corr/rollout_is_mean":            math.Exp(0.1),
		"rollout_corr/rollout_is_max":             math.Exp(0.1),
		"rollout_corr/rollout_is_eff_sample_size": 1,
		"rollout_corr/kl":                         -0.1,
		"rollout_corr/k3_kl":                      math.Exp(0.1) - 0.1 - 1,
		"rollout_corr/chi2_token":                 math.Exp(0.2) - 1,
		"rollout_corr/log_ppl_diff":               -0.1,
		"rollout_corr/ppl_ratio":                  math.Exp(-0.1),
	} {
		if got := metric(t, token.steps[0], name); math.Abs(got-want) > 2e-6 {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	// Every weight is exp(0.1), and the gradient is longer by that factor. PPO's ratio is to
	// the policy before the step: 1.
	if got, want := metric(t, token.steps[0], "actor/grad_norm"), math.Exp(0.1)*metric(t, own.steps[0], "actor/grad_norm"); math.Abs(got-want) > 1e-5*want {
		t.Errorf("actor/grad_norm is %v, want %v", got, want)
	}
	if got := metric(t, token.steps[0], "actor/ppo_kl"); got != 0 {
		t.Errorf("actor/ppo_kl is %v, want 0", got)
	}
	// exp(0.1 T) of 6 letters is 1.82, of 5 is 1.65: the bound 1.7 leaves out the longest.
	var longest, all float64
	for i := range own.steps[0].Trajectories {
		all++
		if len(own.steps[0].Trajectories[i].Completion.Tokens) == 6 {
			longest++
		}
	}
	seq := run(func(c *Config) {
		c.Correction = rl.Correction{Reject: []rl.Rejection{{Span: rl.SpanSum, Kind: rl.KLK1, Low: 1 / 1.7, High: 1.7}}}
	})
	if got, want := metric(t, seq.steps[0], "rollout_corr/rollout_rs_seq_masked_fraction"), longest/all; longest == 0 || math.Abs(got-want) > 1e-12 {
		t.Errorf("rejected %v, want %v", got, want)
	}
	// In bypass mode the sampler is the old policy: the first ratio is exp(0.1).
	bypass := run(func(c *Config) { c.Correction.Bypass = rl.BypassPPO })
	if got := metric(t, bypass.steps[0], "actor/ppo_kl"); math.Abs(got+0.1) > 1e-6 {
		t.Errorf("bypass: actor/ppo_kl is %v, want -0.1", got)
	}
}

// A problem's visits take its completions in their order and then from the first.
func TestRecordedOrder(t *testing.T) {
	r := newToyRun(t, GRPO, 1)
	r.cfg.Steps, r.cfg.PromptsPerStep, r.cfg.PromptsPerUpdate, r.cfg.Samples, r.cfg.Shuffled = 3, 10, 10, 2, false
	r.recorded = &Recording{Problems: map[string][]Recorded{}}
	for _, p := range r.problems {
		for _, token := range []int32{1, 2, 3} {
			r.recorded.Problems[p.ID] = append(r.recorded.Problems[p.ID],
				Recorded{Completion: rollout.Completion{Tokens: []int32{token, 0}, Finish: rollout.FinishStop}})
		}
	}
	r.run()
	for step, want := range [][]int32{{1, 2}, {3, 1}, {2, 3}} {
		for i := range r.steps[step].Trajectories {
			tr := &r.steps[step].Trajectories[i]
			if got := tr.Completion.Tokens[0]; got != want[i%2] {
				t.Errorf("step %d, problem %s, sample %d: token %d, want %d", step+1, tr.Problem.ID, tr.Sample, got, want[i%2])
			}
		}
	}
}

func TestStopAndContinueRecorded(t *testing.T) {
	own := newToyRun(t, GRPO, 1)
	own.cfg.Steps = 5
	own.run()
	for _, logProbs := range []bool{true, false} {
		whole := newToyRun(t, GRPO, 2)
		whole.cfg.Steps = 5
		whole.cfg.Filter = Filter{By: FilterScore, MaxBatches: 1}
		whole.recorded = recordingOf(own.steps, logProbs)
		whole.run()
		continues(t, whole)
	}
}

func TestCheckRecording(t *testing.T) {
	r := newToyRun(t, GRPO, 1)
	r.cfg.Steps = 1
	r.run()
	seed := hashSeed(1)
	for name, tt := range map[string]struct {
		change func(r *Recording)
		want   string
	}{
		"none":     {func(r *Recording) { clear(r.Problems) }, "has 0 recorded completions; a step needs 8; 3 more"},
		"few":      {func(r *Recording) { r.Problems["p3"] = r.Problems["p3"][:5] }, "problem p3 has 5 recorded completions; a step needs 8"},
		"empty":    {func(r *Recording) { r.Problems["p3"][1].Completion.Tokens = nil }, "recorded completion 2 of problem p3: no tokens"},
		"long":     {func(r *Recording) { r.Problems["p3"][0].Completion.Tokens = make([]int32, 7) }, "7 tokens, max_new_tokens is 6"},
		"lengths":  {func(r *Recording) { r.Problems["p3"][0].Completion.LogProbs = make([]float32, 7) }, "7 log-probs for"},
		"positive": {func(r *Recording) { r.Problems["p3"][0].Completion.LogProbs[0] = 0.9 }, "log-prob of token 0 is 0.9, above 0"},
		"no number": {func(r *Recording) { r.Problems["p3"][0].Completion.LogProbs[0] = float32(math.NaN()) },
			"log-prob of token 0 is NaN"},
		"mixed": {func(r *Recording) { r.LogProbs = false }, "unexpected log-probs: the recording is declared without"},
	} {
		rec := recordingOf(r.steps, true)
		if _, ok := rec.Problems["p3"]; !ok { // the seed decides which four problems are taken
			t.Fatal("the first step has no problem p3; choose another")
		}
		tt.change(rec)
		err := r.cfg.CheckRecording(rec, r.problems, seed)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	if err := r.cfg.CheckRecording(recordingOf(r.steps, true), r.problems, seed); err != nil {
		t.Errorf("what the step sampled: %v", err)
	}
	// A filter continues to problems that were not checked before.
	r.cfg.Filter = Filter{By: FilterScore, MaxBatches: 2}
	r.grade = func(*rollout.Problem, *rollout.Completion) rollout.Verdict {
		return rollout.Verdict{Status: rollout.Graded}
	}
	r.recorded = recordingOf(r.steps, true)
	for _, list := range r.recorded.Problems {
		for i := range list {
			list[i].Reward = nil
		}
	}
	var few *RecordingError
	if _, err := r.start().Step(t.Context()); !errors.As(err, &few) || few.Have != 0 {
		t.Errorf("Step = %v, want a RecordingError", err)
	}
	r.cfg.Staleness = 1
	if _, err := New(r.cfg, r.trainer.Parts); err == nil || !strings.Contains(err.Error(), "staleness must be 0") {
		t.Errorf("New = %v", err)
	}
}

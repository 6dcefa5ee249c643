package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"exp/kernels"
	"exp/train/rl"
	"exp/train/rollout"
)

// afterB puts the answer C or D of a toy problem after the first B of a completion; the end token closes it.
func afterB(p *rollout.Problem, c *rollout.Completion) (*Answer, error) {
	tail := []int32{3 + int32(len(p.Prompt))%2, 0}
	if c == nil {
		return &Answer{Tokens: append([]int32{2}, tail...), From: 1, To: 2}, nil
	}
	at := slices.Index(c.Tokens, 2)
	if at < 0 {
		return nil, nil
	}
	return &Answer{Kept: at + 1, Tokens: tail, To: 1}, nil
}

// likely makes the toy's rewards likelihoods.
func (r *toyRun) likely(measure rl.Likelihood, learn float64) *toyRun {
	r.cfg.Self, r.cfg.Likelihood = RewardLikelihood, LikelihoodReward{Measure: measure, Absent: -0.5, Learn: learn}
	return r
}

// rowLikelihood is the likelihood of an answer after some completion tokens, from a batch of a single row.
func (r *toyRun) rowLikelihood(prompt, kept, answer []int32, lo, hi int, measure rl.Likelihood) float64 {
	tokens := slices.Concat(kept, answer)
	all := []Trajectory{{Problem: &rollout.Problem{}, Prompt: prompt, Verdict: rollout.Verdict{Status: rollout.Graded},
		Completion: &rollout.Completion{Tokens: tokens, LogProbs: make([]float32, len(tokens))}}}
	lp := r.trainer.passes.logProbs(r.trainer.Policy, newBatch(all, rl.Overlong{}, nil), 0, 1, r.cfg.Sampling.Temperature)
	lp = lp[len(kept)+lo : len(kept)+hi]
	v := 1.0
	switch measure {
	case rl.LikelihoodMean:
		v = 0
		for _, x := range lp {
			v += math.Exp(float64(x)) / float64(len(lp))
		}
	case rl.LikelihoodProduct:
		for _, x := range lp {
			v *= math.Exp(float64(x))
		}
	default:
		v = 0
		for _, x := range lp {
			v += float64(x)
		}
	}
	return v
}

// Rewards are what one row at a time gives, whatever the grader says; its verdicts count in metrics alone.
func TestLikelihoodRewards(t *testing.T) {
	for _, baseline := range []bool{false, true} {
		for measure := rl.LikelihoodMean; measure <= rl.LikelihoodLog; measure++ {
			r := newToyRun(t, GRPO, 1).likely(measure, 0)
			r.cfg.Likelihood.Baseline = baseline
			tr := r.start()
			clock := newStopwatch(tr.Clock)
			got, err := tr.collect(context.Background(), 1, clock)
			if err != nil {
				t.Fatal(err)
			}
			placed, sum, cut := 0, 0.0, 0
			for _, x := range got.all {
				a, _ := afterB(x.Problem, x.Completion)
				want := -0.5
				switch {
				case a == nil:
				case a.Kept+2 > r.cfg.Sampling.MaxNewTokens:
					cut++
				default:
					hi := map[bool]int{true: 1, false: 2}[measure == rl.LikelihoodMean]
					want = r.rowLikelihood(x.Prompt, x.Completion.Tokens[:a.Kept], a.Tokens, 0, hi, measure)
					placed, sum = placed+1, sum+want
					if baseline {
						lo := map[bool]int{true: 1, false: 0}[measure == rl.LikelihoodMean]
						want -= r.rowLikelihood(x.Prompt, nil, append([]int32{2}, a.Tokens...), lo, lo+hi+(1-lo), measure)
						want = math.Max(0, math.Min(1, want))
					}
				}
				if math.Abs(x.Verdict.Reward-want) > 1e-6 {
					t.Fatalf("%d: reward %v, want %v", measure, x.Verdict.Reward, want)
				}
			}
			if placed < 4 || placed == len(got.all) || cut == 0 {
				t.Errorf("%d of %d completions have a place, %d are too long", placed, len(got.all), cut)
			}
			if x := find(got.metrics, "reward/likelihood"); math.Abs(x-sum/float64(placed)) > 1e-6 {
				t.Errorf("reward/likelihood is %v, want %v", x, sum/float64(placed))
			}
			if x := find(got.metrics, "reward/placed"); x != float64(placed)/float64(len(got.all)) {
				t.Errorf("reward/placed is %v of %d", x, placed)
			}
			if x := find(got.metrics, "reward/likelihood_baseline"); baseline == math.IsNaN(x) {
				t.Errorf("reward/likelihood_baseline is %v", x)
			}
		}
	}
}

// In what the policy learns from, the answer replaces the rest of the completion; a row without a place and one that
// is in no loss stay as they are.
func TestWithAnswers(t *testing.T) {
	r := newToyRun(t, GRPO, 1).likely(rl.LikelihoodProduct, 1)
	tr := r.start()
	row := func(tokens ...int32) Trajectory {
		return Trajectory{Problem: &r.problems[1], Prompt: []int32{1}, Verdict: rollout.Verdict{Status: rollout.Graded, Reward: 1},
			Completion: &rollout.Completion{Tokens: tokens, LogProbs: []float32{-1, -2, -3, -4}[:len(tokens)], Entropies: []float32{1, 2, 3, 4}[:len(tokens)]}}
	}
	b := newBatch([]Trajectory{row(1, 2, 4, 5), row(1, 1, 0), row(2, 0), row(2, 1)}, rl.Overlong{}, nil)
	for i := range b.adv {
		b.adv[i] = float32(10 + i)
	}
	clear(b.mask[b.rows[3]:])
	got, err := tr.withAnswers(b)
	if err != nil {
		t.Fatal(err)
	}
	var tokens []int32
	for _, x := range got.traj {
		tokens = append(tokens, x.Completion.Tokens...)
	}
	yes, no := true, false
	for what, ok := range map[string]bool{
		"tokens":        slices.Equal(tokens, []int32{1, 2, 3, 0, 1, 1, 0, 2, 3, 0, 2, 1}),
		"rows":          slices.Equal(got.rows, rl.Rows{0, 4, 7, 10, 12}),
		"mask":          slices.Equal(got.mask, []bool{yes, yes, no, no, yes, yes, yes, yes, no, no, no, no}),
		"answer":        slices.Equal(got.answer, []bool{no, no, yes, yes, no, no, no, no, yes, yes, no, no}),
		"advantages":    slices.Equal(got.adv, []float32{10, 11, 0, 0, 14, 15, 16, 17, 0, 0, 19, 20}),
		"log-probs":     slices.Equal(got.old, []float32{-1, -2, 0, 0, -1, -2, -3, -1, 0, 0, -1, -2}),
		"the batch":     len(b.mask) == 11 && len(b.traj[0].Completion.Tokens) == 4 && b.answer == nil,
		"another order": slices.Equal(got.chosen([]int{2, 0}).answer, []bool{no, yes, yes, no, no, yes, yes}),
	} {
		if !ok {
			t.Errorf("%s differ: %v, %+v", what, tokens, got)
		}
	}
}

// The gradient of the answers' term is the slope of the mean likelihood by the parameters, over a whole mini-batch and
// in each measure.
func TestAnswerGradient(t *testing.T) {
	for measure := rl.LikelihoodMean; measure <= rl.LikelihoodLog; measure++ {
		r := newToyRun(t, GRPO, 1).likely(measure, 0.7)
		r.cfg.Advantage, r.cfg.KL.LossCoef, r.cfg.PromptsPerUpdate = rl.NoAdvantage, 0, r.cfg.PromptsPerStep
		tr := r.start()
		got, err := tr.collect(context.Background(), 1, newStopwatch(tr.Clock))
		if err != nil {
			t.Fatal(err)
		}
		b, err := tr.withAnswers(got.batch(tr.cfg))
		if err != nil {
			t.Fatal(err)
		}
		mini := b.slice(0, len(b.traj), tr.cfg.Slices, tr.passes.bundle)
		loss := tr.newLoss(mini.batch, "x")
		tr.policyGradient(mini, loss, "x")
		grads, params := r.host(tr.Policy.Grads()), r.params()
		set := func(x []float32) {
			r.be.Copy(tr.Policy.Params(), kernels.Host(x))
			tr.Policy.Refresh()
		}
		answers, _ := tr.answers(got.all)
		value := func() (sum float64) {
			for _, x := range tr.likely(1, got.all, answers) {
				sum += x
			}
			return sum / float64(len(got.all))
		}
		if at := value(); math.Abs(loss.likely-at) > 1e-6 {
			t.Errorf("%d: the term is %v, the likelihood %v", measure, loss.likely, at)
		}
		order := make([]int, len(grads))
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(i, j int) int {
			return int(math.Copysign(1, math.Abs(float64(grads[j]))-math.Abs(float64(grads[i]))))
		})
		for _, i := range order[:12] {
			const h = 1e-2
			x := slices.Clone(params)
			x[i] = params[i] + h
			set(x)
			up := value()
			x[i] = params[i] - h
			set(x)
			slope := -0.7 * (up - value()) / (2 * h)
			if math.Abs(float64(grads[i])-slope) > 0.02*math.Abs(slope) {
				t.Errorf("%d: parameter %d: gradient %v, slope %v", measure, i, grads[i], slope)
			}
		}
		set(params)
	}
}

// Rewards rise though the grader calls all completions equally right. Where answers are learned they become likely.
func TestLikelihoodTrains(t *testing.T) {
	for name, change := range map[string]func(r *toyRun){
		"RLPR": func(r *toyRun) { r.likely(rl.LikelihoodMean, 0).cfg.Likelihood.Baseline = true },
		"VeriFree": func(r *toyRun) {
			r.likely(rl.LikelihoodProduct, 1).cfg.Advantage = "rloo"
			r.cfg.Likelihood.Absent = 0
		},
		"JEPO": func(r *toyRun) {
			r.likely(rl.LikelihoodLog, 1).cfg.Advantage = "rloo"
			r.cfg.Likelihood.Absent = -10
		},
	} {
		r := newToyRun(t, GRPO, 1)
		change(r)
		r.cfg.Steps, r.cfg.KL.LossCoef = 150, 0
		r.grade = func(*rollout.Problem, *rollout.Completion) rollout.Verdict {
			return rollout.Verdict{Status: rollout.Graded, Correct: true, Reward: 7}
		}
		r.run()
		first, last := r.steps[0], r.steps[len(r.steps)-1]
		of := func(s *Step, name string) float64 { return metric(t, s, name) }
		t.Logf("%s: score %.3f, then %.3f; likelihood %.3f, then %.3f; placed %.3f", name, of(first, "critic/score/mean"),
			of(last, "critic/score/mean"), of(first, "reward/likelihood"), of(last, "reward/likelihood"), of(last, "reward/placed"))
		if !(of(last, "critic/score/mean") > of(first, "critic/score/mean")) || !(of(last, "reward/placed") > 0.8) {
			t.Errorf("%s: rewards do not rise", name)
		}
		if r.cfg.Likelihood.Learn > 0 && !(of(last, "reward/likelihood") > of(first, "reward/likelihood")) {
			t.Errorf("%s: answers become less likely", name)
		}
	}
}

// Answers are learned next to every kind of policy loss, and with what changes masks, weights and rows.
func TestAnswersWithOtherSettings(t *testing.T) {
	for name, change := range map[string]func(c *Config){
		"flowrl":   func(c *Config) { c.Advantage, c.Loss = "", "flowrl" },
		"gvpo":     func(c *Config) { c.Loss = "gvpo" },
		"dpo":      func(c *Config) { c.Loss = "dpo" },
		"clip_cov": func(c *Config) { c.Loss = "clip_cov" },
		"megatron": func(c *Config) { c.Loss, c.Advantage = "megatron", "megatron" },
		"pf_ppo":   func(c *Config) { c.Advantage, c.Settings = "gae", with(c.Settings, "pf_ppo.method", "pow") },
		"masks":    func(c *Config) { c.MaskTruncated, c.TopEntropy = true, 0.3 },
		"baselines": func(c *Config) {
			c.Advantage, c.VarianceProxies = "optimal_token_baseline", true
		},
		"bypass": func(c *Config) {
			c.Correction = rl.Correction{Bypass: rl.BypassPPO, Weights: rl.TokenWeights, High: 2}
		},
		"two epochs, KL in the reward": func(c *Config) { c.Epochs, c.KL.RewardCoef, c.EntropyCoef = 2, 0.1, 0.01 },
	} {
		r := newToyRun(t, GRPO, 1).likely(rl.LikelihoodMean, 1)
		r.cfg.Steps, r.cfg.Likelihood.Absent = 2, 0
		change(&r.cfg)
		if err := r.start().Run(context.Background(), nil); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, s := range r.steps {
			if x := metric(t, s, "actor/answer_likelihood"); !(x > 0 && x < 1) {
				t.Errorf("%s: the answers' likelihood is %v", name, x)
			}
			for _, e := range s.Events {
				t.Errorf("%s: %s", name, e.Text)
			}
		}
	}
}

// A run that stops with steps sampled ahead, whose rewards are known and whose answers are yet to be learned, goes on
// as if it had not.
func TestLikelihoodContinues(t *testing.T) {
	whole := newToyRun(t, PPO, 2).likely(rl.LikelihoodMean, 0.5)
	whole.cfg.Staleness, whole.cfg.Steps, whole.cfg.Likelihood.Baseline = 1, 4, true
	whole.run()
	continues(t, whole)
}

func TestLikelihoodErrors(t *testing.T) {
	broken := errors.New("broken")
	for _, bare := range []bool{false, true} {
		r := newToyRun(t, GRPO, 1).likely(rl.LikelihoodMean, 0)
		r.cfg.Likelihood.Baseline = true
		tr := r.start()
		tr.Answer = func(p *rollout.Problem, c *rollout.Completion) (*Answer, error) {
			if bare == (c == nil) {
				return nil, broken
			}
			return afterB(p, c)
		}
		if err := tr.Run(context.Background(), nil); !errors.Is(err, broken) || !strings.Contains(err.Error(), "problem p") {
			t.Errorf("got %v", err)
		}
	}
	r := newToyRun(t, Distill, 1).likely(rl.LikelihoodMean, 1)
	r.cfg.Distill.TopK = 2
	if err := r.cfg.Validate(); err == nil || !strings.Contains(fmt.Sprint(err), "teacher") {
		t.Errorf("got %v", err)
	}
}

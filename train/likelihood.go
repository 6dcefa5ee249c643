package train

import (
	"fmt"
	"slices"

	"exp/kernels"
	"exp/train/model"
	"exp/train/ranks"
	"exp/train/rl"
	"exp/train/rollout"
)

// Answer is the reference answer in the place of a completion's own.
type Answer struct {
	Kept     int     // tokens of the completion that stay: the reasoning
	Tokens   []int32 // that follow them: the answer, and what closes it
	Start    int     // Tokens[Start:] are not the completion's own in other tokens
	From, To int     // Tokens[From:To] hold the answer itself
}

// LikelihoodReward holds the settings of RewardLikelihood.
type LikelihoodReward struct {
	Measure rl.Likelihood
	// Baseline subtracts the likelihood without reasoning, and clips the difference to [0,1] (RLPR's debiasing).
	Baseline bool
	Absent   float64 // reward of a completion without a place for the answer
	// Learn weighs the term of the loss that makes reference answers likelier (rl.AnswerTerm). If it is not 0, the
	// policy loss learns the reasoning alone, and nothing of what the completion has from its answer on.
	Learn float64
}

// likelihoods counts what RewardLikelihood did in a step.
type likelihoods struct {
	graded   int
	of       [2]mean // of answers after wrong and right completions
	baseline mean    // of problems
}

// mean is a mean of numbers.
type mean struct {
	sum float64
	n   int
}

func (m *mean) add(x float64) { m.sum, m.n = m.sum+x, m.n+1 }

// rewardLikelihood rewards graded completions by how likely the policy that sampled them finds the reference answer
// after their reasoning.
func (t *Trainer) rewardLikelihood(step int, all []Trajectory, s *likelihoods) error {
	c := t.cfg.Likelihood
	answers, err := t.answers(all)
	if err != nil {
		return err
	}
	var baseline map[*rollout.Problem]float64
	if c.Baseline {
		if baseline, err = t.withoutReasoning(step, all, s); err != nil {
			return err
		}
	}
	likely := t.likely(step, all, answers)
	for i := range all {
		v := &all[i].Verdict
		if v.Status != rollout.Graded {
			continue
		}
		s.graded++
		if answers[i] == nil {
			v.Reward = c.Absent
			continue
		}
		v.Reward = likely[i]
		if c.Baseline {
			v.Reward = max(0, min(1, likely[i]-baseline[all[i].Problem]))
		}
		KeepFinite(v)
		right := 0
		if v.Correct {
			right = 1
		}
		s.of[right].add(likely[i])
	}
	return nil
}

// likelihoodAgain gives graded completions that m sampled the rewards of RewardLikelihood, outside a run. answer is as
// in Parts.
func likelihoodAgain(be kernels.Backend, m *model.Model, c Config,
	answer func(*rollout.Problem, *rollout.Completion) (*Answer, error), all []Trajectory) error {
	longest := 0
	for i := range all {
		longest = max(longest, len(all[i].Prompt)+c.Sampling.MaxNewTokens)
	}
	rows := c.Rows(longest)
	rows.Problems, rows.Samples = len(all), 1
	p, err := newPasses(be, ranks.Alone{}, m.Config, m.Heads, rows, true, model.KeepNothing)
	if err != nil {
		return err
	}
	defer p.close()
	t := &Trainer{Parts: Parts{Policy: m, Answer: answer}, cfg: c, passes: p, data: ranks.Alone{}}
	return t.rewardLikelihood(0, all, new(likelihoods))
}

// answers returns the reference answers in the places of graded completions; nil where a completion has no place or
// would become too long.
func (t *Trainer) answers(all []Trajectory) ([]*Answer, error) {
	list := make([]*Answer, len(all))
	for i := range all {
		tr := &all[i]
		if tr.Verdict.Status != rollout.Graded {
			continue
		}
		a, err := t.Answer(tr.Problem, tr.Completion)
		if err != nil {
			return nil, fmt.Errorf("problem %s: %w", tr.Problem.ID, err)
		}
		if a != nil && a.Kept+len(a.Tokens) <= t.cfg.Sampling.MaxNewTokens {
			list[i] = a
		}
	}
	return list, nil
}

// withoutReasoning returns the likelihoods of the answers of some groups' problems as the whole completion; 0 where
// that is too long.
func (t *Trainer) withoutReasoning(step int, all []Trajectory, s *likelihoods) (map[*rollout.Problem]float64, error) {
	var bare []Trajectory
	for i := range all {
		if i == 0 || all[i].Problem != all[i-1].Problem {
			bare = append(bare, Trajectory{Problem: all[i].Problem, Prompt: all[i].Prompt,
				Completion: &rollout.Completion{}, Verdict: rollout.Verdict{Status: rollout.Graded}})
		}
	}
	answers := make([]*Answer, len(bare))
	for i := range bare {
		a, err := t.Answer(bare[i].Problem, nil)
		if err != nil {
			return nil, fmt.Errorf("problem %s: %w", bare[i].Problem.ID, err)
		}
		if len(a.Tokens) <= t.cfg.Sampling.MaxNewTokens {
			answers[i] = a
		}
	}
	of := make(map[*rollout.Problem]float64, len(bare))
	for i, x := range t.likely(step, bare, answers) {
		of[bare[i].Problem] = x
		s.baseline.add(x)
	}
	return of, nil
}

// likely returns the likelihoods of answers in the places of completions; 0 without a place.
func (t *Trainer) likely(step int, all []Trajectory, answers []*Answer) []float64 {
	var list []Trajectory
	var at []int
	for i, a := range answers {
		if a != nil {
			list, at = append(list, all[i].with(a)), append(at, i)
		}
	}
	out := make([]float64, len(all))
	if len(list) == 0 {
		return out
	}
	b := newBatch(list, rl.Overlong{}, nil)
	t.rows(t.passes, step, "likelihood", len(list))
	logProb := t.passes.logProbs(t.Policy, b, 0, len(list), t.cfg.Sampling.Temperature)
	t.passes.passed = nil
	for k, i := range at {
		lo, hi := t.cfg.Likelihood.span(answers[i])
		out[i] = t.cfg.Likelihood.Measure.Of(logProb[b.rows[k]+lo : b.rows[k]+hi])
	}
	return out
}

// span returns the tokens of a completion with the answer in its place whose likelihood counts: the answer's. Unless
// their probabilities are averaged, also a gap before it and the text that closes it, or else 1 would be as likely
// as 10.
func (c LikelihoodReward) span(a *Answer) (lo, hi int) {
	if c.Measure == rl.LikelihoodMean {
		return a.Kept + a.From, a.Kept + a.To
	}
	return a.Kept + a.Start, a.Kept + len(a.Tokens)
}

// with returns the trajectory with the answer in its place. Its tokens have no log-probs.
func (tr *Trajectory) with(a *Answer) Trajectory {
	x, c := *tr, *tr.Completion
	c.Tokens = slices.Concat(c.Tokens[:a.Kept], a.Tokens)
	c.LogProbs, c.Entropies = make([]float32, len(c.Tokens)), make([]float32, len(c.Tokens))
	copy(c.LogProbs, tr.Completion.LogProbs[:a.Kept])
	copy(c.Entropies, tr.Completion.Entropies[:min(a.Kept, len(tr.Completion.Entropies))])
	x.Completion = &c
	return x
}

// metrics are RewardLikelihood's, without means of nothing.
func (s *likelihoods) metrics() (list []rl.Metric) {
	wrong, right := s.of[0], s.of[1]
	both := mean{wrong.sum + right.sum, wrong.n + right.n}
	if s.graded > 0 {
		list = append(list, rl.Metric{Name: "reward/placed", Value: float64(both.n) / float64(s.graded)})
	}
	for _, x := range []struct {
		of mean
		rl.Metric
	}{{both, rl.Metric{Name: "reward/likelihood"}}, {right, rl.Metric{Name: "reward/likelihood_right"}},
		{wrong, rl.Metric{Name: "reward/likelihood_wrong"}},
		{s.baseline, rl.Metric{Name: "reward/likelihood_baseline"}}} {
		if x.of.n > 0 {
			x.Value = x.of.sum / float64(x.of.n)
			list = append(list, x.Metric)
		}
	}
	return list
}

// withAnswers returns the batch that the models learn from: in each row that has a place for it, the reference answer
// replaces all that follows the reasoning. Nothing but the term of the answers reads its tokens.
func (t *Trainer) withAnswers(b *batch) (*batch, error) {
	if t.cfg.Likelihood.Learn == 0 {
		return b, nil
	}
	all := make([]Trajectory, len(b.traj))
	for i, tr := range b.traj {
		all[i] = *tr
	}
	answers, err := t.answers(all)
	if err != nil {
		return nil, err
	}
	for i := range answers {
		if !slices.Contains(b.mask[b.rows[i]:b.rows[i+1]], true) {
			answers[i] = nil // the completion is left out of every loss
		}
	}
	c := *b
	c.rows, c.traj = rl.Rows{0}, make([]*Trajectory, len(all))
	kept := make([]int, len(all))
	for i, a := range answers {
		c.traj[i], kept[i] = b.traj[i], b.rows[i+1]-b.rows[i]
		if a != nil {
			x := all[i].with(a)
			c.traj[i], kept[i] = &x, a.Kept
		}
		c.rows = append(c.rows, c.rows[i]+len(c.traj[i].Completion.Tokens))
	}
	c.mask = keep(b.mask, b.rows, c.rows, kept)
	for _, x := range c.arrays() {
		if *x != nil {
			*x = keep(*x, b.rows, c.rows, kept)
		}
	}
	c.answer = make([]bool, len(c.mask))
	for i, a := range answers {
		if a != nil {
			lo, hi := t.cfg.Likelihood.span(a)
			for k := lo; k < hi; k++ {
				c.answer[c.rows[i]+k] = true
			}
		}
	}
	return &c, nil
}

// keep returns x [N] laid out in other rows: the first kept[i] elements of each, then zeros.
func keep[T any](x []T, from, to rl.Rows, kept []int) []T {
	out := make([]T, to[to.Len()])
	for i, n := range kept {
		copy(out[to[i]:to[i]+n], x[from[i]:from[i]+n])
	}
	return out
}

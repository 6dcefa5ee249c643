package train

import (
	"fmt"
	"slices"

	"exp/kernels"
	"exp/train/rl"
)

// gradients receive a loss's derivatives; zero when add is called.
type gradients struct {
	logProb, entropy []float32 // [N]
	logZ             []float32 // [B]
	student          []float32 // [N,K] of the teacher's likeliest tokens
}

// objective computes the gradient of a mini-batch's loss, micro-batch by micro-batch, in
// order. The loss is the policy loss and, unless that is whole, its optional terms:
//
//	L = policy + KL.LossCoef·KL - EntropyCoef·H + Distill.Coef·ForwardKL - Likelihood.Learn·E[likelihood]
//	  + SFTWeight·NLL of right completions - Demonstrations.Weight·E[advantage·f(probability)]
//
// The policy loss and the terms of KL and right completions leave out demonstrations, whose term is the last one. Sums
// over tokens have the denominators of the whole mini-batch.
type objective struct {
	c           Config
	n           rl.Counts
	start       func() rl.LossRun
	policy      rl.LossRun
	whole       bool
	kl, entropy float64
	distill     rl.DistillStats
	likely      float64
	dropped     float64 // share of the loss that rl.DropOffPolicy left out
	nll         float64 // of right completions

	// Of the whole mini-batch; at and row count its tokens and rows added so far.
	picked  []bool          // nil unless the loss picks tokens
	rows    rl.RowConstants // empty unless the loss reads its groups
	answer  []bool          // nil unless reference answers are learned
	right   []bool          // nil unless right completions have a loss of their own
	imitate int             // tokens of those
	shown   []bool          // tokens of demonstrations; nil: none
	own     []bool          // the other trained tokens; nil: all are
	show    rl.DemonstrationStats
	bypass  *bypass
	at, row int
}

// bypass is rollout correction against the current parameters; it replaces the policy loss.
type bypass struct {
	weight     []float32 // nil means 1
	clip       rl.Clip   // of rl.BypassPPO
	kept       []bool
	correction rl.CorrectionStats
	stats      rl.PolicyStats
}

// newLoss starts the loss of a mini-batch; stream names its random numbers. A loss that
// looks at all rows of a mini-batch under the current parameters does so here, so the cut
// into micro-batches does not matter. That costs a forward pass.
func (t *Trainer) newLoss(b *batch, stream string) *objective {
	c, hi := t.cfg, len(b.traj)
	loss := c.policyLoss()
	l := &objective{c: c, n: b.counts(0, hi, c.PromptsPerUpdate*c.Samples, c.LossScale), whole: loss.Whole,
		answer: b.answer}
	l.start = func() rl.LossRun {
		return loss.Start(c.Settings, rl.Others{KL: c.KL.LossCoef, Entropy: c.EntropyCoef})
	}
	l.policy = l.start()
	if c.Demonstrations.Weight != 0 {
		l.shown, l.own = b.shown()
	}
	if c.SFTWeight != 0 {
		l.right = b.right()
		mask := b.mask
		if l.own != nil {
			mask = l.own
		}
		l.imitate = rl.CountRight(mask, b.rows, l.right)
	}
	if c.Correction.Bypass == 0 && l.policy.Pick == nil && l.policy.Constants == nil {
		return l
	}
	mini := b.part(0, hi, t.passes.logProbs(t.policy.m, b, 0, hi, c.Sampling.Temperature))
	tokens := len(mini.Mask)
	if c.Correction.Bypass == 0 {
		if l.policy.Constants != nil {
			l.rows = l.policy.Constants(mini, b.problems())
		}
		if l.policy.Pick != nil {
			l.picked = make([]bool, tokens)
			l.policy.Pick(l.picked, mini, func() []uint64 { return t.tokenKeys(b, "clip_cov/"+stream) })
		}
		return l
	}
	l.bypass = &bypass{kept: make([]bool, tokens)}
	if c.Correction.Bypass == rl.BypassPPO {
		l.bypass.clip = rl.ClipOf(c.Settings)
	}
	if c.Correction.Weights != rl.NoWeights {
		l.bypass.weight = make([]float32, tokens)
	}
	rl.Correct(l.bypass.weight, l.bypass.kept, mini.LogProb, mini.OldLogProb, mini.Mask, mini.Rows, c.Correction,
		&l.bypass.correction)
	return l
}

// from returns the objective of the same mini-batch for the rows from row on, which begins at a
// token. It collects separate statistics.
func (l *objective) from(row, token int) *objective {
	o := *l
	o.policy, o.at, o.row = l.start(), token, row
	if l.bypass != nil {
		b := *l.bypass
		o.bypass = &b
	}
	return &o
}

// add adds the gradient of the rows of p. entropy [N] holds p's tokens, logZ [B] its rows
// (nil without a log Z head), x the teacher's likeliest tokens (none if K is 0).
func (l *objective) add(p *rl.Batch[float32], entropy, logZ []float32, x rl.Taught, g gradients) {
	if l.c.Aggregation != 0 { // FlowRL's row terms have none
		l.c.Aggregation.Coefficients(p.Coef, p.Mask, p.Rows, l.n)
	}
	end, last := l.at+len(p.Mask), l.row+p.Rows.Len()
	all := p.Mask
	if l.own != nil {
		rl.DemonstrationTerm(g.logProb, p, l.shown[l.at:end], l.c.Demonstrations, &l.show)
		q := *p
		p, q.Mask = &q, l.own[l.at:end]
	}
	if l.c.OffPolicy > 0 {
		q := *p
		p, q.Adv = &q, slices.Clone(q.Adv)
		rl.DropOffPolicy(q.Adv, p, l.c.OffPolicy, &l.dropped)
	}
	m := &rl.Micro{Batch: p, Of: l.n.Rows, LogZ: logZ, DLogProb: g.logProb, DLogZ: g.logZ}
	if l.bypass != nil {
		var weight []float32
		if l.bypass.weight != nil {
			weight = l.bypass.weight[l.at:end]
		}
		rl.Bypass(g.logProb, p, weight, l.bypass.kept[l.at:end], l.c.Correction.Bypass, l.bypass.clip,
			&l.bypass.stats)
	} else {
		if l.picked != nil {
			m.Picked = l.picked[l.at:end]
		}
		m.RowConstants = l.rows.Part(l.row, last)
		l.policy.Add(m)
	}
	if l.answer != nil {
		rl.AnswerTerm(g.logProb, p.LogProb, l.answer[l.at:end], p.Rows, l.c.Likelihood.Measure, l.c.Likelihood.Learn,
			l.n.Rows, &l.likely)
	}
	if l.imitate > 0 {
		rl.RightTerm(g.logProb, p.LogProb, p.Mask, p.Rows, l.right[l.row:last], l.c.SFTWeight, l.imitate, &l.nll)
	}
	l.at, l.row = end, last
	if x.K > 0 {
		l.c.Distill.ForwardKL(g.student, x, all, p.Coef, &l.distill)
	}
	if l.whole {
		return
	}
	if l.c.KL.LossCoef != 0 {
		rl.KLLoss(g.logProb, p, l.c.KL.LossEstimator, l.c.KL.LossCoef, &l.kl)
	}
	rl.EntropyBonus(g.entropy, entropy, all, p.Coef, l.c.EntropyCoef, &l.entropy)
}

// metrics returns the metrics of the whole mini-batch.
func (l *objective) metrics() []rl.Metric {
	m := l.policy.Metrics()
	if l.bypass != nil {
		m = l.bypass.stats.Metrics()
	}
	if l.c.taught() > 0 {
		m = append(m, l.distill.Metrics()...)
	}
	if l.c.OffPolicy > 0 {
		m = append(m, rl.Metric{Name: "actor/off_policy_dropped", Value: l.dropped})
	}
	if l.answer != nil {
		m = append(m, rl.Metric{Name: "actor/answer_likelihood", Value: l.likely})
	}
	if l.imitate > 0 {
		m = append(m, rl.Metric{Name: "actor/sft_loss", Value: l.nll})
	}
	m = append(m, l.show.Metrics()...)
	if l.whole {
		return m
	}
	m = append(m, rl.Metric{Name: "actor/entropy_loss", Value: l.entropy})
	if l.c.KL.LossCoef != 0 {
		m = append(m, rl.Metric{Name: "actor/kl_loss", Value: l.kl}, rl.Metric{Name: "actor/kl_coef",
			Value: l.c.KL.LossCoef})
	}
	if l.bypass != nil {
		m = append(m, l.bypass.correction.Metrics()...)
	}
	return m
}

// tokenKeys draws a number for each token of b. The stream is named by the row's identity,
// not by its place in the batch.
func (t *Trainer) tokenKeys(b *batch, stream string) []uint64 {
	var keys []uint64
	for i, tr := range b.traj {
		key := kernels.PhiloxKey(t.Seed(fmt.Sprintf("%s/prompt=%s/sample=%d", stream, tr.Problem.ID, tr.Sample)))
		for k := range b.rows[i+1] - b.rows[i] {
			keys = append(keys, philox64(key, k))
		}
	}
	return keys
}

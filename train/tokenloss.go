package train

import (
	"fmt"

	"exp/kernels"
	"exp/train/rl"
)

// policyLoss computes the gradient of a mini-batch's loss, micro-batch by
// micro-batch, in order.
type policyLoss interface {
	// add adds the gradient of the rows of p. entropy [N] belongs to p's tokens, logZ
	// [B] to its rows (nil without a log Z head).
	add(p *rl.Batch[float32], entropy, logZ []float32, g gradients)
	// metrics are of the whole mini-batch.
	metrics() []rl.Metric
}

// gradients are where a loss leaves its derivatives; zero when add is called.
type gradients struct {
	logProb, entropy []float32 // [N]
	logZ             []float32 // [B]
}

// newLoss starts the loss of the mini-batch of rows lo to hi; stream names its
// random numbers.
func (t *Trainer) newLoss(b *batch, lo, hi int, stream string) policyLoss {
	n := b.counts(lo, hi, t.cfg.PromptsPerUpdate*t.cfg.Samples, t.cfg.LossScale)
	if t.cfg.Loss == LossFlowRL {
		return &flowLoss{c: t.cfg, n: n}
	}
	l := &tokenLoss{c: t.cfg, n: n}
	if t.cfg.readsMiniBatch() {
		now := t.passes.logProbs(t.policy.m, b, lo, hi, t.cfg.Sampling.Temperature)
		l.choose(b.part(lo, hi, now), func() []uint64 { return t.tokenKeys(b, lo, hi, "clip_cov/"+stream) })
	}
	return l
}

// readsMiniBatch says whether the loss looks at all tokens of a mini-batch under
// the current parameters before its first micro-batch, so that the cut into
// micro-batches does not show. It costs a forward pass.
func (c Config) readsMiniBatch() bool {
	return c.Loss == LossClipCov || c.Loss == LossKLCov || c.Correction.Bypass != 0
}

// tokenLoss is a policy loss of tokens with its optional terms:
//
//	L = policy + KL.LossCoef·KL - EntropyCoef·H
type tokenLoss struct {
	c           Config
	n           rl.Counts
	stats       rl.PolicyStats
	megatron    rl.MegatronStats
	kl, entropy float64

	// Of the whole mini-batch, set by choose, and how many tokens were added.
	picked []bool
	weight []float32
	kept   []bool
	bypass rl.CorrectionStats
	at     int
}

// choose looks at the mini-batch under the current parameters.
func (l *tokenLoss) choose(mini *rl.Batch[float32], keys func() []uint64) {
	tokens := len(mini.Mask)
	switch c := l.c; {
	case c.Correction.Bypass != 0:
		l.kept = make([]bool, tokens)
		if c.Correction.Weights != rl.NoWeights {
			l.weight = make([]float32, tokens)
		}
		rl.Correct(l.weight, l.kept, mini.LogProb, mini.OldLogProb, mini.Mask, mini.Rows, c.Correction, &l.bypass)
	case c.Loss == LossClipCov:
		l.picked = make([]bool, tokens)
		rl.ClipCovTokens(l.picked, mini, c.Clip.Low, c.Clip.High, c.ClipCov, keys())
	case c.Loss == LossKLCov:
		l.picked = make([]bool, tokens)
		rl.KLCovTokens(l.picked, mini, c.KLCovRatio)
	}
}

func (l *tokenLoss) add(p *rl.Batch[float32], entropy, _ []float32, g gradients) {
	l.c.Aggregation.Coefficients(p.Coef, p.Mask, p.Rows, l.n)
	l.policy(p, g.logProb)
	l.at += len(p.Mask)
	if l.c.Loss == LossMegatron { // its other terms are inside
		return
	}
	if l.c.KL.LossCoef != 0 {
		rl.KLLoss(g.logProb, p, l.c.KL.LossEstimator, l.c.KL.LossCoef, &l.kl)
	}
	rl.EntropyBonus(g.entropy, entropy, p.Mask, p.Coef, l.c.EntropyCoef, &l.entropy)
}

// policy adds the gradient of the configured loss.
func (l *tokenLoss) policy(p *rl.Batch[float32], g []float32) {
	c, end := l.c, l.at+len(p.Mask)
	if c.Correction.Bypass != 0 {
		var weight []float32
		if l.weight != nil {
			weight = l.weight[l.at:end]
		}
		rl.Bypass(g, p, weight, l.kept[l.at:end], c.Correction.Bypass, c.Clip, &l.stats)
		return
	}
	switch c.Loss {
	case LossPPO:
		rl.PPO(g, p, c.Clip, &l.stats)
	case LossReinforce:
		rl.Reinforce(g, p, &l.stats)
	case LossGSPO:
		rl.GSPO(g, p, c.Clip.Low, c.Clip.High, &l.stats)
	case LossSAPO:
		rl.SAPO(g, p, c.TauPos, c.TauNeg, &l.stats)
	case LossGMPO:
		rl.GMPO(g, p, c.Clip.Low, c.Clip.High, l.n.Rows, &l.stats)
	case LossCISPO:
		rl.CISPO(g, p, c.Clip.Low, c.Clip.High, &l.stats)
	case LossClipCov:
		rl.ClipCov(g, p, l.picked[l.at:end], c.Clip.Low, c.Clip.High, &l.stats)
	case LossKLCov:
		rl.KLCov(g, p, l.picked[l.at:end], c.KLCovCoef, &l.stats)
	case LossDPPOTV:
		rl.DPPO(g, p, rl.DPPOConfig{Divergence: rl.BinaryTV, Low: c.Clip.Low, High: c.Clip.High, MaxRatio: c.Clip.Dual}, &l.stats)
	case LossDPPOKL:
		rl.DPPO(g, p, rl.DPPOConfig{Divergence: rl.BinaryKL, Low: c.Clip.Low, High: c.Clip.High, MaxRatio: c.Clip.Dual}, &l.stats)
	case LossDRO:
		rl.DRO(g, p, c.DROBeta, &l.stats)
	case LossMegatron:
		rl.MegatronGRPO(g, p, rl.MegatronConfig{Low: c.Clip.Low, High: c.Clip.High, KLCoef: c.KL.LossCoef, EntropyCoef: c.EntropyCoef}, &l.megatron)
	default:
		panic("train: unknown policy loss " + string(c.Loss))
	}
}

func (l *tokenLoss) metrics() []rl.Metric {
	if l.c.Loss == LossMegatron {
		return l.megatron.Metrics()
	}
	m := append(l.stats.Metrics(), rl.Metric{Name: "actor/entropy_loss", Value: l.entropy})
	if l.c.KL.LossCoef != 0 {
		m = append(m, rl.Metric{Name: "actor/kl_loss", Value: l.kl}, rl.Metric{Name: "actor/kl_coef", Value: l.c.KL.LossCoef})
	}
	if l.c.Correction.Bypass != 0 {
		m = append(m, l.bypass.Metrics()...)
	}
	return m
}

// tokenKeys draws a number for each token of rows lo to hi, from a stream that is
// named by what the row is, not by where it lies.
func (t *Trainer) tokenKeys(b *batch, lo, hi int, stream string) []uint64 {
	var keys []uint64
	for i, tr := range b.traj[lo:hi] {
		key := kernels.PhiloxKey(t.Seed(fmt.Sprintf("%s/prompt=%s/sample=%d", stream, tr.Problem.ID, tr.Sample)))
		for k := range b.rows[lo+i+1] - b.rows[lo+i] {
			keys = append(keys, philox64(key, k))
		}
	}
	return keys
}

package rl

import (
	"fmt"
	"strings"
)

// KLKind is an estimator of KL(π‖π_ref) from a token that π sampled
// (Schulman, "Approximating KL divergence", 2020). With d = logProb -
// refLogProb:
//
//	k1    d                 unbiased, negative at times
//	k2    ½·d²              biased
//	k3    e^-d + d - 1      unbiased, never negative; d bounded to ±20 and the
//	                        value to ±10, as in verl
//	abs   |d|
//
// As a loss only k2 has the gradient of the KL in expectation: the gradient of k1 vanishes,
// and k3 has the gradient of KL(π_ref‖π).
type KLKind uint8

const (
	KLK1 KLKind = 1 + iota
	KLK2
	KLK3
	KLAbs
)

// maxK3 bounds the k3 estimate in both directions.
const maxK3 = 10

// KL is an estimator and its derivative. With StraightThrough (verl's "+" forms) it has the
// value of Kind and the gradient of k2.
type KL struct {
	Kind            KLKind
	StraightThrough bool
	// Weighted multiplies the estimate in KLLoss by π/π_old (DeepSeek-V3.2, arXiv:2512.02556 eq. 7; TRL's
	// use_bias_correction_kl). Its gradient then is the KL's own in expectation over π_old's tokens, by k1 and k3.
	Weighted bool
}

// ParseKL returns the named estimator: k1, k2, k3, abs, or verl's kl (k1), mse (k2),
// low_var_kl (k3), each optionally followed by + for its straight-through form.
func ParseKL(name string) (KL, error) {
	base, plus := strings.CutSuffix(name, "+")
	e := KL{StraightThrough: plus}
	switch base {
	case "k1", "kl":
		e.Kind = KLK1
	case "k2", "mse":
		e.Kind = KLK2
	case "k3", "low_var_kl":
		e.Kind = KLK3
	case "abs":
		e.Kind = KLAbs
	default:
		return KL{}, fmt.Errorf("unknown KL estimator %q", name)
	}
	return e, nil
}

// At returns the estimate for one token and its derivative with respect to logProb; the
// derivative with respect to refLogProb is its negative. Where a bound of k3 acts the
// derivative is 0.
func (e KL) At(logProb, refLogProb float64) (value, grad float64) {
	d := logProb - refLogProb
	switch e.Kind {
	case KLK1:
		value, grad = d, 1
	case KLK2:
		value, grad = float64(0.5*square(d)), d
	case KLK3:
		value, grad = k3(refLogProb, logProb)
	case KLAbs:
		value, grad = abs(d)
	default:
		panic("rl: unknown KL estimator")
	}
	if e.StraightThrough {
		grad = d
	}
	return value, grad
}

func k3(refLogProb, logProb float64) (value, grad float64) {
	d, inside := logRatio(refLogProb, logProb)
	ratio := exp(d)
	value = ratio - d - 1
	if bounded := clamp(value, -maxK3, maxK3); bounded < value || !inside {
		return bounded, 0
	}
	return value, 1 - ratio
}

func abs(d float64) (value, grad float64) {
	switch {
	case d > 0:
		return d, 1
	case d < 0:
		return -d, -1
	}
	return d, 0 // zero or NaN
}

// KLLoss adds scale·Σ coef·kl to an objective: the gradient scale·coef·dkl/dlogProb to
// dlogProb [N], and the unscaled Σ coef·kl, verl's metric actor/kl_loss, to sum. It reads
// LogProb, RefLogProb, Mask and Coef. As in verl, importance weights do not apply to it, unless e is Weighted: then
// kl is multiplied by exp(LogProb - OldLogProb), through which the gradient goes, too. A log-ratio beyond ±20 is
// bounded, and constant.
func KLLoss[T Float](dlogProb []T, b *Batch[T], e KL, scale float64, sum *float64) {
	sameLen(len(b.Mask), len(dlogProb), len(b.LogProb), len(b.RefLogProb), len(b.Coef))
	for t, on := range b.Mask {
		if !on {
			continue
		}
		value, grad := e.At(float64(b.LogProb[t]), float64(b.RefLogProb[t]))
		if e.Weighted {
			d, inside := logRatio(float64(b.LogProb[t]), float64(b.OldLogProb[t]))
			ratio := exp(d)
			grad = float64(ratio * grad)
			if value = float64(ratio * value); inside {
				grad += value
			}
		}
		dlogProb[t] += T(scale * b.Coef[t] * grad)
		*sum += float64(b.Coef[t] * value)
	}
}

// RewardKL sets reward[t] to score[t] - coef·kl[t] at unmasked tokens and to score[t]
// elsewhere, kl between the old and the reference policy. It returns the mean over rows of
// the rows' masked means of kl (verl's metric actor/reward_kl_penalty), which a controller
// follows; rows with nothing unmasked count as 0. All arrays are [N]; reward and score may
// be the same slice.
func RewardKL[T Float](reward, score, oldLogProb, refLogProb []T, mask []bool, rows Rows, e KL,
	coef float64) float64 {
	rows.check(len(mask))
	sameLen(len(mask), len(reward), len(score), len(oldLogProb), len(refLogProb))
	var mean float64
	for i := range rows.Len() {
		var sum, n float64
		for t := rows[i]; t < rows[i+1]; t++ {
			kl := 0.0
			if mask[t] {
				kl, _ = e.At(float64(oldLogProb[t]), float64(refLogProb[t]))
				n++
			}
			sum += kl
			reward[t] = T(float64(score[t]) - float64(coef*kl))
		}
		mean += sum / (n + meanEps)
	}
	return mean / float64(rows.Len())
}

// KLControl says how the coefficient of RewardKL moves from step to step
// (arXiv:1909.08593 §2.2). The zero value keeps it fixed.
type KLControl struct {
	Adaptive bool
	Target   float64 // target mean KL, nats per token; verl 0.1
	Horizon  float64 // rows over which the coefficient adapts; verl 10000
}

// Next returns the coefficient for the next step, given the mean KL current of this step
// over rows:
//
//	coef·(1 + clip(current/Target - 1, ±0.2)·rows/Horizon)
func (c KLControl) Next(coef, current float64, rows int) float64 {
	if !c.Adaptive {
		return coef
	}
	err := clamp(current/c.Target-1, -0.2, 0.2)
	return float64(coef * (1 + float64(err*float64(rows))/c.Horizon))
}

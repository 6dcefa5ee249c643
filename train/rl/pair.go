package rl

import (
	"fmt"
	"math"
	"slices"
)

// A pair is a preferred completion, chosen, and another one of the same prompt, rejected, from a file. Its loss is
// offline DPO or a relative. Online pairs, made from the completions of a group, are DPOPairs.

// PairLosses returns the names of the losses of pairs in files, in the order of the constants; most are TRL's.
func PairLosses() []string {
	return []string{"sigmoid", "ipo", "hinge", "orpo", "robust", "exo_pair", "nca_pair", "bco_pair", "sppo_hard",
		"apo_zero", "apo_down"}
}

// ParsePairLoss returns the loss with one of the names of PairLosses.
func ParsePairLoss(name string) (PairLoss, error) {
	i := slices.Index(PairLosses(), name)
	if i < 0 {
		return 0, fmt.Errorf("rl: unknown loss of pairs %q", name)
	}
	return Sigmoid + PairLoss(i), nil
}

// PairConfig holds the settings of the loss of pairs.
type PairConfig struct {
	Beta float64  // scale of a completion's log-ratio
	Loss PairLoss // of a pair
	// Smoothing is how probable it is that the wrong completion is preferred, for Sigmoid, Robust and EXO. EXO needs
	// one above 0.
	Smoothing float64
	// PerToken divides a completion's log-ratio by its tokens. OddsRatio needs it.
	PerToken bool
	// Target is subtracted from the margin, for Sigmoid: SimPO's gamma.
	Target float64
	// Imitate is the weight of the chosen completions' mean negative log-prob (RPO, arXiv:2404.19733 eq. 1; 1 in
	// ORPO, arXiv:2403.07691 eq. 6).
	Imitate float64
}

func (c PairConfig) check() {
	if !(c.Beta > 0) || c.Loss < Sigmoid || c.Loss > APODown || !(c.Smoothing >= 0 && c.Smoothing < 0.5) ||
		!(c.Imitate >= 0) || !(c.Target >= 0) {
		panic("rl: a pair needs a positive beta, a loss, a smoothing in [0, 0.5), and no negative target or weight")
	}
	if c.Loss == OddsRatio && !c.PerToken {
		panic("rl: odds are of log-probs per token")
	}
	if c.Loss == EXO && c.Smoothing == 0 {
		panic("rl: EXO needs a smoothing above 0")
	}
}

// Side is a completion of a pair.
type Side struct {
	LogProb float64 // of its learned tokens, summed
	Ref     float64 // the same under the reference; 0 without one
	Tokens  int     // learned ones
}

// Pair is what the loss finds out about a pair.
type Pair struct {
	Loss     float64 // without the part of Imitate
	Chosen   float64 // reward: Beta·(log π(y) - log π_ref(y)), per token with PerToken
	Rejected float64 // the same
	// Slopes are the derivatives of Loss by each log-prob of a learned token of chosen and of rejected.
	Slopes [2]float64
	// LogOdds is the log of the odds of chosen over the odds of rejected, of OddsRatio only.
	LogOdds float64
}

// Margin returns how much better the chosen completion is, in units of the rewards.
func (p Pair) Margin() float64 { return p.Chosen - p.Rejected }

// Pair returns the loss of a pair. With D = log π(y) - log π_ref(y), summed over learned tokens, or with PerToken
// their mean, the rewards a = Beta·D of chosen and b = Beta·D of rejected, the margin m = a - b and s = Smoothing,
// it is
//
//	-(1-s)·log σ(m-t) - s·log σ(t-m)    Sigmoid: DPO, arXiv:2305.18290 eq. 7; with s cDPO; t = Target: SimPO,
//	                                    arXiv:2405.14734 eq. 6, with PerToken and no reference
//	(m/Beta - 1/(2·Beta))²              IPO: arXiv:2310.12036 eq. 17
//	max(0, 1-m)                         Hinge: SLiC, arXiv:2305.10425 eq. 7, on log-ratios as in arXiv:2309.06657
//	-Beta·log σ(odds)                   OddsRatio: ORPO, arXiv:2403.07691 eq. 7; see logOdds
//	(s·log σ(-m) - (1-s)·log σ(m)) / (1-2s)
//	                                    Robust: rDPO, arXiv:2403.00409
//	KL((σ(m), σ(-m)) ‖ (1-s, s))        EXO: arXiv:2402.00856 eq. 16
//	-log σ(a) - ½·log σ(-a) - ½·log σ(-b)
//	                                    NCA: arXiv:2402.05369, of two completions
//	-log σ(a) - log σ(-b)               BCO: arXiv:2404.04656, without its reward shift, as in TRL 1
//	((a-½)² + (b+½)²) / Beta²           SPPOHard: arXiv:2405.00675 eq. 4.7, with probabilities 1 and 0
//	1 - σ(a) + σ(b)                     APOZeroPair: arXiv:2408.06266 eq. 7
//	σ(a) + 1 - σ(m)                     APODown: arXiv:2408.06266 eq. 8
//
// It panics if a side has no tokens.
func (c PairConfig) Pair(chosen, rejected Side) Pair {
	c.check()
	up, down := 1.0, 1.0
	if chosen.Tokens < 1 || rejected.Tokens < 1 {
		panic("rl: a side of a pair has no tokens")
	}
	if c.PerToken {
		up, down = 1/float64(chosen.Tokens), 1/float64(rejected.Tokens)
	}
	p := Pair{Chosen: float64(c.Beta * float64((chosen.LogProb-chosen.Ref)*up)),
		Rejected: float64(c.Beta * float64((rejected.LogProb-rejected.Ref)*down))}
	if c.Loss == OddsRatio {
		return c.oddsRatio(p, chosen, rejected)
	}
	var slopes [2]float64
	p.Loss, slopes = c.loss(p.Chosen, p.Rejected)
	p.Slopes = [2]float64{float64(float64(slopes[0]*c.Beta) * up), float64(float64(slopes[1]*c.Beta) * down)}
	return p
}

// loss returns the loss of a pair with rewards a and b, and its derivatives by them.
func (c PairConfig) loss(a, b float64) (loss float64, slopes [2]float64) {
	right, wrong := 1-c.Smoothing, c.Smoothing
	byMargin := func(loss, slope float64) (float64, [2]float64) { return loss, [2]float64{slope, -slope} }
	m := a - b
	switch c.Loss {
	case Robust:
		scale := 1 - float64(2*c.Smoothing)
		return byMargin((float64(right*softplus(-m))-float64(wrong*softplus(m)))/scale,
			(-float64(right*sigmoid(-m))-float64(wrong*sigmoid(m)))/scale)
	case EXO:
		up, down := sigmoid(m), sigmoid(-m)
		gain, lost := -softplus(-m)-log(right), -softplus(m)-log(wrong)
		return byMargin(float64(up*gain)+float64(down*lost), float64(float64(up*down)*(gain-lost)))
	case NCA:
		return softplus(-a) + float64(0.5*(softplus(a)+softplus(b))),
			[2]float64{float64(0.5*sigmoid(a)) - sigmoid(-a), float64(0.5 * sigmoid(b))}
	case BCO:
		return softplus(-a) + softplus(b), [2]float64{-sigmoid(-a), sigmoid(b)}
	case SPPOHard:
		beta2 := square(c.Beta)
		return (square(a-0.5) + square(b+0.5)) / beta2, [2]float64{2 * (a - 0.5) / beta2, 2 * (b + 0.5) / beta2}
	case APOZeroPair:
		return sigmoid(-a) + sigmoid(b), [2]float64{-bell(a), bell(b)}
	case APODown:
		return sigmoid(a) + sigmoid(-m), [2]float64{bell(a) - bell(m), bell(m)}
	}
	d := DPOConfig{Beta: c.Beta, Loss: c.Loss, Smoothing: c.Smoothing}
	return byMargin(d.pair(m - c.Target))
}

// bell returns the derivative of σ.
func bell(x float64) float64 { return float64(sigmoid(x) * sigmoid(-x)) }

// oddsRatio completes p by the loss of ORPO.
func (c PairConfig) oddsRatio(p Pair, chosen, rejected Side) Pair {
	up, dUp := logOdds(chosen.LogProb / float64(chosen.Tokens))
	down, dDown := logOdds(rejected.LogProb / float64(rejected.Tokens))
	p.LogOdds = up - down
	p.Loss = float64(c.Beta * softplus(-p.LogOdds))
	slope := -float64(c.Beta * sigmoid(-p.LogOdds))
	p.Slopes[0] = float64(slope*dUp) / float64(chosen.Tokens)
	p.Slopes[1] = -float64(slope*dDown) / float64(rejected.Tokens)
	return p
}

// surest bounds a mean log-prob from above before its odds are taken: a completion with probability 1 has infinite
// odds. The mean probability of a token is 1 - 1e-6 there.
const surest = -1e-6

// logOdds returns log(p/(1-p)) for p = e^logProb, and its derivative by logProb, 1/(1-p). Above surest it is flat.
// logProb is a mean per token, as in arXiv:2403.07691 eq. 3 and 4, and at most 0.
func logOdds(logProb float64) (x, slope float64) {
	logProb, inside := bound(logProb, math.Inf(-1), surest)
	rest := 1 - exp(logProb)
	if inside {
		slope = 1 / rest
	}
	return logProb - log(rest), slope
}

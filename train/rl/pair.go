package rl

import (
	"fmt"
	"math"
)

// A pair is a preferred completion, chosen, and another one of the same prompt, rejected, from a file. Its loss is
// offline DPO or a relative. Online pairs, made from the completions of a group, are DPOPairs.

// ParsePairLoss returns the loss with a name: "sigmoid", "ipo", "hinge" or "orpo".
func ParsePairLoss(name string) (PairLoss, error) {
	for i, known := range []string{"sigmoid", "ipo", "hinge", "orpo"} {
		if name == known {
			return Sigmoid + PairLoss(i), nil
		}
	}
	return 0, fmt.Errorf("rl: unknown loss of pairs %q", name)
}

// PairConfig holds the settings of the loss of pairs.
type PairConfig struct {
	Beta float64  // scale of a completion's log-ratio
	Loss PairLoss // of a pair
	// Smoothing is how probable it is that the wrong completion is preferred, for Sigmoid.
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
	if !(c.Beta > 0) || c.Loss < Sigmoid || c.Loss > OddsRatio || !(c.Smoothing >= 0 && c.Smoothing < 0.5) ||
		!(c.Imitate >= 0) || !(c.Target >= 0) {
		panic("rl: a pair needs a positive beta, a loss, a smoothing in [0, 0.5), and no negative target or weight")
	}
	if c.Loss == OddsRatio && !c.PerToken {
		panic("rl: odds are of log-probs per token")
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
// their mean, and the margin m = Beta·(D of chosen - D of rejected), it is
//
//	-(1-s)·log σ(m-t) - s·log σ(t-m)    Sigmoid: DPO, arXiv:2305.18290 eq. 7; s = Smoothing: cDPO; t = Target:
//	                                    SimPO, arXiv:2405.14734 eq. 6, with PerToken and no reference
//	(m/Beta - 1/(2·Beta))²              IPO: arXiv:2310.12036 eq. 17
//	max(0, 1-m)                         Hinge: SLiC, arXiv:2305.10425 eq. 7, on log-ratios as in arXiv:2309.06657
//	-Beta·log σ(odds)                   OddsRatio: ORPO, arXiv:2403.07691 eq. 7; see logOdds
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
	d := DPOConfig{Beta: c.Beta, Loss: c.Loss, Smoothing: c.Smoothing}
	var slope float64
	p.Loss, slope = d.pair(p.Margin() - c.Target)
	slope = float64(slope * c.Beta)
	p.Slopes = [2]float64{float64(slope * up), -float64(slope * down)}
	return p
}

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

// surest bounds a mean log-prob from above before its odds are taken: those of a completion with probability 1 are
// infinite. The mean probability of a token is 1 - 1e-6 there.
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

package rl

import "math"

// PrimeConfig holds the settings of PRIME, process reinforcement through implicit rewards (arXiv:2502.01456); those of
// verl's recipe prime are in brackets.
type PrimeConfig struct {
	Beta float64 // scale of the log-ratio [0.05]
	// Whole gives a completion one reward, the sum of its tokens' [false].
	Whole bool
	// Normalize divides a step's rewards by the greatest sum that is left from a token on [true].
	Normalize        bool
	Outcome, Process float64 // weights of the two kinds of reward [5, 5]
	Loss             PrimeLossKind
}

// normEps keeps the division of PrimeConfig.Normalize from one by 0, as in verl.
const normEps = 1e-6

// ImplicitRewards sets dst [N] to the rewards of an implicit process reward model, a language model with log-probs
// logProb [N], over its reference (arXiv:2412.01981):
//
//	dst[t] = Beta·(logProb[t] - refLogProb[t])
//
// A row's last unmasked token has 0, as in verl's recipe: the verdict is the reward of that token. With Whole this
// token has the sum over all of the row, and the others 0. Masked-out tokens have 0 and no part in anything.
//
// With Normalize, dst is divided by max |Σ_{s≥t} dst[s]| + 1e-6 over the tokens t of all rows, the sums each within a
// row: no return then exceeds 1.
func ImplicitRewards[T Float](dst, logProb, refLogProb []T, mask []bool, rows Rows, c PrimeConfig) {
	rows.check(len(mask))
	sameLen(len(mask), len(dst), len(logProb), len(refLogProb))
	most := 0.0
	for i := range rows.Len() {
		lo, hi := rows[i], rows[i+1]
		clear(dst[lo:hi])
		last := -1
		var all float64 // of the row's tokens
		for t := lo; t < hi; t++ {
			if !mask[t] {
				continue
			}
			r := float64(c.Beta * (float64(logProb[t]) - float64(refLogProb[t])))
			all += r
			last = t
			if !c.Whole {
				dst[t] = T(r)
			}
		}
		if last < 0 {
			continue
		}
		dst[last] = 0
		if c.Whole {
			dst[last] = T(all)
		}
		var left float64
		for t := hi - 1; t >= lo; t-- {
			left += float64(dst[t])
			most = max(most, math.Abs(left))
		}
	}
	if !c.Normalize {
		return
	}
	for t := range dst {
		dst[t] = T(float64(dst[t]) / (most + normEps))
	}
}

// PrimeAdvantage sets ret [N] to the returns of outcome and process rewards, each over the other completions of the
// problem, and adv [N] to the same whitened over the step; both are 0 at masked-out tokens:
//
//	ret[t] = Outcome·(score - mean score of the others) + Process·Σ_{s≥t} (r[s]·n/(n-1) - Σ_j mean r_j/(n-1))
//
// r is process [N], from ImplicitRewards, mean r_j is row j's mean over its unmasked tokens, and j runs over the n
// rows of the group with such tokens, row i included. So a row takes part in its own baseline as if each of its tokens
// were its mean, as in verl's recipe; in the paper the baseline is the mean of the others alone, and r has no factor
// (arXiv:2502.01456 alg. 1). With Whole the second part is Process·(R - mean R of the others), R the row's one reward.
//
// score and group are [B]. A row alone in its group has no baseline. It returns ErrTooFew if fewer than two tokens are
// unmasked.
func PrimeAdvantage[T Float](adv, ret, score, process []T, group []int, mask []bool, rows Rows, c PrimeConfig) error {
	rows.check(len(mask))
	sameLen(len(mask), len(adv), len(ret), len(process))
	sameLen(rows.Len(), len(score), len(group))
	outcome := make([]float64, len(score))
	for i, s := range score {
		outcome[i] = float64(s)
	}
	RLOO(outcome, outcome, group, false)
	for _, members := range groupMembers(group) {
		var n, sum float64 // rows with unmasked tokens, and of their means, or of their rewards
		for _, i := range members {
			all, tokens := sumCount(process[rows[i]:rows[i+1]], mask[rows[i]:rows[i+1]])
			switch {
			case tokens == 0:
				continue
			case c.Whole:
				sum += all
			default:
				sum += all / tokens
			}
			n++
		}
		factor, base := 1.0, 0.0
		if n > 1 {
			factor, base = n/(n-1), sum/(n-1)
		}
		for _, i := range members {
			lo, hi := rows[i], rows[i+1]
			primeReturns(ret[lo:hi], process[lo:hi], mask[lo:hi], outcome[i], factor, base, c)
		}
	}
	copy(adv, ret)
	return whitenMasked(adv, mask)
}

// primeReturns sets the returns of one row.
func primeReturns[T Float](ret, process []T, mask []bool, outcome, factor, base float64, c PrimeConfig) {
	given := float64(c.Outcome * outcome)
	var left, whole float64
	if c.Whole {
		whole, _ = sumCount(process, mask)
		whole = float64(whole*factor) - base
	}
	for t := len(ret) - 1; t >= 0; t-- {
		ret[t] = 0
		if !mask[t] {
			continue
		}
		if left += float64(float64(process[t])*factor) - base; c.Whole {
			left = whole
		}
		ret[t] = T(given + float64(c.Process*left))
	}
}

// The settings of PRIME.
var (
	primeBeta = Setting{Key: "prime.beta", Default: 0.05, Range: "(0, inf)", Verl: []string{"beta_train"},
		Help: "scale of the process reward: beta * (logprob of the reward model - reference logprob) of a token"}
	primeGranularity = Setting{Key: "prime.granularity", Default: "token", Words: []string{"token", "whole"},
		Verl: []string{"prime_granularity"},
		Help: "a reward for each token but the last, or their sum as one reward of the completion"}
	primeNorm = Setting{Key: "prime.norm", Default: "batch", Words: []string{"batch", "none"},
		Verl: []string{"prime_norm"},
		Help: "batch divides a step's process rewards by the greatest sum of them that is left from a token on"}
	primeOutcome = Setting{Key: "prime.outcome_coef", Default: 5.0, Range: "[0, inf)",
		Verl: []string{"reward_gt_coef"},
		Help: "weight of the task's reward, less the mean of the problem's other completions; returns are whitened, " +
			"so only its ratio to process_coef counts"}
	primeProcess = Setting{Key: "prime.process_coef", Default: 5.0, Range: "[0, inf)",
		Verl: []string{"reward_dpo_coef"},
		Help: "weight of the process rewards, of which each token has the sum from it on"}
	primeLoss = Setting{Key: "prime.loss", Default: "ce", Words: primeLossWords,
		Help: "loss of the reward model: cross entropy of the verdict; dpo compares with the mean of the problem's " +
			"completions of the other verdict; bon_* weigh that towards the best of n by verdict or by reward"}
	// PrimeUpdate says when the process reward model learns from a step.
	PrimeUpdate = Setting{Key: "prime.update", Default: "before", Words: []string{"before", "after"},
		Help: "whether the reward model learns from a step's verdicts before or after it rewards its completions"}
)

// PrimeOf returns the settings of PRIME.
func PrimeOf(c Settings) PrimeConfig {
	return PrimeConfig{Beta: c.Float(primeBeta), Whole: c.Word(primeGranularity) == "whole",
		Normalize: c.Word(primeNorm) == "batch", Outcome: c.Float(primeOutcome), Process: c.Float(primeProcess),
		Loss: PrimeLossKind(c.place(primeLoss, primeLossWords))}
}

// primeEstimator is the estimator "prime".
func primeEstimator() Estimator {
	return Estimator{Name: "prime", Groups: true, Process: true,
		Settings: []Setting{primeBeta, primeLoss, PrimeUpdate, primeGranularity, primeNorm, primeOutcome,
			primeProcess},
		Estimate: func(s *Graded, c Settings) error {
			return PrimeAdvantage(s.Adv, s.Ret, s.Score, s.Process, s.Group, s.Mask, s.Rows, PrimeOf(c))
		}}
}

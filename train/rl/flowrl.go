package rl

import "math"

// Level says how a FlowRL importance weight reduces a row's log-ratios.
type Level uint8

const (
	WeightSum  Level = 1 + iota // their sum: the ratio of the rows' probabilities
	WeightMean                  // their mean: its geometric mean per token
)

// Reference says which policy's mean log-prob FlowRL's residual subtracts.
type Reference uint8

const (
	ReferencePolicy Reference = 1 + iota // the frozen start
	OldPolicy                            // the policy before the first update; needs no reference model
	NoReference                          // none: its log-prob counts as 0
)

// TokenMask says which unmasked tokens FlowRL drops.
type TokenMask uint8

const (
	KeepAll TokenMask = 1 + iota
	// DropCISPO drops tokens that have already moved too far in the direction of their
	// advantage: ratio above 1.28 with A > 0, below 0.8 with A < 0.
	DropCISPO
)

// The bounds of DropCISPO, 1-0.2 and 1+0.28, from its only public code.
const (
	cispoLow  = 0.8
	cispoHigh = 1.28
)

// Terms is the extent of one term of FlowRL's loss.
type Terms uint8

const (
	RowTerms   Terms = iota // a row, by the means of its tokens
	TokenTerms              // a single token, weighted by Coef
)

// MeanClip says whether a term's log-prob is bounded to [old + ln(1-Clip.Low), old +
// ln(1+Clip.High)] before it enters the residual. Where the bound acts the residual does
// not depend on the log-prob.
type MeanClip uint8

const (
	NoMeanClip   MeanClip = iota
	ClipMean              // on both sides
	ClipMeanGSPO          // above if R > 0, below if R < 0: where GSPO clips its surrogate
)

// maxLogWeight bounds a log-ratio before exp, above only: e^80 times any residual is still
// finite in float32. With a finite WeightHigh the bound never acts. A single token's
// log-ratio is bounded to ±maxLogRatio, as everywhere.
const maxLogWeight = 80

// FlowRLConfig holds the settings of the residual; verl's recipe is in brackets. Set those
// before the blank line; the zero value of the others is the recipe's. FlowRLVariants has
// the published combinations.
type FlowRLConfig struct {
	Beta        float64   // scale of the reward [15]
	UseLogZ     bool      // false: log Z is 0 [true]
	GroupLogZ   bool      // log Z is an estimate from the group, without a head; see FlowRLMeans
	WeightLevel Level     // [WeightSum]
	WeightLow   float64   // bounds of the weight [0]
	WeightHigh  float64   // [10]; math.Inf(1) means no bound
	Reference   Reference // [ReferencePolicy]
	TokenMask   TokenMask // [KeepAll]

	Terms     Terms
	MeanClip  MeanClip
	Surrogate bool // add PPO's clipped surrogate with the residual as advantage
	// RatioFractions adds four statistics of the first release, for the ratio to the
	// reference policy (with Surrogate, to the old one): fractions of tokens with A > 0 and
	// A < 0 whose ratio is above 1+Clip.High or below 1-Clip.Low.
	RatioFractions bool
	// CountPadding includes masked-out tokens, as the first release does; its fractions
	// then depend on the padding.
	CountPadding bool
	Clip         Clip // of MeanClip, Surrogate and RatioFractions; Dual is unused
}

func (c FlowRLConfig) check() {
	switch {
	case c.WeightLevel != WeightSum && c.WeightLevel != WeightMean:
		panic("rl: unknown FlowRL weight level")
	case c.Reference < ReferencePolicy || c.Reference > NoReference:
		panic("rl: unknown FlowRL reference")
	case c.TokenMask != KeepAll && c.TokenMask != DropCISPO:
		panic("rl: unknown FlowRL token mask")
	case !(c.WeightHigh > 0 && c.WeightHigh >= c.WeightLow):
		panic("rl: FlowRL weight bounds out of order")
	case c.GroupLogZ && (!c.UseLogZ || c.Terms == TokenTerms):
		panic("rl: FlowRL estimates log Z by groups for rows alone")
	case c.Terms > TokenTerms:
		panic("rl: unknown FlowRL terms")
	case c.MeanClip > ClipMeanGSPO:
		panic("rl: unknown FlowRL mean clip")
	case (c.MeanClip != NoMeanClip || c.Surrogate || c.RatioFractions) &&
		!(c.Clip.Low >= 0 && c.Clip.Low < 1 && c.Clip.High >= 0):
		panic("rl: FlowRL clip out of range")
	}
}

// head reports whether a head learns log Z.
func (c FlowRLConfig) head() bool { return c.UseLogZ && !c.GroupLogZ }

// needsRef reports whether RefLogProb must be set.
func (c FlowRLConfig) needsRef() bool {
	return c.Reference == ReferencePolicy || c.RatioFractions && !c.Surrogate
}

// FlowRL adds the trajectory-balance loss of FlowRL (arXiv:2509.15207v3, its final
// objective; exactly as in verl-recipe:flowrl under the recipe's settings) to s, and its
// gradients to dlogProb [N] and dlogZ [B]. With mean the MaskedMean over the row's tokens,
// per row i:
//
//	delta = logZ + mean(logProb) - Beta·mean(Adv) - mean(refLogProb)
//	w     = clip(exp(level(logProb - oldLogProb)), WeightLow, WeightHigh) · v
//	loss  = Σ_i w·delta² / rows
//
// v is the mean Weight of the row's tokens: weights of rollout correction, 1 if the batch
// has none. w is constant to the gradient: dloss/dlogZ = 2·w·delta/rows, and
// dloss/dlogProb[t] is that over n+1e-8. rows is the number of rows of the mini-batch, so
// micro-batches change nothing (verl's recipe averages over a micro-batch and rescales). A
// row with nothing unmasked has delta = logZ and w = 1, and counts, as in verl.
//
// With TokenTerms, delta and w belong to one token, its log-ratio bounded to ±20, and the
// loss is Σ_t Coef·Weight·w·delta²: the policy loss flowrl_token_level of the async branch.
//
// Surrogate adds PPO's clipped loss of the term's tokens with delta, held constant, as the
// advantage A and no dual clip:
//
//	Σ_t Coef·Weight·max(-A·r, -A·clip(r, 1-Clip.Low, 1+Clip.High)),  r = exp(logProb - oldLogProb)
//
// The reward is the advantage: row-constant group advantages in the recipe (GroupAdvantage,
// Spread), whose mean is R·n/(n+1e-8). A group of equal rewards has R = 0, which still
// gives a gradient here. For the raw reward, or advantages without std, the caller sets Adv
// accordingly. On-policy (one mini-batch, one epoch) verl sets oldLogProb to logProb, so w
// = 1; the caller may do the same.
//
// logZ is [B]; logZ and dlogZ are not read if UseLogZ is false, nor dlogZ with GroupLogZ. RefLogProb is not read with
// another Reference, except for statistics if it is not nil (in every micro-batch or in
// none). Coef is read with TokenTerms and Surrogate only.
func FlowRL[T Float](dlogProb, dlogZ []T, b *Batch[T], logZ []T, rows int, c FlowRLConfig, s *FlowRLStats) {
	c.check()
	b.check(dlogProb)
	if c.UseLogZ {
		sameLen(b.Rows.Len(), len(logZ))
	}
	if c.head() {
		sameLen(b.Rows.Len(), len(dlogZ))
	}
	if c.needsRef() || b.RefLogProb != nil {
		sameLen(len(b.Mask), len(b.RefLogProb))
	}
	if c.Terms == TokenTerms || c.Surrogate {
		sameLen(len(b.Mask), len(b.Coef))
	}
	if b.Rows.Len() > rows {
		panic("rl: a micro-batch larger than its mini-batch")
	}
	s.config, s.hasRef, s.hasWeight = c, s.hasRef || b.RefLogProb != nil, s.hasWeight || b.Weight != nil
	f := flow[T]{dlogProb, b, c, s}
	for i := range b.Rows.Len() {
		var z float64
		if c.UseLogZ {
			z = float64(logZ[i])
		}
		s.rows++
		s.logZ += z
		dz := f.row(b.Rows[i], b.Rows[i+1], z, float64(rows))
		if c.head() {
			dlogZ[i] += T(dz)
		}
	}
}

// FlowRLMeans returns, for each row of a whole mini-batch, log Z as its group of
// completions shows it: the mean over the group of
//
//	Beta·mean(Adv) + mean(refLogProb) - mean(logProb)
//
// where the group's residuals add up to 0. It is constant to the gradient. So trains VarGrad
// (arXiv:2010.10436), trajectory balance without a head. group [B] numbers the groups; rows with nothing
// unmasked do not count.
func FlowRLMeans[T Float](b *Batch[T], group []int, c FlowRLConfig) []GroupMean {
	c.check()
	sameLen(b.Rows.Len(), len(group))
	f := flow[T]{b: b, c: c, s: new(FlowRLStats)}
	return groupMeans(group, func(i int) (float64, bool) {
		sum := f.sum(b.Rows[i], b.Rows[i+1])
		delta, _, _ := c.residual(sum, sum.n+meanEps, 0)
		return -delta, sum.n > 0
	})
}

// flow is the state of one call of FlowRL.
type flow[T Float] struct {
	dlogProb []T
	b        *Batch[T]
	c        FlowRLConfig
	s        *FlowRLStats
}

// row adds the terms of the row [lo,hi) and returns their derivative by log Z.
func (f flow[T]) row(lo, hi int, logZ, rows float64) (dlogZ float64) {
	if f.c.RatioFractions {
		countRatios(f.s, f.b, lo, hi)
	}
	if f.c.Terms == RowTerms {
		sum := f.sum(lo, hi)
		return f.term(sum, sum.n+meanEps, logZ, 1, rows)
	}
	for t := lo; t < hi; t++ {
		if sum := f.sum(t, t+1); sum.n > 0 {
			dlogZ += f.term(sum, 1, logZ, float64(f.b.Coef[t]*f.b.weight(t)), 1)
		}
	}
	return dlogZ
}

// flowSum holds sums over the n kept tokens of a term, which lie in [lo,hi).
type flowSum struct {
	lo, hi                               int
	n, logProb, old, ref, adv, d, weight float64
}

func (f flow[T]) sum(lo, hi int) flowSum {
	b, sum := f.b, flowSum{lo: lo, hi: hi}
	for t := lo; t < hi; t++ {
		if !b.Mask[t] {
			continue
		}
		d, a := b.move(t)
		v := f.c.TokenMask.verdict(d, a)
		addToken(f.s, b, t, v)
		if v != kept {
			continue
		}
		sum.n++
		sum.logProb += float64(b.LogProb[t])
		sum.old += float64(b.OldLogProb[t])
		sum.adv += a
		sum.d += d
		sum.weight += b.weight(t)
		switch f.c.Reference {
		case ReferencePolicy:
			sum.ref += float64(b.RefLogProb[t])
		case OldPolicy:
			sum.ref += float64(b.OldLogProb[t])
		}
	}
	return sum
}

// term adds coef·w·delta²/rows and its gradient; means are sums divided by den. It returns
// the derivative by log Z.
func (f flow[T]) term(sum flowSum, den, logZ, coef, rows float64) (dlogZ float64) {
	c := f.c
	logProb, adv := sum.logProb/den, sum.adv/den
	delta, bounded, clip := c.residual(sum, den, logZ)
	raw, rollout := c.rawWeight(sum, den), 1.0
	if sum.n > 0 {
		rollout = sum.weight / sum.n
	}
	weight := clamp(raw, c.WeightLow, c.WeightHigh)
	if c.Terms == RowTerms { // in coef otherwise
		weight = float64(weight * rollout)
	}
	loss := float64(coef*float64(weight*square(delta))) / rows
	f.s.Loss += loss
	f.s.addTerm(flowTerm{loss: loss, delta: delta, raw: raw, weight: weight, rollout: rollout, clip: clip,
		logProb: logProb, bounded: bounded, old: sum.old / den, ref: sum.ref / den, reward: adv})

	dlogZ = float64(coef*float64(2*weight*delta)) / rows
	each := dlogZ / den
	if clip != kept {
		each = 0
	}
	for t := sum.lo; t < sum.hi; t++ {
		if d, a := f.b.move(t); f.b.Mask[t] && c.TokenMask.verdict(d, a) == kept {
			grad := each
			if c.Surrogate {
				grad += f.surrogate(t, d, delta)
			}
			f.dlogProb[t] += T(grad)
		}
	}
	return dlogZ
}

// residual returns delta of a term, whose means are sums divided by den, and its log-prob as clipMean bounds it.
func (c FlowRLConfig) residual(sum flowSum, den, logZ float64) (delta, bounded float64, clip verdict) {
	adv := sum.adv / den
	bounded, clip = c.clipMean(sum.logProb/den, sum.old/den, adv)
	return logZ + bounded - float64(c.Beta*adv) - sum.ref/den, bounded, clip
}

// clipMean returns a term's log-prob as it enters the residual, and which bound acted.
func (c FlowRLConfig) clipMean(logProb, old, adv float64) (float64, verdict) {
	if c.MeanClip == NoMeanClip {
		return logProb, kept
	}
	low, high := old+log(1-c.Clip.Low), old+log(1+c.Clip.High)
	both := c.MeanClip == ClipMean
	switch {
	case logProb > high && (both || adv > 0):
		return high, tooHigh
	case logProb < low && (both || adv < 0):
		return low, tooLow
	}
	return logProb, kept
}

// rawWeight returns the importance weight of a term before its bounds.
func (c FlowRLConfig) rawWeight(sum flowSum, den float64) float64 {
	d := sum.d
	if c.WeightLevel == WeightMean {
		d /= den
	}
	if c.Terms == TokenTerms {
		return exp(clamp(d, -maxLogRatio, maxLogRatio))
	}
	return exp(min(d, maxLogWeight))
}

// surrogate adds the clipped loss of token t, whose log-ratio is d, with the residual delta
// as advantage, and returns its gradient.
func (f flow[T]) surrogate(t int, d, delta float64) (grad float64) {
	clip := Clip{Low: f.c.Clip.Low, High: f.c.Clip.High, Dual: math.Inf(1)}
	loss, grad, _, _ := clip.token(min(d, maxLogWeight), delta)
	if d > maxLogWeight {
		grad = 0
	}
	coef := float64(f.b.Coef[t] * f.b.weight(t))
	loss = float64(coef * loss)
	f.s.Loss += loss
	f.s.surrogate += loss
	return float64(coef * grad)
}

// move returns the log-ratio and the advantage of token t.
func (b *Batch[T]) move(t int) (d, adv float64) {
	return float64(b.LogProb[t]) - float64(b.OldLogProb[t]), float64(b.Adv[t])
}

// verdict is the decision of a TokenMask on a token.
type verdict uint8

const (
	kept verdict = iota
	tooHigh
	tooLow
)

func (m TokenMask) verdict(logRatio, adv float64) verdict {
	if m == KeepAll {
		return kept
	}
	switch ratio := exp(logRatio); {
	case adv > 0 && ratio > cispoHigh:
		return tooHigh
	case adv < 0 && ratio < cispoLow:
		return tooLow
	}
	return kept
}

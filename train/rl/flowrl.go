package rl

// Level says what a FlowRL importance weight takes of a row's log-ratios.
type Level uint8

const (
	WeightSum  Level = 1 + iota // their sum: the ratio of the rows' probabilities
	WeightMean                  // their mean: its geometric mean per token
)

// Reference says which policy's mean log-prob FlowRL's residual subtracts.
type Reference uint8

const (
	ReferencePolicy Reference = 1 + iota // the frozen start
	OldPolicy                            // the one before the first update: no reference model
)

// TokenMask says which unmasked tokens FlowRL drops.
type TokenMask uint8

const (
	KeepAll TokenMask = 1 + iota
	// DropCISPO drops tokens that moved too far already in the direction of
	// their advantage: ratio above 1.28 with A > 0, below 0.8 with A < 0.
	DropCISPO
)

// The bounds of DropCISPO, 1-0.2 and 1+0.28: those of its only public code.
const (
	cispoLow  = 0.8
	cispoHigh = 1.28
)

// maxLogWeight bounds the log of a row's weight before exp, above only: e^80
// times any residual is still finite in float32. Where WeightHigh is finite the
// bound never shows.
const maxLogWeight = 80

// FlowRLConfig are the settings of the one residual; verl's recipe in brackets.
// All fields are wanted: the zero value is invalid.
type FlowRLConfig struct {
	Beta        float64   // scale of the reward [15]
	UseLogZ     bool      // false: log Z is 0 and its head absent [true]
	WeightLevel Level     // [WeightSum]
	WeightLow   float64   // bounds of the weight [0]
	WeightHigh  float64   // [10]; math.Inf(1) is none
	Reference   Reference // [ReferencePolicy]
	TokenMask   TokenMask // [KeepAll]
}

func (c FlowRLConfig) check() {
	switch {
	case c.WeightLevel != WeightSum && c.WeightLevel != WeightMean:
		panic("rl: unknown FlowRL weight level")
	case c.Reference != ReferencePolicy && c.Reference != OldPolicy:
		panic("rl: unknown FlowRL reference")
	case c.TokenMask != KeepAll && c.TokenMask != DropCISPO:
		panic("rl: unknown FlowRL token mask")
	case !(c.WeightHigh > 0 && c.WeightHigh >= c.WeightLow):
		panic("rl: FlowRL weight bounds out of order")
	}
}

// FlowRL adds the trajectory-balance loss of FlowRL (arXiv:2509.15207v3, its
// final objective; exactly as in verl-recipe:flowrl under the recipe's settings)
// to s, and its gradients to dlogProb [N] and dlogZ [B]. With mean the MaskedMean
// over the row's tokens, per row i:
//
//	delta = logZ + mean(logProb) - Beta·mean(Adv) - mean(refLogProb)
//	w     = clip(exp(level(logProb - oldLogProb)), WeightLow, WeightHigh)
//	loss  = Σ_i w·delta² / rows
//
// w is a constant to the gradient: dloss/dlogZ = 2·w·delta/rows, and
// dloss/dlogProb[t] is that over n+1e-8. rows is the number of rows of the
// mini-batch, so micro-batches change nothing (verl's recipe averages over a
// micro-batch and rescales). A row with nothing unmasked has delta = logZ and
// w = 1, and counts, as in verl.
//
// The reward is the advantage: row-constant group advantages in the recipe
// (GroupAdvantage, Spread), whose mean is R·n/(n+1e-8); a group of equal rewards
// has R = 0, which is no zero gradient here. The raw reward, or advantages
// without std, are what the caller puts in Adv. On-policy (one mini-batch, one
// epoch) verl sets oldLogProb to logProb, so that w = 1; that is the caller's
// choice too.
//
// Settings of published variants, WeightLow and WeightHigh in brackets:
//
//	recipe                            [0,10]
//	paper                             [1-ε,1+ε], ε = 0.2
//	first release, vanilla            [0,∞]
//	flowrl_clip                       [0.8,1.28]
//	flowrl_cispo                      [0.8,1.28], DropCISPO
//	orignal_tb (sic) of the release   [1,1], Beta 1
//	no_log_z, old_policy, both        UseLogZ false, OldPolicy, both
//
// logZ is [B]; logZ and dlogZ are not read if UseLogZ is false, nor RefLogProb
// with OldPolicy, but for statistics where it is not nil (in every micro-batch
// or in none). Coef and Weight of the batch are ignored.
func FlowRL[T Float](dlogProb, dlogZ []T, b *Batch[T], logZ []T, rows int, c FlowRLConfig, s *FlowRLStats) {
	c.check()
	b.check(dlogProb)
	if c.UseLogZ {
		sameLen(b.Rows.Len(), len(dlogZ), len(logZ))
	}
	if c.Reference == ReferencePolicy || b.RefLogProb != nil {
		sameLen(len(b.Mask), len(b.RefLogProb))
	}
	if b.Rows.Len() > rows {
		panic("rl: a micro-batch larger than its mini-batch")
	}
	s.config, s.hasRef = c, s.hasRef || b.RefLogProb != nil
	for i := range b.Rows.Len() {
		lo, hi := b.Rows[i], b.Rows[i+1]
		var z float64
		if c.UseLogZ {
			z = float64(logZ[i])
		}
		delta, raw, n := residual(b, lo, hi, z, c, s)
		weight := clamp(raw, c.WeightLow, c.WeightHigh)
		s.Loss += float64(weight*square(delta)) / float64(rows)
		s.addRow(z, delta, raw, weight)

		ddelta := float64(2*weight*delta) / float64(rows)
		if c.UseLogZ {
			dlogZ[i] += T(ddelta)
		}
		grad := T(ddelta / (n + meanEps))
		for t := lo; t < hi; t++ {
			if b.Mask[t] && c.TokenMask.verdict(b.move(t)) == kept {
				dlogProb[t] += grad
			}
		}
	}
}

// residual returns delta, the weight before its bounds, and the number of kept
// tokens of the row [lo,hi), and adds its tokens to s.
func residual[T Float](b *Batch[T], lo, hi int, logZ float64, c FlowRLConfig, s *FlowRLStats) (delta, weight, n float64) {
	var logProb, ref, adv, logWeight float64 // sums over kept tokens
	for t := lo; t < hi; t++ {
		if !b.Mask[t] {
			continue
		}
		d, a := b.move(t)
		v := c.TokenMask.verdict(d, a)
		addToken(s, b, t, v)
		if v != kept {
			continue
		}
		n++
		logProb += float64(b.LogProb[t])
		adv += a
		logWeight += d
		if c.Reference == OldPolicy {
			ref += float64(b.OldLogProb[t])
		} else {
			ref += float64(b.RefLogProb[t])
		}
	}
	den := n + meanEps
	delta = logZ + logProb/den - float64(c.Beta*(adv/den)) - ref/den
	if c.WeightLevel == WeightMean {
		logWeight /= den
	}
	return delta, exp(min(logWeight, maxLogWeight)), n
}

// move returns the log-ratio and the advantage of token t.
func (b *Batch[T]) move(t int) (d, adv float64) {
	return float64(b.LogProb[t]) - float64(b.OldLogProb[t]), float64(b.Adv[t])
}

// verdict is what a TokenMask makes of a token.
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

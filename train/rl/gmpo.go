package rl

// logWeightEps is added to a weight before its logarithm, as in verl.
const logWeightEps = 1e-10

// GMPO adds the loss on the geometric mean of a row's clipped ratios
// (arXiv:2507.20673) to s, and its gradient to dlogProb [N]. With D =
// logProb - oldLogProb, mean the MaskedMean over the row's tokens and a token's
//
//	M = min(D, high) if A > 0,  max(D, -low) if A < 0,  0 otherwise
//
// the loss is, per row i,
//
//	Σ_i -mean(A)·exp(mean(M))·exp(mean(ln(w + 1e-10))) / rows
//
// low and high bound the log of the ratio, not the ratio; w is the token's Weight, and its
// factor is absent without weights. The mean of M is bounded to ±80 before exp. rows is the
// number of rows of the mini-batch, so micro-batches change nothing: verl's loss mode
// "geo_mean" averages over the rows of a micro-batch, empty ones included. No other
// aggregation applies: Coef is not read. actor/pg_clipfrac is the fraction of tokens with A
// > 0 and D outside [-low, high], actor/pg_clipfrac_lower the fraction with A < 0, though
// only one of the two bounds acts on each.
func GMPO[T Float](dlogProb []T, b *Batch[T], low, high float64, rows int, s *PolicyStats) {
	b.check(dlogProb)
	if b.Rows.Len() > rows {
		panic("rl: a micro-batch larger than its mini-batch")
	}
	for i := range b.Rows.Len() {
		lo, hi := b.Rows[i], b.Rows[i+1]
		var move, adv, logWeight, n float64 // sums over unmasked tokens
		for t := lo; t < hi; t++ {
			if !b.Mask[t] {
				continue
			}
			d, a := b.move(t)
			m, _ := pessimistic(b, t, low, high)
			n++
			move += m
			adv += a
			if b.Weight != nil {
				logWeight += log(b.weight(t) + logWeightEps)
			}
			out := d < -low || d > high
			s.count(tokenTerm{kl: -d, clipped: out && a > 0, lower: out && a < 0})
		}
		den := n + meanEps
		mean, inside := bound(move/den, -maxLogWeight, maxLogWeight)
		loss := float64(-adv/den*exp(mean)*exp(logWeight/den)) / float64(rows)
		s.Loss += loss
		if !inside {
			continue
		}
		for t := lo; t < hi; t++ {
			if !b.Mask[t] {
				continue
			}
			if _, free := pessimistic(b, t, low, high); free {
				dlogProb[t] += T(loss / den)
			}
		}
	}
}

// pessimistic returns M of token t and whether it depends on D.
func pessimistic[T Float](b *Batch[T], t int, low, high float64) (m float64, free bool) {
	switch d, adv := b.move(t); {
	case adv > 0:
		return min(d, high), d <= high
	case adv < 0:
		return max(d, -low), d >= -low
	}
	return 0, false
}

// gmpoLoss is the loss "gmpo".
func gmpoLoss() PolicyLoss {
	l := tokenLoss("gmpo", []Setting{clipLow, clipHigh}, func(m *Micro, c Settings, s *PolicyStats) {
		GMPO(m.DLogProb, m.Batch, c.Float(clipLow), c.Float(clipHigh), m.Of, s)
	})
	l.ByTokens, l.OwnMean = false, true
	return l
}

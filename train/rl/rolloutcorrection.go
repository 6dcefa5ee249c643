package rl

// Correction says how training accounts for rollouts that another policy sampled: its
// numerics differ from the trainer's, and its parameters may be older. It weights rollouts,
// rejects those too far off, or both. The zero value only measures (verl's preset
// "disabled").
type Correction struct {
	Weights RolloutWeights
	// With Low 0 a weight is truncated at High, else it is 0 outside [Low, High] (IcePop).
	// Ignored with NoWeights.
	Low, High float64
	// Normalize divides the weights by their mean; Correct must then see the whole batch in
	// one call.
	Normalize bool
	// Reject lists criteria; a token must pass every one. nil rejects nothing.
	Reject []Rejection
	// Bypass, if not zero, says that oldLogProb is the sampler's and no pass recomputes it,
	// and names the loss that takes weights and mask (verl's bypass mode). Correct does not
	// read it: the caller passes the current policy's logProb then.
	Bypass BypassLoss
	// CountEmptyRows makes row statistics count rows with nothing unmasked, as verl does:
	// their weight is 0, their perplexity 1.
	CountEmptyRows bool
}

func (c Correction) check() {
	switch {
	case c.Weights > GeometricWeights:
		panic("rl: unknown rollout weights")
	case c.Weights != NoWeights && !(c.Low >= 0 && c.High > 0 && c.Low <= c.High):
		panic("rl: rollout weight bounds out of order")
	case c.Normalize && c.Weights == NoWeights:
		panic("rl: no rollout weights to normalize")
	}
	for _, r := range c.Reject {
		r.check()
	}
}

// Correct computes the weights and the mask of rollout correction (verl's
// rollout_corr_helper.py at 1dda039b9) from the log-ratios
//
//	x = logProb - rollLogProb
//
// of the trainer's policy to the sampler's, and adds statistics to s. It sets weight to the
// rollout weights, 0 where mask is false, and keep to mask minus the rejected tokens.
// Weights do not depend on rejection: both read mask. They are constant to every gradient.
//
// logProb is the old policy's, before the first update; in bypass mode the current
// policy's. All arrays are [N]. Without Weights, weight may be nil and is not written; keep
// and mask may be the same slice. Rows are independent except for Normalize, so without it
// a call on micro-batches changes no bit. An all-masked batch is not an error, where verl
// raises: statistics of nothing are NaN.
func Correct[T Float](weight []T, keep []bool, logProb, rollLogProb []T, mask []bool, rows Rows, c Correction,
	s *CorrectionStats) {
	c.check()
	rows.check(len(mask))
	sameLen(len(mask), len(keep), len(logProb), len(rollLogProb))
	if c.Weights != NoWeights {
		sameLen(len(mask), len(weight))
	}
	s.begin(c)
	all := make([]float64, len(mask)) // weights, before they are normalized and rounded
	var mean weightMean
	for i := range rows.Len() {
		row := newRatioRow(logProb, rollLogProb, mask, rows[i], rows[i+1])
		clear(keep[rows[i]:rows[i+1]])
		if len(row.x) == 0 && !c.CountEmptyRows {
			continue
		}
		s.mismatch.add(row)
		w, raw := c.weights(row.x)
		if c.Weights != NoWeights {
			s.weights.add(c, row.x, raw, w)
			mean.add(w)
		}
		ok := c.accept(row.x, s.reject)
		s.addAccepted(ok)
		for k, t := range row.token {
			all[t], keep[t] = w[k], ok[k]
		}
	}
	if c.Weights == NoWeights {
		return
	}
	factor := 1.0
	if c.Normalize {
		factor = mean.of(c.Weights)
		s.normFactor = factor
	}
	for t := range weight {
		weight[t] = T(all[t] / factor)
	}
}

// ratioRow holds the unmasked tokens of a row: their places, their log-ratios and the sums
// of both policies' log-probs.
type ratioRow struct {
	token         []int
	x             []float64
	logProb, roll float64
}

func newRatioRow[T Float](logProb, rollLogProb []T, mask []bool, lo, hi int) ratioRow {
	var row ratioRow
	for t := lo; t < hi; t++ {
		if mask[t] {
			row.token = append(row.token, t)
			row.x = append(row.x, float64(logProb[t])-float64(rollLogProb[t]))
			row.logProb += float64(logProb[t])
			row.roll += float64(rollLogProb[t])
		}
	}
	return row
}

// sumMean returns Σ x and the masked mean of x.
func sumMean(x []float64) (sum, mean float64) {
	for _, v := range x {
		sum += v
	}
	return sum, sum / (float64(len(x)) + meanEps)
}

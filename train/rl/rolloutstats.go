package rl

import "math"

// CorrectionStats accumulates statistics over calls of Correct under one Correction. The
// zero value is empty.
type CorrectionStats struct {
	config     Correction
	mismatch   mismatchStats
	weights    weightStats
	reject     []rejectionStats // one per criterion
	normFactor float64
	// Tokens, rows, rejected tokens, and rows with a rejected token.
	tokens, rows, rejectedTokens, rejectedRows float64
}

func (s *CorrectionStats) begin(c Correction) {
	s.config = c
	if s.reject == nil {
		s.reject = make([]rejectionStats, len(c.Reject))
	}
	sameLen(len(c.Reject), len(s.reject))
}

func (s *CorrectionStats) addAccepted(ok []bool) {
	rejected := float64(len(ok) - countTrue(ok))
	s.tokens += float64(len(ok))
	s.rows++
	s.rejectedTokens += rejected
	if rejected > 0 {
		s.rejectedRows++
	}
}

// Metrics returns verl's statistics, all under rollout_corr/. Unless stated otherwise,
// means are over tokens, and over rows for names with seq; std is of the bounded values, by
// E[x²]-E[x]²; for seq it is the sample std.
//
// Always, with a and b a row's mean log-probs of the trainer and the sampler:
//
//	training_ppl, training_log_ppl       means of e^-a and -a over rows; rollout_: of b
//	log_ppl_diff, _abs_diff, _diff_max, _diff_min, ppl_ratio   of b-a over rows; e^(b-a)
//	kl, k3_kl                            means of -x, e^x - x - 1
//	chi2_token, chi2_seq                 mean of e^2x - 1; over rows, of e^2Σx - 1
//
// With Weights:
//
//	rollout_is_mean, _std                of the bounded weights
//	rollout_is_max, _min                 of the bounded weights; of a row's, before its bounds
//	rollout_is_eff_sample_size           1/mean((w/mean w)²), of 1
//	rollout_is_ratio_fraction_high, _low of weights above High, below Low (1/High without Low)
//	rollout_is_seq_mean, _std, _max, _min, _max_deviation   of a row's mean weight; from 1
//	rollout_is_seq_fraction_high, _low   of a row's mean weight before the bounds
//	rollout_is_oob_ratio                 with Low: fraction of tokens whose weight became 0
//	rollout_is_batch_norm_factor         with Normalize: what the weights were divided by
//
// For each criterion of Reject, rollout_rs_<name>_ and for all together
// rollout_rs_:
//
//	mean, max, min, std                  of the statistic
//	fraction_high, _low                  beyond its bounds, over tokens with SpanToken, else over rows
//	masked_fraction, seq_masked_fraction rejected tokens; rows with one
//	seq_mean, _std, _max, _min, _max_deviation, _fraction_high, _low (k1)   of a row's
func (s *CorrectionStats) Metrics() []Metric {
	const prefix = "rollout_corr/"
	var m []Metric
	if s.config.Weights != NoWeights {
		m = s.weights.metrics(m, prefix+"rollout_is_", s.config)
	}
	if s.config.Normalize {
		m = append(m, Metric{prefix + "rollout_is_batch_norm_factor", s.normFactor})
	}
	for i, r := range s.config.Reject {
		m = s.reject[i].metrics(m, prefix+"rollout_rs_"+r.String()+"_", r)
	}
	if len(s.config.Reject) > 0 {
		m = append(m,
			Metric{prefix + "rollout_rs_masked_fraction", s.rejectedTokens / (s.tokens + meanEps)},
			Metric{prefix + "rollout_rs_seq_masked_fraction", s.rejectedRows / s.rows})
	}
	return s.mismatch.metrics(m, prefix)
}

// mismatchStats are sums of the distance between sampler and trainer.
type mismatchStats struct {
	tokens, kl, k3, chi2             float64 // over tokens
	rows                             float64
	ppl, logPPL, rollPPL, rollLogPPL float64 // over rows
	diff, absDiff, ratio, chi2Seq    float64
	diffRange                        extent
}

func (s *mismatchStats) add(row ratioRow) {
	for _, x := range row.x {
		s.tokens++
		s.kl -= x
		s.k3 += exp(x) - x - 1
		s.chi2 += square(exp(clamp(x, -maxLogRatio, maxLogRatio)))
	}
	n := float64(len(row.x)) + meanEps
	a, b := row.logProb/n, row.roll/n
	s.rows++
	s.ppl += exp(-a)
	s.logPPL -= a
	s.rollPPL += exp(-b)
	s.rollLogPPL -= b
	s.diff += b - a
	s.absDiff += math.Abs(b - a)
	s.diffRange.add(b - a)
	s.ratio += exp(b - a)
	sum, _ := sumMean(row.x)
	s.chi2Seq += exp(float64(2 * clamp(sum, -maxLogRatio, maxLogRatio)))
}

func (s *mismatchStats) metrics(m []Metric, prefix string) []Metric {
	n := s.tokens + meanEps
	return append(m,
		Metric{prefix + "training_ppl", s.ppl / s.rows},
		Metric{prefix + "training_log_ppl", s.logPPL / s.rows},
		Metric{prefix + "kl", s.kl / n},
		Metric{prefix + "k3_kl", s.k3 / n},
		Metric{prefix + "rollout_ppl", s.rollPPL / s.rows},
		Metric{prefix + "rollout_log_ppl", s.rollLogPPL / s.rows},
		Metric{prefix + "log_ppl_diff", s.diff / s.rows},
		Metric{prefix + "log_ppl_abs_diff", s.absDiff / s.rows},
		Metric{prefix + "log_ppl_diff_max", s.diffRange.max()},
		Metric{prefix + "log_ppl_diff_min", s.diffRange.min()},
		Metric{prefix + "ppl_ratio", s.ratio / s.rows},
		Metric{prefix + "chi2_token", s.chi2/n - 1},
		Metric{prefix + "chi2_seq", s.chi2Seq/s.rows - 1})
}

// extent is the range of what was added; NaN of nothing.
type extent struct {
	any       bool
	low, high float64
}

func (e *extent) add(x float64) {
	if !e.any {
		e.any, e.low, e.high = true, x, x
	}
	e.low, e.high = min(e.low, x), max(e.high, x)
}

func (e *extent) max() float64 { return e.value(e.high) }

func (e *extent) min() float64 { return e.value(e.low) }

func (e *extent) value(x float64) float64 {
	if !e.any {
		return math.NaN()
	}
	return x
}

// spread accumulates a masked mean and the std about it.
type spread struct{ n, sum, squares float64 }

func (s *spread) add(x float64) {
	s.n++
	s.sum += x
	s.squares += square(x)
}

func (s *spread) mean() float64 { return s.sum / (s.n + meanEps) }

// std is 0 for fewer than two.
func (s *spread) std() float64 {
	if s.n < 2 {
		return 0
	}
	return math.Sqrt(max(0, s.squares/(s.n+meanEps)-square(s.mean())))
}

// rowStats are statistics over rows.
type rowStats struct {
	moments
	extent
	above, below float64 // rows beyond bounds
}

func (s *rowStats) add(x float64) {
	s.moments.add(x)
	s.extent.add(x)
}

// metrics appends mean, sample std, extent and the greatest distance from centre.
func (s *rowStats) metrics(m []Metric, prefix string, centre float64) []Metric {
	std := 0.0
	if s.n > 1 {
		std = math.Sqrt(s.sampleVar())
	}
	return append(m,
		Metric{prefix + "mean", s.mean},
		Metric{prefix + "std", std},
		Metric{prefix + "max", s.max()},
		Metric{prefix + "min", s.min()},
		Metric{prefix + "max_deviation", max(s.max()-centre, centre-s.min())})
}

// weightStats are the statistics of rollout weights.
type weightStats struct {
	weight           spread
	tokenRange       extent // of weights
	logRange         extent // of the logs of rows' weights
	high, low, units float64
	outside          float64
	seq              rowStats
}

// floor returns the weight below which a weight counts as low.
func (c Correction) floor() float64 {
	if c.Low > 0 {
		return c.Low
	}
	return 1 / c.High
}

func (s *weightStats) add(c Correction, x, raw, w []float64) {
	for k := range w {
		s.weight.add(w[k])
		s.tokenRange.add(w[k])
		if c.Low > 0 && c.outside(raw[k]) {
			s.outside++
		}
	}
	if c.Weights == TokenWeights {
		for _, r := range raw {
			s.units++
			s.count(r, c.High, c.floor())
		}
	} else {
		logWeight, mean := sumMean(x)
		if c.Weights == GeometricWeights {
			logWeight = mean
		}
		s.units++
		s.logRange.add(logWeight)
		s.count(logWeight, log(c.High), log(c.floor()))
	}
	_, mean := sumMean(w)
	s.seq.add(mean)
	switch _, mean := sumMean(raw); {
	case mean > c.High:
		s.seq.above++
	case mean < c.floor():
		s.seq.below++
	}
}

func (s *weightStats) count(x, high, low float64) {
	if x > high {
		s.high++
	}
	if x < low {
		s.low++
	}
}

func (s *weightStats) metrics(m []Metric, prefix string, c Correction) []Metric {
	high, low, units := s.tokenRange.max(), s.tokenRange.min(), s.units
	if c.Weights == TokenWeights {
		units += meanEps
	} else {
		high, low = exp(min(s.logRange.max(), maxLogRatio)), exp(s.logRange.min())
	}
	mean := s.weight.mean()
	m = append(m,
		Metric{prefix + "mean", mean},
		Metric{prefix + "max", high},
		Metric{prefix + "min", low},
		Metric{prefix + "std", s.weight.std()},
		Metric{prefix + "eff_sample_size", square(mean+meanEps) / (s.weight.squares / (s.weight.n + meanEps))},
		Metric{prefix + "ratio_fraction_high", s.high / units},
		Metric{prefix + "ratio_fraction_low", s.low / units})
	m = s.seq.metrics(m, prefix+"seq_", 1)
	m = append(m,
		Metric{prefix + "seq_fraction_high", s.seq.above / s.seq.n},
		Metric{prefix + "seq_fraction_low", s.seq.below / s.seq.n})
	if c.Low > 0 {
		m = append(m, Metric{prefix + "oob_ratio", s.outside / (s.weight.n + meanEps)})
	}
	return m
}

// rejectionStats are the statistics of one criterion, over rows that have a token.
type rejectionStats struct {
	stat                   spread // of the statistic, bounded
	sum                    float64
	tokenRange             extent
	high, low              float64 // tokens beyond the bounds
	rejected, rejectedRows float64
	seq                    rowStats
}

func (s *rejectionStats) add(stat []float64, row, low, high, rejected float64) {
	for _, v := range stat {
		s.sum += v
		s.stat.add(clamp(v, low, high))
		s.tokenRange.add(v)
		if v > high {
			s.high++
		}
		if v < low {
			s.low++
		}
	}
	s.rejected += rejected
	if rejected > 0 {
		s.rejectedRows++
	}
	s.seq.add(row)
	if row > high {
		s.seq.above++
	}
	if row < low {
		s.seq.below++
	}
}

func (s *rejectionStats) metrics(m []Metric, prefix string, r Rejection) []Metric {
	n := s.stat.n + meanEps
	fraction := [2]float64{s.seq.above / s.seq.n, s.seq.below / s.seq.n}
	if r.Span == SpanToken {
		fraction = [2]float64{s.high / n, s.low / n}
	}
	m = append(m,
		Metric{prefix + "mean", s.sum / n},
		Metric{prefix + "max", s.tokenRange.max()},
		Metric{prefix + "min", s.tokenRange.min()},
		Metric{prefix + "fraction_high", fraction[0]},
		Metric{prefix + "fraction_low", fraction[1]},
		Metric{prefix + "std", s.stat.std()})
	m = s.seq.metrics(m, prefix+"seq_", 0)
	m = append(m, Metric{prefix + "seq_fraction_high", s.seq.above / s.seq.n})
	if r.Kind == KLK1 {
		m = append(m, Metric{prefix + "seq_fraction_low", s.seq.below / s.seq.n})
	}
	return append(m,
		Metric{prefix + "masked_fraction", s.rejected / n},
		Metric{prefix + "seq_masked_fraction", s.rejectedRows / s.seq.n})
}

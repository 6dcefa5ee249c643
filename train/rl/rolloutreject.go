package rl

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Span says over which tokens a statistic is computed.
type Span uint8

const (
	SpanToken Span = 1 + iota // each token separately
	SpanSum                   // the row's sum
	SpanMean                  // the row's masked mean
	SpanMax                   // the row's greatest
)

var spanNames = [...]string{SpanToken: "token", SpanSum: "seq_sum", SpanMean: "seq_mean", SpanMax: "seq_max"}

// Rejection drops tokens, or whole rows, where the trainer's policy and the
// sampler's differ too much. With x the log-ratio of a token bounded to ±20, an
// estimate of the divergence is
//
//	k1  -x    k2  ½·x²    k3  e^x - 1 - x
//
// and its statistic over Span is kept
//
//	k1      between ln Low and ln High; Low 0: no lower bound
//	k2, k3  up to High; Low is 0
//
// so k1 bounds the ratio of the sampler to the trainer, the inverse of the ratio that
// weights bound. The mean of k1 is the log of a geometric mean.
type Rejection struct {
	Span      Span
	Kind      KLKind // KLK1, KLK2 or KLK3
	Low, High float64
}

func (r Rejection) check() {
	switch {
	case r.Span < SpanToken || r.Span > SpanMax:
		panic("rl: unknown rejection span")
	case r.Kind < KLK1 || r.Kind > KLK3:
		panic("rl: unknown rejection estimator")
	case !(r.Low >= 0 && r.High > 0 && r.Low <= r.High) || r.Kind != KLK1 && r.Low != 0:
		panic("rl: rejection bounds out of order")
	}
}

// String returns verl's name of the criterion, such as seq_mean_k3.
func (r Rejection) String() string {
	return fmt.Sprintf("%s_k%d", spanNames[r.Span], 1+r.Kind-KLK1)
}

// ParseRejections returns the criteria of verl's rollout_rs and rollout_rs_threshold, both
// comma-separated: token_k1 to k3, seq_sum_k1 to k3, seq_mean_k1 to k3, seq_max_k2 and k3,
// each with its threshold or all with one. A threshold of k1 is "L_U", or "U" for 1/U_U; of
// the others "U". A repeated name counts once.
//
// It also accepts names of older verls: token, sequence and geometric bound the ratio of
// the trainer to the sampler, the inverse of token_k1, seq_sum_k1 and seq_mean_k1;
// token_veto rejects a row with a token whose ratio is below its threshold.
func ParseRejections(options, thresholds string) ([]Rejection, error) {
	var names []string
	for _, n := range splitList(options) {
		if !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	specs := splitList(thresholds)
	if len(names) == 0 {
		return nil, fmt.Errorf("no rejection criterion in %q", options)
	}
	if len(specs) != 1 && len(specs) != len(names) {
		return nil, fmt.Errorf("%d rejection thresholds for %d criteria", len(specs), len(names))
	}
	var list []Rejection
	for i, name := range names {
		r, err := parseRejection(name, specs[min(i, len(specs)-1)])
		if err != nil {
			return nil, fmt.Errorf("rejection %q: %w", name, err)
		}
		list = append(list, r)
	}
	return list, nil
}

func splitList(list string) []string {
	var words []string
	for _, w := range strings.Split(list, ",") {
		if w = strings.TrimSpace(w); w != "" {
			words = append(words, w)
		}
	}
	return words
}

func parseRejection(name, threshold string) (Rejection, error) {
	low, high, err := ParseRolloutBounds(threshold)
	if err != nil {
		return Rejection{}, err
	}
	band := low > 0
	if !band {
		low = 1 / high
	}
	switch name {
	case "token":
		return Rejection{SpanToken, KLK1, 1 / high, 1 / low}, nil
	case "sequence":
		return Rejection{SpanSum, KLK1, 1 / high, 1 / low}, nil
	case "geometric":
		return Rejection{SpanMean, KLK1, 1 / high, 1 / low}, nil
	}
	for span := SpanToken; span <= SpanMean; span++ {
		if r := (Rejection{span, KLK1, low, high}); r.String() == name {
			return r, nil
		}
	}
	if band {
		return Rejection{}, fmt.Errorf("threshold %q must not have a lower bound", threshold)
	}
	if name == "token_veto" {
		return Rejection{SpanMax, KLK1, 0, 1 / high}, nil
	}
	for span := SpanToken; span <= SpanMax; span++ {
		for kind := KLK2; kind <= KLK3; kind++ {
			if r := (Rejection{span, kind, 0, high}); r.String() == name {
				return r, nil
			}
		}
	}
	return Rejection{}, errors.New("unknown criterion")
}

// statistics returns r's estimate for each token of a row with log-ratios x (the row's
// estimate at each, for row spans), and the row's.
func (r Rejection) statistics(x []float64) (stat []float64, row float64) {
	stat = make([]float64, len(x))
	row = math.Inf(-1)
	for k, d := range x {
		d = clamp(d, -maxLogRatio, maxLogRatio)
		switch r.Kind {
		case KLK1:
			stat[k] = -d
		case KLK2:
			stat[k] = float64(0.5 * square(d))
		case KLK3:
			stat[k] = exp(d) - 1 - d
		}
		row = max(row, stat[k])
	}
	sum, mean := sumMean(stat)
	switch r.Span {
	case SpanToken:
		return stat, mean
	case SpanSum:
		row = sum
	case SpanMean:
		row = mean
	}
	for k := range stat {
		stat[k] = row
	}
	return stat, row
}

// bounds returns the bounds of the statistic.
func (r Rejection) bounds() (low, high float64) {
	if r.Kind == KLK1 {
		return log(r.Low), log(r.High)
	}
	return math.Inf(-1), r.High
}

// accept reports, per token of a row, whether it passes all criteria, and adds each
// criterion's statistics to its s.
func (c Correction) accept(x []float64, s []rejectionStats) []bool {
	ok := slices.Repeat([]bool{true}, len(x))
	if len(x) == 0 {
		return ok
	}
	for i, r := range c.Reject {
		stat, row := r.statistics(x)
		low, high := r.bounds()
		rejected := 0.0
		for k, v := range stat {
			if !(v >= low && v <= high) { // NaN is rejected
				ok[k] = false
				rejected++
			}
		}
		s[i].add(stat, row, low, high, rejected)
	}
	return ok
}

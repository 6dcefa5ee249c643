package rl

import (
	"fmt"
	"strconv"
	"strings"
)

// RolloutWeights are importance weights for another policy's rollouts, from the log-ratios
// x of their tokens:
//
//	TokenWeights      exp(x)                 of the token: biased, little variance
//	SequenceWeights   exp(Σ x)               of the row: unbiased
//	GeometricWeights  exp(mean x)            of the row: its geometric mean per token
//
// The exponent is bounded to ±20. verl has the first two; the third is from FlowRL's
// tis_clip and older verls.
type RolloutWeights uint8

const (
	NoWeights RolloutWeights = iota
	TokenWeights
	SequenceWeights
	GeometricWeights
)

// ParseRolloutWeights returns the weights of verl's rollout_is: token or sequence;
// sequence_mean is the geometric mean; none disables them.
func ParseRolloutWeights(name string) (RolloutWeights, error) {
	switch name {
	case "none":
		return NoWeights, nil
	case "token":
		return TokenWeights, nil
	case "sequence":
		return SequenceWeights, nil
	case "sequence_mean":
		return GeometricWeights, nil
	}
	return 0, fmt.Errorf("unknown rollout weights %q", name)
}

// ParseRolloutBounds returns Low and High of a Correction from verl's rollout_is_threshold:
// "U" truncates at U, with Low 0; "L_U" zeroes outside.
func ParseRolloutBounds(spec string) (low, high float64, err error) {
	lower, upper, band := strings.Cut(strings.TrimSpace(spec), "_")
	if !band {
		upper, lower = lower, ""
	}
	if high, err = parsePositive(upper); err == nil && band {
		low, err = parsePositive(lower)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("rollout bounds %q: %w", spec, err)
	}
	if low > high {
		return 0, 0, fmt.Errorf("rollout bounds %q: the lower bound exceeds the upper", spec)
	}
	return low, high, nil
}

func parsePositive(s string) (float64, error) {
	x, err := strconv.ParseFloat(s, 64)
	if err != nil || strings.Contains(s, "_") {
		return 0, fmt.Errorf("%q is not a number", s)
	}
	if !(x > 0) {
		return 0, fmt.Errorf("%q is not positive", s)
	}
	return x, nil
}

// weights returns the weights of a row's tokens, and the same before their bounds; 1 with
// NoWeights.
func (c Correction) weights(x []float64) (w, raw []float64) {
	w, raw = make([]float64, len(x)), make([]float64, len(x))
	sum, mean := sumMean(x)
	for k, d := range x {
		switch c.Weights {
		case NoWeights:
			w[k], raw[k] = 1, 1
			continue
		case SequenceWeights:
			d = sum
		case GeometricWeights:
			d = mean
		}
		raw[k] = exp(clamp(d, -maxLogRatio, maxLogRatio))
		switch w[k] = raw[k]; {
		case c.Low == 0:
			w[k] = min(raw[k], c.High)
		case c.outside(raw[k]):
			w[k] = 0
		}
	}
	return w, raw
}

func (c Correction) outside(raw float64) bool { return !(raw >= c.Low && raw <= c.High) }

// weightMean is the divisor of Normalize: the mean weight over tokens or over rows that
// have one.
type weightMean struct{ sum, tokens, rowMeans, rows float64 }

func (m *weightMean) add(w []float64) {
	if len(w) == 0 {
		return
	}
	sum, mean := sumMean(w)
	m.sum += sum
	m.tokens += float64(len(w))
	m.rowMeans += mean
	m.rows++
}

// of returns the mean, or 1 if it is too small to divide by.
func (m *weightMean) of(level RolloutWeights) float64 {
	mean := m.sum / (m.tokens + meanEps)
	if level != TokenWeights {
		mean = m.rowMeans / max(m.rows, meanEps)
	}
	if !(mean > meanEps) {
		return 1
	}
	return mean
}

package compare

import (
	"math"

	"exp/eval/stat"
	"exp/harness/metric"
)

// The smallest differences worth finding, for Verdict: 0.05 of a share and a tenth of
// anything else. They only decide between "no difference shown" and "underpowered".
const (
	marginShare = 0.05
	marginOther = 0.10
)

// setMargin sets the margin of a metric: marginShare for a share, else marginOther times
// the larger of the arms' means.
func (p *Pair) setMargin(m *Metric) {
	margin := marginShare
	if m.Unit != metric.Share {
		margin = 0
		for _, arm := range []int{p.A, p.B} {
			if mean := m.Arms[arm].Mean; mean != nil {
				margin = max(margin, marginOther*math.Abs(*mean))
			}
		}
	}
	p.Margin = known(margin)
}

// judge applies Holm's correction to all p values of the result and sets the verdicts.
func (c *comparison) judge() {
	var tested []*Pair
	var p []float64
	for i := range c.result.Suites {
		for j := range c.result.Suites[i].Metrics {
			m := &c.result.Suites[i].Metrics[j]
			for k := range m.Pairs {
				if m.Pairs[k].P != nil {
					tested = append(tested, &m.Pairs[k])
					p = append(p, *m.Pairs[k].P)
				}
			}
		}
	}
	for i, adjusted := range stat.Holm(p) {
		tested[i].PHolm = known(adjusted)
	}
	c.result.Tests = len(p)
	for i := range c.result.Suites {
		for j := range c.result.Suites[i].Metrics {
			m := &c.result.Suites[i].Metrics[j]
			for k := range m.Pairs {
				if m.Tested {
					m.Pairs[k].Verdict = verdict(&m.Pairs[k], m.Direction, c.o.Alpha)
				}
			}
		}
	}
}

// verdict returns the verdict on a pair, as defined at Verdict.
func verdict(p *Pair, direction string, alpha float64) Verdict {
	shown := p.PHolm != nil && *p.PHolm <= alpha && (p.Interval == nil || p.Interval.Lo > 0 || p.Interval.Hi < 0)
	switch {
	case p.Delta == nil:
		return Underpowered
	case shown && direction == "":
		if *p.Delta > 0 {
			return Higher
		}
		return Lower
	case shown:
		if (*p.Delta > 0) == (direction == "up") {
			return Better
		}
		return Worse
	case p.MDE != nil && p.Margin != nil && *p.MDE <= *p.Margin && math.Abs(*p.Delta) <= *p.Margin:
		return NoDifference
	}
	return Underpowered
}

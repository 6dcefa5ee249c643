package main

import (
	"slices"

	"exp/experiments/quantity"
	"exp/reports/compare"
)

// pairs prints a table per pair of arms.
func (p *comparePage) pairs(shown []*compare.Metric) error {
	left := 0
	for i, pair := range shown[0].Pairs {
		if !p.tabled(shown, i) {
			left++
			continue
		}
		p.Heading(pairName(p.r, pair.A, pair.B) + coverage(shown, i))
		if err := p.differences(shown, i); err != nil {
			return err
		}
	}
	if left > 0 {
		p.Heading(quantity.Plural(left, "other pair") + " of arms")
		p.Line("no difference shown in any tested metric; -o json has the numbers")
	}
	return nil
}

// coverage says what a pair's intervals cover where other pairs' intervals cover something else.
func coverage(shown []*compare.Metric, pair int) string {
	for _, m := range shown {
		if _, kinds := m.Kinds(); len(kinds) > 1 && m.Pairs[pair].Interval != nil {
			return "  over " + kindText(m.Pairs[pair].Interval.Kind)
		}
	}
	return ""
}

// mostPairs is how many pairs get a table each whatever they show.
const mostPairs = 6

// tabled reports whether a pair gets a table. Of many pairs, those with the first arm and those with
// a difference do.
func (p *comparePage) tabled(shown []*compare.Metric, i int) bool {
	if pairs := shown[0].Pairs; len(pairs) <= mostPairs || pairs[i].A == 0 || pairs[i].B == 0 {
		return true
	}
	return slices.ContainsFunc(shown, func(m *compare.Metric) bool {
		return i < len(m.Pairs) && m.Tested && m.Pairs[i].Verdict != compare.NoDifference &&
			m.Pairs[i].Verdict != compare.Underpowered
	})
}

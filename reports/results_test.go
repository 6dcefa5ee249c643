package reports

import (
	"strings"
	"testing"

	"exp/reports/compare"
)

// Where one arm has too few seeds, its intervals cover problems only, and the others' seeds too.
func TestMixedIntervals(t *testing.T) {
	two, one := &compare.Interval{Kind: compare.TwoLevel}, &compare.Interval{Kind: compare.OverItems}
	of := func(arms, pairs []*compare.Interval) *compare.Suite {
		var m compare.Metric
		for _, iv := range arms {
			m.Arms = append(m.Arms, compare.Estimate{Interval: iv})
		}
		for _, iv := range pairs {
			m.Pairs = append(m.Pairs, compare.Pair{Interval: iv})
		}
		return &compare.Suite{Metrics: []compare.Metric{{}, m}}
	}
	const own = "of arms with fewer than 3 seeds over problems"
	for _, tt := range []struct {
		name        string
		suite       *compare.Suite
		arms, pairs bool // differ in what they cover
	}{
		{"three arms", of([]*compare.Interval{two, two, one}, []*compare.Interval{two, one, one}), true, true},
		{"two arms", of([]*compare.Interval{two, one}, []*compare.Interval{one}), true, false},
		{"few seeds", of([]*compare.Interval{one, one, nil}, []*compare.Interval{one, one, nil}), false, false},
	} {
		s := &source{result: &compare.Result{Level: 0.95}, arms: []*arm{{Name: "flow", Runs: []*run{{}}}}}
		for name, got := range map[string]string{"table": s.intervalNote(tt.suite),
			"figure": s.comparedSuite(tt.suite).interval} {
			if strings.Contains(got, own) != tt.arms {
				t.Errorf("%s, %s: %q", tt.name, name, got)
			}
		}
		if got := testNote(tt.suite); strings.Contains(got, "of arms with too few seeds it is") != tt.pairs {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
}

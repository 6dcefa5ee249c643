package reports

import (
	"strings"
	"testing"

	"exp/reports/compare"
	"exp/reports/figure"
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

// Captions of differences name each arm's seeds and the interval that was computed.
func TestForestCaptions(t *testing.T) {
	num := func(v float64) *float64 { return &v }
	iv := &compare.Interval{Lo: 0.2, Hi: 0.8, Kind: compare.OverSeeds}
	s := &source{arms: []*arm{{Name: "flow", label: "flow", Runs: []*run{{}, {}, {}}},
		{Name: "ppo", label: "ppo", Runs: []*run{{}, {}, {}, {}}}},
		result: &compare.Result{Level: 0.95, Across: &compare.Across{Draws: 2000, Kind: string(compare.TwoLevel),
			Arms: []compare.AcrossArm{{Scores: 6}, {Scores: 8}},
			Pairs: []compare.AcrossPair{{A: 0, B: 1,
				Improvement: compare.Aggregate{Value: num(0.5), Interval: iv}}}},
			Suites: []compare.Suite{{Name: "countdown/test", Metrics: []compare.Metric{{Name: "pass@1", Unit: "share",
				Tested: true, Pairs: []compare.Pair{{A: 0, B: 1, Delta: num(0.1), Interval: iv}}}}}}}}
	odds, err := s.acrossFigures()[2].draw()
	if err != nil {
		t.Fatal(err)
	}
	differences := s.forest("share")
	differences.Rows = s.forestRows(s.result.Suites[0], &s.result.Suites[0].Metrics[0])
	pairs, err := differences.Draw()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []figure.Figure{odds, pairs} {
		if got := f.Caption.Seeds; got != "flow 3 seeds, ppo 4 seeds" {
			t.Errorf("%s: %q", f.Name, got)
		}
	}
	if got := odds.Caption.Interval; got != "Error bars: 95\u202f%, score test, over seeds" {
		t.Errorf("%q", got)
	}
}

package reports

import (
	"strings"
	"testing"

	"exp/experiments/store"
	"exp/reports/compare"
)

// passAt4 has arms that began and ended training with some pass@4.
func passAt4(scores ...[2]float64) *compare.Metric {
	m := &compare.Metric{Name: "pass@4", Unit: "share", Direction: "up", Tested: true}
	for _, s := range scores {
		start, end, gain := s[0], s[1], s[1]-s[0]
		m.Arms = append(m.Arms, compare.Estimate{Start: &start, Mean: &end, Gain: &gain})
	}
	return m
}

func TestSameEverywhere(t *testing.T) {
	zero := sameEverywhere(passAt4([2]float64{0, 0}, [2]float64{0, 0})).String()
	if !strings.HasPrefix(zero, "Nothing to compare in pass@4: every arm has 0.000") {
		t.Errorf("nobody solves anything: %q", zero)
	}
	full := sameEverywhere(passAt4([2]float64{0, 1}, [2]float64{0, 1})).String()
	if full != "The same in pass@4: every arm has 1.000." {
		t.Errorf("everybody solves everything: %q", full)
	}
}

func TestBelowStart(t *testing.T) {
	s := &source{arms: []*arm{{Name: "a"}, {Name: "b"}, {Name: "c"}}}
	got := s.belowStart(passAt4([2]float64{.754, .707}, [2]float64{.754, .8}, [2]float64{.754, .668})).String()
	if want := "Below the start in pass@4: a 0.754 → 0.707, c 0.754 → 0.668."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, m := range []*compare.Metric{
		passAt4([2]float64{.2, .3}, [2]float64{.2, .2}),
		passAt4([2]float64{.20004, .2}), // the same in three digits
		{Name: "length_mean", Tested: true, Arms: passAt4([2]float64{9, 7}).Arms},
		{Name: "pass@4", Tested: true, Arms: []compare.Estimate{{}, {}}}, // the start was not scored
	} {
		if got := s.belowStart(m); got != nil {
			t.Errorf("%+v: %q", m, got)
		}
	}
}

// The summary of a single arm names the metrics that training made worse.
func TestAloneBelowStart(t *testing.T) {
	eval := func(suite, metric string, v float64) store.Eval {
		return store.Eval{SuiteName: suite, Metric: metric, Value: v}
	}
	s := &source{arms: []*arm{{Name: "a", Runs: []*run{{evals: []store.Eval{
		eval("t/x", "pass@1", 0.3), eval("t/x@start", "pass@1", 0.1),
		eval("t/x", "pass@16", 0.668), eval("t/x@start", "pass@16", 0.754),
		eval("t/x", "kl_target", 0.1), eval("t/x@start", "kl_target", 0.5)}}}}}}
	list, ok := s.aloneSummary()[1].(bullets)
	if !ok {
		t.Fatalf("%+v", s.aloneSummary())
	}
	var got []string
	for _, l := range list {
		got = append(got, l.String())
	}
	all := strings.Join(got, "\n")
	if !strings.Contains(all, "0.668, below the 0.754 before training.") || strings.Count(all, "below the") != 1 || !strings.Contains(all, "before training 0.1") {
		t.Errorf("got\n%s", all)
	}
}

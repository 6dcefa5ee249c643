package reports

import (
	"math"
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

// Many pairs without a shown difference are one sentence.
func TestManyOpenPairs(t *testing.T) {
	m := passAt4([2]float64{.1, .2}, [2]float64{.1, .3}, [2]float64{.1, .25}, [2]float64{.1, .22}, [2]float64{.1, .24})
	s := &source{result: &compare.Result{Alpha: 0.05}, arms: []*arm{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}, {Name: "e"}}}
	low, high := 0.05, 0.2
	for a := range 5 {
		for b := range a {
			delta, mde := *m.Arms[b].Mean-*m.Arms[a].Mean, low
			p := compare.Pair{A: b, B: a, Delta: &delta, MDE: &mde, Verdict: compare.NoDifference}
			if a == 4 {
				mde, p.Verdict = high, compare.Underpowered
			}
			if a == 4 && b == 3 {
				p.Verdict = compare.Better
			}
			m.Pairs = append(m.Pairs, p)
		}
	}
	list := s.sentences(&compare.Suite{Metrics: []compare.Metric{*m}})
	if len(list) != 1 || !strings.Contains(list[0].String(), "below cover") { // pass@4 is not in the summary of many arms
		t.Fatalf("%q", list)
	}
	m.Name = "pass@1"
	list = s.sentences(&compare.Suite{Metrics: []compare.Metric{*m}})
	want := "No difference shown in accuracy (pass@1) for 9 of 10 pairs of arms, 3 of them underpowered: means at most 0.100 " +
		"apart (a and b). True differences of 0.050 to 0.200, depending on the pair, would give p ≤ 0.05, uncorrected, 80\u202f% of the time."
	if len(list) != 3 || list[1].String() != want || !strings.HasPrefix(list[0].String(), "d is better than e") {
		t.Errorf("%q, want %q in the middle", list, want)
	}
}

// The sentence on many pairs leaves the pair with a difference out, and counts those without a
// detectable difference.
func TestOpenPairs(t *testing.T) {
	s := &source{arms: []*arm{{Name: "a"}, {Name: "b"}, {Name: "c"}}}
	m := passAt4([2]float64{.1, .9}, [2]float64{.1, .2}, [2]float64{.1, .25})
	m.Arms[1].Mean = nil
	near, nan, mde := 0.125, math.NaN(), 0.05
	m.Pairs = make([]compare.Pair, 4)
	for _, c := range []struct {
		open []compare.Pair
		want string
	}{
		{[]compare.Pair{{A: 0, B: 1, Delta: &nan, MDE: &mde}, {A: 2, B: 1, Delta: &near, MDE: &mde}, {A: 0, B: 2}},
			"No difference shown in pass@4 for 3 of 4 pairs of arms: means at most 0.125 apart (c and b). " +
				"A true difference of 0.050 would give p ≤ 0.05, uncorrected, 80\u202f% of the time. " +
				"For 1 pair the detectable difference is unknown: the differences do not vary."},
		{[]compare.Pair{{A: 0, B: 1}, {A: 0, B: 2}}, "No difference shown in pass@4 for 2 of 4 pairs of arms. " +
			"The differences do not vary, so the detectable difference is unknown."},
	} {
		if got := s.openPairs(m, c.open).String(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
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

// A verdict from a test that ignores training seeds is about these runs alone.
func TestSentenceOfTheseRuns(t *testing.T) {
	s := &source{result: &compare.Result{Alpha: 0.05}, arms: []*arm{{Name: "a"}, {Name: "b"}}}
	m := passAt4([2]float64{.1, .5}, [2]float64{.1, .25})
	delta := 0.25
	for test, want := range map[compare.Test]string{
		compare.SignFlips: "a is better than b in pass@4 of these runs: 0.500 against 0.250 (Δ = +0.250).",
		compare.TTest:     "a is better than b in pass@4: 0.500 against 0.250 (Δ = +0.250).",
	} {
		p := compare.Pair{A: 0, B: 1, Delta: &delta, Test: test, Verdict: compare.Better}
		if got := s.sentence(m, p).String(); got != want {
			t.Errorf("%s: got %q, want %q", test, got, want)
		}
	}
}

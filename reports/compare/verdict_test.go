package compare

import (
	"testing"

	"exp/harness/metric"
)

func TestVerdict(t *testing.T) {
	pair := func(delta, lo, hi, pHolm, mde float64) *Pair {
		margin := 0.05
		return &Pair{Delta: &delta, Interval: &Interval{Lo: lo, Hi: hi}, PHolm: &pHolm, MDE: &mde, Margin: &margin}
	}
	unknown := pair(0.1, 0.05, 0.15, 0.01, 0.04)
	unknown.PHolm = nil
	flat := pair(0, 0, 0, 1, 0)
	flat.MDE = nil // no spread at all
	for _, test := range []struct {
		name      string
		p         *Pair
		direction string
		want      Verdict
	}{
		{"more of a good thing", pair(0.1, 0.05, 0.15, 0.01, 0.04), "up", Better},
		{"less of a good thing", pair(-0.1, -0.15, -0.05, 0.01, 0.04), "up", Worse},
		{"more of a bad thing", pair(0.1, 0.05, 0.15, 0.01, 0.04), "down", Worse},
		{"less of a bad thing", pair(-0.1, -0.15, -0.05, 0.01, 0.04), "down", Better},
		{"more of a neutral thing", pair(0.1, 0.05, 0.15, 0.01, 0.04), "", Higher},
		{"less of a neutral thing", pair(-0.1, -0.15, -0.05, 0.01, 0.04), "", Lower},
		{"p at alpha", pair(0.1, 0.05, 0.15, 0.05, 0.04), "up", Better},
		{"p above alpha", pair(0.1, 0.05, 0.15, 0.051, 0.04), "up", Underpowered},
		{"the interval holds zero", pair(0.04, -0.01, 0.09, 0.01, 0.04), "up", NoDifference},
		{"small and known well", pair(0.01, -0.02, 0.04, 0.6, 0.04), "up", NoDifference},
		{"MDE at the margin", pair(0.01, -0.02, 0.04, 0.6, 0.05), "up", NoDifference},
		{"small and not known well", pair(0.01, -0.05, 0.07, 0.6, 0.06), "up", Underpowered},
		{"large, and too few runs for a small p", pair(0.2, 0.1, 0.3, 0.25, 0.04), "up", Underpowered},
		{"no p", unknown, "up", Underpowered},
		{"no spread", flat, "up", Underpowered},
		{"nothing known", &Pair{}, "up", Underpowered},
	} {
		if got := verdict(test.p, test.direction, 0.05); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// Holm over suites, pairs and metrics: p .01 .04 .03 of three tests become
// 3·.01 = .03, and for the others max(2·.03, 1·.04) = .06.
func TestJudge(t *testing.T) {
	metric := func(tested bool, p float64) Metric {
		delta, mde, margin := 0.1, 0.01, 0.05
		m := Metric{Tested: tested, Direction: "up", Pairs: []Pair{{Delta: &delta, Interval: &Interval{Lo: 0.05, Hi: 0.15}, MDE: &mde, Margin: &margin}}}
		if tested {
			m.Pairs[0].P = &p
		}
		return m
	}
	c := &comparison{o: Options{Alpha: 0.05}}
	c.result.Suites = []Suite{{Metrics: []Metric{metric(true, 0.01), metric(false, 0)}}, {Metrics: []Metric{metric(true, 0.04), metric(true, 0.03)}}}
	c.judge()
	first, second := c.result.Suites[0].Metrics, c.result.Suites[1].Metrics
	near(t, "p Holm of .01", first[0].Pairs[0].PHolm, 0.03)
	near(t, "p Holm of .04", second[0].Pairs[0].PHolm, 0.06)
	near(t, "p Holm of .03", second[1].Pairs[0].PHolm, 0.06)
	if c.result.Tests != 3 || first[0].Pairs[0].Verdict != Better || second[0].Pairs[0].Verdict != Underpowered {
		t.Errorf("%d tests, verdicts %q and %q", c.result.Tests, first[0].Pairs[0].Verdict, second[0].Pairs[0].Verdict)
	}
	if v := first[1].Pairs[0]; v.PHolm != nil || v.Verdict != "" {
		t.Errorf("a metric that is not tested has p Holm %v, verdict %q", v.PHolm, v.Verdict)
	}
}

func TestMargin(t *testing.T) {
	mean := func(v float64) Estimate { return Estimate{Mean: &v} }
	for _, test := range []struct {
		unit string
		want float64
	}{{metric.Share, 0.05}, {"solutions", 0.4}} { // a tenth of the larger mean
		m := &Metric{Unit: test.unit, Arms: []Estimate{mean(3), mean(-4)}}
		p := &Pair{A: 0, B: 1}
		p.setMargin(m)
		near(t, "margin of a "+test.unit, p.Margin, test.want)
	}
}

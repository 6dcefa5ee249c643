package recorded

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/experiments/ident"
	"exp/experiments/store"
)

// A suite that was evaluated several times is shown as it was last, before and after
// under one protocol.
func TestResultsOfNewestEvaluations(t *testing.T) {
	eval := func(stage int64, suite, protocol, metric string, n int64, value float64) store.Eval {
		return store.Eval{StageScore: stage, SuiteName: suite, Protocol: ident.Sum([]byte(protocol)), Metric: metric,
			N: n, Items: 2, Value: value, Lo: value, Hi: value}
	}
	var got []string
	for _, r := range Results([]store.Eval{
		eval(1, "test@start", "4", "pass@1", 4, .1), eval(1, "test@start", "4", "pass@4", 4, .2),
		eval(2, "test", "4", "pass@1", 4, .3), eval(2, "test", "4", "pass@4", 4, .4),
		eval(3, "other", "4", "pass@1", 4, .5),
		eval(4, "test@start", "8", "pass@1", 8, .11), eval(4, "test@start", "8", "pass@8", 8, .22),
		eval(5, "test", "8", "pass@1", 8, .33), eval(5, "test", "8", "pass@8", 8, .44),
		eval(6, "test@start", "16", "pass@1", 16, .9), // whose trained weights were not evaluated so
		eval(7, "begun@start", "4", "pass@1", 4, .6),
	}) {
		text := fmt.Sprintf("%s %s n=%d", r.Suite, r.Metric, r.N)
		if r.Before != nil {
			text += fmt.Sprintf(" before %v", r.Before.Value)
		}
		if r.After != nil {
			text += fmt.Sprintf(" after %v", r.After.Value)
		}
		got = append(got, text)
	}
	for _, r := range Earlier([]store.Eval{
		eval(2, "test", "4", "pass@1", 4, .3), eval(2, "test", "4", "pass@4", 4, .4), eval(3, "test", "2", "pass@1", 2, .25),
		eval(4, "test", "4", "pass@1", 4, .35), eval(5, "test@start", "8", "pass@1", 8, .1), eval(5, "test", "8", "pass@1", 8, .33),
	}) {
		got = append(got, fmt.Sprintf("earlier %s n=%d %v", r.Suite, r.N, r.After.Value))
	}
	want := []string{
		"test pass@1 n=8 before 0.11 after 0.33",
		"test pass@8 n=8 before 0.22 after 0.44",
		"other pass@1 n=4 after 0.5",
		"begun pass@1 n=4 before 0.6",
		"earlier test n=2 0.25",
		"earlier test n=4 0.35",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Scores that are equal for all problems have no interval: [0.5, 0.5] would say that the next problem scores 0.5.
func TestIntervalsWithoutWidth(t *testing.T) {
	third := 1.0 / 3
	for _, tt := range []struct {
		lo, hi float64
		want   bool
	}{{0.25, 0.75, true}, {0.5, 0.5, false}, {third, third + 1e-16, false}, {0, 1e-6, true}, {math.NaN(), math.NaN(), false},
		{math.Inf(-1), math.Inf(1), true}} {
		s := Results([]store.Eval{{SuiteName: "test", Metric: "pass@1", Value: 0.5, Lo: tt.lo, Hi: tt.hi}})[0].After
		if (s.Lo != nil) != tt.want || (s.Hi != nil) != tt.want || tt.want && (*s.Lo != tt.lo || *s.Hi != tt.hi) {
			t.Errorf("[%v, %v]: %+v", tt.lo, tt.hi, s)
		}
	}
}

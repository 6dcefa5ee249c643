package sweep

import (
	"errors"
	"math"
	"slices"
	"testing"

	"exp/eval"
	"exp/experiments/store"
	"exp/harness/config"
)

// Equal scores say nothing about their spread; a trial that stopped or lacks a score ranks behind.
func TestTrialScores(t *testing.T) {
	done, stopped := store.Run{Status: store.Done}, store.Run{Status: store.Stopped}
	trials := []*Trial{
		{Runs: []store.Run{done, done}, Seeds: []float64{0.5, 0.5}, Lo: 0.4, Hi: 0.6},
		{Runs: []store.Run{done, done}, Seeds: []float64{0.4, 0.6}},
		{Runs: []store.Run{done, stopped}, Seeds: []float64{0.9, 0.9}},
		{Runs: []store.Run{done, done}, Seeds: []float64{0.9}},
		{Runs: []store.Run{done}},
		{Runs: []store.Run{done}, Seeds: []float64{0.3}, Lo: 0.2, Hi: 0.4},
	}
	interval, rank := []bool{false, true, false, true, true, true}, []int{0, 0, 1, 1, 2, 0}
	for i, tr := range trials {
		tr.sum()
		if tr.rank() != rank[i] || math.IsNaN(tr.Lo) == interval[i] {
			t.Errorf("trial %d: rank %d, %v to %v", i, tr.rank(), tr.Lo, tr.Hi)
		}
	}
}

func TestRanks(t *testing.T) {
	done, nan := []store.Run{{Status: store.Done}}, math.NaN()
	one := []float64{0}
	trials := []*Trial{{Runs: done, Seeds: one, Value: 0.5}, {Runs: done, Seeds: one, Value: 0.5},
		{Runs: done, Seeds: one, Value: 0.4}, {Runs: done, Value: 0.4}, {Runs: done, Value: nan}, {Runs: done, Value: nan}}
	if got, want := Ranks(trials), []int{1, 1, 3, 4, 5, 5}; !slices.Equal(got, want) {
		t.Errorf("ranks %v, want %v", got, want)
	}
}

// Trials without an interval overlap nothing.
func TestOverlaps(t *testing.T) {
	nan := math.NaN()
	trials := []*Trial{
		{Runs: []store.Run{{Seed: 3}}, Lo: 0.5, Hi: 0.7},
		{Runs: []store.Run{{Seed: 1}, {Seed: 8}}, Lo: 0.4, Hi: 0.5},
		{Lo: 0.1, Hi: 0.4},
		{Lo: nan, Hi: nan},
	}
	if overlap, have := Overlaps(trials); overlap != 1 || have != 2 {
		t.Errorf("%d of %d overlap", overlap, have)
	}
	if last := LastSeed(trials); last != 8 {
		t.Errorf("the last seed is %d", last)
	}
}

// A metric has its own sense unless the user gives one; a score needs its suite.
func TestObjective(t *testing.T) {
	r := &config.Resolved{}
	r.Run.Name, r.Run.Eval.Final.Suites = "smoke", []string{"test"}
	score := func(suite, metric string) store.Field {
		return store.Field{Kind: store.FieldEval, Suite: suite, Name: metric}
	}
	recorded := func(name string) store.Field { return store.Field{Kind: store.FieldMetric, Name: name} }
	for _, tt := range []struct {
		text   string
		field  store.Field
		lower  bool
		advice string // of an error; empty: no error
	}{
		{"eval.test.pass@1", score("test", "pass@1"), false, ""},
		{"min:eval.test.pass@1", score("test", "pass@1"), true, ""},
		{"eval.math500.pass@1", score("math500", "pass@1"), false, "eval.final.suites lists them"},
		{"metric.kl/ref_k4", recorded("kl/ref_k4"), false, "did you mean kl/ref_k3?"},
		{"metric.kl/ref_k3", recorded("kl/ref_k3"), false, "write max:metric.kl/ref_k3 or min:metric.kl/ref_k3"},
		{"max:metric.kl/ref_k3", recorded("kl/ref_k3"), false, ""},
		{"wall", store.Field{Name: "wall"}, false, "eval.test.pass@1, metric.val/pass@1.max"},
	} {
		sense, text := CutSense(tt.text)
		o, err := NewObjective(tt.field, text, sense, []Range{{Key: "rollout.n"}}, []*config.Resolved{r})
		var wrong *ObjectiveError
		switch {
		case errors.As(err, &wrong):
			if wrong.Advice != tt.advice {
				t.Errorf("%s: %v: advice %q, want %q", tt.text, err, wrong.Advice, tt.advice)
			}
		case err != nil || tt.advice != "":
			t.Errorf("%s: %v, want advice %q", tt.text, err, tt.advice)
		case o.Lower != tt.lower || len(o.Keys) != 1 || sense != "" && (sense == eval.Down) != tt.lower:
			t.Errorf("%s: %+v", tt.text, o)
		}
	}
}

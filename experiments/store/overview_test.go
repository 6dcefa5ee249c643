package store

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"exp/experiments/ident"
)

// sevenSteps makes a run with a point a = step² in each step, b = -step in all but the fifth, and no number.
func sevenSteps(t *testing.T, db *DB) Run {
	t.Helper()
	run := ensure(t, db, newRun("x", 0))
	w := db.NewStepWriter(run.ID, 0, nil)
	for i := int64(1); i <= 7; i++ {
		m := map[string]float64{"a": float64(i * i), "nan": math.NaN()}
		if i%5 != 0 {
			m["b"] = -float64(i)
		}
		if err := w.Record(Step{Det: ident.Det{Step: i, Metrics: m}, Chain: digest("c%d", i), Tokens: 10 * i}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return run
}

func TestOverview(t *testing.T) {
	db := open(t)
	run := sevenSteps(t, db)
	for _, tt := range []struct {
		name string
		n    int64
		want []Bucket
	}{
		{"a", 1, []Bucket{{1, 7, 7, 1, 49}}},
		{"a", 3, []Bucket{{1, 3, 3, 1, 9}, {4, 6, 3, 16, 36}, {7, 7, 1, 49, 49}}},
		{"b", 3, []Bucket{{1, 3, 3, -3, -1}, {4, 6, 2, -6, -4}, {7, 7, 1, -7, -7}}},
		{"nan", 1, []Bucket{{1, 7, 7, math.NaN(), math.NaN()}}},
		{"b", 7, []Bucket{{1, 1, 1, -1, -1}, {2, 2, 1, -2, -2}, {3, 3, 1, -3, -3}, {4, 4, 1, -4, -4}, {6, 6, 1, -6, -6}, {7, 7, 1, -7, -7}}},
	} {
		got, err := db.Overview(context.Background(), run.ID, tt.name, tt.n)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, got, cmpopts.EquateNaNs()); diff != "" {
			t.Errorf("%s in %d buckets (-want +got):\n%s", tt.name, tt.n, diff)
		}
	}
	// Points that lie far apart, in one series of two.
	w := db.NewStepWriter(run.ID, 0, nil)
	for i, step := range []int64{1000, 1001, 5_000_000_000_000} {
		if err := w.Record(Step{Det: ident.Det{Step: step, Metrics: map[string]float64{"a": 0, "far": float64(i)}}, Chain: digest("c%d", step)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := db.Overview(context.Background(), run.ID, "far", 1_000_000_000_000)
	if d := cmp.Diff([]Bucket{{1000, 1000, 1, 0, 0}, {1001, 1001, 1, 1, 1}, {5_000_000_000_000, 5_000_000_000_000, 1, 2, 2}}, got); err != nil || d != "" {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	if _, err := db.Overview(context.Background(), run.ID, "none", 3); !errors.Is(err, ErrNotFound) {
		t.Errorf("no such series: %v", err)
	}
}

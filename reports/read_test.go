package reports

import (
	"context"
	"testing"

	"exp/experiments/store"
	"exp/reports/compare"
)

// Runs that were evaluated in two ways are reported in the way that the others have too,
// in every part of the report; alone, in the newest way.
func TestEvaluationsThatCount(t *testing.T) {
	s := newStudy(t)
	ctx := context.Background()
	compared := Input{Comparison: s.comparison()}
	s.again = "with other settings"
	for _, r := range s.flowrl {
		at, err := s.db.BeginAttempt(ctx, store.Attempt{Run: r.ID, Kind: store.AttemptRun})
		s.must(err)
		s.evaluate(r, at.ID, "test@start", r.Seed, 0)
		s.evaluate(r, at.ID, "test", r.Seed, 0) // all wrong
		s.must(s.db.EndAttempt(ctx, at.ID, store.Done, 0))
	}
	half := compare.Arm{Runs: append(s.flowrl[:1:1], s.ppo[1])}
	for _, tt := range []struct {
		name        string
		in          Input
		first, last float64 // share right of p0 and p1, seed 0
		right       string
	}{
		{"against runs that lack the newest", compared, 1, 0.5, "seed 0: 2 of 2 right"},
		{"compared again", Input{Comparison: s.comparison()}, 1, 0.5, "seed 0: 2 of 2 right"},
		{"one arm, a run that lacks the newest", Input{Arm: half}, 1, 0.5, "seed 0: 2 of 2 right"},
		{"one arm, all with the newest", Input{Arm: compare.Arm{Runs: s.flowrl}}, 0, 0, "seed 0: 0 of 2 right"},
	} {
		tt.in.DB = s.db
		src, err := read(ctx, tt.in)
		s.must(err)
		a := src.arms[0]
		row := a.items("test").Seeds[0]
		if row[0] != tt.first || row[1] != tt.last {
			t.Errorf("%s: problems solved %v, want %v and %v first", tt.name, row, tt.first, tt.last)
		}
		if got, want := a.Runs[0].evalValue("countdown/test", "pass@1"), (row[0]+row[1]+row[2])/3; !near(got, want) {
			t.Errorf("%s: pass@1 is %v, want the problems' %v", tt.name, got, want)
		}
		if n := len(a.Runs[0].evals); n != 6 {
			t.Errorf("%s: %d scores, want 3 metrics before and after training", tt.name, n)
		}
		shown, err := src.problems(ctx, []pick{{Suite: "test", Problem: "p0", Shares: make([]float64, len(src.arms))}})
		s.must(err)
		if got := shown[0].Arms[0].Right; got != tt.right {
			t.Errorf("%s: answers %q, want %q", tt.name, got, tt.right)
		}
	}
}

func near(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 }

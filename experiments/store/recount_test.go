package store

import (
	"maps"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// Whatever is recorded, in whatever order, its summaries agree with it; a changed one does not.
func TestRecount(t *testing.T) {
	db := open(t)
	run := ensure(t, db, newRun("x", 0))
	values := map[int64]float64{1: math.NaN(), 2: 3, 3: math.Inf(1), 4: -1, 5: math.Copysign(0, -1), 6: -1, 7: math.NaN()}
	var steps []Step
	for _, n := range []int64{1, 2, 3, 6, 5, 4, 7} { // ties in another order
		s := step60(n)
		s.Measured = map[string]float64{"odd": values[n], "none": math.NaN()}
		steps = append(steps, s)
	}
	if err := record(t, db, run.ID, steps...); err != nil {
		t.Fatal(err)
	}
	if err := db.SetHeadline(t.Context(), run.ID, []Headline{{"pass@1", 0.5}}); err != nil {
		t.Fatal(err)
	}
	got, err := db.Recount(t.Context(), run.ID)
	if err != nil || len(got) > 0 {
		t.Fatalf("%v, %v", got, err)
	}
	for change, want := range map[string]string{
		`UPDATE series SET last = 1 WHERE name = 'odd'`:                "series odd: last is 1, but the rows in metrics give NaN",
		`UPDATE series SET argmin = 2 WHERE name = 'odd'`:              "series odd: argmin is 2, but the rows in metrics give 4",
		`UPDATE series SET min = -2 WHERE name = 'odd'`:                "series odd: min is -2, but the rows in metrics give -1",
		`UPDATE series SET n = 6 WHERE name = 'none'`:                  "series none: n is 6, but the rows in metrics give 7",
		`UPDATE runs SET tokens = 1 + (SELECT sum(tokens) FROM steps)`: "",
	} {
		tx, err := db.w.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(change); err != nil {
			t.Fatal(err)
		}
		list, err := recountSeries(t.Context(), tx, run.ID)
		more, errRun := recountRun(t.Context(), tx, run.ID)
		tx.Rollback()
		if list = append(list, more...); err != nil || errRun != nil || len(list) != 1 {
			t.Errorf("%s: %v, %v, %v", change, list, err, errRun)
		} else if said := list[0].Where() + ": " + list[0].String(); want != "" && said != want {
			t.Errorf("%s: %s, want %s", change, said, want)
		}
	}
}

// Scores that come after their step are added to it; those that it has stay, and summaries agree.
func TestRecordScores(t *testing.T) {
	db := open(t)
	run := ensure(t, db, newRun("x", 0))
	w := db.NewStepWriter(run.ID, 0, nil)
	defer w.Close()
	for n := range int64(3) {
		s := step60(n + 1)
		s.Measured = map[string]float64{"timing": float64(n)}
		if err := w.Record(s); err != nil {
			t.Fatal(err)
		}
	}
	for _, scores := range []map[string]float64{{"val/a": 1, "val/b": math.NaN()}, {"val/a": 7}, {"timing": 9, "val/c": 3}} {
		for _, step := range []int64{0, 2} {
			if err := w.RecordScores(step, maps.Clone(scores)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := map[string][]float64{}
	curves, err := db.Metrics(t.Context(), run.ID, "", 0, 3)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range curves {
		if !c.Det {
			got[c.Name] = c.Values
		}
	}
	nan := math.NaN()
	want := map[string][]float64{"timing": {9, 0, 1, 2}, "val/a": {1, 1}, "val/b": {nan, nan}, "val/c": {3, 3}}
	if diff := cmp.Diff(want, got, cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
	if list, err := db.Recount(t.Context(), run.ID); err != nil || len(list) > 0 {
		t.Errorf("%v, %v", list, err)
	}
}

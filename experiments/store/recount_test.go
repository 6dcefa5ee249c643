package store

import (
	"math"
	"testing"
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

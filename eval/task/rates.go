package task

import (
	"fmt"
	"iter"
	"math"

	"exp/eval/rows"
)

// rates are pass rates that rows of problems bring along.
type rates struct {
	list  []float64 // of the problems so far; NaN: unknown
	known int       // how many are not NaN
}

// add takes the rate of a row's problem. One that is absent or null is unknown.
func (r *rates) add(row rows.Row, column string) error {
	x := math.NaN()
	if _, ok := row.Value(column); ok {
		var err error
		if x, err = row.Number(column); err != nil {
			return err
		}
		if !(0 <= x && x <= 1) {
			return row.Errorf(column, "%v is not a pass rate, a number from 0 to 1", x)
		}
		r.known++
	}
	r.list = append(r.list, x)
	return nil
}

// of returns the rows of problems, and takes the rates of those that are kept.
func (r *rates) of(all iter.Seq2[rows.Row, error], column string) iter.Seq2[rows.Row, error] {
	return func(yield func(rows.Row, error) bool) {
		var failed error
		for row, err := range all {
			row.Kept = func() { failed = r.add(row, column) }
			if !yield(row, err) {
				return
			}
			if failed != nil {
				yield(rows.Row{}, failed)
				return
			}
		}
	}
}

// check returns an error if a source has problems and none of them has a rate.
func (r *rates) check(from Source) error {
	if from.Rate == "" || r.known > 0 || len(r.list) == 0 {
		return nil
	}
	return fmt.Errorf("%s: no row has a number in the column %s, which data.pass_rate.column names", from.Path,
		from.Rate)
}

package query

import (
	"context"

	"exp/experiments/store"
)

// List holds runs, newest first, with their current statuses (store.DB.StatusNow) and the
// values of some fields.
type List struct {
	Runs   []store.Run
	Values [][]any // [len(Runs)][number of fields]
	More   int     // further runs beyond the limit
}

// List returns all runs that pass a filter, nil for all. The filter sees current
// statuses.
func (f Finder) List(ctx context.Context, filter *Filter, fields []store.Field) (List, error) {
	return f.list(ctx, filter, fields, 0)
}

// Newest returns the n newest runs and counts the others.
func (f Finder) Newest(ctx context.Context, fields []store.Field, n int) (List, error) {
	total, err := f.DB.CountRuns(ctx, store.RunQuery{Deleted: f.Deleted})
	if err != nil {
		return List{}, err
	}
	l, err := f.list(ctx, nil, fields, n)
	l.More = max(0, total-len(l.Runs))
	return l, err
}

// list filters the newest runs, all if newest is 0.
func (f Finder) list(ctx context.Context, filter *Filter, fields []store.Field, newest int) (List, error) {
	var tested []store.Field
	if filter != nil {
		tested = filter.Fields()
	}
	all := append(tested[:len(tested):len(tested)], fields...)
	runs, values, err := f.DB.RunFields(ctx, store.RunQuery{Deleted: f.Deleted, Limit: newest}, all)
	if err != nil {
		return List{}, err
	}
	l := List{Runs: runs[:0], Values: values[:0]}
	for i := range runs {
		r, row := runs[i], values[i]
		if now := f.DB.StatusNow(&r); now != r.Status {
			r.Status = now
			setStatus(all, row, now)
		}
		if filter == nil || filter.Match(row[:len(tested)], f.Now) {
			l.Runs, l.Values = append(l.Runs, r), append(l.Values, row[len(tested):])
		}
	}
	return l, nil
}

// setStatus replaces the value of the field status.
func setStatus(fields []store.Field, row []any, s store.Status) {
	for i, f := range fields {
		if f.Kind == store.FieldColumn && f.Name == "status" {
			row[i] = string(s)
		}
	}
}

// Keep removes the runs that are not in chosen.
func (l *List) Keep(chosen []store.Run) {
	wanted := make(map[int64]bool, len(chosen))
	for _, r := range chosen {
		wanted[r.ID] = true
	}
	n := 0
	for i, r := range l.Runs {
		if wanted[r.ID] {
			l.Runs[n], l.Values[n] = r, l.Values[i]
			n++
		}
	}
	l.Runs, l.Values = l.Runs[:n], l.Values[:n]
}

package query

import (
	"math"
	"slices"
	"testing"
	"time"

	"exp/experiments/store"
)

func TestSort(t *testing.T) {
	day := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	list := func(values ...any) *List {
		l := &List{}
		for i, v := range values {
			l.Runs = append(l.Runs, store.Run{ID: int64(i), Headline: []store.Headline{{Name: "acc", Value: -float64(i)}}})
			l.Values = append(l.Values, []any{"first", v})
		}
		return l
	}
	field := Order{Field: store.Field{Kind: store.FieldMetric, Name: "m"}}
	down := field
	down.Descend = true
	for _, tt := range []struct {
		name  string
		list  *List
		order Order
		want  []int64
	}{
		{"numbers", list(3., 1., nil, 2.), field, []int64{1, 3, 0, 2}},
		{"numbers descending", list(3., 1., nil, 2.), down, []int64{0, 3, 1, 2}},
		{"texts", list("b", "a", "a"), field, []int64{1, 2, 0}},
		{"times", list(day, day.Add(-1)), field, []int64{1, 0}},
		{"lists", list([]any{"b"}, []any{"a", "c"}), field, []int64{1, 0}},
		{"numbers and texts", list(2., "a", 1., true, "b", nil), field, []int64{2, 0, 1, 4, 3, 5}},
		{"numbers and texts descending", list(2., "a", 1., nil), down, []int64{1, 0, 2, 3}},
		{"a result", list(1., 1., 1.), Order{Result: "acc"}, []int64{2, 1, 0}},
		{"newest", list(3., 1.), Order{Field: store.Field{Kind: store.FieldColumn, Name: "created"}, Descend: true}, []int64{0, 1}},
	} {
		tt.list.Sort(tt.order)
		var got []int64
		for _, r := range tt.list.Runs {
			got = append(got, r.ID)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	r := store.Run{Headline: []store.Headline{{Name: "acc", Value: math.NaN()}}}
	if got := Result(&r, "acc"); got != nil {
		t.Errorf("a result that is not recorded yet: %v", got)
	}
}

package store

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestSpans(t *testing.T) {
	db := open(t)
	run := sevenSteps(t, db)
	nan := math.NaN()
	a3 := []Span{{1, 1, 3, 3, 1, 9, 14. / 3}, {4, 4, 6, 3, 16, 36, 77. / 3}, {7, 7, 7, 1, 49, 49, 49}}
	b3 := []Span{{1, 1, 3, 3, -3, -1, -2}, {4, 4, 6, 2, -6, -4, -5}, {7, 7, 7, 1, -7, -7, -7}}
	for _, tt := range []struct {
		names []string
		grid  Grid
		want  map[string][]Span
	}{
		{[]string{"a"}, Grid{1, 7, 3}, map[string][]Span{"a": a3}},
		{[]string{"b"}, Grid{1, 7, 3}, map[string][]Span{"b": b3}},
		{[]string{"a", "b", "none"}, Grid{1, 7, 3}, map[string][]Span{"a": a3, "b": b3}},
		{[]string{"a"}, Grid{3, 4, 1}, map[string][]Span{"a": {{3, 3, 4, 2, 9, 16, 12.5}}}},
		{[]string{"b"}, Grid{5, 5, 1}, map[string][]Span{"b": nil}},
		{[]string{"nan"}, Grid{1, 7, 1}, map[string][]Span{"nan": {{1, 1, 7, 7, nan, nan, nan}}}},
		{[]string{"none"}, Grid{1, 7, 1}, nil},
	} {
		got, err := db.Spans(context.Background(), run.ID, tt.names, tt.grid)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, got, cmpopts.EquateNaNs(), cmpopts.EquateApprox(0, 1e-12)); diff != "" {
			t.Errorf("%v on %+v (-want +got):\n%s", tt.names, tt.grid, diff)
		}
	}
	paces, err := db.Paces(context.Background(), run.ID, Grid{3, 7, 2})
	if err != nil {
		t.Fatal(err)
	}
	for i := range paces {
		if paces[i].Time.IsZero() {
			t.Errorf("pace %d has no time", i)
		}
		paces[i].Time = time.Time{}
	}
	if diff := cmp.Diff([]Pace{{Step: 5, Tokens: 150}, {Step: 7, Tokens: 280}}, paces); diff != "" {
		t.Errorf("paces (-want +got):\n%s", diff)
	}
}

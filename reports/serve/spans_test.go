package serve

import (
	"context"
	"net/url"
	"testing"
	"time"

	"exp/experiments/store"
)

// A curve is read again only if it has grown.
func TestSpanCache(t *testing.T) {
	s := newStudy(t)
	run, at, _ := s.begin("x", "ppo", 0, 100)
	s.steps(run, at.ID, 1, 20, 0.2)
	var c spanCache
	read := func(names ...string) map[string][]store.Span {
		t.Helper()
		found, err := c.read(context.Background(), s.db, run, names, store.Grid{To: 40, N: 500})
		s.must(err)
		return found
	}
	if got := read("actor/entropy", "val/pass@1", "none"); len(got) != 2 || len(got["actor/entropy"]) != 20 || len(got["val/pass@1"]) != 2 {
		t.Errorf("%d series: %v", len(got), got)
	}
	if len(c.kept) != 2 {
		t.Errorf("%d are kept", len(c.kept))
	}
	for key := range c.kept {
		c.kept[key] = c.kept[key][:1] // marks what comes from the cache
	}
	if got := read("actor/entropy"); len(got["actor/entropy"]) != 1 {
		t.Errorf("read again: %v", got)
	}
	// Another run may get the row of a removed one.
	other := run
	other.Created = other.Created.Add(time.Second)
	if got, err := c.read(context.Background(), s.db, other, []string{"actor/entropy"}, store.Grid{To: 40, N: 500}); err != nil || len(got["actor/entropy"]) != 20 {
		t.Errorf("another run in the same row: %v, %v", got, err)
	}
	s.steps(run, at.ID, 21, 25, 0.2)
	if got := read("actor/entropy", "val/pass@1"); len(got["actor/entropy"]) != 25 || len(got["val/pass@1"]) != 1 {
		t.Errorf("after five steps: %v", got)
	}
}

// The values of a chart depend on all that chooses and arranges its arms.
func TestPointsQuery(t *testing.T) {
	q := url.Values{"sel": {"a", "b"}, "vs": {"c"}, "by": {"algo"}, "x": {"tokens"}, "metric": {"other"}}
	if got, want := pointsQuery(nil, q).Encode(), "by=algo&sel=a&sel=b&vs=c&x=tokens"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestRoundedUp(t *testing.T) {
	for step, want := range map[int64]int64{0: 0, 1: 1, 15: 15, 16: 16, 17: 18, 120: 120, 121: 128, 1000: 1024, 1_000_000: 1_048_576} {
		if got := roundedUp(step); got != want {
			t.Errorf("%d: %d, want %d", step, got, want)
		}
	}
}

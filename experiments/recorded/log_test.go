package recorded

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/experiments/store"
)

// A followed log returns each entry once; warnings come alone if only they are asked for.
func TestLog(t *testing.T) {
	f := newFixture(t)
	texts := func(l *Log) (list []string) {
		t.Helper()
		entries, err := l.Read(f.ctx)
		f.must(err)
		for _, e := range entries {
			list = append(list, e.Kind)
		}
		return list
	}
	all := &Log{DB: f.db, Run: f.child, Level: store.LevelInfo}
	got := texts(all)
	slices.Sort(got) // several have one time
	if d := cmp.Diff([]string{"attempt", "checkpoint", "checkpoint", "nan", "stage", "stage", "stage", "stage"}, got); d != "" {
		t.Errorf("entries (-want +got):\n%s", d)
	}
	f.must(f.db.AddEvent(f.ctx, store.Event{Run: f.child.ID, Level: store.LevelError, Kind: "lost", Data: json.RawMessage(`{"text":"gone","step":3}`)}))
	if got := texts(all); len(got) != 1 || got[0] != "lost" {
		t.Errorf("then %q", got)
	}
	if got := texts(all); len(got) != 0 {
		t.Errorf("and then %q", got)
	}
	if got := texts(&Log{DB: f.db, Run: f.child, Level: store.LevelWarn, Events: true}); len(got) != 2 {
		t.Errorf("warnings %q", got)
	}
}

func TestEventText(t *testing.T) {
	for data, want := range map[string]string{
		`{"text":"gone","step":3}`:        "step 3: gone",
		`{"text":"at step 3","step":3}`:   "at step 3",
		`{"step": 3, "metrics": ["a<b"]}`: `{"step":3,"metrics":["a<b"]}`,
		`not JSON`:                        "not JSON",
	} {
		if got := EventText(json.RawMessage(data)); got != want {
			t.Errorf("%s: %q, want %q", data, got, want)
		}
	}
}

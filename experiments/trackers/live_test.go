package trackers

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"exp/experiments/ident"
	"exp/experiments/store"
)

func liveRun() store.Run {
	return store.Run{RID: ident.Sum([]byte("live")), Name: "live", Seed: 3, Created: time.Unix(1_700_000_000, 0).UTC()}
}

const liveConfig = `{"algo":{"kind":"ppo","clip":0.2},"train":{"steps":4,"modes":["x"]},"off":false}`

// steps writes steps from to to and returns the file.
func liveSteps(t *testing.T, dir string, from, to int64) string {
	t.Helper()
	l, err := OpenLive(dir, liveRun(), liveConfig)
	if err != nil {
		t.Fatal(err)
	}
	for step := from; step <= to; step++ {
		fresh, err := l.Step(time.Unix(1_700_000_000+step, 0), step, map[string]float64{"reward": float64(step), "loss": 1},
			[]Text{{"completions", "**right**"}})
		if err != nil {
			t.Fatal(err)
		}
		if fresh && step == 4 {
			if err := l.Done(time.Unix(1_700_000_009, 0)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, folder(liveRun()), eventFile(liveRun()))
}

// A run killed within a write, which repeats steps after its checkpoint, has the same events
// as an undisturbed one.
func TestLiveResume(t *testing.T) {
	whole, err := os.ReadFile(liveSteps(t, t.TempDir(), 1, 4))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := liveSteps(t, dir, 1, 3)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b[:len(b)-5], 0o666); err != nil { // step 3 is cut
		t.Fatal(err)
	}
	liveSteps(t, dir, 2, 4)
	liveSteps(t, dir, 4, 4)
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, whole) {
		t.Errorf("%d bytes, want the %d of an unbroken run (%v)", len(got), len(whole), err)
	}
	p := newPoints()
	if whole, err := p.readEvents(path, bytes.NewReader(got)); err != nil || !whole {
		t.Fatalf("whole %v, %v", whole, err)
	}
	want := []Series{{"loss", []int64{1, 2, 3, 4}, []float64{1, 1, 1, 1}}, {"reward", []int64{1, 2, 3, 4}, []float64{1, 2, 3, 4}}}
	if d := cmp.Diff(want, p.list()); d != "" {
		t.Errorf("series (-want +got):\n%s", d)
	}
	for text, n := range map[string]int{"hparams": 2, "algo.kind": 1, "train.modes": 1, "**right**": 4, "_hparams_/session_end_info": 1} {
		if got := strings.Count(string(got), text); got < n || n == 1 && got > 1 {
			t.Errorf("%q is there %d times, want %d", text, got, n)
		}
	}
}

func TestLiveRefuses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenLive(file, liveRun(), liveConfig); err == nil {
		t.Error("a file is taken as a folder")
	}
	path := liveSteps(t, dir, 1, 1)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[20] ^= 1
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenLive(dir, liveRun(), liveConfig); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a damaged file gives %v", err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, b) {
		t.Error("a damaged file was changed")
	}
}

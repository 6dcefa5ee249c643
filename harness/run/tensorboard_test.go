package run

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/experiments/trackers"
)

// events reads the TensorBoard events of the only run under dir.
func events(t *testing.T, dir string) *trackers.Foreign {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "events.out.tfevents.*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("event files %q, %v", files, err)
	}
	f, err := trackers.Read("tensorboard", files)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A run that dies and is resumed has each step once, with hyperparameters and completions.
func TestTensorBoard(t *testing.T) {
	dir := t.TempDir()
	l, settings := died(t, "store.tensorboard="+dir)
	res, q := l.execute(l.plan(0, settings...))
	if len(q.warnings) != 0 {
		t.Errorf("warnings %q", q.warnings)
	}
	f := events(t, dir)
	if len(f.Remarks) != 0 {
		t.Errorf("remarks %q: a step is there twice, or cut", f.Remarks)
	}
	for _, s := range f.Series {
		if s.Name == "critic/score/mean" && len(s.Steps) != 6 {
			t.Errorf("steps %v, want 1 to 6", s.Steps)
		}
		if s.Name == "val/pass@1" && !slices.Equal(s.Steps, []int64{0, 2, 4, 6}) {
			t.Errorf("validation at steps %v, want 0, 2, 4, 6", s.Steps)
		}
	}
	curves, err := l.db.Metrics(context.Background(), res.Run.ID, "", 0, 100)
	if err != nil || len(curves) != len(f.Series) {
		t.Errorf("%d series in the events, %d in the store, %v", len(f.Series), len(curves), err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*", "events*"))
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"_hparams_/session_start_info", "_hparams_/session_end_info", "algo.kind", "completions", "reward "} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the events lack %q", want)
		}
	}

	// Steps from the cache write none, which is told unless they are there.
	if _, q := l.execute(l.plan(0, settings...)); len(q.warnings) != 0 {
		t.Errorf("executed again: warnings %q", q.warnings)
	}
	other := filepath.Join(dir, "other")
	_, q = l.execute(l.plan(0, append(settings, "store.tensorboard="+other)...))
	if want := "exp export " + res.Run.RID.Short() + " DIR --format tensorboard"; len(q.warnings) != 1 || !strings.Contains(q.warnings[0], want) {
		t.Errorf("cached, with another folder: warnings %q, want …%s…", q.warnings, want)
	}
}

// A failure to write events is a warning and an event of the run, which continues.
func TestTensorBoardFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	l := startedLab(t)
	res, q := l.execute(l.plan(0, "store.tensorboard="+file))
	if res.Run.Steps != res.Run.StepsTotal || len(q.warnings) != 1 || !strings.Contains(q.warnings[0], "TensorBoard events end here") {
		t.Errorf("%d of %d steps, warnings %q", res.Run.Steps, res.Run.StepsTotal, q.warnings)
	}
	recorded, err := l.db.Events(context.Background(), res.Run.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range recorded {
		if e.Kind == boardFailed {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d events %s, want 1", n, boardFailed)
	}
}

package run

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"exp/experiments/ident"
	"exp/experiments/store"
)

// The store hears what a stage does, about once a second, and nothing remains afterwards.
func TestActivity(t *testing.T) {
	l := newLab(t)
	rid := ident.Sum([]byte("run"))
	if err := os.MkdirAll(l.db.RunDir(rid), 0o777); err != nil {
		t.Fatal(err)
	}
	a := newActivity(l.db, rid, StageInfo{Kind: "train", Steps: 9})
	begun := time.Now()
	a.progress(3, 9)
	a.phase(4, "grade", 1, 64)
	a.phase(4, "grade", 2, 64)
	var got store.Activity
	for time.Since(begun) < 10*time.Second && got.Done != 2 {
		got, _ = l.db.Activity(rid)
		time.Sleep(10 * time.Millisecond)
	}
	if got.Stage != "train" || got.Of != 9 || got.Step != 4 || got.Phase != "grade" || got.Done != 2 || got.Total != 64 || got.Since.Before(begun.Add(-time.Second)) {
		t.Errorf("read %+v", got)
	}
	a.close()
	if files, _ := filepath.Glob(filepath.Join(l.db.RunDir(rid), ".*")); len(files) != 0 {
		t.Errorf("left behind: %q", files)
	}
	if a, ok := l.db.Activity(rid); ok {
		t.Errorf("still there: %+v", a)
	}
}

// A run continues if its activity cannot be written.
func TestActivityFails(t *testing.T) {
	l := startedLab(t)
	p := l.plan(0, "train.steps=1")
	if err := os.MkdirAll(filepath.Join(l.db.RunDir(p.RID), ".activity.json.partial"), 0o777); err != nil {
		t.Fatal(err)
	}
	if res, err := l.try(context.Background(), p, &quiet{}); err != nil || res.Run.Status != store.Done {
		t.Errorf("run %s, %v", res.Run.Status, err)
	}
}

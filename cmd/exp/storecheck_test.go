package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exp/experiments/ident"
	"exp/experiments/store"
)

// record is the content of a store at the end of a test.
type record struct {
	runs    []store.Run
	outputs map[string]ident.Digest // of the first run's finished stages
	events  []string                // kinds, of the first run
}

// consistent checks that a store is whole, that nothing half-written lies in it, and
// that every output of a finished stage is there; it returns what the store says.
func consistent(t *testing.T, dir string) record {
	t.Helper()
	ctx := context.Background()
	db, err := store.Open(dir, store.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	r := record{outputs: map[string]ident.Digest{}}
	if r.runs, err = db.Runs(ctx, store.RunQuery{}); errors.Join(err, db.Check(ctx)) != nil {
		t.Fatal(err, db.Check(ctx))
	}
	for i, run := range r.runs {
		stages, err := db.Stages(ctx, run.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range stages {
			for _, o := range s.Outputs {
				if err := db.Blobs.Verify(o.Digest, o.Size); err != nil {
					t.Errorf("stage %s %s: %v", s.Kind, s.Status, err)
				}
				if i == 0 {
					r.outputs[s.Kind+"["+s.Label+"]/"+o.Role] = o.Digest
				}
			}
		}
	}
	if len(r.runs) > 0 {
		events, err := db.Events(ctx, r.runs[0].ID, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			r.events = append(r.events, e.Kind)
		}
	}
	if rest := halfWritten(t, dir); len(rest) > 0 {
		t.Errorf("left behind: %v", rest)
	}
	return r
}

// halfWritten lists files that were being written.
func halfWritten(t *testing.T, dir string) (rest []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && (filepath.Base(filepath.Dir(p)) == "tmp" || strings.HasSuffix(p, ".partial")) {
			rest = append(rest, p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return rest
}

// same checks that a run came to the end that an unbroken one came to.
func (r record) same(t *testing.T, want record) {
	t.Helper()
	if len(r.runs) == 0 || r.runs[0].Status != store.Done {
		t.Fatalf("the run did not end: %+v", r.runs)
	}
	if r.runs[0].Chain != want.runs[0].Chain || r.runs[0].Steps != want.runs[0].Steps {
		t.Errorf("%d steps with chain %s, unbroken: %d with %s", r.runs[0].Steps, r.runs[0].Chain.Short(), want.runs[0].Steps, want.runs[0].Chain.Short())
	}
	for name, d := range want.outputs {
		if r.outputs[name] != d {
			t.Errorf("%s is %s, unbroken: %s", name, r.outputs[name].Short(), d.Short())
		}
	}
}

// contents lists the files of a folder with their sizes; SQLite's shared memory and
// empty files, which looking leaves behind, are left out.
func contents(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := fs.WalkDir(os.DirFS(dir), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Size() > 0 && !strings.HasSuffix(p, "-shm") {
			fmt.Fprintln(&b, p, info.Size())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

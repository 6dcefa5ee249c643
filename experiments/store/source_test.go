package store

import (
	"context"
	"errors"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"exp/experiments/ident"
)

func TestSources(t *testing.T) {
	db := open(t)
	ctx := context.Background()
	tree := fstest.MapFS{"go.sum": {Data: []byte("sum")}, "train/a.go": {Data: []byte("a")}, "reports/r.go": {Data: []byte("r")}}
	files, err := ident.SumFiles(tree, func(path string) bool { return path != "reports/r.go" })
	if err != nil {
		t.Fatal(err)
	}
	code, err := ident.Code("go1.26", files)
	if err != nil {
		t.Fatal(err)
	}
	archive, size, err := db.Blobs.PutTree(tree, []string{"go.sum", "reports/r.go", "train/a.go"})
	if err != nil {
		t.Fatal(err)
	}
	want := Source{Code: code, Go: "go1.26", Files: files, Archive: archive, Size: size}
	if err := db.AddSource(ctx, want); err != nil {
		t.Fatal(err)
	}
	// The report changes, the code of training does not: the first archive stays.
	tree["reports/r.go"].Data = []byte("r2")
	later, laterSize, err := db.Blobs.PutTree(tree, []string{"go.sum", "reports/r.go", "train/a.go"})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.AddSource(ctx, Source{Code: code, Go: "go1.26", Files: files, Archive: later, Size: laterSize}); err != nil {
		t.Fatal(err)
	}
	got, err := db.Source(ctx, code)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("source: %v (-want +got):\n%s", err, diff)
	}
	if _, err := db.Source(ctx, digest("none")); !errors.Is(err, ErrNotFound) {
		t.Errorf("no source: error %v, want ErrNotFound", err)
	}
}

// A damaged list of files is damage.
func TestSourceDamaged(t *testing.T) {
	db := open(t)
	ctx := context.Background()
	files := []ident.File{{Path: "train/a.go", SHA256: digest("a")}}
	code, err := ident.Code("go1.26", files)
	if err != nil {
		t.Fatal(err)
	}
	archive, size, err := db.Blobs.PutTree(fstest.MapFS{"a.go": {Data: []byte("a")}}, []string{"a.go"})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.AddSource(ctx, Source{Code: code, Go: "go1.26", Files: files, Archive: archive, Size: size}); err != nil {
		t.Fatal(err)
	}
	for _, files := range []string{`[{"path": "train/a.go", "sha256": "zz"}]`, `[{"path": 1}]`, `{}`} {
		if _, err := db.w.Exec("UPDATE sources SET files = ?", files); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Source(ctx, code); !errors.Is(err, ErrCorrupt) {
			t.Errorf("files %s: error %v, want ErrCorrupt", files, err)
		}
	}
}

package blob

import (
	"archive/tar"
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
)

func TestTreeRoundTrip(t *testing.T) {
	tree := fstest.MapFS{
		"go.mod":               {Data: []byte("module exp\n")},
		"train/rl/gae.go":      {Data: []byte("package rl\n"), Mode: 0o600, ModTime: time.Unix(1e9, 0)},
		"train/empty.go":       {},
		"reports/not/asked.go": {Data: []byte("no")},
	}
	paths := []string{"go.mod", "train/empty.go", "train/rl/gae.go"}
	d := At(t.TempDir())
	digest, size, err := d.PutTree(tree, paths)
	if err != nil || !d.Has(digest, size) {
		t.Fatalf("PutTree = %s, %d, %v", digest, size, err)
	}
	dir := t.TempDir()
	if err := d.ExtractTree(digest, dir); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	fs.WalkDir(os.DirFS(dir), ".", func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			b, _ := os.ReadFile(filepath.Join(dir, path))
			got[path] = string(b)
		}
		return err
	})
	want := map[string]string{"go.mod": "module exp\n", "train/empty.go": "", "train/rl/gae.go": "package rl\n"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}

	files, err := d.ReadTree(digest)
	read := map[string]string{}
	for name, b := range files {
		read[name] = string(b)
	}
	if diff := cmp.Diff(want, read); err != nil || diff != "" {
		t.Errorf("read: %v, (-want +got):\n%s", err, diff)
	}
	if err := d.ExtractTree(digest, dir); !errors.Is(err, fs.ErrExist) {
		t.Errorf("extracting over files: error %v, want fs.ErrExist", err)
	}
	tree["train/rl/gae.go"].ModTime = time.Unix(2e9, 0)
	if again, _, _ := d.PutTree(tree, paths); again != digest {
		t.Error("a file's time changed the tree")
	}
	if _, _, err := d.PutTree(tree, []string{"none.go"}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: error %v", err)
	}
}

// A tree from elsewhere cannot write outside the folder it is extracted to.
func TestExtractTreeStaysInside(t *testing.T) {
	for _, name := range []string{"../evil", "/evil", "a/../../evil"} {
		var raw bytes.Buffer
		enc, _ := zstd.NewWriter(&raw)
		tw := tar.NewWriter(enc)
		tw.WriteHeader(&tar.Header{Name: name, Size: 1})
		tw.Write([]byte("x"))
		tw.Close()
		enc.Close()
		d := At(t.TempDir())
		digest, err := d.PutBytes(raw.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		parent := t.TempDir()
		dir := filepath.Join(parent, "out")
		if err := os.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := d.ExtractTree(digest, dir); err == nil {
			t.Errorf("%s: extracted", name)
		}
		if entries, _ := os.ReadDir(parent); len(entries) != 1 {
			t.Errorf("%s: wrote outside: %v", name, entries)
		}
	}
}

func TestExtractTreeRefusesNonsense(t *testing.T) {
	d := At(t.TempDir())
	digest, err := d.PutBytes([]byte("not a tree"))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.ExtractTree(digest, t.TempDir()); !errors.Is(err, ErrCorrupt) {
		t.Errorf("error %v, want ErrCorrupt", err)
	}
}

package blob

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"exp/experiments/ident"
)

func TestRemove(t *testing.T) {
	d := At(t.TempDir())
	none := func(File) error { t.Error("a file in an empty directory"); return nil }
	if err := d.Files(none); err != nil {
		t.Error(err)
	}
	digest, err := d.PutBytes([]byte("text"))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	old := now.Add(-24 * time.Hour)
	if err := os.Chtimes(d.Path(digest), old, old); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(d.Path(digest)), "README"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	n := 0
	err = d.Files(func(f File) error {
		n++
		if f.Digest != digest || f.Size != 4 || !f.Time.Equal(old) {
			t.Errorf("file %+v", f)
		}
		return nil
	})
	if n != 1 || err != nil {
		t.Errorf("%d files, %v", n, err)
	}
	if removed, err := d.Remove(digest, old.Add(-time.Second)); removed || err != nil {
		t.Errorf("younger than asked for: removed %v, %v", removed, err)
	}
	// Storing it again, either way, makes it young.
	for _, put := range []func() error{
		func() error { _, err := d.PutBytes([]byte("text")); return err },
		func() error {
			path := filepath.Join(t.TempDir(), "file")
			if err := os.WriteFile(path, []byte("text"), 0o666); err != nil {
				return err
			}
			_, _, err := d.PutFile(path)
			return err
		},
	} {
		if err := errors.Join(os.Chtimes(d.Path(digest), old, old), put()); err != nil {
			t.Fatal(err)
		}
		if removed, err := d.Remove(digest, now.Add(-time.Hour)); removed || err != nil {
			t.Errorf("stored again: removed %v, %v", removed, err)
		}
	}
	for range 2 { // the second time it is gone already
		if removed, err := d.Remove(digest, now.Add(time.Hour)); !removed || err != nil || d.Has(digest, 4) {
			t.Errorf("removed %v, %v", removed, err)
		}
	}
}

func TestQuarantine(t *testing.T) {
	d := At(t.TempDir())
	digest, err := d.PutBytes([]byte("text"))
	if err != nil {
		t.Fatal(err)
	}
	path, err := d.Quarantine(digest, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); string(text) != "text" || err != nil || d.Has(digest, 4) {
		t.Errorf("it holds %q, %v", text, err)
	}
	if _, err := d.Quarantine(ident.Sum(nil), time.Now()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing blob: %v", err)
	}
	if _, err := d.PutBytes([]byte("text")); err != nil || !d.Has(digest, 4) {
		t.Errorf("stored again: %v", err)
	}
}

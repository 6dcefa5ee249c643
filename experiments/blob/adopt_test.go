package blob

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"exp/experiments/ident"
)

// A file that is adopted is a blob like any other and stays where it was, whether the
// file system clones, links or copies. Replacing it leaves the blob alone.
func TestAdopt(t *testing.T) {
	root := t.TempDir()
	d := At(root)
	path := filepath.Join(t.TempDir(), "weights")
	if err := os.WriteFile(path, []byte("abc"), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		digest, n, err := d.Adopt(path)
		if err != nil || n != 3 || digest.String() != abc {
			t.Fatalf("Adopt = %s, %d, %v, want %s, 3", digest, n, err, abc)
		}
	}
	digest := ident.Sum([]byte("abc"))
	blob, err := os.Stat(d.Path(digest))
	if err != nil || blob.Mode() != 0o444 {
		t.Fatalf("blob file: %v, %v, want mode 0444", blob, err)
	}
	file, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if os.SameFile(blob, file) && file.Mode().Perm()&0o222 != 0 {
		t.Errorf("the file is the blob and can be written: %v", file.Mode())
	}
	wantNoTemp(t, root)
	if err := os.Rename(written(t, "other"), path); err != nil {
		t.Fatal(err)
	}
	if err := d.Verify(digest, 3); err != nil {
		t.Errorf("after the file was replaced: %v", err)
	}
	if _, _, err := d.Adopt(filepath.Join(root, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

// written makes a file somewhere.
func written(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// Clone, link and copy make the same blob, also where a damaged file lies in its place.
func TestAdoptWays(t *testing.T) {
	for _, damaged := range []bool{false, true} {
		d := At(t.TempDir())
		for name, put := range map[string]func(*os.File, ident.Digest, int64) error{"clone": d.clone, "link": d.link} {
			path := written(t, name)
			digest := ident.Sum([]byte(name))
			if damaged {
				if err := os.MkdirAll(filepath.Dir(d.Path(digest)), 0o777); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(d.Path(digest), nil, 0o444); err != nil {
					t.Fatal(err)
				}
			}
			f, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			err = put(f, digest, int64(len(name)))
			f.Close()
			if errors.Is(err, errors.ErrUnsupported) {
				t.Logf("%s: not to be had here", name)
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := d.Verify(digest, int64(len(name))); err != nil {
				t.Errorf("%s, damaged %v: %v", name, damaged, err)
			}
		}
	}
}

// Where a link cannot be made, as between file systems, the file keeps its mode and the
// blob is a copy.
func TestAdoptAcross(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(elsewhere(t, root), "x")
	if err := os.WriteFile(path, []byte("abc"), 0o640); err != nil {
		t.Fatal(err)
	}
	d := At(root)
	digest, n, err := d.Adopt(path)
	if err != nil || n != 3 {
		t.Fatal(n, err)
	}
	if err := d.Verify(digest, 3); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o640 {
		t.Errorf("the file is %v, %v now", info.Mode(), err)
	}
}

// elsewhere makes a folder on another file system than dir's.
func elsewhere(t *testing.T, dir string) string {
	t.Helper()
	from := filepath.Join(dir, "x")
	if err := os.WriteFile(from, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, root := range []string{"/dev/shm", "/var/tmp", "."} {
		other, err := os.MkdirTemp(root, "adopt-*")
		if err != nil {
			continue
		}
		t.Cleanup(func() { os.RemoveAll(other) })
		if err := os.Link(from, filepath.Join(other, "linked")); err != nil {
			return other
		}
	}
	t.Skip("no second file system")
	return ""
}

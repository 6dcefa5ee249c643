package aside

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

// A process removes what killed processes left where it writes. Files that a process at work holds, new files, and
// files that are not ours stay.
func TestLeft(t *testing.T) {
	for _, folder := range []bool{false, true} {
		dir := t.TempDir()
		path := filepath.Join(dir, "out.db")
		hold := map[string]*os.File{}
		for _, name := range []string{".out.db.exp-17", ".out.db.exp-18", ".out.db.exp-19", ".out.db.exp-x", ".out.db-17", ".other.exp-17"} {
			f, err := os.Create(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			hold[name] = f
		}
		for _, name := range []string{".out.db.exp-27/made/run", ".out.db.exp-28/made", ".out.db.exp-29/mine", ".out.db.exp-30/made"} {
			if err := os.MkdirAll(filepath.Join(dir, name), 0o777); err != nil {
				t.Fatal(err)
			}
		}
		busy, err := os.Open(filepath.Join(dir, ".out.db.exp-28"))
		if err != nil {
			t.Fatal(err)
		}
		defer busy.Close()
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.Name() == ".out.db.exp-19" || e.Name() == ".out.db.exp-30" {
				continue // new ones
			}
			if err := os.Chtimes(filepath.Join(dir, e.Name()), time.Time{}, time.Now().Add(-2*leftFor)); err != nil {
				t.Fatal(err)
			}
		}
		for _, f := range []*os.File{hold[".out.db.exp-18"], busy} {
			if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
				t.Skip("no locks here")
			}
		}
		if folder {
			name, remove, err := Folder(path)
			if err == nil {
				err = os.WriteFile(name, nil, 0o666)
			}
			if err != nil {
				t.Fatal(err)
			}
			remove()
		} else {
			f, err := File(path)
			if err != nil {
				t.Fatal(err)
			}
			f.Close()
			os.Remove(f.Name())
		}
		var got []string
		if entries, err = os.ReadDir(dir); err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			got = append(got, e.Name())
		}
		want := []string{".other.exp-17", ".out.db-17", ".out.db.exp-18", ".out.db.exp-19", ".out.db.exp-28", ".out.db.exp-29",
			".out.db.exp-30", ".out.db.exp-x"}
		if !slices.Equal(got, want) {
			t.Errorf("folder %v: %q, want %q", folder, got, want)
		}
	}
}

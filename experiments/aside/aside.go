// Package aside makes what a command writes under a temporary name next to its place, to be renamed when it is
// complete. A killed process leaves such files and folders; the next one that writes to the same place removes them.
package aside

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// leftFor is the age from which a temporary file that nobody holds a lock on was left: a younger one may be about to
// be locked.
const leftFor = time.Minute

// made is the name of what a temporary folder holds.
const made = "made"

// mark begins the digits of a temporary name, which no other program writes.
const mark = ".exp-"

// File makes a file ".NAME.exp-…" next to path, NAME, and removes those that killed processes left. The caller closes
// it, and renames or removes it.
func File(path string) (*os.File, error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+mark+"*")
	if err == nil && lock(f) {
		removeLeft(path)
	}
	return f, err
}

// Folder makes a folder ".NAME.exp-…" next to path, NAME, and removes those that killed processes left. The caller
// writes name, a path in the folder, renames it to path when it is complete, and always calls remove.
func Folder(path string) (name string, remove func(), err error) {
	dir, err := os.MkdirTemp(filepath.Dir(path), "."+filepath.Base(path)+mark+"*")
	if err != nil {
		return "", nil, err
	}
	held, err := os.Open(dir)
	if err != nil {
		os.Remove(dir)
		return "", nil, err
	}
	if lock(held) {
		removeLeft(path)
	}
	return filepath.Join(dir, made), func() { os.RemoveAll(dir); held.Close() }, nil
}

// lock locks a file until it is closed, and reports whether it could: not every file system can.
func lock(f *os.File) bool { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil }

// removeLeft removes the temporary files and folders next to path that killed processes left.
func removeLeft(path string) {
	prefix := "." + filepath.Base(path) + mark
	entries, _ := os.ReadDir(filepath.Dir(path))
	for _, e := range entries {
		digits, ours := strings.CutPrefix(e.Name(), prefix)
		if !ours || digits == "" || strings.Trim(digits, "0123456789") != "" {
			continue
		}
		info, err := e.Info()
		if err != nil || time.Since(info.ModTime()) < leftFor {
			continue
		}
		name, mode := filepath.Join(filepath.Dir(path), e.Name()), os.O_RDWR
		switch {
		case e.IsDir() && holdsOurs(name):
			mode = os.O_RDONLY
		case !e.Type().IsRegular():
			continue
		}
		f, err := os.OpenFile(name, mode, 0)
		if err != nil {
			continue
		}
		if lock(f) {
			os.RemoveAll(name)
		}
		f.Close()
	}
}

// holdsOurs reports whether a folder holds nothing that Folder's callers do not write.
func holdsOurs(dir string) bool {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), made) { // SQLite adds suffixes
			return false
		}
	}
	return err == nil
}

package blob

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"exp/experiments/ident"
)

// File is a blob's file on disk.
type File struct {
	Digest ident.Digest
	Size   int64     // bytes
	Time   time.Time // when it was stored, or last stored again
}

// Files calls f for every blob on disk, in digest order, skipping files that are not
// blobs.
func (d *Dir) Files(f func(File) error) error {
	root := filepath.Join(d.root, "blobs", "sha256")
	folders, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, folder := range folders {
		entries, err := os.ReadDir(filepath.Join(root, folder.Name()))
		if err != nil {
			return err
		}
		for _, e := range entries {
			digest, err := ident.ParseDigest(folder.Name() + e.Name())
			if err != nil || digest.IsZero() {
				continue
			}
			info, err := e.Info()
			if errors.Is(err, fs.ErrNotExist) {
				continue // just removed
			}
			if err != nil {
				return err
			}
			if err := f(File{digest, info.Size(), info.ModTime()}); err != nil {
				return err
			}
		}
	}
	return nil
}

// Remove deletes a blob if it was stored before a time; removed is false if the blob is
// younger, and true if it does not exist. Putting the same content again makes a blob
// young.
func (d *Dir) Remove(digest ident.Digest, before time.Time) (removed bool, err error) {
	path := d.Path(digest)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, nil
	case err != nil:
		return false, d.errorOf("remove", digest, err)
	case !info.ModTime().Before(before):
		return false, nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, d.errorOf("remove", digest, err)
	}
	return true, nil
}

// Quarantine moves a corrupt blob to ROOT/quarantine and returns its new path. Its
// content can then be stored again.
func (d *Dir) Quarantine(digest ident.Digest, now time.Time) (string, error) {
	dir := filepath.Join(d.root, "quarantine")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", d.errorOf("quarantine", digest, err)
	}
	to := filepath.Join(dir, fmt.Sprintf("%s.%s", digest, now.UTC().Format("20060102T150405.000Z")))
	if err := os.Rename(d.Path(digest), to); err != nil {
		return "", d.errorOf("quarantine", digest, err)
	}
	return to, nil
}

// Keep is Has, and makes the blob young: gc then spares it for an hour (keep.Grace), in which a
// run can record it.
func (d *Dir) Keep(digest ident.Digest, size int64) bool {
	if !d.Has(digest, size) {
		return false
	}
	now := time.Now()
	err := os.Chtimes(d.Path(digest), now, now)
	return !errors.Is(err, fs.ErrNotExist)
}

package blob

import (
	"io/fs"
	"os"
)

// file is a file being written that is not a blob yet. End it with Place or Discard.
type file interface {
	Write(p []byte) (int, error)
	Name() string // for errors
	Chmod(mode fs.FileMode) error
	Sync() error
	Close() error
	// Place moves the closed file to path. If path exists, Place may replace it or fail
	// with fs.ErrExist.
	Place(path string) error
	// Discard closes and removes the file. It ignores errors: the caller has another error
	// to report, or the content is already stored.
	Discard()
}

// named is a file that has a name of the form blob-* until it is placed.
type named struct{ *os.File }

func newNamed(dir string) (file, error) {
	f, err := os.CreateTemp(dir, "blob-*")
	if err != nil {
		return nil, err
	}
	return named{f}, nil
}

func (f named) Place(path string) error { return os.Rename(f.Name(), path) }

func (f named) Discard() {
	f.Close()
	os.Remove(f.Name())
}

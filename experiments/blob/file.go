package blob

import (
	"io/fs"
	"os"
)

// file is a file that is being written and is no blob yet. Either Place or Discard
// ends it.
type file interface {
	Write(p []byte) (int, error)
	Name() string // for errors
	Chmod(mode fs.FileMode) error
	Sync() error
	Close() error
	// Place makes the file, which was closed, the one at path. Where something lies
	// already it may replace it or fail with fs.ErrExist.
	Place(path string) error
	// Discard closes the file and leaves nothing of it. Its own errors do not matter:
	// there is another one to report, or the content is stored already.
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

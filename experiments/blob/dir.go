package blob

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"

	"exp/experiments/ident"
)

// Dir is a folder of blobs. It is safe for concurrent use, even by several processes.
// Make one with At.
type Dir struct {
	root string
	// create opens a new file in a folder; tests replace it to make it fail.
	create func(dir string) (file, error)
	// durable says that the names of folders blobs and sha256 are on the disk.
	durable atomic.Bool
}

// At returns the blobs below root. It creates nothing: folders appear with the
// first blob.
func At(root string) *Dir {
	return &Dir{root: root, create: newFile}
}

// Path returns the path of blob digest, whether or not it exists.
func (d *Dir) Path(digest ident.Digest) string {
	s := digest.String()
	if s == "" {
		panic("blob: path of no digest")
	}
	return filepath.Join(d.root, "blobs", "sha256", s[:2], s[2:])
}

// Stat returns the size of a blob in bytes. For a missing blob the error is an *Error
// that wraps fs.ErrNotExist.
func (d *Dir) Stat(digest ident.Digest) (int64, error) {
	info, err := os.Stat(d.Path(digest))
	if err != nil {
		return 0, d.errorOf("find", digest, err)
	}
	return info.Size(), nil
}

// Has reports whether a blob of that size exists.
func (d *Dir) Has(digest ident.Digest, size int64) bool {
	got, err := d.Stat(digest)
	return err == nil && got == size
}

// Open opens a blob for reading; the caller closes it. Errors are as for Stat.
func (d *Dir) Open(digest ident.Digest) (*os.File, error) {
	f, err := os.Open(d.Path(digest))
	if err != nil {
		return nil, d.errorOf("open", digest, err)
	}
	return f, nil
}

// Bytes returns a whole blob after checking its digest: wrong bytes are an *Error that
// wraps ErrCorrupt.
func (d *Dir) Bytes(digest ident.Digest) ([]byte, error) {
	b, err := os.ReadFile(d.Path(digest))
	if err != nil {
		return nil, d.errorOf("read", digest, err)
	}
	if got := ident.Sum(b); got != digest {
		return nil, d.errorOf("read", digest, corrupt("its bytes have digest %s", got))
	}
	return b, nil
}

// errorOf returns an *Error for an operation on a blob.
func (d *Dir) errorOf(op string, digest ident.Digest, err error) error {
	path := d.Path(digest)
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
		path, err = pe.Path, pe.Err
	}
	return &Error{Op: op, Path: path, Digest: digest, Err: err, Hint: hint(err)}
}

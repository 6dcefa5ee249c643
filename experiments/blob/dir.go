package blob

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"exp/experiments/ident"
)

// Dir is a folder of blobs. It is safe for concurrent use, also by several
// processes. The zero value is not usable; make one with At.
type Dir struct {
	root string
	// create opens a new file in a folder; tests replace it by one that fails.
	create func(dir string) (file, error)
}

// At returns the blobs below root. It creates nothing: folders appear with the
// first blob.
func At(root string) *Dir {
	return &Dir{root: root, create: newFile}
}

// Path is where blob digest lies, if it is there.
func (d *Dir) Path(digest ident.Digest) string {
	s := digest.String()
	if s == "" {
		panic("blob: path of no digest")
	}
	return filepath.Join(d.root, "blobs", "sha256", s[:2], s[2:])
}

// Stat is the size of a blob in bytes. A blob that is not there is an *Error
// that wraps fs.ErrNotExist.
func (d *Dir) Stat(digest ident.Digest) (int64, error) {
	info, err := os.Stat(d.Path(digest))
	if err != nil {
		return 0, d.errorOf("find", digest, err)
	}
	return info.Size(), nil
}

// Has reports whether a blob is there with that size.
func (d *Dir) Has(digest ident.Digest, size int64) bool {
	got, err := d.Stat(digest)
	return err == nil && got == size
}

// Open opens a blob for reading; the caller closes it. Errors are as of Stat.
func (d *Dir) Open(digest ident.Digest) (*os.File, error) {
	f, err := os.Open(d.Path(digest))
	if err != nil {
		return nil, d.errorOf("open", digest, err)
	}
	return f, nil
}

// Bytes returns a whole blob, checked against its digest: wrong bytes are an
// *Error that wraps ErrCorrupt.
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

// Verify hashes a blob again and compares it with its digest and with size. A
// blob that is shorter, longer or other than recorded is an *Error that wraps
// ErrCorrupt and says which.
func (d *Dir) Verify(digest ident.Digest, size int64) error {
	f, err := d.Open(digest)
	if err != nil {
		return err
	}
	defer f.Close()
	got, n, err := ident.SumReader(f)
	switch {
	case err != nil:
		return d.errorOf("verify", digest, err)
	case n != size:
		return d.errorOf("verify", digest, corrupt("%d bytes, recorded with %d", n, size))
	case got != digest:
		return d.errorOf("verify", digest, corrupt("its bytes have digest %s", got))
	}
	return nil
}

// errorOf makes the *Error of an operation on a blob.
func (d *Dir) errorOf(op string, digest ident.Digest, err error) error {
	path := d.Path(digest)
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
		path, err = pe.Path, pe.Err
	}
	return &Error{Op: op, Path: path, Digest: digest, Err: err, Hint: hint(err)}
}

package blob

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"exp/experiments/ident"
)

// Adopt stores the file at path, as PutFile does, but without a second copy if the file
// system allows: the blob shares the file's blocks until one of them changes (a clone),
// or the blob and path become two names of one file (a hard link). Otherwise it copies.
//
// A link makes path read-only, like all blobs. Replacing path by another file, as editors
// and cp --remove-destination do, leaves the blob alone; changing its bytes in place, as
// root or after making it writable, damages the blob. Verify detects that, and so does
// every stage before it reads weights.
func (d *Dir) Adopt(path string) (ident.Digest, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return ident.Digest{}, 0, putError(path, ident.Digest{}, err)
	}
	defer f.Close()
	digest, n, err := ident.SumReader(f)
	if err != nil {
		return digest, n, putError(path, digest, err)
	}
	if d.Keep(digest, n) {
		return digest, n, nil
	}
	for _, put := range []func(*os.File, ident.Digest, int64) error{d.clone, d.link} {
		err := put(f, digest, n)
		if err == nil {
			return digest, n, nil
		}
		if !errors.Is(err, errors.ErrUnsupported) {
			return digest, n, putError(path, digest, err)
		}
	}
	return d.PutFile(path)
}

// clone makes a blob that shares the blocks of f. The error wraps errors.ErrUnsupported
// if the file system cannot.
func (d *Dir) clone(f *os.File, digest ident.Digest, size int64) error {
	tmp, err := d.newFile()
	if err != nil {
		return err
	}
	if err := cloneInto(tmp, f); err != nil {
		tmp.Discard()
		return err
	}
	if err := d.publish(tmp, digest, size); err != nil {
		tmp.Discard()
		return err
	}
	return nil
}

// link makes the blob another name of f. The error wraps errors.ErrUnsupported if the
// file system cannot.
func (d *Dir) link(f *os.File, digest ident.Digest, size int64) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	path := d.Path(digest)
	if err := d.makeDurable(filepath.Dir(path)); err != nil {
		return err
	}
	if err := errors.Join(f.Chmod(0o444), f.Sync()); err != nil {
		return err
	}
	err = os.Link(f.Name(), path)
	if errors.Is(err, fs.ErrExist) && !d.Has(digest, size) {
		// The file under this name is damaged.
		if err = os.Remove(path); err == nil || errors.Is(err, fs.ErrNotExist) {
			err = os.Link(f.Name(), path)
		}
	}
	switch {
	case errors.Is(err, fs.ErrExist): // another process was faster
		return f.Chmod(info.Mode().Perm())
	case err != nil: // another file system, or one without links
		return errors.Join(errors.ErrUnsupported, f.Chmod(info.Mode().Perm()))
	}
	d.Keep(digest, size)
	return syncDir(filepath.Dir(path))
}

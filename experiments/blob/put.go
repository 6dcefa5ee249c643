package blob

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"exp/experiments/ident"
)

// copyBlock is the number of bytes Put hashes and writes at a time: large enough that
// system calls are negligible next to hashing at 1 GB/s.
const copyBlock = 256 << 10

// blocks are buffers of copyBlock bytes that Put uses again: most blobs are much smaller.
var blocks = sync.Pool{New: func() any { return new([copyBlock]byte) }}

// Put stores the contents of r and returns digest and size. It does not store existing
// content again, but replaces a file of the wrong size. An error is an *Error and leaves
// nothing behind.
func (d *Dir) Put(r io.Reader) (ident.Digest, int64, error) {
	tmp, err := d.newFile()
	if err != nil {
		return ident.Digest{}, 0, putError(filepath.Join(d.root, "tmp"), ident.Digest{}, err)
	}
	h := sha256.New()
	block := blocks.Get().(*[copyBlock]byte)
	n, err := io.CopyBuffer(io.MultiWriter(tmp, h), onlyReader{r}, block[:])
	blocks.Put(block)
	if err != nil {
		tmp.Discard()
		return ident.Digest{}, n, putError(tmp.Name(), ident.Digest{}, err)
	}
	digest := ident.Digest(h.Sum(nil))
	if d.Keep(digest, n) {
		tmp.Discard()
		return digest, n, nil
	}
	if err := d.publish(tmp, digest, n); err != nil {
		tmp.Discard()
		return digest, n, putError(d.Path(digest), digest, err)
	}
	return digest, n, nil
}

// PutWritten stores what write writes. It is hashed and stored on another thread meanwhile, and
// needs no second file. An error of write comes back unchanged.
func (d *Dir) PutWritten(write func(w io.Writer) error) (ident.Digest, int64, error) {
	type stored struct {
		digest ident.Digest
		size   int64
		err    error
	}
	from, to := io.Pipe()
	end := make(chan stored, 1)
	go func() {
		digest, size, err := d.Put(from)
		from.CloseWithError(err) // write stops
		end <- stored{digest, size, err}
	}()
	w := bufio.NewWriterSize(to, 1<<18)
	err := write(w)
	if err == nil {
		err = w.Flush()
	}
	to.CloseWithError(err)
	s := <-end
	if err != nil && !errors.Is(err, s.err) { // storing failed because write did
		s.err = err
	}
	return s.digest, s.size, s.err
}

// PutBytes stores b unless the blob already exists.
func (d *Dir) PutBytes(b []byte) (ident.Digest, error) {
	digest := ident.Sum(b)
	if d.Keep(digest, int64(len(b))) {
		return digest, nil
	}
	_, _, err := d.Put(bytes.NewReader(b))
	return digest, err
}

// PutFile stores a copy of the file at path.
func (d *Dir) PutFile(path string) (ident.Digest, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return ident.Digest{}, 0, putError(path, ident.Digest{}, err)
	}
	defer f.Close()
	return d.Put(f)
}

// onlyReader hides an os.File's WriteTo, so that io.Copy uses our buffer.
type onlyReader struct{ io.Reader }

func (d *Dir) newFile() (file, error) {
	dir := filepath.Join(d.root, "tmp")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	return d.create(dir)
}

// publish syncs tmp and gives it its name.
func (d *Dir) publish(tmp file, digest ident.Digest, size int64) error {
	if err := tmp.Chmod(0o444); err != nil {
		return err
	}
	if err := tmp.Sync(); err != nil {
		return err
	}
	if err := tmp.Close(); err != nil {
		return err
	}
	path := d.Path(digest)
	dir := filepath.Dir(path)
	if err := d.makeDurable(dir); err != nil {
		return err
	}
	err := tmp.Place(path)
	if errors.Is(err, fs.ErrExist) && !d.Has(digest, size) {
		// The file under this name is damaged.
		if err = os.Remove(path); err == nil || errors.Is(err, fs.ErrNotExist) {
			err = tmp.Place(path)
		}
	}
	if errors.Is(err, fs.ErrExist) { // another process was faster
		tmp.Discard()
		err = nil
	}
	return errors.Join(err, syncDir(dir))
}

// makeDurable creates dir, one of the folders of blobs/sha256, and syncs its parents: it survives
// a crash. Those above sha256 are synced once.
func (d *Dir) makeDurable(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	sha256 := filepath.Dir(dir)
	if !d.durable.Load() {
		blobs := filepath.Dir(sha256)
		if err := errors.Join(syncDir(blobs), syncDir(filepath.Dir(blobs))); err != nil {
			return err
		}
		d.durable.Store(true)
	}
	return syncDir(sha256)
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

func putError(path string, digest ident.Digest, err error) error {
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
		path, err = pe.Path, pe.Err
	}
	return &Error{Op: "store", Path: path, Digest: digest, Err: err, Hint: hint(err)}
}

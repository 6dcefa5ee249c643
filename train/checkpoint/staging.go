package checkpoint

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// partial ends the name of a directory being written.
const partial = ".partial"

// disk holds the operations that change storage, as values so that tests can make each of
// them fail.
type disk struct {
	mkdir    func(path string) error
	create   func(path string) (file, error)
	syncDir  func(path string) error
	rename   func(from, to string) error
	exchange func(a, b string) error     // swaps two directories
	link     func(from, to string) error // hard
}

// file is a new file being written.
type file interface {
	io.Writer
	io.WriterAt
	Sync() error
	Close() error
}

// system is the real disk.
func system() disk {
	return disk{
		mkdir: func(path string) error { return os.Mkdir(path, 0o777) },
		create: func(path string) (file, error) {
			return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		},
		syncDir: func(path string) error {
			d, err := os.Open(path)
			if err != nil {
				return err
			}
			return errors.Join(d.Sync(), d.Close())
		},
		rename:   os.Rename,
		exchange: exchange,
		link:     os.Link,
	}
}

// threeRenames swaps two directories if the system cannot do it atomically. If the machine
// stops in between, b is missing, and its contents are at a + ".old".
func threeRenames(a, b string) error {
	if err := os.Rename(b, a+".old"); err != nil {
		return err
	}
	if err := os.Rename(a, b); err != nil {
		return errors.Join(err, os.Rename(a+".old", b))
	}
	return os.Rename(a+".old", a)
}

// staging is a directory written under another name and then published whole, or discarded.
type staging struct {
	disk
	op         string // for errors
	tmp, final string
}

// stage begins to write the directory final. It removes the remains of an interrupted write
// and creates missing parents.
func (d disk) stage(op, final string) (*staging, error) {
	parent, base := filepath.Split(filepath.Clean(final))
	s := &staging{disk: d, op: op, final: filepath.Clean(final), tmp: filepath.Join(parent, "."+base+partial)}
	err := errors.Join(os.MkdirAll(filepath.Dir(s.final), 0o777), os.RemoveAll(s.tmp))
	if err == nil {
		err = d.mkdir(s.tmp)
	}
	if err != nil {
		return nil, fileError(op, s.tmp, err)
	}
	return s, nil
}

// FileInfo describes a written file.
type FileInfo struct {
	Name   string
	Bytes  int64
	SHA256 [sha256.Size]byte
}

// writers keeps the buffers of write.
var writers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, 1<<18) }}

// write writes and syncs a file of the directory, or of a folder in it.
func (s *staging) write(name string, content func(w io.Writer) error) (FileInfo, error) {
	path := filepath.Join(s.tmp, name)
	for i := range name {
		if name[i] != filepath.Separator {
			continue
		}
		dir := filepath.Join(s.tmp, name[:i])
		if err := s.mkdir(dir); err != nil && !errors.Is(err, fs.ErrExist) {
			return FileInfo{}, fileError(s.op, dir, err)
		}
	}
	f, err := s.create(path)
	if err != nil {
		return FileInfo{}, fileError(s.op, path, err)
	}
	h := sha256.New()
	c := counter{w: io.MultiWriter(f, h)}
	b := writers.Get().(*bufio.Writer)
	b.Reset(&c)
	defer func() {
		b.Reset(nil)
		writers.Put(b)
	}()
	err = content(b)
	if err == nil {
		err = b.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if dir := filepath.Dir(path); err == nil && dir != s.tmp {
		err = s.syncDir(dir)
	}
	if err != nil {
		return FileInfo{}, fileError(s.op, path, err)
	}
	return FileInfo{Name: name, Bytes: c.n, SHA256: [sha256.Size]byte(h.Sum(nil))}, nil
}

// writeBytes is write for content in memory.
func (s *staging) writeBytes(name string, content []byte) (FileInfo, error) {
	return s.write(name, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// publish gives the directory its final name. With replace it swaps out an existing
// directory; without, that is an error that wraps ErrExists. On an error everything is as
// before, and the caller must still call discard.
func (s *staging) publish(replace bool) error {
	if err := s.syncDir(s.tmp); err != nil {
		return fileError(s.op, s.tmp, err)
	}
	_, err := os.Lstat(s.final)
	move := s.rename
	switch {
	case err == nil && !replace:
		return taken(s.op, s.final)
	case err == nil:
		move = s.exchange
	case !errors.Is(err, fs.ErrNotExist):
		return fileError(s.op, s.final, err)
	}
	if err := move(s.tmp, s.final); err != nil {
		return fileError(s.op, s.final, err)
	}
	if err := s.syncDir(filepath.Dir(s.final)); err != nil {
		return fileError(s.op, filepath.Dir(s.final), errors.Join(err, move(s.final, s.tmp)))
	}
	return nil
}

// discard removes the directory under the temporary name: an unfinished one, or the
// replaced one. The next write to the place removes what discard cannot.
func (s *staging) discard() { os.RemoveAll(s.tmp) }

func taken(op, path string) error {
	return &Error{Op: op, Path: path, Err: ErrExists, Hint: "choose another place, or ask to replace it"}
}

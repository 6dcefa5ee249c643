package blob

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"sync"

	"github.com/klauspost/compress/zstd"

	"exp/experiments/ident"
)

// PutTree stores files of fsys as one blob, a zstd-compressed tar, and returns its digest
// and size. It includes only names and contents, sorted by path: no times, owners or
// modes.
func (d *Dir) PutTree(fsys fs.FS, paths []string) (ident.Digest, int64, error) {
	return d.PutWritten(func(w io.Writer) error {
		if err := WriteTree(w, fsys, paths); err != nil {
			return fmt.Errorf("tree: %w", err)
		}
		return nil
	})
}

// WriteTree writes what PutTree stores.
func WriteTree(w io.Writer, fsys fs.FS, paths []string) error {
	// The fastest level takes half the time of the default one and makes sources as small.
	enc, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		panic("blob: " + err.Error()) // only for options out of range
	}
	tw := tar.NewWriter(enc)
	for _, p := range paths {
		if err := addFile(tw, fsys, p); err != nil {
			return errors.Join(err, enc.Close())
		}
	}
	return errors.Join(tw.Close(), enc.Close())
}

// addFile adds a file to a tar without reading it into memory: a program's sources are several MiB.
func addFile(tw *tar.Writer, fsys fs.FS, path string) error {
	f, err := fsys.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := tw.WriteHeader(&tar.Header{Name: path, Mode: 0o644, Size: info.Size()}); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if _, err := io.Copy(tw, f); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// ExtractTree writes the files of a tree below dir, which must exist. An existing file is
// an error and is not overwritten. It never writes outside dir.
func (d *Dir) ExtractTree(digest ident.Digest, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return d.walkTree(digest, func(name string, r io.Reader) error {
		if err := extractFile(root, name, r); err != nil {
			return fmt.Errorf("extract sources to %s: %w", dir, err)
		}
		return nil
	})
}

// ReadTree returns the files of a tree by their paths.
func (d *Dir) ReadTree(digest ident.Digest) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := d.walkTree(digest, func(name string, r io.Reader) error {
		b, err := io.ReadAll(r)
		files[name] = b
		return err
	})
	return files, err
}

// sumsOfTrees holds the sums of trees by their digest, once this process has found them:
// right bytes always have the same.
var sumsOfTrees sync.Map

// SumTree returns the SHA-256 of each file of a tree, by path. Nobody may write to it. It does not look for damage
// once the sums are known: that is Verify's work.
func (d *Dir) SumTree(digest ident.Digest) (map[string]ident.Digest, error) {
	if known, ok := sumsOfTrees.Load(digest); ok {
		return known.(map[string]ident.Digest), nil
	}
	sums := map[string]ident.Digest{}
	err := d.walkTree(digest, func(name string, r io.Reader) (err error) {
		sums[name], _, err = ident.SumReader(r)
		return err
	})
	if err == nil {
		sumsOfTrees.Store(digest, sums)
	}
	return sums, err
}

// walkTree calls file for each file of a tree, in its order.
func (d *Dir) walkTree(digest ident.Digest, file func(name string, r io.Reader) error) error {
	b, err := d.Bytes(digest)
	if err != nil {
		return err
	}
	dec, err := zstd.NewReader(bytes.NewReader(b), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxPack))
	if err != nil {
		return d.errorOf("extract", digest, corrupt("%v", err))
	}
	defer dec.Close()
	for tr := tar.NewReader(dec); ; {
		h, err := tr.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return d.errorOf("extract", digest, corrupt("%v", err))
		}
		if err := file(h.Name, tr); err != nil {
			return err
		}
	}
}

func extractFile(root *os.Root, name string, r io.Reader) error {
	if err := root.MkdirAll(path.Dir(name), 0o777); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}

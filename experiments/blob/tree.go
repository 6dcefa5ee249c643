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
	b, err := PackTree(fsys, paths)
	if err != nil {
		return ident.Digest{}, 0, err
	}
	digest, err := d.PutBytes(b)
	return digest, int64(len(b)), err
}

// PackTree returns what PutTree stores.
func PackTree(fsys fs.FS, paths []string) ([]byte, error) {
	var raw bytes.Buffer
	// The fastest level takes half the time of the default one and makes sources as small.
	enc, err := zstd.NewWriter(&raw, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		panic("blob: " + err.Error()) // only for options out of range
	}
	tw := tar.NewWriter(enc)
	for _, p := range paths {
		b, err := fs.ReadFile(fsys, p)
		if err != nil {
			return nil, fmt.Errorf("tree: %w", err)
		}
		// Only the tar format can fail; writing to the buffer cannot.
		if err := errors.Join(tw.WriteHeader(&tar.Header{Name: p, Mode: 0o644, Size: int64(len(b))}),
			write(tw, b)); err != nil {
			return nil, fmt.Errorf("tree: %s: %w", p, err)
		}
	}
	if err := errors.Join(tw.Close(), enc.Close()); err != nil {
		return nil, fmt.Errorf("tree: %w", err)
	}
	return raw.Bytes(), nil
}

func write(w io.Writer, b []byte) error {
	_, err := w.Write(b)
	return err
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

// SumTree returns the SHA-256 of each file of a tree, by path. Nobody may write to it.
func (d *Dir) SumTree(digest ident.Digest) (map[string]ident.Digest, error) {
	b, err := d.Bytes(digest)
	if err != nil {
		return nil, err
	}
	if known, ok := sumsOfTrees.Load(digest); ok {
		return known.(map[string]ident.Digest), nil
	}
	sums := map[string]ident.Digest{}
	err = d.walk(digest, b, func(name string, r io.Reader) (err error) {
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
	return d.walk(digest, b, file)
}

// walk is walkTree for a tree of bytes b.
func (d *Dir) walk(digest ident.Digest, b []byte, file func(name string, r io.Reader) error) error {
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

package checkpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"os"
	"slices"

	"exp/kernels"
)

// Tensors is a set of tensors in one or several safetensors files, open for reading. Close
// it after use. Safe for concurrent use.
type Tensors struct {
	path  string // of the file or the folder
	files []*os.File
	where map[string]place
}

// place locates a tensor's elements.
type place struct {
	Tensor
	stored string // its name in the file
	file   *os.File
	begin  int64 // from the start of the file
}

// OpenFile opens a safetensors file and checks its header. It adds "model." to the names of
// a backbone saved without it.
func OpenFile(path string) (*Tensors, error) {
	t := &Tensors{path: path, where: map[string]place{}}
	err := t.add(path)
	if err == nil {
		err = t.canonical()
	}
	if err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// add opens a file and adds its tensors to t.
func (t *Tensors) add(path string) error {
	f, err := openRegular(path)
	if err != nil {
		return err
	}
	t.files = append(t.files, f)
	entries, data, err := readHeader(f, path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if other, ok := t.where[e.Name]; ok {
			return corrupt(path, e.Name, "is also in %s", other.file.Name())
		}
		t.where[e.Name] = place{Tensor: e.Tensor, stored: e.Name, file: f, begin: data + e.begin}
	}
	return nil
}

// readHeader returns the tensors of a file and the offset of its data.
func readHeader(f *os.File, path string) ([]entry, int64, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, 0, fileError("read", path, err)
	}
	size := info.Size()
	if size < 8 {
		return nil, 0, corrupt(path, "", "%d bytes are too few for a safetensors file", size)
	}
	var prefix [8]byte
	if _, err := io.ReadFull(f, prefix[:]); err != nil {
		return nil, 0, fileError("read", path, err)
	}
	n := binary.LittleEndian.Uint64(prefix[:])
	if n > maxHeader {
		head := make([]byte, 64)
		k, _ := f.ReadAt(head, 0)
		if err := standIn(path, head[:k]); err != nil {
			return nil, 0, err
		}
		return nil, 0, corrupt(path, "", "a header of %d bytes is over the format's limit of %d; is this a "+
			"safetensors file?", n, maxHeader)
	}
	if int64(n) > size-8 {
		return nil, 0, corrupt(path, "", "the header has %d bytes, but the file only %d: it is truncated", n, size)
	}
	raw := make([]byte, n)
	if _, err := io.ReadFull(f, raw); err != nil {
		return nil, 0, fileError("read", path, err)
	}
	entries, err := parseHeader(path, raw, size-8-int64(n))
	return entries, 8 + int64(n), err
}

// Close closes the files.
func (t *Tensors) Close() error {
	var errs []error
	for _, f := range t.files {
		errs = append(errs, f.Close())
	}
	t.files = nil
	return errors.Join(errs...)
}

// List returns the tensors by name.
func (t *Tensors) List() []Tensor {
	var list []Tensor
	for _, name := range slices.Sorted(maps.Keys(t.where)) {
		list = append(list, t.where[name].Tensor)
	}
	return list
}

// Lookup returns the named tensor.
func (t *Tensors) Lookup(name string) (Tensor, bool) {
	p, ok := t.where[name]
	return p.Tensor, ok
}

// Sources returns all tensors by name, with their stored elements. They are valid until t
// is closed.
func (t *Tensors) Sources() []Source {
	var list []Source
	for _, tensor := range t.List() {
		list = append(list, Source{Tensor: tensor, Raw: func(w io.Writer) error {
			_, err := io.Copy(w, t.raw(tensor.Name))
			return err
		}})
	}
	return list
}

// raw returns a reader of a tensor's bytes. Its errors are *Error; a file that has shrunk
// since it was opened is corrupt.
func (t *Tensors) raw(name string) io.Reader {
	p, ok := t.where[name]
	if !ok {
		panic("checkpoint: no tensor " + name)
	}
	return &placeReader{place: p, r: io.NewSectionReader(p.file, p.begin, p.Bytes()), left: p.Bytes()}
}

type placeReader struct {
	place
	r    io.Reader
	left int64
}

func (r *placeReader) Read(b []byte) (int, error) {
	n, err := r.r.Read(b)
	r.left -= int64(n)
	switch {
	case err == io.EOF && r.left > 0:
		return n, corrupt(r.file.Name(), r.Name, "the file ends before it")
	case err != nil && err != io.EOF:
		return n, fileError("read", r.file.Name(), err)
	}
	return n, err
}

// Read sets dst to a tensor's elements. Equal types keep every bit; between float types it
// converts through float32. It panics if the tensor does not exist, or has another length
// or a type that dst cannot hold.
func (t *Tensors) Read(be kernels.Backend, name string, dst kernels.Buffer) error {
	if t.mustFit(name, dst.DType()).Len() != dst.Len() {
		panic("checkpoint: no tensor for the buffer of " + name)
	}
	return t.Stream([]Want{{Name: name, As: dst.DType()}}, func(_ Want, piece kernels.Buffer, from int) error {
		be.Copy(dst.Slice(from, from+piece.Len()), piece)
		be.Sync()
		return nil
	})
}

// fits reports whether t can be read into a buffer of type b.
func (t DType) fits(b kernels.DType) bool {
	switch b {
	case kernels.I32:
		return t == I32
	case kernels.BF16:
		return t == BF16
	}
	return t.convertible()
}

// equal reports whether two tensors have the same type, shape and bytes.
func (t *Tensors) equal(a, b string) (bool, error) {
	x, y := t.where[a].Tensor, t.where[b].Tensor
	if x.DType != y.DType || !slices.Equal(x.Shape, y.Shape) {
		return false, nil
	}
	left, right := make([]byte, chunk), make([]byte, chunk)
	r, s := t.raw(a), t.raw(b)
	for done := int64(0); done < x.Bytes(); {
		n := min(int64(chunk), x.Bytes()-done)
		if _, err := io.ReadFull(r, left[:n]); err != nil {
			return false, err
		}
		if _, err := io.ReadFull(s, right[:n]); err != nil {
			return false, err
		}
		if !bytes.Equal(left[:n], right[:n]) {
			return false, nil
		}
		done += n
	}
	return true, nil
}

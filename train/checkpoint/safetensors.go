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
	"exp/train/checkpoint/extent"
)

// Tensors is a set of tensors in one or several files, open for reading. Close it after
// use. Safe for concurrent use.
type Tensors struct {
	path  string // of the file or the folder
	files []*os.File
	where map[string]place
	// opaque names some objects of the files that are not tensors, with their classes.
	opaque []string
	// turned says that experts of a model of text and images are stored with rows of what goes in.
	turned bool
	// tower has the tensors of a vision tower that is left out (textOnly).
	tower map[string]place
}

// OpenFile opens a safetensors file and checks its header. It adds "model." to the names of
// a backbone saved without it.
func OpenFile(path string) (*Tensors, error) {
	t := &Tensors{path: path, where: map[string]place{}}
	return t.filled(t.add(path))
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
		x := extent.Tensor{Name: e.Name, DType: string(e.DType), Shape: e.Shape,
			Data: extent.Range(f, data+e.begin, e.Bytes())}
		t.where[e.Name] = placed(x, f)
	}
	return nil
}

// newTensors returns the tensors of a container in another format, put together from open
// files; on an error it closes them. path is the container's.
func newTensors(path string, files []*os.File, list []extent.Tensor) (*Tensors, error) {
	t := &Tensors{path: path, files: files, where: map[string]place{}}
	return t.filled(t.compose(list))
}

// filled returns t with canonical names, after it was filled with this error or none.
func (t *Tensors) filled(err error) (*Tensors, error) {
	if err == nil {
		err = t.canonical()
	}
	return t.orClosed(err)
}

// orClosed returns t, or closes it if err is not nil.
func (t *Tensors) orClosed(err error) (*Tensors, error) {
	if err != nil {
		t.Close() // err says more
		return nil, err
	}
	return t, nil
}

func (t *Tensors) compose(list []extent.Tensor) error {
	for _, x := range list {
		p := placed(x, t.files[0])
		p.composed = true
		if err := t.put(t.path, p); err != nil {
			return err
		}
	}
	return nil
}

// put adds a tensor that a foreign file describes.
func (t *Tensors) put(path string, p place) error {
	size, ok := p.size()
	other, twice := t.where[p.Name]
	switch {
	case twice:
		return corrupt(path, p.Name, "is also in %s", other.file.Name())
	case p.Name == metadataKey:
		return corrupt(path, p.Name, "no tensor can have this name")
	case p.DType.bits() == 0:
		return corrupt(path, p.Name, "unknown dtype %q", p.DType)
	case !ok:
		return corrupt(path, p.Name, "the shape %v is too large", p.Shape)
	case size != p.data.Size():
		return corrupt(path, p.Name, "%s takes %d bytes, but the files hold %d", p.kind(), size, p.data.Size())
	}
	t.where[p.Name] = p
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
		if prefix[0] == '{' || prefix[0] == '[' {
			return nil, 0, &Error{Op: "read", Path: path, Err: errors.New("is JSON, not weights"),
				Hint: "name the model's folder, or a file of weights in it"}
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

// raw returns a reader of a tensor's bytes. Its errors are *Error.
func (t *Tensors) raw(name string) io.Reader {
	p, ok := t.where[name]
	if !ok {
		panic("checkpoint: no tensor " + name)
	}
	return &placeReader{name, io.NewSectionReader(p.data, 0, p.Bytes())}
}

type placeReader struct {
	name string
	r    io.Reader
}

func (r *placeReader) Read(b []byte) (int, error) {
	n, err := r.r.Read(b)
	return n, ofTensor(r.name, err)
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
	x, y := t.where[a], t.where[b]
	if x.DType != y.DType || !slices.Equal(x.Shape, y.Shape) {
		return false, nil
	}
	at, err := firstDifference(x.data, y.data)
	return at < 0, err
}

// agree compares the copies of a tensor that several files hold.
func (p place) agree() error {
	for _, r := range p.replicas {
		at, err := firstDifference(p.data, r)
		if err != nil {
			return ofTensor(p.Name, err)
		}
		if at >= 0 {
			other, _ := r.First()
			return corrupt(p.file.Name(), p.stored, "differs from its copy in %s, first at byte %d of it",
				other.Name(), at)
		}
	}
	return nil
}

// firstDifference returns the offset of the first byte that differs between two extents of
// one size; -1 if they are equal.
func firstDifference(x, y extent.Extent) (int64, error) {
	if x.Size() != y.Size() {
		return min(x.Size(), y.Size()), nil
	}
	if x.Same(y) {
		return -1, nil
	}
	room := min(int64(chunk), x.Size())
	left, right := make([]byte, room), make([]byte, room)
	for done := int64(0); done < x.Size(); {
		n := min(int64(chunk), x.Size()-done)
		if _, err := x.ReadAt(left[:n], done); err != nil {
			return 0, err
		}
		if _, err := y.ReadAt(right[:n], done); err != nil {
			return 0, err
		}
		if !bytes.Equal(left[:n], right[:n]) {
			i := 0
			for left[i] == right[i] {
				i++
			}
			return done + int64(i), nil
		}
		done += n
	}
	return -1, nil
}

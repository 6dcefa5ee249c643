package torchsave

import (
	"archive/zip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
)

// storageAlignment is the alignment of a storage's bytes in a file, as torch.save has it:
// it lets torch.load map them.
const storageAlignment = 64

// Write writes the archive of a value: what torch.load returns. name is its
// top folder, in torch.save the file's name without its extension. A value is nil, a bool,
// an int, a float64, a string, a Tuple, a List, *Dict, Global, Call, *Object or *View; these
// hold values. Equal pointers become one object in Python.
//
// Elements of storages are streamed: memory does not depend on their sizes.
func Write(w io.Writer, name string, value any) error {
	p := newPickler()
	p.put(value)
	p.op(opStop)
	if p.err != nil {
		return p.err
	}
	z := &archiveWriter{count: &countingWriter{w: w}, top: name + "/"}
	z.zip = zip.NewWriter(z.count)
	z.entry("data.pkl", bytesOf(p.buf))
	z.entry("byteorder", bytesOf([]byte("little")))
	for key, s := range p.storages {
		z.entry("data/"+strconv.Itoa(key), s.write)
	}
	z.entry("version", bytesOf([]byte("3\n")))
	if z.err != nil {
		return z.err
	}
	return z.zip.Close()
}

// bytesOf returns the content of an entry in memory.
func bytesOf(b []byte) func(w io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	}
}

// archiveWriter writes the entries of an archive, stored and aligned.
type archiveWriter struct {
	zip   *zip.Writer
	count *countingWriter
	top   string
	err   error
	// pending is the part that package zip writes after the last entry: its size and checksum.
	pending int64
}

// Sizes of the descriptor that follows an entry, which has longer numbers for 4 GiB.
const (
	descriptor   = 16
	descriptor64 = 24
)

// localHeader is the size of an entry's header without its name and extra field.
const localHeader = 30

// entry adds an entry.
func (z *archiveWriter) entry(name string, content func(w io.Writer) error) {
	if z.err != nil {
		return
	}
	if z.err = z.zip.Flush(); z.err != nil {
		return
	}
	h := &zip.FileHeader{Name: z.top + name, Method: zip.Store}
	h.Extra = padding(z.count.n + z.pending + localHeader + int64(len(h.Name)))
	w, err := z.zip.CreateHeader(h)
	if err != nil {
		z.err = err
		return
	}
	h.Extra = nil // not in the directory, too
	c := &countingWriter{w: w}
	if err := content(c); err != nil {
		z.err = fmt.Errorf("%s: %w", h.Name, err)
	}
	if z.pending = descriptor; c.n >= math.MaxUint32 {
		z.pending = descriptor64
	}
}

// padding returns an extra field, as torch.save names it, that ends at a multiple of
// storageAlignment if it begins at an offset.
func padding(at int64) []byte {
	const head = 4
	n := int(storageAlignment - (at+head)%storageAlignment)
	extra := binary.LittleEndian.AppendUint16([]byte("FB"), uint16(n))
	for range n {
		extra = append(extra, 'Z')
	}
	return extra
}

// countingWriter counts the bytes written to w.
type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// Content is a storage to be written: Len elements of a type. Views of one *Content share
// it in the file too.
type Content struct {
	DType string // as safetensors spells it: "F32"
	Len   int
	// Raw writes the elements, little-endian.
	Raw func(w io.Writer) error
}

// errLength reports contents that are not as long as they should be.
var errLength = errors.New("has another number of bytes than its tensors")

// write writes the elements and checks their number.
func (s *Content) write(w io.Writer) error {
	c := &countingWriter{w: w}
	if err := s.Raw(c); err != nil {
		return err
	}
	if t, _ := storageTypes()[s.DType]; c.n != int64(s.Len)*int64(t.size) {
		return errLength
	}
	return nil
}

// View is a tensor to be written: elements of a storage.
type View struct {
	*Content
	Offset int   // of its first element
	Shape  []int // empty for a scalar
	Stride []int // nil: row-major without gaps
}

// storageType is an element type: its name in torch and its bytes.
type storageType struct {
	class string // of the storage
	dtype string
	size  int
}

// storageTypes are the writable types by safetensors's names.
func storageTypes() map[string]storageType {
	return map[string]storageType{
		"F64": {"DoubleStorage", "float64", 8}, "F32": {"FloatStorage", "float32", 4},
		"F16": {"HalfStorage", "float16", 2}, "BF16": {"BFloat16Storage", "bfloat16", 2},
		"I64": {"LongStorage", "int64", 8}, "I32": {"IntStorage", "int32", 4},
		"I16": {"ShortStorage", "int16", 2}, "I8": {"CharStorage", "int8", 1},
		"U8": {"ByteStorage", "uint8", 1}, "BOOL": {"BoolStorage", "bool", 1},
	}
}

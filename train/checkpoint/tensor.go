package checkpoint

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"io"
	"math/bits"
	"os"
	"slices"
	"strings"

	"exp/kernels"
	"exp/train/checkpoint/extent"
)

// Tensor describes a named array in a file.
type Tensor struct {
	Name  string
	DType DType
	Shape []int // empty for a scalar
}

// Len returns the number of elements.
func (t Tensor) Len() int {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// Bytes returns the size of the elements.
func (t Tensor) Bytes() int64 { return int64(t.Len()) * int64(t.DType.bits()) / 8 }

// size is Bytes for a shape that may be negative or too large.
func (t Tensor) size() (n int64, ok bool) {
	size := uint64(t.DType.bits())
	for _, d := range t.Shape {
		hi, lo := bits.Mul64(size, uint64(max(d, 0)))
		if d < 0 || hi != 0 || lo > 1<<62 {
			return 0, false
		}
		size = lo
	}
	return int64(size / 8), true
}

// kind returns type and shape in the form of errors: "F32 [4,8]".
func (t Tensor) kind() string {
	return fmt.Sprintf("%s [%s]", t.DType, strings.Trim(strings.ReplaceAll(fmt.Sprint(t.Shape), " ", ","), "[]"))
}

// place says where a tensor's elements lie.
type place struct {
	Tensor
	stored string   // its name in the file
	file   *os.File // the file of its first byte, for messages and for the order on disk
	begin  int64    // the offset of that byte
	data   extent.Extent
	// replicas must hold the same bytes as data; agree compares them.
	replicas []extent.Extent
	// composed says that the name does not determine the bytes: data depends on other files
	// or on a configuration.
	composed bool
	// split says that the tensor of that name in the file holds others too.
	split bool
}

// files returns the files that hold the elements and their copies, in order of use.
func (p place) files() []*os.File {
	list := p.data.Files()
	for _, r := range p.replicas {
		for _, f := range r.Files() {
			if !slices.Contains(list, f) {
				list = append(list, f)
			}
		}
	}
	if len(list) == 0 {
		list = append(list, p.file)
	}
	return list
}

// identity is a name under which the same files always hold the same elements.
func (p place) identity() string {
	if !p.composed {
		return p.stored
	}
	h, files := sha256.New(), p.files()
	p.data.Describe(h, func(f *os.File) int { return slices.Index(files, f) })
	return fmt.Sprintf("%s %s %x", p.stored, p.kind(), h.Sum(nil)[:8])
}

// placed returns the place of a tensor; file is where an empty one belongs.
func placed(x extent.Tensor, file *os.File) place {
	p := place{Tensor: Tensor{Name: x.Name, DType: DType(x.DType), Shape: x.Shape}, stored: cmp.Or(x.Stored, x.Name),
		file: file, data: x.Data, replicas: x.Replicas}
	if f, at := x.Data.First(); f != nil {
		p.file, p.begin = f, at
	}
	return p
}

// Source is a tensor and the source of its elements. Files are written, and digests
// computed, from sources.
type Source struct {
	Tensor
	// Raw writes the Bytes() bytes of the elements, little-endian, row-major. It returns
	// w's errors unchanged.
	Raw func(w io.Writer) error

	heads int // in whose order its rows are (published.go); 0: in none
}

// NamedBuffer is a buffer stored in a file under a name.
type NamedBuffer struct {
	Name  string
	Shape []int // nil for [Data.Len()]
	Data  kernels.Buffer
	Cut   Cut // if not nil, holds the elements instead of Data
}

// Cut is a buffer that several processes hold in parts. It is read and written in ranges,
// whose size no file shows.
type Cut interface {
	Len() int
	DType() kernels.DType
	// Read returns elements lo to hi in memory of the host, valid until the next call.
	Read(lo, hi int) (kernels.Buffer, error)
	// Write sets the elements from lo on to x, in memory of the host.
	Write(lo int, x kernels.Buffer) error
}

// cutElements is the length of the ranges that a Cut is read in: 16 MiB of float32.
const cutElements = 4 << 20

func (b NamedBuffer) len() int {
	if b.Cut != nil {
		return b.Cut.Len()
	}
	return b.Data.Len()
}

func (b NamedBuffer) dtype() kernels.DType {
	if b.Cut != nil {
		return b.Cut.DType()
	}
	return b.Data.DType()
}

// tensor returns b's description in a file. It panics if the shape is not the buffer's.
func (b NamedBuffer) tensor() Tensor {
	t := Tensor{Name: b.Name, DType: dtypeOf(b.dtype()), Shape: b.Shape}
	if t.Shape == nil {
		t.Shape = []int{b.len()}
	}
	if t.Len() != b.len() {
		panic("checkpoint: shape of " + b.Name + " is not its buffer's")
	}
	return t
}

// source returns b as a source, copied from the device when written.
func (b NamedBuffer) source(be kernels.Backend) Source {
	return Source{Tensor: b.tensor(), Raw: func(w io.Writer) error {
		if b.Cut == nil {
			return writeBuffer(w, be, b.Data)
		}
		for lo := 0; lo < b.len(); lo += cutElements {
			x, err := b.Cut.Read(lo, min(lo+cutElements, b.len()))
			if err != nil {
				return err
			}
			if err := writeBuffer(w, be, x); err != nil {
				return err
			}
		}
		return nil
	}}
}

package checkpoint

import (
	"fmt"
	"io"
	"strings"

	"exp/kernels"
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

// kind returns type and shape in the form of errors: "F32 [4,8]".
func (t Tensor) kind() string {
	return fmt.Sprintf("%s [%s]", t.DType, strings.Trim(strings.ReplaceAll(fmt.Sprint(t.Shape), " ", ","), "[]"))
}

// Source is a tensor and the source of its elements. Files are written, and digests
// computed, from sources.
type Source struct {
	Tensor
	// Raw writes the Bytes() bytes of the elements, little-endian, row-major. It returns
	// w's errors unchanged.
	Raw func(w io.Writer) error
}

// NamedBuffer is a buffer stored in a file under a name.
type NamedBuffer struct {
	Name  string
	Shape []int // nil for [Data.Len()]
	Data  kernels.Buffer
}

// tensor returns b's description in a file. It panics if the shape is not the buffer's.
func (b NamedBuffer) tensor() Tensor {
	t := Tensor{Name: b.Name, DType: dtypeOf(b.Data.DType()), Shape: b.Shape}
	if t.Shape == nil {
		t.Shape = []int{b.Data.Len()}
	}
	if t.Len() != b.Data.Len() {
		panic("checkpoint: shape of " + b.Name + " is not its buffer's")
	}
	return t
}

// source returns b as a source, copied from the device when written.
func (b NamedBuffer) source(be kernels.Backend) Source {
	return Source{Tensor: b.tensor(), Raw: func(w io.Writer) error { return writeBuffer(w, be, b.Data) }}
}

package checkpoint

import (
	"fmt"
	"io"
	"strings"

	"exp/kernels"
)

// Tensor describes a named array of a file.
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

// kind returns type and shape as errors show them: "F32 [4,8]".
func (t Tensor) kind() string {
	return fmt.Sprintf("%s [%s]", t.DType, strings.Trim(strings.ReplaceAll(fmt.Sprint(t.Shape), " ", ","), "[]"))
}

// Source is a tensor and where its elements come from. Files are written from
// sources, and digests computed of them.
type Source struct {
	Tensor
	// Raw writes the Bytes() bytes of the elements, little-endian, row-major. It
	// returns w's errors as they are.
	Raw func(w io.Writer) error
}

// NamedBuffer is a buffer that is kept in a file under a name.
type NamedBuffer struct {
	Name  string
	Shape []int // nil for [Data.Len()]
	Data  kernels.Buffer
}

// tensor returns what the file says of b. It panics if the shape is not the
// buffer's.
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

// source returns b as a source: copied from the device when it is written.
func (b NamedBuffer) source(be kernels.Backend) Source {
	return Source{Tensor: b.tensor(), Raw: func(w io.Writer) error { return writeBuffer(w, be, b.Data) }}
}

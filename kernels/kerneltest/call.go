package kerneltest

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"unsafe"

	"exp/kernels"
	"exp/kernels/ref"
)

// call is one computation on one backend and the buffers it uses. Every buffer
// is a view into a larger allocation, between two bands of values that no
// operation may read or write. The first error sticks; finish returns it.
type call struct {
	b       kernels.Backend
	tensors []*tensor
	err     error
}

type role uint8

const (
	input   role = iota // must not change
	output              // is the result
	scratch             // may change; is not looked at
)

// tensor is a buffer with its bands.
type tensor struct {
	name  string
	role  role
	whole kernels.Buffer
	lo, n int   // the view
	start image // what was uploaded
}

// image is the content of a buffer on the host: the slice of its type is set.
// Whatever the backend's float types, floats travel as float32.
type image struct {
	f []float32
	i []int32
	d []float64
}

// result holds an output after a call.
type result struct {
	name string
	image
}

// Bands. A NaN that leaks makes its result NaN; the payload tells it from a NaN
// that an operation computed. As an index, bandInt is out of any range.
const (
	bandBits = 0x7fdbbeef // differs from a computed NaN in its upper half, too
	bandInt  = -0x5eed5eed
)

func bandNaN() float32 { return math.Float32frombits(bandBits) }

// floats returns a buffer of the backend's float type that holds values and must
// not change.
func (c *call) floats(name string, values []float32) kernels.Buffer {
	return c.place(name, input, image{f: values}, c.b.Float())
}

// operands is floats of the Operand type.
func (c *call) operands(name string, values []float32) kernels.Buffer {
	return c.place(name, input, image{f: values}, c.b.Operand())
}

// inoutOperands is inout of the Operand type.
func (c *call) inoutOperands(name string, values []float32) kernels.Buffer {
	return c.place(name, output, image{f: values}, c.b.Operand())
}

// outOperands is out of the Operand type.
func (c *call) outOperands(name string, n int) kernels.Buffer { return c.inoutOperands(name, nans(n)) }

// spareOperands is spare of the Operand type.
func (c *call) spareOperands(name string, values []float32) kernels.Buffer {
	return c.place(name, scratch, image{f: values}, c.b.Operand())
}

// ints returns a buffer of int32 that holds values and must not change.
func (c *call) ints(name string, values []int32) kernels.Buffer {
	return c.place(name, input, image{i: values}, kernels.I32)
}

// inout returns a result that starts as values.
func (c *call) inout(name string, values []float32) kernels.Buffer {
	return c.place(name, output, image{f: values}, c.b.Float())
}

// out returns a result of n floats that starts as NaN.
func (c *call) out(name string, n int) kernels.Buffer { return c.inout(name, nans(n)) }

// outInts returns a result of n int32 that starts as garbage.
func (c *call) outInts(name string, n int) kernels.Buffer {
	x := make([]int32, n)
	fillWith(x, bandInt)
	return c.place(name, output, image{i: x}, kernels.I32)
}

// outDoubles returns a result of n float64.
func (c *call) outDoubles(name string, n int) kernels.Buffer {
	x := make([]float64, n)
	fillWith(x, math.NaN())
	return c.place(name, output, image{d: x}, kernels.F64)
}

// spare returns a buffer that starts as values and is not part of the result.
func (c *call) spare(name string, values []float32) kernels.Buffer {
	return c.place(name, scratch, image{f: values}, c.b.Float())
}

// matrix returns a weight [out,in] with its packed copies.
func (c *call) matrix(name string, w []float32, out, in int) kernels.Matrix {
	m := kernels.Matrix{W: c.floats(name, w), Out: out, In: in}
	packed, packedT := c.b.PackedLen(out, in)
	// NaN, so that padding that Pack does not write shows.
	m.Packed = c.spareOperands(name+" packed", nans(packed))
	m.PackedT = c.spareOperands(name+" packedT", nans(packedT))
	c.b.Pack(m)
	return m
}

func nans(n int) []float32 {
	x := make([]float32, n)
	fillWith(x, bandNaN())
	return x
}

// fillWith sets every element of x to v.
func fillWith[E any](x []E, v E) {
	if len(x) == 0 {
		return
	}
	x[0] = v
	for n := 1; n < len(x); n *= 2 {
		copy(x[n:], x[:n])
	}
}

// place allocates a tensor with its bands and uploads it.
func (c *call) place(name string, r role, v image, t kernels.DType) kernels.Buffer {
	n := v.len()
	// The view starts at any alignment of its elements, packed weights at the alignment of
	// a cache line. The band after it is as long as the view, up to a limit: a tile
	// that is too tall writes whole rows past the end.
	lo := 64 + len(c.tensors)%8
	if r == scratch {
		lo = 64
	}
	hi := 64 + min(n, 4096)
	whole, err := c.b.Alloc(t, lo+n+hi)
	if err != nil {
		c.fail(fmt.Errorf("alloc %s [%d]: %w", name, lo+n+hi, err))
		return kernels.Buffer{}
	}
	x := &tensor{name: name, role: r, whole: whole, lo: lo, n: n, start: v.banded(lo, hi)}
	if t == kernels.BF16 {
		for i, f := range x.start.f {
			x.start.f[i] = ref.Round(f)
		}
	}
	c.tensors = append(c.tensors, x)
	c.b.Copy(whole, x.start.host())
	c.b.Sync()
	return whole.Slice(lo, lo+n)
}

func (c *call) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// finish waits, checks bands and inputs, frees everything and returns the
// outputs in the order of their making.
func (c *call) finish() ([]result, error) {
	c.b.Sync()
	var results []result
	for _, x := range c.tensors {
		now := x.start.like()
		c.b.Copy(now.host(), x.whole)
		c.b.Sync()
		if i := x.start.firstChange(now, x.lo, x.n, x.role == input); i >= 0 {
			c.fail(fmt.Errorf("%s: %s", x.name, x.place(i)))
		}
		if x.role == output {
			results = append(results, result{x.name, now.slice(x.lo, x.lo+x.n)})
		}
		c.b.Free(x.whole)
	}
	return results, c.err
}

// place says where element i of the allocation is.
func (x *tensor) place(i int) string {
	switch {
	case i < x.lo:
		return fmt.Sprintf("wrote %d elements before the buffer", x.lo-i)
	case i >= x.lo+x.n:
		return fmt.Sprintf("wrote at %d, the buffer has %d elements", i-x.lo, x.n)
	}
	return fmt.Sprintf("input changed at %d", i-x.lo)
}

// run does f on a backend and returns its outputs.
func run(b kernels.Backend, f func(c *call)) ([]result, error) {
	c := &call{b: b}
	f(c)
	return c.finish()
}

var errNoResult = errors.New("the check has no output")

func (v image) len() int { return len(v.f) + len(v.i) + len(v.d) }

// host wraps the image for Copy.
func (v image) host() kernels.Buffer {
	switch {
	case v.i != nil:
		return kernels.Host(v.i)
	case v.d != nil:
		return kernels.Host(v.d)
	}
	return kernels.Host(v.f)
}

// banded returns v between bands of lo and hi elements.
func (v image) banded(lo, hi int) image {
	switch {
	case v.i != nil:
		return image{i: banded(v.i, lo, hi, bandInt)}
	case v.d != nil:
		return image{d: banded(v.d, lo, hi, math.NaN())}
	}
	return image{f: banded(v.f, lo, hi, bandNaN())}
}

func banded[E any](v []E, lo, hi int, band E) []E {
	x := make([]E, lo+len(v)+hi)
	fillWith(x[:lo], band)
	copy(x[lo:], v)
	fillWith(x[lo+len(v):], band)
	return x
}

// like returns an image of the same shape.
func (v image) like() image {
	switch {
	case v.i != nil:
		return image{i: make([]int32, len(v.i))}
	case v.d != nil:
		return image{d: make([]float64, len(v.d))}
	}
	return image{f: make([]float32, len(v.f))}
}

func (v image) slice(lo, hi int) image {
	switch {
	case v.i != nil:
		return image{i: v.i[lo:hi]}
	case v.d != nil:
		return image{d: v.d[lo:hi]}
	}
	return image{f: v.f[lo:hi]}
}

// firstChange returns the first index where the bits of now differ from v's, or -1. It
// looks inside the view [lo,lo+n) only if constant is true.
func (v image) firstChange(now image, lo, n int, constant bool) int {
	if constant {
		return v.differs(now, 0, v.len())
	}
	if i := v.differs(now, 0, lo); i >= 0 {
		return i
	}
	return v.differs(now, lo+n, v.len())
}

// differs returns the first index of [lo,hi) where the bits of other differ from v's, or -1.
func (v image) differs(other image, lo, hi int) int {
	if bytes.Equal(v.slice(lo, hi).raw(), other.slice(lo, hi).raw()) {
		return -1
	}
	for v.bits(lo) == other.bits(lo) {
		lo++
	}
	return lo
}

// raw returns the elements as they lie in memory.
func (v image) raw() []byte {
	switch {
	case v.i != nil:
		return rawBytes(v.i)
	case v.d != nil:
		return rawBytes(v.d)
	}
	return rawBytes(v.f)
}

func rawBytes[E any](x []E) []byte {
	var e E
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), len(x)*int(unsafe.Sizeof(e)))
}

// bits returns element i as a number that is equal for equal bits only.
func (v image) bits(i int) uint64 {
	switch {
	case v.i != nil:
		return uint64(uint32(v.i[i]))
	case v.d != nil:
		return math.Float64bits(v.d[i])
	}
	return uint64(math.Float32bits(v.f[i]))
}

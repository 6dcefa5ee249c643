package ref

import (
	"unsafe"

	"exp/kernels"
)

// Backend runs the reference as a device with Go memory and synchronous operations.
// It needs no packed weights. New makes one; a Backend is used by one goroutine at a
// time.
type Backend[T Float] struct {
	// live holds the address of every allocation, which also keeps it reachable.
	live map[unsafe.Pointer]struct{}
}

// New returns a backend whose Float type is T.
func New[T Float]() *Backend[T] {
	return &Backend[T]{live: map[unsafe.Pointer]struct{}{}}
}

var (
	_ kernels.Backend = (*Backend[float32])(nil)
	_ kernels.Backend = (*Backend[float64])(nil)
)

// Name returns "ref".
func (*Backend[T]) Name() string { return "ref" }

// Class returns "cpu/fma" for float32, whose bits it defines, and "ref/f64" for
// float64, which uses the machine's exp and log.
func (*Backend[T]) Class() string {
	if is32[T]() {
		return "cpu/fma"
	}
	return "ref/f64"
}

// Float returns the DType of T.
func (*Backend[T]) Float() kernels.DType {
	if is32[T]() {
		return kernels.F32
	}
	return kernels.F64
}

// Operand returns the Float type.
func (b *Backend[T]) Operand() kernels.DType { return b.Float() }

// Alloc returns n zeroed elements of Go memory. The error is always nil.
func (b *Backend[T]) Alloc(t kernels.DType, n int) (kernels.Buffer, error) {
	if n < 0 {
		panic("ref: negative length")
	}
	if n == 0 {
		return kernels.NewBuffer(nil, 0, t), nil
	}
	// uint64 elements are aligned for every type.
	addr := unsafe.Pointer(unsafe.SliceData(make([]uint64, (n*t.Size()+7)/8)))
	b.live[addr] = struct{}{}
	return kernels.NewBuffer(addr, n, t), nil
}

// Free forgets a buffer from Alloc.
func (b *Backend[T]) Free(x kernels.Buffer) {
	if x.Empty() {
		return
	}
	if _, ok := b.live[x.Addr()]; !ok {
		panic("ref: Free of memory that Alloc did not give")
	}
	delete(b.live, x.Addr())
}

// Sync does nothing: operations are synchronous.
func (*Backend[T]) Sync() {}

func (*Backend[T]) Copy(dst, src kernels.Buffer) {
	if dst.Len() != src.Len() {
		panic("ref: Copy: length mismatch")
	}
	switch {
	case dst.DType() == src.DType() && dst.DType() == kernels.F32:
		copy(kernels.Elems[float32](dst), kernels.Elems[float32](src))
	case dst.DType() == src.DType() && dst.DType() == kernels.F64:
		copy(kernels.Elems[float64](dst), kernels.Elems[float64](src))
	case dst.DType() == src.DType() && dst.DType() == kernels.I32:
		copy(kernels.Elems[int32](dst), kernels.Elems[int32](src))
	case dst.DType() == src.DType() && dst.DType() == kernels.BF16:
		copy(kernels.Bits(dst), kernels.Bits(src))
	case dst.DType() == kernels.F32 && src.DType() == kernels.BF16:
		widen(kernels.Elems[float32](dst), kernels.Bits(src))
	case dst.DType() == kernels.BF16 && src.DType() == kernels.F32:
		narrow(kernels.Bits(dst), kernels.Elems[float32](src))
	case dst.DType() == kernels.F32 && src.DType() == kernels.F64:
		convert(kernels.Elems[float32](dst), kernels.Elems[float64](src))
	case dst.DType() == kernels.F64 && src.DType() == kernels.F32:
		convert(kernels.Elems[float64](dst), kernels.Elems[float32](src))
	default:
		panic("ref: Copy: no conversion between these types")
	}
}

func convert[A, B Float](dst []A, src []B) {
	for i, v := range src {
		dst[i] = A(v)
	}
}

func (*Backend[T]) Zero(x kernels.Buffer) {
	switch x.DType() {
	case kernels.F32:
		clear(kernels.Elems[float32](x))
	case kernels.F64:
		clear(kernels.Elems[float64](x))
	case kernels.I32:
		clear(kernels.Elems[int32](x))
	case kernels.BF16:
		clear(kernels.Bits(x))
	default:
		panic("ref: Zero: unknown type")
	}
}

// Add implements kernels.Memory for buffers of the Float type.
func (*Backend[T]) Add(dst, src kernels.Buffer) {
	d, s := floats[T](dst), floats[T](src)
	if len(d) != len(s) {
		panic("ref: Add: length mismatch")
	}
	addTo(d, s)
}

// floats returns x as a slice, nil if it is empty, whatever its type.
func floats[T Float](x kernels.Buffer) []T {
	if x.Empty() {
		return nil
	}
	if int(unsafe.Sizeof(T(0))) != x.DType().Size() || x.DType() == kernels.I32 {
		panic("ref: buffer is not of the backend's float type")
	}
	return kernels.Elems[T](x)
}

// ints returns x as a slice of int32.
func ints(x kernels.Buffer) []int32 {
	if x.Empty() {
		return nil
	}
	if x.DType() != kernels.I32 {
		panic("ref: buffer is not of type i32")
	}
	return kernels.Elems[int32](x)
}

package kernels

import (
	"fmt"
	"unsafe"
)

// DType is the element type of a Buffer.
type DType uint8

const (
	F32  DType = 1 + iota // IEEE binary32: parameters and activations
	F64                   // IEEE binary64: norms, and everything on ref.New[float64]
	I32                   // two's complement: token ids, offsets, tables
	BF16                  // the upper half of an F32: operands of matmuls, in numerics class "cpu/bf16"
)

// Size returns the bytes of one element.
func (t DType) Size() int {
	switch t {
	case F32, I32:
		return 4
	case F64:
		return 8
	case BF16:
		return 2
	}
	panic("kernels: unknown dtype")
}

func (t DType) String() string {
	switch t {
	case F32:
		return "f32"
	case F64:
		return "f64"
	case I32:
		return "i32"
	case BF16:
		return "bf16"
	}
	return fmt.Sprintf("DType(%d)", uint8(t))
}

// Buffer is a typed span of a device's memory. It is a value: slicing makes a
// view and allocates nothing. The zero Buffer is empty and stands for "absent"
// where an operation says that an argument is optional.
//
// A Buffer does not own its memory; Backend.Alloc and Backend.Free do. The
// address is a device address: only the backend that allocated it may dereference
// it, except for host buffers made by Host and HostBits.
type Buffer struct {
	addr unsafe.Pointer
	n    int
	t    DType
	host bool
}

// NewBuffer wraps n elements of type t at addr. It is for backends.
func NewBuffer(addr unsafe.Pointer, n int, t DType) Buffer {
	return Buffer{addr: addr, n: n, t: t}
}

// Host wraps a Go slice so that Backend.Copy can read from it or write to it.
// The slice must stay reachable and unmoved by append until Backend.Sync.
func Host[T float32 | float64 | int32](s []T) Buffer {
	if len(s) == 0 {
		return Buffer{t: dtypeOf[T](), host: true}
	}
	return Buffer{addr: unsafe.Pointer(&s[0]), n: len(s), t: dtypeOf[T](), host: true}
}

// HostBits is Host for BF16, the upper halves of float32. s may be outside the Go heap, in a
// mapped file for example.
func HostBits(s []uint16) Buffer {
	if len(s) == 0 {
		return Buffer{t: BF16, host: true}
	}
	return Buffer{addr: unsafe.Pointer(&s[0]), n: len(s), t: BF16, host: true}
}

func dtypeOf[T float32 | float64 | int32]() DType {
	var z T
	switch any(z).(type) {
	case float32:
		return F32
	case float64:
		return F64
	}
	return I32
}

// Len returns the number of elements.
func (b Buffer) Len() int { return b.n }

// DType returns the element type.
func (b Buffer) DType() DType { return b.t }

// IsHost reports whether Host or HostBits made b.
func (b Buffer) IsHost() bool { return b.host }

// Empty reports whether b has no elements.
func (b Buffer) Empty() bool { return b.n == 0 }

// Addr returns the device address of the first element. It is for backends.
func (b Buffer) Addr() unsafe.Pointer { return b.addr }

// Slice returns a view of elements [lo, hi). It panics if they are out of range.
func (b Buffer) Slice(lo, hi int) Buffer {
	if lo < 0 || hi < lo || hi > b.n {
		panic("kernels: slice out of range")
	}
	if lo == hi {
		return Buffer{t: b.t, host: b.host}
	}
	b.addr = unsafe.Add(b.addr, lo*b.t.Size())
	b.n = hi - lo
	return b
}

// PerRow returns how many elements each of n rows has, and 1 if n is 0. It panics unless they have the same number,
// which is not 0.
func (b Buffer) PerRow(n int) int {
	if n == 0 {
		return 1
	}
	if b.n == 0 || b.n%n != 0 {
		panic("kernels: not the same number of elements for each row")
	}
	return b.n / n
}

// Rows returns a view of rows lo to hi of n.
func (b Buffer) Rows(lo, hi, n int) Buffer {
	k := b.PerRow(n)
	return b.Slice(lo*k, hi*k)
}

// Bits returns a BF16 buffer as the upper halves of its float32. Like Elems, it is
// for backends.
func Bits(b Buffer) []uint16 {
	if b.n == 0 {
		return nil
	}
	if b.t != BF16 {
		panic("kernels: buffer holds another type")
	}
	return unsafe.Slice((*uint16)(b.addr), b.n)
}

// Elems returns b as a Go slice. It is for backends whose memory Go can address, and
// for host buffers. It panics if T is not b's type.
func Elems[T float32 | float64 | int32](b Buffer) []T {
	if b.n == 0 {
		return nil
	}
	if dtypeOf[T]() != b.t {
		panic("kernels: buffer holds another type")
	}
	return unsafe.Slice((*T)(b.addr), b.n)
}

package cpu

// #include "level/args.h"
import "C"

import (
	"unsafe"

	"exp/kernels"
)

// TakeColumns copies a range of columns, scaled.
func (b *Backend) TakeColumns(dst, src kernels.Buffer, n, stride, offset int, scale float64) {
	b.columns(b.k.take_columns, dst, src, columnsOf(dst, src, n, stride, offset), scale)
}

// AddColumns adds to a range of columns.
func (b *Backend) AddColumns(dst, src kernels.Buffer, n, stride, offset int, scale float64) {
	b.columns(b.k.add_columns, dst, src, columnsOf(src, dst, n, stride, offset), scale)
}

// columnRange is a range of the columns of m rows.
type columnRange struct{ m, n, stride, offset int }

// columnsOf returns the range of narrow [m,n] in wide [m,stride]. It panics if it does not
// fit.
func columnsOf(narrow, wide kernels.Buffer, n, stride, offset int) columnRange {
	if n < 1 || offset < 0 || offset+n > stride {
		panic("cpu: columns out of range")
	}
	r := columnRange{narrow.Len() / n, n, stride, offset}
	check(narrow, r.m*n)
	check(wide, r.m*stride)
	return r
}

func (b *Backend) columns(kernel C.kernel, dst, src kernels.Buffer, r columnRange, scale float64) {
	g := &b.a.columns
	g.dst, g.dst_bf16, g.src, g.src_bf16 = dst.Addr(), isBF16(dst), src.Addr(), isBF16(src)
	g.n, g.stride, g.offset, g.scale = C.long(r.n), C.long(r.stride), C.long(r.offset), C.float(scale)
	b.queued(rowCall{kernel: kernel, args: unsafe.Pointer(g), size: unsafe.Sizeof(*g), m: r.m, perRow: 1,
		grain: rowGrain(2 * r.n), joins: true},
		use{dst, byRow | writes}, use{src, byRow})
}

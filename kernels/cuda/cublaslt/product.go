//go:build cuda

package cublaslt

/*
#include "shim.h"
*/
import "C"

import (
	"unsafe"

	"exp/kernels"
)

// Matrix is an array [Rows,Cols] in device memory, as Alloc returns it. Its rows are Pitch elements
// apart. A factor is BF16, a result BF16 or F32.
type Matrix struct {
	Data              kernels.Buffer
	Rows, Cols, Pitch int
	Transposed        bool // a factor [Cols,Rows]
}

// shape returns the rows and columns of m as a factor.
func (m Matrix) shape() (rows, cols int) {
	if m.Transposed {
		return m.Cols, m.Rows
	}
	return m.Rows, m.Cols
}

// pass returns m for C. It panics if m is not an array in device memory.
func (m Matrix) pass(result bool) C.struct_xlt_matrix {
	t := C.int(C.XLT_BF16)
	if m.Data.DType() == kernels.F32 && result {
		t = C.XLT_F32
	} else if m.Data.DType() != kernels.BF16 {
		panic("cublaslt: matrix: wrong element type")
	}
	if m.Rows < 1 || m.Cols < 1 || m.Pitch < m.Cols || m.Data.Len() < (m.Rows-1)*m.Pitch+m.Cols {
		panic("cublaslt: matrix: length mismatch")
	}
	if m.Data.IsHost() {
		panic("cublaslt: a host buffer in a device operation")
	}
	c := C.struct_xlt_matrix{at: m.Data.Addr(), rows: C.int64_t(m.Rows), cols: C.int64_t(m.Cols),
		pitch: C.int64_t(m.Pitch), _type: t}
	if m.Transposed {
		c.transposed = 1
	}
	return c
}

// Product is a product for which the library has chosen an algorithm.
type Product struct {
	l *Library
	c *C.struct_xlt_product
}

// Product prepares out = a·b, or out += a·b if add is set, summed in float32. The caller keeps the
// matrices until Close. It panics if their shapes do not fit.
func (l *Library) Product(out, a, b Matrix, add bool) (*Product, error) {
	rows, terms := a.shape()
	depth, cols := b.shape()
	if terms != depth || out.Rows != rows || out.Cols != cols || out.Transposed {
		panic("cublaslt: product: length mismatch")
	}
	to, left, right, accumulate := out.pass(true), a.pass(false), b.pass(false), C.int(0)
	if add {
		accumulate = 1
	}
	p := &Product{l: l}
	err := l.call(func(_ unsafe.Pointer, f *C.struct_xlt_failure) {
		var c *C.struct_xlt_product
		C.xlt_plan(l.c, &c, &to, &left, &right, accumulate, C.size_t(l.workspaceBytes()), f)
		p.c = c
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

func (l *Library) workspaceBytes() int { return l.workspace.Len() * l.workspace.DType().Size() }

// Run queues the product after the device's earlier work.
func (p *Product) Run() error {
	l := p.l
	return l.call(func(stream unsafe.Pointer, f *C.struct_xlt_failure) {
		C.xlt_run(l.c, p.c, l.workspace.Addr(), C.size_t(l.workspaceBytes()), stream, f)
	})
}

// Close frees what the library keeps for the product, after the device has done it.
func (p *Product) Close() {
	p.l.dev.InContext(func(unsafe.Pointer) { C.xlt_free(p.l.c, p.c) })
	p.c = nil
}

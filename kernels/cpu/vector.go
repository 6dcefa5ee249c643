package cpu

// #include "level/args.h"
import "C"

import (
	"math"
	"unsafe"

	"exp/kernels"
)

// vectorUnit must equal VECTOR_UNIT in vector.h; it is the block of SumSquares.
const vectorUnit = kernels.SumBlock

// Add adds src to dst.
func (b *Backend) Add(dst, src kernels.Buffer) {
	check(src, dst.Len())
	g := &b.a.vector
	g.dst, g.src, g.n = floats(dst), floats(src), C.long(dst.Len())
	b.run(b.k.add, unsafe.Pointer(g), ceilDiv(dst.Len(), vectorUnit), 4)
}

// AdamW updates parameters and moments.
func (b *Backend) AdamW(p, m, v, grad kernels.Buffer, a kernels.AdamW) {
	n := p.Len()
	check(m, n)
	check(v, n)
	check(grad, n)
	c1 := 1 / (1 - math.Pow(a.Beta1, float64(a.Step)))
	c2 := 1 / math.Sqrt(1-math.Pow(a.Beta2, float64(a.Step)))
	g := &b.a.adamw
	g.p, g.m, g.v, g.g, g.n = floats(p), floats(m), floats(v), floats(grad), C.long(n)
	g.b1, g.omb1 = C.float(a.Beta1), C.float(1-a.Beta1)
	g.b2, g.omb2 = C.float(a.Beta2), C.float(1-a.Beta2)
	g.c2, g.eps = C.float(c2), C.float(a.Eps)
	g.neg_lr_c1 = C.float(-(a.LR * c1))
	g.decay = C.float(1 - float64(a.LR*a.WeightDecay))
	g.scale = C.float(a.GradScale)
	b.run(b.k.adamw, unsafe.Pointer(g), ceilDiv(n, vectorUnit), 2)
}

// SumSquares sums in float64.
func (b *Backend) SumSquares(out, x kernels.Buffer) {
	check(out, 1)
	units := ceilDiv(x.Len(), vectorUnit)
	partial := b.partials(units)
	g := &b.a.vector
	g.src, g.n, g.partial = floats(x), C.long(x.Len()), (*C.double)(partial.Addr())
	b.run(b.k.sum_squares, unsafe.Pointer(g), units, 4)
	sum := 0.0
	for _, s := range kernels.Elems[float64](partial) {
		sum += s
	}
	kernels.Elems[float64](out)[0] = sum
}

// partials returns n float64 that live until the next call.
func (b *Backend) partials(n int) kernels.Buffer {
	b.grow(&b.sums, kernels.F64, n, n)
	return b.sums.Slice(0, n)
}

package cpu

// #include "args.h"
import "C"

import (
	"unsafe"

	"exp/kernels"
)

// PackedLen returns the sizes of the panel copies: whole panels of NR columns.
func (b *Backend) PackedLen(out, in int) (packed, packedT int) {
	if b.tiles != nil {
		return tilesLen(out, in), tilesLen(in, out)
	}
	nr := int(b.k.nr)
	return ceilDiv(out, nr) * nr * in, ceilDiv(in, nr) * nr * out
}

// Pack copies the weight into panels.
func (b *Backend) Pack(w kernels.Matrix) {
	check(w.W, w.Out*w.In)
	packed, packedT := b.PackedLen(w.Out, w.In)
	check(w.Packed, packed)
	if b.tiles != nil {
		b.packTiles(w)
		return
	}
	a := &b.a.pack
	// For x·Wᵀ, B is [In,Out]: element (k,n) is W[n,k].
	a.b, a.out = floats(w.W), floats(w.Packed)
	a.k, a.n, a.sk, a.sn = C.long(w.In), C.long(w.Out), 1, C.long(w.In)
	b.pool.run(b.k.pack, unsafe.Pointer(a), ceilDiv(w.Out, int(b.k.nr)), 1)
	if w.PackedT.Empty() {
		return
	}
	check(w.PackedT, packedT)
	// For dout·W, B is W itself: [Out,In].
	a.out = floats(w.PackedT)
	a.k, a.n, a.sk, a.sn = C.long(w.Out), C.long(w.In), C.long(w.In), 1
	b.pool.run(b.k.pack, unsafe.Pointer(a), ceilDiv(w.In, int(b.k.nr)), 1)
}

// MatMul sets out = x·Wᵀ + bias.
func (b *Backend) MatMul(out, x kernels.Buffer, w kernels.Matrix, bias kernels.Buffer) {
	if !bias.Empty() {
		check(bias, w.Out)
	}
	packed, _ := b.PackedLen(w.Out, w.In)
	check(w.Packed, packed)
	if b.tiles != nil {
		b.tileMatMul(out, x, w.Packed, bias, out.Len()/w.Out, w.Out, w.In)
		return
	}
	b.matmul(out, x, w.Packed, bias, out.Len()/w.Out, w.Out, w.In)
}

// MatMulDX sets dx = dout·W.
func (b *Backend) MatMulDX(dx, dout kernels.Buffer, w kernels.Matrix) {
	_, packedT := b.PackedLen(w.Out, w.In)
	check(w.PackedT, packedT)
	if b.tiles != nil {
		b.tileMatMul(dx, dout, w.PackedT, kernels.Buffer{}, dx.Len()/w.In, w.In, w.Out)
		return
	}
	b.matmul(dx, dout, w.PackedT, kernels.Buffer{}, dx.Len()/w.In, w.In, w.Out)
}

// matmul sets c [m,n] = a [m,k] · B, B in panels.
func (b *Backend) matmul(c, a, panels, bias kernels.Buffer, m, n, k int) {
	check(c, m*n)
	check(a, m*k)
	if m == 0 {
		return
	}
	g := &b.a.matmul
	g.c, g.a, g.b, g.bias = floats(c), floats(a), floats(panels), floats(bias)
	g.m, g.n, g.k = C.long(m), C.long(n), C.long(k)

	// Rows in blocks that stay in the second-level cache beside a panel; when that
	// leaves too few units for the threads, the panels are divided as well.
	const cached = 1 << 17 // float32 elements: 512 KiB
	mr := int(b.k.mr)
	rows := max(1, cached/max(k, 1)/mr) * mr
	rows = min(rows, ceilDiv(m, mr)*mr)
	if perThread := ceilDiv(ceilDiv(m, b.pool.n), mr) * mr; rows > perThread {
		rows = perThread
	}
	rowBlocks := ceilDiv(m, rows)
	groups := 1
	if want := 3 * b.pool.n; b.pool.n > 1 && rowBlocks < want {
		groups = min(ceilDiv(want, rowBlocks), ceilDiv(n, int(b.k.nr)))
	}
	g.row_block, g.panel_groups = C.long(rows), C.long(groups)
	grain := 1
	if 2*m*n*k < 1<<18 { // under a microsecond: not worth sharing
		grain = rowBlocks * groups
	}
	b.pool.run(b.k.matmul, unsafe.Pointer(g), rowBlocks*groups, grain)
}

// MatMulDW adds the blocked sum of doutᵀ·x to dw and of dout to dbias.
func (b *Backend) MatMulDW(dw, dbias, dout, x, blocks kernels.Buffer) {
	offsets := kernels.Elems[int32](blocks)
	m := int(offsets[len(offsets)-1])
	if m == 0 {
		return
	}
	n, k := dout.Len()/m, x.Len()/m
	check(dout, m*n)
	check(x, m*k)
	check(dw, n*k)
	if b.tiles != nil {
		b.tileMatMulDW(dw, dbias, dout, x, blocks, n, k)
		return
	}
	g := &b.a.matmul_dw
	g.dw, g.dbias, g.dout, g.x, g.block = floats(dw), floats(dbias), floats(dout), floats(x), ints(blocks)
	g.n, g.k, g.blocks = C.long(n), C.long(k), C.long(len(offsets)-1)
	mr, nr := int(b.k.mr), int(b.k.nr)
	b.grow(C.DW_ROWS * (mr + ceilDiv(k, nr)*nr))
	g.scratch, g.scratch_len = floats(b.scratch), C.long(b.scratchLen)
	groups := min(ceilDiv(n, mr), b.pool.n)
	g.row_groups = C.long(groups)
	b.pool.run(b.k.matmul_dw, unsafe.Pointer(g), groups, 1)
	if !dbias.Empty() {
		check(dbias, n)
		b.pool.run(b.k.matmul_dbias, unsafe.Pointer(g), ceilDiv(n, kernels.Lanes), max(1, 16384/m/kernels.Lanes))
	}
}

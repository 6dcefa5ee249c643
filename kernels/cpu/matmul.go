package cpu

// #include "level/args.h"
import "C"

import (
	"runtime"
	"unsafe"

	"exp/kernels"
)

// PackedLen returns the lengths of the panel copies: whole panels of NR columns.
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
	b.packRows(w, 0, w.W)
	if w.PackedT.Empty() {
		return
	}
	_, packedT := b.PackedLen(w.Out, w.In)
	check(w.PackedT, packedT)
	if b.tiles != nil {
		b.packTilesT(w)
		return
	}
	// For dout·W, B is W itself: [Out,In].
	a := &b.a.pack
	a.b, a.out = address(w.W), unsafe.Pointer(floats(w.PackedT))
	isBF16(w.W, w.PackedT)
	a.k, a.n, a.sk, a.sn = C.long(w.Out), C.long(w.In), C.long(w.In), 1
	a.b_bf16, a.out_bf16 = 0, 0
	b.run(b.k.pack, unsafe.Pointer(a), ceilDiv(w.In, int(b.k.nr)), 1)
}

// PackRows packs some rows of a matrix, so that the whole need not be in memory.
func (b *Backend) PackRows(w kernels.Matrix, from int, rows kernels.Buffer) {
	n := rows.Len() / w.In
	if from < 0 || from%kernels.PackAlign != 0 || n%kernels.PackAlign != 0 && from+n != w.Out || from+n > w.Out {
		panic("cpu: PackRows: not whole panels")
	}
	if !w.PackedT.Empty() {
		panic("cpu: PackRows: with PackedT")
	}
	check(rows, n*w.In)
	b.packRows(w, from, rows)
}

// packRows packs rows [n,In] of a weight, starting at row `from`, the first of a panel.
func (b *Backend) packRows(w kernels.Matrix, from int, rows kernels.Buffer) {
	packed, _ := b.PackedLen(w.Out, w.In)
	check(w.Packed, packed)
	n := rows.Len() / w.In
	if b.tiles != nil {
		b.packTiles(w, from, rows)
		return
	}
	a := &b.a.pack
	a.b_bf16, a.out_bf16 = isBF16(rows), isBF16(w.Packed)
	if a.b_bf16 == 0 && a.out_bf16 != 0 {
		panic("cpu: float32 rows do not go into BF16 panels: round them first")
	}
	// For x·Wᵀ, B is [In,Out]: element (k,n) is W[n,k].
	a.b, a.out = address(rows), unsafe.Add(w.Packed.Addr(), from*w.In*w.Packed.DType().Size())
	a.k, a.n, a.sk, a.sn = C.long(w.In), C.long(n), 1, C.long(w.In)
	b.run(b.k.pack, unsafe.Pointer(a), ceilDiv(n, int(b.k.nr)), 1)
	runtime.KeepAlive(rows)
}

// forward returns the second factor of x·Wᵀ, and its buffer.
func (b *Backend) forward(w kernels.Matrix) (C.struct_factor, kernels.Buffer) {
	packed, _ := b.PackedLen(w.Out, w.In)
	check(w.Packed, packed)
	f := C.struct_factor{at: w.Packed.Addr(), form: C.PANELS_F32, terms: C.long(w.In), columns: C.long(w.Out)}
	if isBF16(w.Packed) != 0 {
		f.form = C.PANELS_BF16
	}
	return f, w.Packed
}

// backward returns the second factor of dout·W, and its buffer: PackedT, or Packed if that is
// empty.
func (b *Backend) backward(w kernels.Matrix) (C.struct_factor, kernels.Buffer) {
	f := C.struct_factor{at: w.PackedT.Addr(), form: C.PANELS_F32, terms: C.long(w.Out), columns: C.long(w.In)}
	packed, packedT := b.PackedLen(w.Out, w.In)
	if !w.PackedT.Empty() {
		check(w.PackedT, packedT)
		floats(w.PackedT)
		return f, w.PackedT
	}
	check(w.Packed, packed)
	f.at, f.form = w.Packed.Addr(), C.ACROSS_F32
	if isBF16(w.Packed) != 0 {
		f.form = C.ACROSS_BF16
	}
	return f, w.Packed
}

// MatMul sets out = x·Wᵀ + bias.
func (b *Backend) MatMul(out, x kernels.Buffer, w kernels.Matrix, bias kernels.Buffer) {
	if !bias.Empty() {
		check(bias, w.Out)
	}
	f, panels := b.forward(w)
	if b.tiles != nil {
		b.tileMatMul(out, x, panels, bias, out.Len()/w.Out, w.Out, w.In)
		return
	}
	b.matmul(out, x, f, panels, bias, out.Len()/w.Out)
}

// MatMulDX sets dx = dout·W.
func (b *Backend) MatMulDX(dx, dout kernels.Buffer, w kernels.Matrix) {
	if b.tiles != nil {
		b.tileMatMul(dx, dout, b.tilesT(w), kernels.Buffer{}, dx.Len()/w.In, w.In, w.Out)
		return
	}
	f, panels := b.backward(w)
	b.matmul(dx, dout, f, panels, kernels.Buffer{}, dx.Len()/w.In)
}

// matmul sets c [m,n] = a [m,k] · B, B in panels.
func (b *Backend) matmul(c, a kernels.Buffer, f C.struct_factor, panels, bias kernels.Buffer, m int) {
	n, k := int(f.columns), int(f.terms)
	check(c, m*n)
	check(a, m*k)
	if m == 0 {
		return
	}
	g := &b.a.matmul
	g.c, g.a, g.b, g.bias = floats(c), floats(a), f, floats(bias)
	g.m, g.n, g.k = C.long(m), C.long(n), C.long(k)
	kPart := max(k, 1)
	if m > int(b.k.mr) {
		kPart = min(kPart, longestPart)
	}
	rows, groups, now := b.shareProduct(m, n, k, kPart, ceilDiv(n, int(b.k.nr)))
	g.rows, g.panel_groups, g.k_part, g.near = rows, C.long(groups), C.long(kPart), 0
	g.scratch, g.scratch_len = b.roomFor(int(rows.many) * int(b.k.mr) * b.panels(kPart))
	b.queued(rowCall{kernel: b.k.matmul, args: unsafe.Pointer(g), size: unsafe.Sizeof(*g), m: m, now: now,
		units: rowBlocks(rows) * groups, grain: 1,
		work: m * n * k, near: &g.near}, use{c, byRow | writes}, use{a, byRow}, use{panels, reads}, use{bias, reads})
}

// longestPart is how many terms of its chains a product of more than one strip takes at a time, a
// multiple of NR.
const longestPart = 1024

// shareProduct cuts a product of [m,k] and [k,n] into blocks of rows and groups of panels, and
// decides whether it runs now or from the queue. If it runs now, blocks have at most ten strips:
// their copy, part terms at a time, then stays in the second-level cache while the panels stream
// by. With too few rows for the threads, or so many panels that each is better read once, it
// divides the panels too.
func (b *Backend) shareProduct(m, n, k, part, panels int) (rows C.struct_row_blocks, groups int, now bool) {
	if b.queue.takes(m, m*n*k) {
		return b.queue.share(m), 1, false
	}
	const cached = 1 << 17 // float32 elements
	threads, mr := b.pool.n, int(b.k.mr)
	strips, most := ceilDiv(m, mr), min(max(cached/max(part, 1)/mr, 1), 10)
	worth := threads > 1 && 2*m*n*part >= 1<<18 // below, all takes a microsecond
	many := panels / panelsApart                // groups of many panels
	if worth && strips >= 4*threads && (strips > most || many < threads) {
		return blocksOfRows(strips, most, threads), 1, true
	}
	blocks := ceilDiv(strips, most)
	groups = 1
	if worth && blocks < threads {
		groups = min(max(ceilDiv(threads, blocks), min(many, 8*threads)), panels)
		if blocks == 1 && groups > threads {
			groups -= groups % threads // each thread gets as many
		}
	}
	return evenBlocks(strips, blocks), groups, true
}

// panelsApart is how many panels a group needs so that copying the rows for it again costs about
// 1 %.
const panelsApart = 64

// evenBlocks divides strips into at most the given number of blocks, all of one size.
func evenBlocks(strips, blocks int) C.struct_row_blocks {
	many := ceilDiv(strips, blocks)
	return C.struct_row_blocks{strips: C.long(strips), large: C.long(ceilDiv(strips, many)), many: C.long(many),
		few: C.long(many)}
}

// blocksOfRows divides strips among the threads, at most `most` to a block; the last quarter
// goes in blocks a third that size.
func blocksOfRows(strips, most, threads int) C.struct_row_blocks {
	many := min(most, max(1, strips/(2*threads)))
	return C.struct_row_blocks{strips: C.long(strips), large: C.long(strips * 3 / 4 / many), many: C.long(many),
		few: C.long(max(1, many/3))}
}

// rowBlocks returns the number of blocks.
func rowBlocks(r C.struct_row_blocks) int {
	return int(r.large) + max(0, ceilDiv(int(r.strips-r.large*r.many), int(r.few)))
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
		b.tileMatMulDW(dw, dbias, dout, x, blocks, n, k, false)
		return
	}
	g := &b.a.matmul_dw
	g.dw, g.dbias, g.dout, g.x, g.block = floats(dw), floats(dbias), floats(dout), floats(x), ints(blocks)
	g.n, g.k, g.blocks = C.long(n), C.long(k), C.long(len(offsets)-1)

	// Pieces of dw of 512 KiB, divided evenly among the threads.
	mr, nr, threads := int(b.k.mr), int(b.k.nr), b.pool.n
	cols := ceilDiv(k, 512)
	groups := ceilDiv(n, 1<<17/ceilDiv(ceilDiv(k, cols), 128)/128)
	for groups*cols%threads != 0 && n/groups >= 4*mr {
		groups++
	}
	g.row_groups, g.col_groups = C.long(groups), C.long(cols)
	strips := ceilDiv(ceilDiv(n, groups), mr)
	panels := ceilDiv(ceilDiv(k, nr), cols)
	g.scratch, g.scratch_len = b.roomFor(strips*(C.DW_ROWS*mr+kernels.Lanes) + kernels.Lanes +
		panels*C.DW_PANEL_ROWS*nr)
	b.run(b.k.matmul_dw, unsafe.Pointer(g), groups*cols, 1)
	if !dbias.Empty() {
		check(dbias, n)
		const width = C.BIAS_VECTORS * kernels.Lanes
		b.run(b.k.matmul_dbias, unsafe.Pointer(g), ceilDiv(n, width), max(1, 16384/m/width))
	}
}

package cpu

// #include "level/args.h"
import "C"

import (
	"runtime"
	"unsafe"

	"exp/kernels"
)

// The matmuls of class "cpu/bf16", on tiles of BF16 factors (tilesum.h). Callers have checked
// the lengths.

const (
	tileBlock = C.TILE_BLOCK               // rows or columns of two tiles
	tileStep  = 2 * 16 * kernels.TileTerms // its STEP: elements of two tiles
	stepLen   = tileStep / 2               // tileStep in float32 elements
)

// tileSteps returns the number of steps in a tile sum of n terms.
func tileSteps(n int) int { return ceilDiv(n, kernels.TileTerms) }

// tilesLen returns the number of BF16 elements in packed panels of cols columns.
func tilesLen(cols, terms int) int { return ceilDiv(cols, tileBlock) * tileSteps(terms) * tileStep }

// halves returns the address of a BF16 buffer, nil if it is empty.
func halves(b kernels.Buffer) *C.uint16_t {
	if b.Empty() {
		return nil
	}
	if b.DType() != kernels.BF16 {
		panic("cpu: want a bf16 buffer")
	}
	return (*C.uint16_t)(b.Addr())
}

// packTiles is packRows in class "cpu/bf16".
func (b *Backend) packTiles(w kernels.Matrix, from int, rows kernels.Buffer) {
	n := rows.Len() / w.In
	g := &b.a.tile_pack
	g.w, g.w_bf16, g.rows, g.cols = address(rows), isBF16(rows), C.long(n), C.long(w.In)
	at := tilesLen(from, w.In)
	g.out, g.transposed = halves(w.Packed.Slice(at, at+tilesLen(n, w.In))), 0
	b.run(b.tiles.pack, unsafe.Pointer(g), ceilDiv(n, tileBlock), max(1, 2048/w.In))
	runtime.KeepAlive(rows)
}

// packTilesT fills w.PackedT.
func (b *Backend) packTilesT(w kernels.Matrix) {
	g := &b.a.tile_pack
	floats(w.W) // panics if W is BF16
	g.w, g.w_bf16, g.rows, g.cols = address(w.W), 0, C.long(w.Out), C.long(w.In)
	g.out, g.transposed = halves(w.PackedT), 1
	b.run(b.tiles.pack, unsafe.Pointer(g), ceilDiv(w.In, tileBlock), max(1, 2048/w.Out))
}

// tilesT returns w.PackedT, or a transposed copy of w.Packed that lives until the next call.
func (b *Backend) tilesT(w kernels.Matrix) kernels.Buffer {
	n := tilesLen(w.In, w.Out)
	if !w.PackedT.Empty() {
		check(w.PackedT, n)
		return w.PackedT
	}
	check(w.Packed, tilesLen(w.Out, w.In))
	b.flush() // queued calls may use another matrix's copy
	b.grow(&b.across, kernels.BF16, n, n)
	g := &b.a.tile_pack
	g.w, g.rows, g.cols = address(w.Packed), C.long(w.Out), C.long(w.In)
	g.out = halves(b.across)
	b.run(b.tiles.across, unsafe.Pointer(g), ceilDiv(w.In, tileBlock), max(1, 2048/w.Out))
	return b.across.Slice(0, n)
}

// tileMatMul sets c [m,n] = a [m,k] · B, B in panels.
func (b *Backend) tileMatMul(c, a, panels, bias kernels.Buffer, m, n, k int) {
	check(c, m*n)
	check(a, m*k)
	if m == 0 {
		return
	}
	g := &b.a.tile_matmul
	g.c, g.c_bf16, g.a, g.a_bf16 = c.Addr(), isBF16(c), a.Addr(), isBF16(a)
	g.b, g.bias = halves(panels), floats(bias)
	g.m, g.n, g.k = C.long(m), C.long(n), C.long(k)
	// Blocks of rows have tiles that stay in the second-level cache while the panels stream by.
	// Long chains are cut, so that a block of rows and a panel stay in the first-level cache; then
	// the unfinished sums share the second, and the panels come in groups of at most 16. If that
	// leaves too few units for the threads, the panels are divided further.
	steps, cols := tileSteps(k), ceilDiv(n, tileBlock)
	part, rowBlock, groups := steps, 16, 1
	if steps > 16 && m*k > 1<<17 {
		part, rowBlock, groups = ceilDiv(steps, ceilDiv(steps, 8)), 8, ceilDiv(cols, 16)
	}
	rows, groups, now := b.shareTiles(m, m*n*k, rowBlock, groups, cols, part == steps)
	g.rows, g.panel_groups, g.part, g.near = rows, C.long(groups), C.long(part), 0
	scratch := int(rows.many) * part * stepLen
	if part < steps {
		scratch += int(rows.many) * tileBlock * ceilDiv(cols, groups) * tileBlock
	}
	g.scratch, g.scratch_len = b.roomFor(scratch)
	units := rowBlocks(rows) * groups
	grain := 1
	if m*n*k < 1<<19 { // under a microsecond: not worth sharing
		grain = units
	}
	b.queued(rowCall{kernel: b.tiles.matmul, args: unsafe.Pointer(g), size: unsafe.Sizeof(*g), m: m, now: now,
		units: units, grain: grain,
		work: m * n * k, near: &g.near}, use{c, byRow | writes}, use{a, byRow}, use{panels, reads}, use{bias, reads})
}

// shareTiles cuts a product of m rows and work multiply-adds into blocks of rows and groups of
// panels, and decides whether it runs now or from the queue. If it runs now, a block has at most
// `most` strips of tileBlock rows, and the panels are in the given number of groups, or more if
// that leaves too few units for the threads. whole says that a unit takes its chains in one piece.
func (b *Backend) shareTiles(m, work, most, groups, panels int, whole bool) (C.struct_row_blocks, int, bool) {
	if whole && most >= queueStrips && b.queue.takes(m, work) {
		return b.queue.share(m), 1, false
	}
	strips := ceilDiv(m, tileBlock)
	enough := 4 // strips per thread from which dividing only the rows pays
	if !whole {
		enough = 2
	}
	if b.pool.n > 1 && strips >= enough*b.pool.n {
		return blocksOfRows(strips, most, b.pool.n), groups, true
	}
	most = min(most, strips)
	blocks := ceilDiv(strips, most)
	want := 3 * b.pool.n
	if blocks == 1 && whole {
		want = b.pool.n // every unit copies the rows
	}
	if b.pool.n > 1 && blocks*groups < want && work >= 1<<19 {
		groups = min(ceilDiv(want, blocks), panels)
	}
	return evenBlocks(strips, blocks), groups, true
}

// tileMatMulSwiGLU is MatMulSwiGLU of m rows.
func (b *Backend) tileMatMulSwiGLU(act, gateUp, x kernels.Buffer, w kernels.Matrix, m int) {
	g := b.tileSwiGLU(x, w.Packed, m, w.Out/2, w.In)
	g.act, g.gate_up = unsafe.Pointer(halves(act)), unsafe.Pointer(halves(gateUp))
	panels, sums := int(g.f)/tileBlock, 0
	if g.f%tileBlock != 0 { // one panel holds both gates and ups
		panels, sums = 1, ceilDiv(w.Out, tileBlock)*tileBlock*tileBlock
	}
	b.runTileSwiGLU(b.tiles.matmul_swiglu, m*w.Out*w.In, panels, sums, use{act, byRow | writes},
		use{gateUp, byRow | writes}, use{x, byRow}, use{w.Packed, reads})
}

// tileMatMulDXSwiGLU is MatMulDXSwiGLU of m rows.
func (b *Backend) tileMatMulDXSwiGLU(dgateUp, gateUp, dout kernels.Buffer, w kernels.Matrix, m int) {
	panels := b.tilesT(w)
	g := b.tileSwiGLU(dout, panels, m, w.In, w.Out)
	g.dgate_up, g.gate_up = unsafe.Pointer(halves(dgateUp)), unsafe.Pointer(halves(gateUp))
	b.runTileSwiGLU(b.tiles.matmul_dx_swiglu, m*w.In*w.Out, ceilDiv(w.In, tileBlock), 0, use{dgateUp, byRow | writes},
		use{gateUp, byRow}, use{dout, byRow}, use{panels, reads})
}

// tileSwiGLU fills the arguments that tileMatMulSwiGLU and tileMatMulDXSwiGLU share.
func (b *Backend) tileSwiGLU(x, panels kernels.Buffer, m, f, k int) *C.struct_swiglu_args {
	g := &b.a.swiglu
	if k == 0 {
		panic("cpu: SwiGLU of a product without terms")
	}
	g.x, g.x_bf16, g.b = x.Addr(), isBF16(x), unsafe.Pointer(halves(panels))
	g.m, g.f, g.k = C.long(m), C.long(f), C.long(k)
	return g
}

// runTileSwiGLU runs a kernel on tileSwiGLU's arguments, with blocks of rows whose tiles stay in
// the second-level cache. Each thread has room for a panel's sums of its rows, or for `sums`.
func (b *Backend) runTileSwiGLU(kernel C.kernel, work, panels, sums int, uses ...use) {
	g := &b.a.swiglu
	const cached = 1 << 18 // elements
	m, k := int(g.m), int(g.k)
	rows, groups, now := b.shareTiles(m, work, min(max(cached/(k*tileBlock), 1), 16), 1, panels, true)
	g.rows, g.panel_groups = rows, C.long(groups)
	many := int(rows.many)
	g.scratch, g.scratch_len = b.roomFor(many*tileSteps(k)*stepLen + max(sums, many*tileBlock*tileBlock))
	b.queued(rowCall{kernel: kernel, args: unsafe.Pointer(g), size: unsafe.Sizeof(*g), m: m, now: now,
		units: rowBlocks(rows) * groups, grain: 1,
		work: work}, uses...)
}

// tileMatMulDW continues the tile sums in dw [n,k]. With tiles, dout is tiles of rows.
func (b *Backend) tileMatMulDW(dw, dbias, dout, x, blocks kernels.Buffer, n, k int, tiles bool) {
	pieces := b.pieces(kernels.Elems[int32](blocks))
	g := &b.a.tile_dw
	g.dw, g.dout, g.x, g.piece = floats(dw), dout.Addr(), x.Addr(), ints(pieces)
	g.dout_bf16, g.x_bf16, g.dout_tiles = isBF16(dout), isBF16(x), 0
	if tiles {
		g.dout_tiles = 1
	}
	g.n, g.k, g.pieces = C.long(n), C.long(k), C.long(pieces.Len()/2)
	// Blocks of dw of at most 1 MiB, divided evenly among the threads.
	const cached, side = 1 << 18, 512
	kBlocks := ceilDiv(k, side)
	kBlock := ceilDiv(ceilDiv(k, kBlocks), tileBlock) * tileBlock
	kBlocks = ceilDiv(k, kBlock)
	nBlocks := ceilDiv(n, cached/kBlock/tileBlock*tileBlock)
	for nBlocks*kBlocks%b.pool.n != 0 && n/nBlocks >= 4*tileBlock {
		nBlocks++
	}
	nBlock := ceilDiv(ceilDiv(n, nBlocks), tileBlock) * tileBlock
	nBlocks = ceilDiv(n, nBlock)
	g.n_block, g.k_block, g.k_blocks = C.long(nBlock), C.long(kBlock), C.long(kBlocks)
	g.scratch, g.scratch_len = b.roomFor(nBlock*kBlock + (nBlock+kBlock)/tileBlock*C.DW_PIECES*stepLen)
	b.run(b.tiles.matmul_dw, unsafe.Pointer(g), nBlocks*kBlocks, 1)
	if dbias.Empty() {
		return
	}
	check(dbias, n)
	g.dw, g.piece, g.pieces = floats(dbias), ints(blocks), C.long(blocks.Len()-1)
	m := dout.Len() / n
	const width = C.BIAS_VECTORS * kernels.Lanes
	b.run(b.tiles.matmul_dbias, unsafe.Pointer(g), ceilDiv(n, width), max(1, 16384/m/width))
}

// pieces cuts gradient blocks into steps: pairs of the first row and the row after
// the last.
func (b *Backend) pieces(offsets []int32) kernels.Buffer {
	list := b.steps[:0]
	for i := 1; i < len(offsets); i++ {
		for r := offsets[i-1]; r < offsets[i]; r += kernels.TileTerms {
			list = append(list, r, min(r+kernels.TileTerms, offsets[i]))
		}
	}
	b.steps = list
	b.grow(&b.stepBuf, kernels.I32, len(list), 2*len(list))
	buf := b.stepBuf.Slice(0, len(list))
	copy(kernels.Elems[int32](buf), list)
	return buf
}

func (b *Backend) tileHeads(qkv kernels.Buffer, s kernels.AttentionShape) *C.struct_tile_attention_args {
	g := &b.a.tile_attention
	g.qkv = halves(qkv)
	g.h, g.kv, g.d, g.stride = C.long(s.H), C.long(s.K), C.long(s.D), C.long(s.Stride())
	g.window, g.full, g.ahead, g.scale = C.long(window(s)), full(s), ints(s.Ahead), C.float(s.Scale)
	g.cap, g.inv_cap = caps(s)
	return g
}

func (b *Backend) tileAttention(out, stats, qkv kernels.Buffer, by grouping, s kernels.AttentionShape) {
	g := b.tileHeads(qkv, s)
	g.out, g.stats = halves(out), floats(stats)
	g.offsets, g.groups, g.order = by.offsets, by.groups, by.order
	ts, ds := tileSteps(by.longest), tileSteps(s.D)
	scores := ts // or in class "matrix/16x25" sums, of a block of rows
	if b.matrix {
		scores = ds
	}
	g.scratch, g.scratch_len = b.roomFor(tileBlock*scores*kernels.TileTerms + (2*ts*ds+2*ds+ts)*stepLen)
	b.run(b.tiles.attention, unsafe.Pointer(g), by.count*s.K, 1)
}

func (b *Backend) tileAttentionBackward(dqkv, dout, out, stats, qkv kernels.Buffer, by grouping,
	s kernels.AttentionShape) {
	g := b.tileHeads(qkv, s)
	g.dqkv, g.dout, g.aout, g.stats = halves(dqkv), halves(dout), halves(out), floats(stats)
	g.offsets, g.groups, g.order = by.offsets, by.groups, by.order
	ts, ds := tileSteps(by.longest), tileSteps(s.D)
	T, D := ts*kernels.TileTerms, ds*kernels.TileTerms
	g.scratch, g.scratch_len = b.roomFor((2*T+tileBlock)*D + 2*T + (3*ts*ds+ds+C.QUERY_BLOCKS*(4*ds+ts+2))*stepLen)
	b.run(b.tiles.attention_backward, unsafe.Pointer(g), by.count*s.K, 1)
}

func (b *Backend) tilePagedAttention(out, stats, qkv kernels.Buffer, p kernels.Pages, table, seq, pos kernels.Buffer,
	tableWidth int, s kernels.AttentionShape) {
	m := pos.Len()
	g := b.tileHeads(qkv, s)
	g.out, g.keys, g.values, g.page = halves(out), halves(p.Keys), halves(p.Values), C.long(p.Size)
	g.table, g.seq, g.pos, g.width = ints(table), ints(seq), ints(pos), C.long(tableWidth)
	g.scratch, g.scratch_len = b.roomFor(2 * (b.panels(tableWidth*p.Size) + 2*b.panels(s.D)))
	if b.matrix {
		g.scratch, g.scratch_len = b.roomFor(tileSteps(s.D) * (tileBlock*kernels.TileTerms + 4*stepLen))
	}
	g.slots, g.stats = nil, floats(stats)
	wait, seeing := b.queue.wait(p, table, seq, pos, tableWidth, s)
	b.queued(rowCall{kernel: b.tiles.paged_attention, args: unsafe.Pointer(g), size: unsafe.Sizeof(*g), m: m,
		perRow: s.K, grain: max(1, 8192/(s.D*p.Size)), other: pagedWork(pos, s),
		wait: wait, seeing: seeing},
		use{out, byRow | writes}, use{stats, byRow | writes}, use{qkv, byRow}, use{p.Keys, paged},
		use{p.Values, paged}, use{table, reads}, use{seq, byRow}, use{pos, byRow}, use{s.Ahead, byRow})
	b.foldAppend(p, qkv)
}

// tileOutput fills the arguments that all output operations share.
func (b *Backend) tileOutput(sc kernels.Scores, h kernels.Buffer, w kernels.Matrix,
	x kernels.Softmax) *C.struct_tile_output_args {
	rows := h.Len() / w.In
	check(h, rows*w.In)
	check(sc.Entropy, rows)
	check(sc.LSE, rows)
	check(w.Packed, tilesLen(w.Out, w.In))
	g := &b.a.tile_output
	g.logprob, g.entropy, g.lse = floats(sc.LogProb), floats(sc.Entropy), floats(sc.LSE)
	g.h, g.w = halves(h), halves(w.Packed)
	g.rows, g.c, g.v, g.k, g.row0 = C.long(rows), C.long(w.In), C.long(w.Out), 1, 0
	g.inv_temp, g.cap = C.float(1/x.Temperature), capOf(x.Cap)
	ldz := ceilDiv(w.Out, tileBlock)*tileBlock + kernels.Lanes // tileoutput.h's logits_ld
	g.scratch, g.scratch_len = b.roomFor(tileBlock*ldz +
		max(tileSteps(w.In)*stepLen, 2*rowLength(w.Out/kernels.SampleBlock+1)))
	return g
}

func (b *Backend) tileLogProb(out kernels.Scores, h kernels.Buffer, w kernels.Matrix, targets kernels.Buffer,
	x kernels.Softmax) {
	g := b.tileOutput(out, h, w, x)
	k := targets.PerRow(int(g.rows))
	check(out.LogProb, int(g.rows)*k)
	g.targets, g.k = ints(targets), C.long(k)
	b.run(b.tiles.logprob, unsafe.Pointer(g), ceilDiv(int(g.rows), tileBlock), 1)
}

// tileLogProbBackward takes rows offsets[0] up to the last offset through the output
// layer.
func (b *Backend) tileLogProbBackward(dh, dw, dLogProb, all, dEntropy kernels.Buffer, sc kernels.Scores,
	h kernels.Buffer, w kernels.Matrix, targets kernels.Buffer, offsets []int32, x kernels.Softmax) {
	r0, r1 := int(offsets[0]), int(offsets[len(offsets)-1])
	n, steps := r1-r0, tileSteps(w.In)
	var dz kernels.Buffer
	if !dw.Empty() {
		dz = b.halfWorkspace(tilesLen(n, w.Out))
	}
	g := b.tileOutput(sc, h, w, x)
	g.targets, g.dlogprob, g.dall, g.dentropy = ints(targets), floats(dLogProb), floats(all), floats(dEntropy)
	g.k = C.long(targets.PerRow(all.Len()))
	g.dh, g.dh_bf16 = dh.Addr(), isBF16(dh)
	g.dz, g.wt, g.row0, g.rows = halves(dz), halves(w.PackedT), C.long(r0), C.long(r1)
	// The tiles of a block of rows, their sums, and the weights of a group of panels,
	// forward and transposed, stay in the second-level cache together.
	rows := max(1, min(8, (1<<20)/(6*w.In*tileBlock), ceilDiv(ceilDiv(n, b.pool.n), tileBlock))) * tileBlock
	group := max(1, min(16, (1<<18)/(128*w.In)))
	g.row_block, g.panel_group = C.long(rows), C.long(group)
	scratch := steps * (stepLen + tileBlock*tileBlock)
	if dw.Empty() {
		scratch += group * stepLen
	}
	g.scratch, g.scratch_len = b.roomFor(rows / tileBlock * scratch)
	b.run(b.tiles.logprob_backward, unsafe.Pointer(g), ceilDiv(n, rows), 1)
	if dw.Empty() {
		return
	}
	b.tileMatMulDW(dw, kernels.Buffer{}, dz, h.Slice(r0*w.In, r1*w.In), b.localBlocks(offsets), w.Out, w.In, true)
}

// halfWorkspace returns n BF16 that live until the next call.
func (b *Backend) halfWorkspace(n int) kernels.Buffer {
	b.grow(&b.half, kernels.BF16, n, n)
	return b.half.Slice(0, n)
}

// tileSample computes the logits of some rows at a time as a linear map, so that it reads each
// weight once for all of them, and draws row by row.
func (b *Backend) tileSample(ids kernels.Buffer, out kernels.Scores, h kernels.Buffer, w kernels.Matrix,
	u kernels.Buffer, p kernels.Sampling, x kernels.Softmax) {
	b.eachTilePart(out, h, w, x, 1, func(g *C.struct_tile_output_args, _ kernels.Buffer, lo, hi int) {
		g.ids, g.u, g.greedy = ints(ids.Slice(lo, hi)), floats(u.Slice(lo, hi)), 0
		if p.Temperature == 0 {
			g.greedy = 1
		}
		b.run(b.tiles.sample, unsafe.Pointer(g), hi-lo, max(1, 1<<15/w.Out))
	})
}

// eachTileLogits is eachLogits in class "cpu/bf16".
func (b *Backend) eachTileLogits(sc kernels.Scores, h kernels.Buffer, w kernels.Matrix, x kernels.Softmax,
	f func(ws kernels.Buffer, lo, hi int)) {
	b.eachTilePart(sc, h, w, x, 2, func(g *C.struct_tile_output_args, ws kernels.Buffer, lo, hi int) {
		n := (hi - lo) * w.Out
		g.e = floats(ws.Slice(n, 2*n))
		b.run(b.tiles.logits, unsafe.Pointer(g), hi-lo, max(1, 1<<15/w.Out))
		f(ws, lo, hi)
	})
}

// eachTilePart computes the logits of some rows at a time as a linear map, and calls f with their arguments and them
// in ws, which has `many` times their room.
func (b *Backend) eachTilePart(sc kernels.Scores, h kernels.Buffer, w kernels.Matrix, x kernels.Softmax, many int,
	f func(g *C.struct_tile_output_args, ws kernels.Buffer, lo, hi int)) {
	rows, v := h.Len()/w.In, w.Out
	const cached = 1 << 22 // 16 MiB of logits at a time
	for lo, some := 0, max(tileBlock, cached/v); lo < rows; lo += some {
		hi := min(lo+some, rows)
		n := hi - lo
		ws, hn := b.workspace(many*n*v), h.Slice(lo*w.In, hi*w.In)
		z := ws.Slice(0, n*v)
		b.tileMatMul(z, hn, w.Packed, kernels.Buffer{}, n, v, w.In)
		g := b.tileOutput(sc.Rows(lo, hi), hn, w, x)
		g.z = floats(z)
		f(g, ws, lo, hi)
	}
}

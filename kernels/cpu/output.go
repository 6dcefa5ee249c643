package cpu

// #include "args.h"
import "C"

import (
	"unsafe"

	"exp/kernels"
	"exp/kernels/ref"
)

// output fills the arguments that all output operations share.
func (b *Backend) output(sc kernels.Scores, h kernels.Buffer, w kernels.Matrix, temperature float64) *C.struct_output_args {
	rows := h.Len() / w.In
	check(h, rows*w.In)
	check(sc.LogProb, rows)
	check(sc.Entropy, rows)
	check(sc.LSE, rows)
	packed, _ := b.PackedLen(w.Out, w.In)
	check(w.Packed, packed)
	g := &b.a.output
	g.logprob, g.entropy, g.lse = floats(sc.LogProb), floats(sc.Entropy), floats(sc.LSE)
	g.h, g.w = floats(h), floats(w.Packed)
	g.rows, g.c, g.v, g.row0 = C.long(rows), C.long(w.In), C.long(w.Out), 0
	g.inv_temp = C.float(1 / temperature)
	g.chunk = C.long(b.chunk(rows, w.Out))
	return g
}

// chunk returns how many of the rows have their logits computed at a time: few
// enough that those stay in the second-level cache, and such that every thread gets
// the same number of chunks.
func (b *Backend) chunk(rows, V int) int {
	const cached = 352 << 10 // float32 elements: 1.4 MB
	mr := int(b.k.mr)
	chunks := max(1, ceilDiv(rows, max(1, cached/V/mr)*mr))
	if rows > mr {
		chunks = ceilDiv(chunks, b.pool.n) * b.pool.n
	}
	return max(1, ceilDiv(rows, chunks))
}

// outputScratch makes room for a chunk of rows in panels and n float32 more.
func (b *Backend) outputScratch(g *C.struct_output_args, n int) {
	g.scratch, g.scratch_len = b.roomFor(n + int(g.chunk)*b.panels(int(g.c)))
}

// rowLength is output.h's row_length.
func rowLength(v int) int { return ceilDiv(v, kernels.Lanes)*kernels.Lanes + kernels.Lanes }

// LogProb computes the scores of the targets.
func (b *Backend) LogProb(out kernels.Scores, h kernels.Buffer, w kernels.Matrix, targets kernels.Buffer, x kernels.Softmax) {
	if x.Cap > 0 {
		b.loops().LogProb(out, h, w, targets, x)
		return
	}
	if b.tiles != nil {
		b.tileLogProb(out, h, w, targets, x.Temperature)
		return
	}
	g := b.output(out, h, w, x.Temperature)
	check(targets, int(g.rows))
	g.targets = ints(targets)
	b.outputScratch(g, int(g.chunk)*rowLength(w.Out))
	b.run(b.k.logprob, unsafe.Pointer(g), ceilDiv(int(g.rows), int(g.chunk)), 1)
}

// LogProbBackward recomputes the logits in chunks of whole gradient blocks. A chunk's
// gradients meet the weights while they are made, and the rows afterwards.
func (b *Backend) LogProbBackward(dh, dw, dLogProb, dEntropy kernels.Buffer, sc kernels.Scores, h kernels.Buffer, w kernels.Matrix, targets, blocks kernels.Buffer, x kernels.Softmax) {
	if x.Cap > 0 || dw.Empty() {
		b.loops().LogProbBackward(dh, dw, dLogProb, dEntropy, sc, h, w, targets, blocks, x)
		return
	}
	rows := h.Len() / w.In
	check(dh, rows*w.In)
	check(dw, w.Out*w.In)
	check(dLogProb, rows)
	check(dEntropy, rows)
	check(targets, rows)
	_, packedT := b.PackedLen(w.Out, w.In)
	check(w.PackedT, packedT)
	offsets := kernels.Elems[int32](blocks)
	const cached = 1 << 22 // float32 elements: 16 MiB of logit gradients at a time
	limit := max(kernels.BlockRows, cached/w.Out)
	for lo := 0; lo+1 < len(offsets); {
		hi := lo + 1
		for hi+1 < len(offsets) && int(offsets[hi+1]-offsets[lo]) <= limit {
			hi++
		}
		b.logProbBackwardChunk(dh, dw, dLogProb, dEntropy, sc, h, w, targets, offsets[lo:hi+1], x.Temperature)
		lo = hi
	}
}

func (b *Backend) logProbBackwardChunk(dh, dw, dLogProb, dEntropy kernels.Buffer, sc kernels.Scores, h kernels.Buffer, w kernels.Matrix, targets kernels.Buffer, offsets []int32, temperature float64) {
	r0, r1 := int(offsets[0]), int(offsets[len(offsets)-1])
	n := r1 - r0
	if n == 0 {
		return
	}
	if b.tiles != nil {
		b.tileLogProbBackward(dh, dw, dLogProb, dEntropy, sc, h, w, targets, offsets, temperature)
		return
	}
	dz := b.workspace(n * w.Out)
	g := b.output(sc, h, w, temperature)
	g.targets, g.dlogprob, g.dentropy = ints(targets), floats(dLogProb), floats(dEntropy)
	g.dz, g.dh, g.wt, g.row0, g.rows = floats(dz), floats(dh), floats(w.PackedT), C.long(r0), C.long(r1)

	// Rows in chunks of at most ten strips, as matmul has them, the same number for every
	// thread.
	chunks := ceilDiv(n, 10*int(b.k.mr))
	if n > int(b.k.mr) {
		chunks = ceilDiv(chunks, b.pool.n) * b.pool.n
	}
	g.chunk = C.long(ceilDiv(n, chunks))
	b.outputScratch(g, int(g.chunk)*C.GRADIENT_PANELS*int(b.k.nr))
	b.run(b.k.logprob_backward, unsafe.Pointer(g), ceilDiv(n, int(g.chunk)), 1)

	local := b.localBlocks(offsets)
	b.MatMulDW(dw, kernels.Buffer{}, dz, h.Slice(r0*w.In, r1*w.In), local)
}

// workspace returns n float32 that live until the next call.
func (b *Backend) workspace(n int) kernels.Buffer {
	b.grow(&b.dz, kernels.F32, n, n)
	return b.dz.Slice(0, n)
}

// localBlocks returns block offsets counted from the first.
func (b *Backend) localBlocks(offsets []int32) kernels.Buffer {
	buf := b.indices(len(offsets))
	for i, dst := 0, kernels.Elems[int32](buf); i < len(dst); i++ {
		dst[i] = offsets[i] - offsets[0]
	}
	return buf
}

// indices returns n int32 that live until the next call.
func (b *Backend) indices(n int) kernels.Buffer {
	b.grow(&b.blocks, kernels.I32, n, 2*n)
	return b.blocks.Slice(0, n)
}

// Sample draws a token for each row.
func (b *Backend) Sample(ids kernels.Buffer, out kernels.Scores, h kernels.Buffer, w kernels.Matrix, u kernels.Buffer, p kernels.Sampling) {
	if p.Cap > 0 {
		b.loops().Sample(ids, out, h, w, u, p)
		return
	}
	temperature := p.Temperature
	if temperature == 0 {
		temperature = 1
	}
	if b.tiles != nil {
		b.tileSample(ids, out, h, w, u, p, temperature)
		return
	}
	g := b.output(out, h, w, temperature)
	check(ids, int(g.rows))
	check(u, int(g.rows))
	if p.Temperature != 0 && restricted(p, w.Out) {
		b.sampleRestricted(g, ids, out, u, p)
		return
	}
	g.ids, g.u = ints(ids), floats(u)
	g.greedy = 0
	if p.Temperature == 0 {
		g.greedy = 1
	}
	b.outputScratch(g, (int(g.chunk)+1)*rowLength(w.Out)+2*rowLength(w.Out/kernels.SampleBlock+1))
	b.run(b.k.sample, unsafe.Pointer(g), ceilDiv(int(g.rows), int(g.chunk)), 1)
}

// restricted reports whether p leaves out any of v tokens.
func restricted(p kernels.Sampling, v int) bool {
	return p.TopK > 0 && p.TopK < v || p.TopP < 1 || p.MinP > 0
}

// sampleRestricted draws with top-k, top-p or min-p: the choice among a row's
// probabilities is kernels/ref's.
func (b *Backend) sampleRestricted(g *C.struct_output_args, ids kernels.Buffer, out kernels.Scores, u kernels.Buffer, p kernels.Sampling) {
	rows, v := int(g.rows), int(g.v)
	ws := b.workspace(2 * rows * v)
	g.z, g.dz = floats(ws), floats(ws.Slice(rows*v, 2*rows*v))
	b.outputScratch(g, 0)
	b.run(b.k.logits, unsafe.Pointer(g), ceilDiv(rows, int(g.chunk)), 1)
	b.pick(ws, rows, v, ids, out, u, p)
}

// pick draws a token for each row from z [rows,v] and exp(z-max) [rows,v] in ws, with
// the sum of the latter in out.LogProb.
func (b *Backend) pick(ws kernels.Buffer, rows, v int, ids kernels.Buffer, out kernels.Scores, u kernels.Buffer, p kernels.Sampling) {
	z, e := kernels.Elems[float32](ws)[:rows*v], kernels.Elems[float32](ws)[rows*v:]
	lp, lse := kernels.Elems[float32](out.LogProb), kernels.Elems[float32](out.LSE)
	id, uni := kernels.Elems[int32](ids), kernels.Elems[float32](u)
	b.runGo(func(lo, hi int) {
		order := make([]int32, v)
		for r := lo; r < hi; r++ {
			zr := z[r*v : (r+1)*v]
			k := ref.Pick(zr, e[r*v:(r+1)*v], lp[r], uni[r], p, order)
			id[r] = int32(k)
			lp[r] = zr[k] - lse[r]
		}
	}, rows, max(1, rows/(2*b.pool.n)))
}

package cpu

// #include "level/args.h"
import "C"

import (
	"slices"
	"unsafe"

	"exp/kernels"
	"exp/kernels/ref"
)

// output fills the arguments that all output operations share.
func (b *Backend) output(sc kernels.Scores, h kernels.Buffer, w kernels.Matrix,
	x kernels.Softmax) *C.struct_output_args {
	rows := h.Len() / w.In
	check(h, rows*w.In)
	check(sc.Entropy, rows)
	check(sc.LSE, rows)
	factor, _ := b.forward(w)
	g := &b.a.output
	g.logprob, g.entropy, g.lse = floats(sc.LogProb), floats(sc.Entropy), floats(sc.LSE)
	g.h, g.w = floats(h), factor
	g.rows, g.c, g.v, g.k, g.row0 = C.long(rows), C.long(w.In), C.long(w.Out), 1, 0
	g.inv_temp, g.cap = C.float(1/x.Temperature), capOf(x.Cap)
	g.chunk, g.given = C.long(b.chunk(rows, w.Out)), 0
	return g
}

// capOf returns the cap for C; 0 means none.
func capOf(cap float64) C.struct_cap {
	if !(cap > 0) {
		return C.struct_cap{}
	}
	return C.struct_cap{cap: C.float(cap), inverse: C.float(1 / cap)}
}

// cachedLogits is how many logits fit in the second-level cache: 1.4 MB.
const cachedLogits = 352 << 10

// logitsFirst reports whether to compute the logits of all rows first, as a linear map whose
// panels the threads divide, so that each weight is read once for all rows. This is slower if
// chunks of rows keep all threads busy and their logits in the caches.
func (b *Backend) logitsFirst(rows int, w kernels.Matrix) bool {
	mr := int(b.k.mr)
	return w.Out*mr > cachedLogits || b.pool.n > 1 && rows <= mr && w.Out*w.In >= 1<<18
}

// eachPart calls f with the arguments of an output operation for rows lo to hi, part by part,
// until all rows are done. If the logits come first, z has room for `many` times the rows'
// logits.
func (b *Backend) eachPart(sc kernels.Scores, h kernels.Buffer, w kernels.Matrix, x kernels.Softmax, many int,
	f func(g *C.struct_output_args, lo, hi int)) {
	rows := h.Len() / w.In
	if !b.logitsFirst(rows, w) {
		f(b.output(sc, h, w, x), 0, rows)
		return
	}
	check(h, rows*w.In)
	const room = 1 << 24 // 64 MiB of logits at a time
	for lo, some := 0, max(int(b.k.mr), room/w.Out); lo < rows; lo += some {
		hi := min(lo+some, rows)
		n := (hi - lo) * w.Out
		z, hn := b.workspace(many*n), h.Slice(lo*w.In, hi*w.In)
		factor, panels := b.forward(w)
		b.matmul(z.Slice(0, n), hn, factor, panels, kernels.Buffer{}, hi-lo)
		g := b.output(sc.Rows(lo, hi), hn, w, x)
		g.z, g.given, g.chunk = floats(z), 1, 1
		f(g, lo, hi)
	}
}

// chunk returns how many rows have their logits computed at a time: few enough that
// the logits stay in the second-level cache, with the same number of chunks for every
// thread.
func (b *Backend) chunk(rows, V int) int {
	mr := int(b.k.mr)
	chunks := max(1, ceilDiv(rows, max(1, cachedLogits/V/mr)*mr))
	if rows > mr {
		chunks = ceilDiv(chunks, b.pool.n) * b.pool.n
	}
	return max(1, ceilDiv(rows, chunks))
}

// outputScratch makes room for n float32 and, unless the logits are given, for a chunk of rows
// in panels with perRow float32 more per row.
func (b *Backend) outputScratch(g *C.struct_output_args, n, perRow int) {
	if g.given == 0 {
		n += int(g.chunk) * (perRow + b.panels(int(g.c)))
	}
	g.scratch, g.scratch_len = b.roomFor(n)
}

// rowLength must equal row_length in output.h.
func rowLength(v int) int { return ceilDiv(v, kernels.Lanes)*kernels.Lanes + kernels.Lanes }

// LogProb computes the scores of the targets.
func (b *Backend) LogProb(out kernels.Scores, h kernels.Buffer, w kernels.Matrix, targets kernels.Buffer,
	x kernels.Softmax) {
	if b.tiles != nil {
		b.tileLogProb(out, h, w, targets, x)
		return
	}
	rows := h.Len() / w.In
	k := targets.PerRow(rows)
	check(out.LogProb, rows*k)
	b.eachPart(out, h, w, x, 1, func(g *C.struct_output_args, lo, hi int) {
		g.targets, g.k = ints(targets.Rows(lo, hi, rows)), C.long(k)
		b.outputScratch(g, 0, rowLength(w.Out))
		b.run(b.k.logprob, unsafe.Pointer(g), ceilDiv(int(g.rows), int(g.chunk)), 1)
	})
}

// LogProbBackward recomputes the logits in chunks of whole gradient blocks. It multiplies a
// chunk's gradients by the weights as it computes them, and by the rows afterwards, unless dw is
// empty.
func (b *Backend) LogProbBackward(dh, dw, dLogProb, dEntropy kernels.Buffer, sc kernels.Scores, h kernels.Buffer,
	w kernels.Matrix, targets, blocks kernels.Buffer, x kernels.Softmax) {
	rows := h.Len() / w.In
	check(dh, rows*w.In)
	if !dw.Empty() {
		check(dw, w.Out*w.In)
	}
	check(dEntropy, rows)
	check(dLogProb, rows*targets.PerRow(rows))
	all := b.sumTargets(dLogProb, rows)
	const cached = 1 << 22 // float32 elements: 16 MiB of logit gradients at a time
	limit := max(kernels.BlockRows, cached/w.Out)
	offsets := kernels.Elems[int32](blocks)
	if dw.Empty() {
		offsets = []int32{0, int32(rows)}
		for r := limit; b.tiles != nil && r < rows; r += limit {
			offsets = slices.Insert(offsets, len(offsets)-1, int32(r))
		}
	} else {
		check(dw, w.Out*w.In)
	}
	if b.tiles != nil {
		w.PackedT = b.tilesT(w)
	}
	for lo := 0; lo+1 < len(offsets); {
		hi := lo + 1
		for hi+1 < len(offsets) && int(offsets[hi+1]-offsets[lo]) <= limit {
			hi++
		}
		b.logProbBackwardChunk(dh, dw, dLogProb, all, dEntropy, sc, h, w, targets, offsets[lo:hi+1], x)
		lo = hi
	}
}

// sumTargets returns the sums of the rows' gradients [rows,K] in order, in memory that lives until the next call.
func (b *Backend) sumTargets(dLogProb kernels.Buffer, rows int) kernels.Buffer {
	k := dLogProb.PerRow(rows)
	if k == 1 {
		return dLogProb
	}
	b.grow(&b.rowSums, kernels.F32, rows, 2*rows)
	d, sums := kernels.Elems[float32](dLogProb), kernels.Elems[float32](b.rowSums)
	b.runGo(func(lo, hi int) {
		for r := lo; r < hi; r++ {
			sums[r] = ref.SumInOrder(d[r*k : (r+1)*k])
		}
	}, rows, max(1, 1<<14/k))
	return b.rowSums.Slice(0, rows)
}

func (b *Backend) logProbBackwardChunk(dh, dw, dLogProb, all, dEntropy kernels.Buffer, sc kernels.Scores,
	h kernels.Buffer, w kernels.Matrix, targets kernels.Buffer, offsets []int32, x kernels.Softmax) {
	r0, r1 := int(offsets[0]), int(offsets[len(offsets)-1])
	n := r1 - r0
	if n == 0 {
		return
	}
	if b.tiles != nil {
		b.tileLogProbBackward(dh, dw, dLogProb, all, dEntropy, sc, h, w, targets, offsets, x)
		return
	}
	var dz kernels.Buffer
	if !dw.Empty() {
		dz = b.workspace(n * w.Out)
	}
	g := b.output(sc, h, w, x)
	g.targets, g.dlogprob, g.dall, g.dentropy = ints(targets), floats(dLogProb), floats(all), floats(dEntropy)
	g.k = C.long(targets.PerRow(all.Len()))
	g.dz, g.dh, g.row0, g.rows = floats(dz), floats(dh), C.long(r0), C.long(r1)
	g.wt, _ = b.backward(w)

	// Chunks of at most ten strips, as in matmul, the same number of chunks for every thread.
	chunks := ceilDiv(n, 10*int(b.k.mr))
	if n > int(b.k.mr) {
		chunks = ceilDiv(chunks, b.pool.n) * b.pool.n
	}
	g.chunk = C.long(ceilDiv(n, chunks))
	b.outputScratch(g, 0, C.GRADIENT_PANELS*int(b.k.nr))
	b.run(b.k.logprob_backward, unsafe.Pointer(g), ceilDiv(n, int(g.chunk)), 1)
	if dw.Empty() {
		return
	}
	b.MatMulDW(dw, kernels.Buffer{}, dz, h.Slice(r0*w.In, r1*w.In), b.localBlocks(offsets))
}

// Logits computes the logits of all tokens.
func (b *Backend) Logits(out, h kernels.Buffer, w kernels.Matrix, cap float64) {
	b.MatMul(out, h, w, kernels.Buffer{})
	if !(cap > 0) {
		return
	}
	m := out.Len() / w.Out
	g := &b.a.cap
	g.z, g.n, g.cap = floats(out), C.long(w.Out), capOf(cap)
	b.queued(rowCall{kernel: b.k.cap_logits, args: unsafe.Pointer(g), size: unsafe.Sizeof(*g), m: m, perRow: 1,
		grain: rowGrain(4 * w.Out), joins: true},
		use{out, byRow | writes})
}

// workspace returns n float32 that live until the next call.
func (b *Backend) workspace(n int) kernels.Buffer {
	b.grow(&b.dz, kernels.F32, n, n)
	return b.dz.Slice(0, n)
}

// localBlocks returns block offsets relative to the first.
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
func (b *Backend) Sample(ids kernels.Buffer, out kernels.Scores, h kernels.Buffer, w kernels.Matrix, u kernels.Buffer,
	p kernels.Sampling) {
	x := kernels.Softmax{Temperature: p.Temperature, Cap: p.Cap}
	if x.Temperature == 0 {
		x.Temperature = 1
	}
	check(ids, h.Len()/w.In)
	check(u, h.Len()/w.In)
	check(out.LogProb, h.Len()/w.In)
	if changed(p) || p.Temperature != 0 && restricted(p, w.Out) {
		b.sampleInGo(ids, out, h, w, u, p, x)
		return
	}
	if b.tiles != nil {
		b.tileSample(ids, out, h, w, u, p, x)
		return
	}
	b.eachPart(out, h, w, x, 1, func(g *C.struct_output_args, lo, hi int) {
		g.ids, g.u = ints(ids.Slice(lo, hi)), floats(u.Slice(lo, hi))
		g.greedy = 0
		if p.Temperature == 0 {
			g.greedy = 1
		}
		b.outputScratch(g, rowLength(w.Out)+2*rowLength(w.Out/kernels.SampleBlock+1), rowLength(w.Out))
		b.run(b.k.sample, unsafe.Pointer(g), ceilDiv(int(g.rows), int(g.chunk)), 1)
	})
}

// changed reports whether logits change before draws.
func changed(p kernels.Sampling) bool { return !p.Adjust.IDs.Empty() || !p.Mask.Empty() }

// restricted reports whether p may filter out any of v tokens.
func restricted(p kernels.Sampling, v int) bool {
	return p.TopK > 0 && p.TopK < v || p.TopP < 1 || p.MinP > 0
}

// sampleInGo draws with top-k, top-p, min-p, adjustments or a mask; kernels/ref chooses among a row's
// probabilities.
func (b *Backend) sampleInGo(ids kernels.Buffer, out kernels.Scores, h kernels.Buffer, w kernels.Matrix,
	u kernels.Buffer, p kernels.Sampling, x kernels.Softmax) {
	rows := h.Len() / w.In
	b.eachLogits(out, h, w, x, func(ws kernels.Buffer, lo, hi int) {
		part, some := out.Rows(lo, hi), p.Rows(lo, hi, rows)
		if !changed(some) {
			b.pick(ws, hi-lo, w.Out, ids.Slice(lo, hi), part, part.LogProb, u.Slice(lo, hi), some)
			return
		}
		b.pickChanged(ws, hi-lo, w, ids.Slice(lo, hi), part, u.Slice(lo, hi), some, x)
	})
}

// pickChanged draws a token for each row from its adjusted and masked logits, and scores it by those that it had. ws
// is as in pick.
func (b *Backend) pickChanged(ws kernels.Buffer, rows int, w kernels.Matrix, ids kernels.Buffer, out kernels.Scores,
	u kernels.Buffer, p kernels.Sampling, x kernels.Softmax) {
	V, K := w.Out, 0
	if !p.Adjust.IDs.Empty() {
		K = p.Adjust.IDs.PerRow(rows)
	}
	b.grow(&b.adjusted, kernels.F32, rows*(K+4), 2*rows*(K+4))
	was, own := b.adjusted.Slice(0, rows*K), b.adjusted.Slice(rows*K, rows*(K+3))
	first := kernels.Elems[float32](b.adjusted.Slice(rows*(K+3), rows*(K+4)))
	z, old, id := kernels.Elems[float32](ws)[:rows*V], kernels.Elems[float32](was), kernels.Elems[int32](p.Adjust.IDs)
	b.eachRow(rows, func(r int) {
		zr := z[r*V : (r+1)*V]
		first[r] = zr[0] // token 0 is drawn where a mask has none
		for k := r * K; k < (r+1)*K; k++ {
			if id[k] >= 0 {
				old[k] = zr[id[k]]
			}
		}
		one := p.Rows(r, r+1, rows)
		ref.Adjust(zr, one.Adjust, float32(1/x.Temperature))
		ref.Restrict(zr, one.Mask)
	})
	sums := kernels.Scores{LogProb: own.Slice(0, rows), Entropy: own.Slice(rows, 2*rows),
		LSE: own.Slice(2*rows, 3*rows)}
	b.exponentials(ws, rows, V, sums)
	b.pick(ws, rows, V, ids, out, sums.LogProb, u, p)
	lp, lse, drawn := kernels.Elems[float32](out.LogProb), kernels.Elems[float32](out.LSE), kernels.Elems[int32](ids)
	b.eachRow(rows, func(r int) {
		if drawn[r] == 0 {
			lp[r] = first[r] - lse[r]
		}
		for k := r * K; k < (r+1)*K; k++ {
			if id[k] == drawn[r] {
				lp[r] = old[k] - lse[r]
			}
		}
	})
}

// exponentials sets exp(z-max) [rows,v] behind z [rows,v] in ws, and the rows' sums and scores.
func (b *Backend) exponentials(ws kernels.Buffer, rows, v int, sums kernels.Scores) {
	z, e := ws.Slice(0, rows*v), ws.Slice(rows*v, 2*rows*v)
	if b.tiles != nil {
		g := &b.a.tile_output
		g.logprob, g.entropy, g.lse = floats(sums.LogProb), floats(sums.Entropy), floats(sums.LSE)
		g.z, g.e, g.v, g.inv_temp, g.cap = floats(z), floats(e), C.long(v), 1, capOf(0)
		b.run(b.tiles.logits, unsafe.Pointer(g), rows, max(1, 1<<15/v))
		return
	}
	g := &b.a.output
	g.logprob, g.entropy, g.lse = floats(sums.LogProb), floats(sums.Entropy), floats(sums.LSE)
	g.z, g.dz, g.given, g.chunk = floats(z), floats(e), 1, 1
	g.rows, g.v, g.inv_temp, g.cap = C.long(rows), C.long(v), 1, capOf(0)
	b.run(b.k.logits, unsafe.Pointer(g), rows, 1)
}

// eachRow calls f for each row, on all threads.
func (b *Backend) eachRow(rows int, f func(r int)) {
	b.runGo(func(lo, hi int) {
		for r := lo; r < hi; r++ {
			f(r)
		}
	}, rows, max(1, rows/(2*b.pool.n)))
}

// eachLogits calls f with z [n,V] and exp(z-max) [n,V] of rows lo to hi in ws, part by part. The rows' sums of
// exponentials are then in sc.LogProb.
func (b *Backend) eachLogits(sc kernels.Scores, h kernels.Buffer, w kernels.Matrix, x kernels.Softmax,
	f func(ws kernels.Buffer, lo, hi int)) {
	if b.tiles != nil {
		b.eachTileLogits(sc, h, w, x, f)
		return
	}
	b.eachPart(sc, h, w, x, 2, func(g *C.struct_output_args, lo, hi int) {
		n := (hi - lo) * w.Out
		ws := b.workspace(2 * n) // holds the logits, if they are given
		g.z, g.dz = floats(ws), floats(ws.Slice(n, 2*n))
		b.outputScratch(g, 0, 0)
		b.run(b.k.logits, unsafe.Pointer(g), ceilDiv(hi-lo, int(g.chunk)), 1)
		f(ws, lo, hi)
	})
}

// pick draws a token for each row from z [rows,v] and exp(z-max) [rows,v] in ws, whose
// row sums are in sums, which may be out.LogProb.
func (b *Backend) pick(ws kernels.Buffer, rows, v int, ids kernels.Buffer, out kernels.Scores, sums, u kernels.Buffer,
	p kernels.Sampling) {
	z, e, sum := kernels.Elems[float32](ws)[:rows*v], kernels.Elems[float32](ws)[rows*v:], kernels.Elems[float32](sums)
	lp, lse := kernels.Elems[float32](out.LogProb), kernels.Elems[float32](out.LSE)
	id, uni := kernels.Elems[int32](ids), kernels.Elems[float32](u)
	b.runGo(func(lo, hi int) {
		var draws picker
		for r := lo; r < hi; r++ {
			zr := z[r*v : (r+1)*v]
			k := draws.pick(zr, e[r*v:(r+1)*v], sum[r], uni[r], p)
			id[r] = int32(k)
			lp[r] = zr[k] - lse[r]
		}
	}, rows, max(1, rows/(2*b.pool.n)))
}

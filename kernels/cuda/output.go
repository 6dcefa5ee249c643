//go:build cuda

package cuda

/*
#include "args.h"
*/
import "C"

import (
	"unsafe"

	"exp/kernels"
)

// chunkLogits is how many logits LogProb and Sample hold at once: 640 MiB, 1,103 rows of 152,064 tokens, so that the
// weight is read once for many rows, and each multiprocessor has several.
const chunkLogits = 160 << 20

// rowThreads is the number of threads that go over a row of logits. A row of fewer than longRow is one
// thread's.
const (
	rowThreads = 256
	longRow    = 1024
)

// launchRows queues a kernel on R rows of V logits.
func (b *Backend) launchRows(name string, R, V int, args unsafe.Pointer) {
	if V < longRow {
		b.launch(name+"_few", R, args)
		return
	}
	b.launchBlocks(name, R, rowThreads, args)
}

// softmaxOf returns how logits become z. A temperature of 0 counts as 1.
func softmaxOf(x kernels.Softmax) C.struct_softmax {
	s := C.struct_softmax{inverse_temperature: 1}
	if x.Temperature > 0 {
		s.inverse_temperature = C.float(1 / x.Temperature)
	}
	s.cap, s.inverse_cap = capOf(x.Cap)
	return s
}

// logits queues z [R,V] of h [R,C].
func (b *Backend) logits(z, h kernels.Buffer, w kernels.Matrix, x C.struct_softmax) {
	R := rowsOf(h, w.In)
	if b.onTiles(w.W) {
		left, weight := b.factor(&b.left, h, R, w.In), b.weight(w)
		args := C.struct_matrix_logits_args{z: floats(z), h: left, w: weight, R: C.long(R), V: C.long(w.Out),
			C: C.long(w.In), x: x}
		b.launchTiles(product{"logits", R, w.Out, side{left, R, w.In, true}, side{weight, w.Out, w.In, true},
			unsafe.Pointer(&args), unsafe.Sizeof(args)})
		return
	}
	b.launch("logits", R*w.Out, unsafe.Pointer(&C.struct_logits_args{z: floats(z), h: b.operand(h), w: weightsOf(w),
		R: C.long(R), V: C.long(w.Out), C: C.long(w.In), x: x, tile: b.class.tile}))
}

// scores queues the scores of rows of z.
func (b *Backend) scores(out kernels.Scores, z, targets kernels.Buffer, V int) {
	R := out.LSE.Len()
	b.launchRows("scores", R, V, unsafe.Pointer(&C.struct_scores_args{logprob: floats(out.LogProb),
		entropy: floats(out.Entropy), lse: floats(out.LSE), z: floats(z), targets: ints(targets), R: C.long(R),
		V: C.long(V), K: C.long(targets.PerRow(R))}))
}

// checkScores panics unless out and h have rows for targets [R,K], and returns R and K.
func checkScores(out kernels.Scores, h kernels.Buffer, w kernels.Matrix, targets kernels.Buffer) (R, K int) {
	R = rowsOf(h, w.In)
	K = targets.PerRow(R)
	check(targets, R*K)
	check(out.LogProb, R*K)
	check(out.Entropy, R)
	check(out.LSE, R)
	return R, K
}

// chunks yields the first row and the workspace of each chunk of R rows: perRow floats for a
// row, about chunkLogits for all. It ends early if the memory does not suffice.
func (b *Backend) chunks(R, perRow int) func(yield func(lo int, room kernels.Buffer) bool) {
	return func(yield func(lo int, room kernels.Buffer) bool) {
		rows := min(R, max(1, chunkLogits/perRow))
		for lo := 0; lo < R; lo += rows {
			n := min(rows, R-lo) * perRow
			room := b.scratch(rows * perRow)
			if b.err != nil || !yield(lo, room.Slice(0, n)) {
				return
			}
		}
	}
}

// LogProb implements kernels.Output.
func (b *Backend) LogProb(out kernels.Scores, h kernels.Buffer, w kernels.Matrix, targets kernels.Buffer,
	x kernels.Softmax) {
	if !(x.Temperature > 0) {
		panic("cuda: temperature is not positive")
	}
	V := w.Out
	R, _ := checkScores(out, h, w, targets)
	for lo, room := range b.chunks(R, V) {
		hi := lo + room.Len()/V
		b.logits(room, h.Slice(lo*w.In, hi*w.In), w, softmaxOf(x))
		b.scores(out.Rows(lo, hi), room, targets.Rows(lo, hi, R), V)
	}
}

// TopTokens implements kernels.Output. Short rows also have the order of their tokens in the workspace.
func (b *Backend) TopTokens(ids kernels.Buffer, out kernels.Scores, h kernels.Buffer, w kernels.Matrix,
	x kernels.Softmax) {
	if !(x.Temperature > 0) {
		panic("cuda: temperature is not positive")
	}
	V, arrays := w.Out, 1
	if V < longRow {
		arrays = 2
	}
	R, K := checkScores(out, h, w, ids)
	if K > min(V, kernels.MaxTopTokens) {
		panic("cuda: TopTokens: too many tokens")
	}
	for lo, room := range b.chunks(R, arrays*V) {
		n := room.Len() / (arrays * V)
		hi, z := lo+n, room.Slice(0, n*V)
		b.logits(z, h.Slice(lo*w.In, hi*w.In), w, softmaxOf(x))
		top := ids.Rows(lo, hi, R)
		args := C.struct_top_tokens_args{ids: ints(top), z: floats(z), R: C.long(n), V: C.long(V), K: C.long(K)}
		if arrays == 2 {
			args.order = (*C.int)(room.Slice(n*V, 2*n*V).Addr())
		}
		b.launchRows("top_tokens", n, V, unsafe.Pointer(&args))
		b.scores(out.Rows(lo, hi), z, top, V)
	}
}

// LogProbBackward implements kernels.Output. All rows' gradients of logits are in memory at
// once, as operands: products round them anyway.
func (b *Backend) LogProbBackward(dh, dw, dLogProb, dEntropy kernels.Buffer, sc kernels.Scores, h kernels.Buffer,
	w kernels.Matrix, targets, blocks kernels.Buffer, x kernels.Softmax) {
	if !(x.Temperature > 0) {
		panic("cuda: temperature is not positive")
	}
	V := w.Out
	R, K := checkScores(kernels.Scores{LogProb: dLogProb, Entropy: dEntropy, LSE: sc.LSE}, h, w, targets)
	check(sc.Entropy, R)
	check(dh, h.Len())
	if !dw.Empty() {
		check(dw, V*w.In)
	}
	if R == 0 {
		return
	}
	var dz kernels.Buffer
	if K == 1 {
		if dz = b.scratchOperands(R * V); b.err == nil {
			b.logitGradients(dz, dLogProb, dEntropy, sc, h, w, targets, softmaxOf(x))
		}
	} else {
		dz = b.targetGradients(dLogProb, dEntropy, sc, h, w, targets, softmaxOf(x))
	}
	if b.err != nil {
		return
	}
	b.MatMulDX(dh, dz, w)
	if !dw.Empty() {
		b.MatMulDW(dw, kernels.Buffer{}, dz, h, blocks)
	}
}

// logitGradients queues dz [R,V].
func (b *Backend) logitGradients(dz, dLogProb, dEntropy kernels.Buffer, sc kernels.Scores, h kernels.Buffer,
	w kernels.Matrix, targets kernels.Buffer, x C.struct_softmax) {
	R, V := targets.Len(), w.Out
	if b.onTiles(w.W) {
		left, weight := b.factor(&b.left, h, R, w.In), b.weight(w)
		args := C.struct_matrix_logits_backward_args{dz: b.operand(dz), h: left, w: weight, dlogprob: floats(dLogProb),
			dentropy: floats(dEntropy), entropy: floats(sc.Entropy), lse: floats(sc.LSE), targets: ints(targets),
			R: C.long(R), V: C.long(V), C: C.long(w.In), x: x}
		b.launchTiles(product{"logits_backward", R, V, side{left, R, w.In, true}, side{weight, V, w.In, true},
			unsafe.Pointer(&args), unsafe.Sizeof(args)})
		return
	}
	b.launch("logits_backward", R*V, unsafe.Pointer(&C.struct_logits_backward_args{dz: b.operand(dz),
		h: b.operand(h), w: weightsOf(w), dlogprob: floats(dLogProb), dentropy: floats(dEntropy),
		entropy: floats(sc.Entropy), lse: floats(sc.LSE), targets: ints(targets), R: C.long(R), V: C.long(V),
		C: C.long(w.In), x: x, tile: b.class.tile}))
}

// targetGradients queues dz [R,V] of rows with several targets, in chunks whose products come first, and returns it.
// Both are in the workspace.
func (b *Backend) targetGradients(dLogProb, dEntropy kernels.Buffer, sc kernels.Scores, h kernels.Buffer,
	w kernels.Matrix, targets kernels.Buffer, x C.struct_softmax) kernels.Buffer {
	R, V, t := dEntropy.Len(), w.Out, b.Operand()
	const aligned = 64 // floats
	gradients := (R*V*t.Size()/4/aligned + 1) * aligned
	rows := min(R, max(1, chunkLogits/V))
	room := b.scratch(gradients + rows*V)
	if b.err != nil {
		return kernels.Buffer{}
	}
	dz := kernels.NewBuffer(room.Addr(), R*V, t)
	for lo := 0; lo < R; lo += rows {
		hi := min(lo+rows, R)
		z := room.Slice(gradients, gradients+(hi-lo)*V)
		b.logits(z, h.Slice(lo*w.In, hi*w.In), w, softmaxOf(kernels.Softmax{}))
		dlp, to := dLogProb.Rows(lo, hi, R), targets.Rows(lo, hi, R)
		b.launchRows("target_gradients", hi-lo, V, unsafe.Pointer(&C.struct_target_gradients_args{
			dz: b.operand(dz.Slice(lo*V, hi*V)), z: floats(z), dlogprob: floats(dlp),
			dentropy: floats(dEntropy.Slice(lo, hi)), entropy: floats(sc.Entropy.Slice(lo, hi)),
			lse: floats(sc.LSE.Slice(lo, hi)), targets: ints(to), R: C.long(hi - lo), V: C.long(V),
			K: C.long(to.PerRow(hi - lo)), x: x}))
	}
	return dz
}

// Logits implements kernels.Output.
func (b *Backend) Logits(out, h kernels.Buffer, w kernels.Matrix, limit float64) {
	check(out, rowsOf(h, w.In)*w.Out)
	b.logits(out, h, w, softmaxOf(kernels.Softmax{Cap: limit}))
}

// Sample implements kernels.Output. A row's workspace is its logits; short rows also have their weights and the order
// of the tokens there, and get their scores afterwards, as rows with adjustments or masks do.
func (b *Backend) Sample(ids kernels.Buffer, out kernels.Scores, h kernels.Buffer, w kernels.Matrix, u kernels.Buffer,
	p kernels.Sampling) {
	if !(p.Temperature >= 0) || p.TopK < 0 || !(p.TopP > 0 && p.TopP <= 1) || !(p.MinP >= 0 && p.MinP <= 1) {
		panic("cuda: Sample: a setting is out of range")
	}
	R, V := ids.Len(), w.Out
	checkScores(out, h, w, ids)
	check(u, R)
	x, arrays, K := softmaxOf(kernels.Softmax{Temperature: p.Temperature, Cap: p.Cap}), 1, 0
	if V < longRow {
		arrays = 3
	}
	adjusts := !p.Adjust.IDs.Empty()
	if adjusts {
		K = p.Adjust.IDs.PerRow(R)
	}
	each := arrays*V + K
	if !p.Mask.Empty() {
		each += V
	}
	for lo, room := range b.chunks(R, each) {
		n := room.Len() / each
		hi, z := lo+n, room.Slice(0, n*V)
		b.logits(z, h.Slice(lo*w.In, hi*w.In), w, x)
		scores := out.Rows(lo, hi)
		kept, a := room.Slice(arrays*n*V, arrays*n*V+n*K), p.Adjust.Rows(lo, hi, R)
		if adjusts {
			b.launch("adjust_logits", n*K, unsafe.Pointer(&C.struct_adjust_logits_args{z: floats(z),
				kept: floats(kept), ids: ints(a.IDs), before: floats(a.Before), factor: floats(a.Factor),
				after: floats(a.After), R: C.long(n), V: C.long(V), K: C.long(K),
				inverse_temperature: x.inverse_temperature}))
		}
		from := z
		if !p.Mask.Empty() {
			from = room.Slice(n*(each-V), n*each)
			b.launch("mask_logits", n*V, unsafe.Pointer(&C.struct_restore_logits_args{z: floats(from),
				kept: floats(z), ids: ints(p.Mask.Rows(lo, hi, R)), R: C.long(n), V: C.long(V),
				K: C.long(kernels.MaskWords(V))}))
		}
		args := C.struct_sample_args{ids: ints(ids.Slice(lo, hi)), logprob: floats(scores.LogProb),
			entropy: floats(scores.Entropy), lse: floats(scores.LSE), z: floats(from), u: floats(u.Slice(lo, hi)),
			R: C.long(n), V: C.long(V), top_k: C.long(p.TopK), top_p: C.double(p.TopP), min_p: C.double(p.MinP),
			greedy: flag(p.Temperature == 0)}
		if V < longRow {
			args.e, args.order = floats(room.Slice(n*V, 2*n*V)), (*C.int)(room.Slice(2*n*V, 3*n*V).Addr())
		}
		b.launchRows("sample", n, V, unsafe.Pointer(&args))
		if adjusts {
			b.launch("restore_logits", n*K, unsafe.Pointer(&C.struct_restore_logits_args{z: floats(z),
				kept: floats(kept), ids: ints(a.IDs), R: C.long(n), V: C.long(V), K: C.long(K)}))
		}
		if V < longRow || adjusts || !p.Mask.Empty() {
			b.scores(scores, z, ids.Slice(lo, hi), V)
		}
	}
}

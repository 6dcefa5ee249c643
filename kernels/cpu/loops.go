package cpu

import (
	"exp/kernels"
	"exp/kernels/ref"
)

// loops returns the plain loops of this backend's class, for operations that have no
// kernel of their own, and runs the queue first: they look at memory at once.
func (b *Backend) loops() kernels.Backend {
	b.flush()
	if b.tiles != nil {
		return ref.NewMixed()
	}
	return ref.New[float32]()
}

// PackRows packs rows of a matrix that is not there as a whole.
func (b *Backend) PackRows(w kernels.Matrix, from int, rows kernels.Buffer) {
	n := rows.Len() / w.In
	if from%kernels.PackAlign != 0 || n%kernels.PackAlign != 0 && from+n != w.Out {
		panic("cpu: PackRows: not whole panels")
	}
	b.Copy(w.W.Slice(from*w.In, (from+n)*w.In), rows)
	if from+n == w.Out {
		b.Pack(w)
	}
}

// Gate is the gated activation by itself.
func (b *Backend) Gate(act, gateUp kernels.Buffer, F int, kind kernels.GateKind) {
	b.loops().Gate(act, gateUp, F, kind)
}

// GateBackward computes the gradients of Gate.
func (b *Backend) GateBackward(dgateUp, gateUp, dact kernels.Buffer, F int, kind kernels.GateKind) {
	b.loops().GateBackward(dgateUp, gateUp, dact, F, kind)
}

// TakeColumns copies a range of columns.
func (b *Backend) TakeColumns(dst, src kernels.Buffer, n, stride, offset int, scale float64) {
	b.loops().TakeColumns(dst, src, n, stride, offset, scale)
}

// AddColumns adds to a range of columns.
func (b *Backend) AddColumns(dst, src kernels.Buffer, n, stride, offset int, scale float64) {
	b.loops().AddColumns(dst, src, n, stride, offset, scale)
}

// Route chooses the experts of each row.
func (b *Backend) Route(choice, weight, probs, logits kernels.Buffer, r kernels.Routing) {
	b.loops().Route(choice, weight, probs, logits, r)
}

// RouteBackward computes the gradients of Route.
func (b *Backend) RouteBackward(dlogits, dweight, choice, weight, probs kernels.Buffer, r kernels.Routing) {
	b.loops().RouteBackward(dlogits, dweight, choice, weight, probs, r)
}

// Combine adds up the experts' results.
func (b *Backend) Combine(out, x, slot, weight kernels.Buffer, C, J int) {
	b.loops().Combine(out, x, slot, weight, C, J)
}

// CombineBackward computes the gradients of Combine.
func (b *Backend) CombineBackward(dx, dweight, dout, x, slot, weight kernels.Buffer, C, J int) {
	b.loops().CombineBackward(dx, dweight, dout, x, slot, weight, C, J)
}

// Logits computes the logits of all tokens.
func (b *Backend) Logits(out, h kernels.Buffer, w kernels.Matrix, cap float64) {
	if cap > 0 {
		b.loops().Logits(out, h, w, cap)
		return
	}
	b.MatMul(out, h, w, kernels.Buffer{})
}

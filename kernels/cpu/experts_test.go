package cpu

import (
	"testing"

	"exp/kernels"
)

// Routes, slots, columns and types that would be read or written out of bounds panic.
func TestModelOperationsRefuseMisuse(t *testing.T) {
	b := open(t, BestLevel(), 1)
	f, h := b.room(t, kernels.F32, 64), b.room(t, kernels.BF16, 64)
	list := func(x ...int32) kernels.Buffer {
		buf := b.room(t, kernels.I32, len(x))
		copy(kernels.Elems[int32](buf), x)
		return buf
	}
	two := kernels.Routing{Experts: 4, Top: 2}
	for name, call := range map[string]func(){
		"a slot past the rows":   func() { b.Combine(f.Slice(0, 4), f.Slice(8, 16), list(0, 2), f.Slice(16, 18), 4, 2) },
		"a slot before the rows": func() { b.Combine(f.Slice(0, 4), f.Slice(8, 16), list(0, -1), f.Slice(16, 18), 4, 2) },
		"gradients out of bounds": func() {
			b.CombineBackward(f.Slice(24, 32), f.Slice(20, 22), f.Slice(0, 4), f.Slice(8, 16), list(0, 2), f.Slice(16, 18), 4, 2)
		},
		"more choices than there are experts": func() {
			b.Route(list(0, 0, 0), f.Slice(0, 3), f.Slice(4, 6), f.Slice(8, 10), kernels.Buffer{}, kernels.Routing{Experts: 2, Top: 3})
		},
		"no choice": func() {
			b.Route(list(), f.Slice(0, 0), f.Slice(4, 6), f.Slice(8, 10), kernels.Buffer{}, kernels.Routing{Experts: 2})
		},
		"an unknown expert": func() {
			b.RouteBackward(f.Slice(0, 4), f.Slice(4, 6), list(0, 4), f.Slice(6, 8), f.Slice(8, 12), two)
		},
		"a shared expert without a logit": func() {
			b.Route(list(0, 0, 0), f.Slice(0, 3), f.Slice(4, 8), f.Slice(8, 12), kernels.Buffer{}, kernels.Routing{Experts: 4, Top: 2, Shared: true})
		},
		"columns past the row":     func() { b.TakeColumns(f.Slice(0, 4), f.Slice(8, 16), 2, 4, 3, 1) },
		"columns before the row":   func() { b.AddColumns(f.Slice(8, 16), f.Slice(0, 4), 2, 4, -1, 1) },
		"columns of other rows":    func() { b.TakeColumns(f.Slice(0, 4), f.Slice(8, 12), 2, 4, 0, 1) },
		"columns of integers":      func() { b.TakeColumns(list(0, 0), f.Slice(8, 12), 2, 4, 0, 1) },
		"a gate of two types":      func() { b.Gate(f.Slice(0, 4), h.Slice(0, 8), 4, kernels.SiLU) },
		"a gate of no kind":        func() { b.Gate(f.Slice(0, 4), f.Slice(8, 16), 4, kernels.Clamped+1) },
		"gradients of fewer gates": func() { b.GateBackward(f.Slice(0, 7), f.Slice(8, 16), f.Slice(16, 20), 4, kernels.SiLU) },
		"floats normed of operands": func() {
			b.RMSNorm(f.Slice(0, 4), f.Slice(8, 9), h.Slice(0, 4), f.Slice(16, 20), kernels.NormShape{Heads: 1, Dim: 4, Stride: 4}, 1e-6)
		},
		"capped logits in operands": func() { b.Logits(h.Slice(0, 8), f.Slice(0, 4), b.packedMatrix(t, 8, 4), 30) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			call()
		})
	}
}

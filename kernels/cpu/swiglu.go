package cpu

// #include "level/args.h"
import "C"

import (
	"unsafe"

	"exp/kernels"
)

// MatMulSwiGLU sets gateUp = x·Wᵀ, unless it is empty, and act = silu(gate)·up.
func (b *Backend) MatMulSwiGLU(act, gateUp, x kernels.Buffer, w kernels.Matrix) {
	if w.Out%2 != 0 {
		panic("cpu: MatMulSwiGLU: not as many gates as ups")
	}
	F, K := w.Out/2, w.In
	m := act.Len() / F
	check(act, m*F)
	check(x, m*K)
	if !gateUp.Empty() {
		check(gateUp, m*w.Out)
	}
	factor, packed := b.forward(w)
	if m == 0 {
		return
	}
	if b.tiles != nil {
		b.tileMatMulSwiGLU(act, gateUp, x, w, m)
		return
	}
	g := &b.a.swiglu
	g.act, g.gate_up = unsafe.Pointer(floats(act)), unsafe.Pointer(floats(gateUp))
	g.x, g.b, g.form = unsafe.Pointer(floats(x)), factor.at, factor.form
	g.m, g.f, g.k = C.long(m), C.long(F), C.long(K)
	nr := int(b.k.nr)
	panels, products := F/nr, 2*nr
	if F%nr != 0 { // one panel holds both gates and ups
		panels, products = 1, b.panels(w.Out)
	}
	b.runSwiGLU(b.k.matmul_swiglu, w.Out, panels, products, use{act, byRow | writes}, use{gateUp, byRow | writes},
		use{x, byRow}, use{packed, reads})
}

// MatMulDXSwiGLU sets dgateUp to the gradients of gate and up; act's gradient is dout·W.
func (b *Backend) MatMulDXSwiGLU(dgateUp, gateUp, dout kernels.Buffer, w kernels.Matrix) {
	F, K := w.In, w.Out
	m := dout.Len() / K
	check(dout, m*K)
	check(gateUp, m*2*F)
	check(dgateUp, m*2*F)
	if m == 0 {
		return
	}
	if b.tiles != nil {
		b.tileMatMulDXSwiGLU(dgateUp, gateUp, dout, w, m)
		return
	}
	factor, packed := b.backward(w)
	g := &b.a.swiglu
	g.dgate_up, g.gate_up = unsafe.Pointer(floats(dgateUp)), unsafe.Pointer(floats(gateUp))
	g.x, g.b, g.form = unsafe.Pointer(floats(dout)), factor.at, factor.form
	g.m, g.f, g.k = C.long(m), C.long(F), C.long(K)
	nr := int(b.k.nr)
	b.runSwiGLU(b.k.matmul_dx_swiglu, F, ceilDiv(F, nr), nr, use{dgateUp, byRow | writes}, use{gateUp, byRow},
		use{dout, byRow}, use{packed, reads})
}

// runSwiGLU runs a kernel that computes n columns of products, `products` of each row at a time
// in scratch memory, on the arguments already filled in.
func (b *Backend) runSwiGLU(kernel C.kernel, n, panels, products int, uses ...use) {
	g := &b.a.swiglu
	m, k := int(g.m), int(g.k)
	rows, groups, now := b.shareProduct(m, n, k, k, panels)
	g.rows, g.panel_groups = rows, C.long(groups)
	g.scratch, g.scratch_len = b.roomFor(int(rows.many) * int(b.k.mr) * (b.panels(k) + products))
	b.queued(rowCall{kernel: kernel, args: unsafe.Pointer(g), size: unsafe.Sizeof(*g), m: m, now: now,
		units: rowBlocks(rows) * groups, grain: 1,
		work: m * n * k}, uses...)
}

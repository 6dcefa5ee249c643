package cpu

// #include "level/args.h"
import "C"

import (
	"unsafe"

	"exp/kernels"
)

// Gate computes the gated activation on its own.
func (b *Backend) Gate(act, gateUp kernels.Buffer, F int, kind kernels.GateKind) {
	m := act.Len() / F
	check(act, m*F)
	check(gateUp, m*kind.Factors()*F)
	g := b.gates(F, kind, isBF16(act, gateUp))
	g.act, g.gate_up = act.Addr(), gateUp.Addr()
	b.runGates(b.k.gate, m, use{act, byRow | writes}, use{gateUp, byRow})
}

// GateBackward computes the gradients of Gate.
func (b *Backend) GateBackward(dgateUp, gateUp, dact kernels.Buffer, F int, kind kernels.GateKind) {
	m := dact.Len() / F
	check(dact, m*F)
	check(gateUp, m*kind.Factors()*F)
	check(dgateUp, m*kind.Factors()*F)
	g := b.gates(F, kind, isBF16(dgateUp, gateUp, dact))
	g.dgate_up, g.gate_up, g.dact = dgateUp.Addr(), gateUp.Addr(), dact.Addr()
	b.runGates(b.k.gate_backward, m, use{dgateUp, byRow | writes}, use{gateUp, byRow}, use{dact, byRow})
}

// gates fills the arguments that Gate and GateBackward share.
func (b *Backend) gates(F int, kind kernels.GateKind, bf16 C.int) *C.struct_gate_args {
	g := &b.a.gate
	switch kind {
	case kernels.SiLU:
		g.kind = C.SILU
	case kernels.GELUTanh:
		g.kind = C.GELU_TANH
	case kernels.Clamped:
		g.kind = C.CLAMPED
	case kernels.ReLU2:
		g.kind = C.RELU2
	case kernels.PlainGELU:
		g.kind = C.PLAIN_GELU
	case kernels.PlainGELUTanh:
		g.kind = C.PLAIN_GELU_TANH
	default:
		panic("cpu: Gate: unknown activation")
	}
	g.f, g.parts, g.bf16 = C.long(F), C.long(ceilDiv(F, C.GATE_PART)), bf16
	return g
}

// runGates runs a kernel on m rows.
func (b *Backend) runGates(kernel C.kernel, m int, uses ...use) {
	g := &b.a.gate
	cost := 16 // multiply-adds that take as long as one element
	if g.kind == C.GELU_TANH || g.kind == C.PLAIN_GELU || g.kind == C.PLAIN_GELU_TANH {
		cost = 128
	}
	part := int(min(g.f, C.GATE_PART))
	b.queued(rowCall{kernel: kernel, args: unsafe.Pointer(g), size: unsafe.Sizeof(*g), m: m, perRow: int(g.parts),
		grain: max(1, 1<<18/(part*cost)),
		other: m * int(g.f) * cost, joins: true}, uses...)
}

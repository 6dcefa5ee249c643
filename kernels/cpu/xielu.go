package cpu

// #include "level/args.h"
import "C"

import (
	"unsafe"

	"exp/kernels"
)

// xielu fills what XIELU and its gradients share, and returns the rows of x.
func (b *Backend) xielu(act, x kernels.Buffer, F int, a kernels.Xielu) (*C.struct_xielu_args, int) {
	m := x.Len() / F
	check(x, m*F)
	check(act, m*F)
	g := &b.a.xielu
	*g = C.struct_xielu_args{f: C.long(F), parts: C.long(ceilDiv(F, C.GATE_PART)), bf16: isBF16(act, x),
		positive: C.double(a.Positive), negative: C.double(a.Negative), beta: C.double(a.Beta), eps: C.double(a.Eps),
		d_positive: C.double(a.DPositive), d_negative: C.double(a.DNegative)}
	g.act, g.x = act.Addr(), x.Addr()
	return g, m
}

// XIELU computes Apertus's activation.
func (b *Backend) XIELU(act, x kernels.Buffer, F int, a kernels.Xielu) {
	const cost = 128 // multiply-adds that take as long as one element
	g, m := b.xielu(act, x, F, a)
	b.queued(rowCall{kernel: b.k.xielu, args: unsafe.Pointer(g), size: unsafe.Sizeof(*g), m: m, perRow: int(g.parts),
		grain: max(1, 1<<18/(min(F, C.GATE_PART)*cost)), other: m * F * cost, joins: true},
		use{act, byRow | writes}, use{x, byRow})
}

// XIELUBackward computes the gradients of XIELU.
func (b *Backend) XIELUBackward(dx, dalpha, x, dact, blocks kernels.Buffer, F int, a kernels.Xielu) {
	g, m := b.xielu(dx, x, F, a)
	check(dact, m*F)
	check(dalpha, 2)
	n := blocks.Len() - 1
	room, _ := b.roomFor(ceilDiv(2*(m+n), b.pool.n)) // of all threads
	all := unsafe.Slice(room, 2*(m+n)+1)
	g.dact, g.terms, g.sums, g.block, g.bf16 = dact.Addr(), &all[0], &all[2*m], ints(blocks), isBF16(dx, x, dact)
	b.run(b.k.xielu_backward, unsafe.Pointer(g), m, rowGrain(64*F))
	b.run(b.k.xielu_parts, unsafe.Pointer(g), n, 1)
	sums := &b.a.norm_back
	*sums = C.struct_norm_back_args{dweight: floats(dalpha), parts: g.sums, blocks: C.long(n), dim: 2}
	b.run(b.k.rmsnorm_dweight, unsafe.Pointer(sums), 1, 1)
}

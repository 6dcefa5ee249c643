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

// GELU implements kernels.Norm.
func (b *Backend) GELU(out, x kernels.Buffer) {
	check(x, out.Len())
	b.launch("gelu", out.Len(), unsafe.Pointer(&C.struct_gelu_args{out: floats(out), x: floats(x),
		n: C.long(out.Len())}))
}

// GELUBackward implements kernels.Norm.
func (b *Backend) GELUBackward(dx, dout, x kernels.Buffer) {
	check(dout, dx.Len())
	check(x, dx.Len())
	b.launch("gelu_backward", dx.Len(), unsafe.Pointer(&C.struct_gelu_backward_args{dx: floats(dx),
		dout: floats(dout), x: floats(x), n: C.long(dx.Len())}))
}

// Gate implements kernels.Gates.
func (b *Backend) Gate(act, gateUp kernels.Buffer, F int, kind kernels.GateKind) {
	M := rowsOf(act, F)
	check(gateUp, kind.Factors()*act.Len())
	b.launchWide("gate", M, F, unsafe.Pointer(&C.struct_gate_args{act: b.operand(act),
		gate_up: b.operand(gateUp), M: C.long(M), F: C.long(F), kind: gateKind(kind)}))
}

// gateKind returns the kernels' number of an activation.
func gateKind(kind kernels.GateKind) C.int {
	switch kind {
	case kernels.SiLU:
		return C.SILU
	case kernels.GELUTanh:
		return C.GELU_TANH
	case kernels.Clamped:
		return C.CLAMPED
	case kernels.ReLU2:
		return C.RELU2
	case kernels.PlainGELU:
		return C.PLAIN_GELU
	case kernels.PlainGELUTanh:
		return C.PLAIN_GELU_TANH
	}
	panic("cuda: Gate: unknown activation")
}

// GateBackward implements kernels.Gates.
func (b *Backend) GateBackward(dgateUp, gateUp, dact kernels.Buffer, F int, kind kernels.GateKind) {
	M := rowsOf(dact, F)
	check(gateUp, kind.Factors()*dact.Len())
	check(dgateUp, kind.Factors()*dact.Len())
	b.launchWide("gate_backward", M, F, unsafe.Pointer(&C.struct_gate_backward_args{dgate_up: b.operand(dgateUp),
		gate_up: b.operand(gateUp), dact: b.operand(dact), M: C.long(M), F: C.long(F),
		kind: gateKind(kind)}))
}

// Dropout implements kernels.Norm.
func (b *Backend) Dropout(out, x, keys kernels.Buffer, channels int, layer uint32, p float64) {
	if !(p >= 0 && p < 1) {
		panic("cuda: Dropout: p is not in [0,1)")
	}
	M := rowsOf(out, channels)
	check(x, out.Len())
	check(keys, 2*M)
	b.launchWide("dropout", M, channels, unsafe.Pointer(&C.struct_dropout_args{out: floats(out), x: floats(x),
		keys: ints(keys), M: C.long(M), C: C.long(channels), layer: C.uint(layer), scale: C.float(1 / (1 - p)),
		p: C.double(p)}))
}

// TakeColumns implements kernels.Columns.
func (b *Backend) TakeColumns(dst, src kernels.Buffer, n, stride, offset int, scale float64) {
	b.columns("take_columns", dst, src, dst, src, n, stride, offset, scale)
}

// AddColumns implements kernels.Columns.
func (b *Backend) AddColumns(dst, src kernels.Buffer, n, stride, offset int, scale float64) {
	b.columns("add_columns", src, dst, dst, src, n, stride, offset, scale)
}

// columns queues a kernel on narrow [M,n] and wide [M,stride].
func (b *Backend) columns(kernel string, narrow, wide, dst, src kernels.Buffer, n, stride, offset int, scale float64) {
	M := rowsOf(narrow, n)
	check(wide, M*stride)
	if offset < 0 || offset+n > stride {
		panic("cuda: columns out of range")
	}
	b.launchWide(kernel, M, n, unsafe.Pointer(&C.struct_columns_args{dst: b.either(dst), src: b.either(src),
		M: C.long(M), n: C.long(n), stride: C.long(stride), offset: C.long(offset), scale: C.float(scale)}))
}

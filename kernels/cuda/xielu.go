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

// XIELU implements kernels.Gates.
func (b *Backend) XIELU(act, x kernels.Buffer, F int, a kernels.Xielu) {
	M := rowsOf(x, F)
	check(act, x.Len())
	b.launchWide("xielu", M, F, unsafe.Pointer(&C.struct_xielu_args{act: b.operand(act), x: b.operand(x),
		M: C.long(M), F: C.long(F), by: xieluNumbers(a)}))
}

// XIELUBackward implements kernels.Gates.
func (b *Backend) XIELUBackward(dx, dalpha, x, dact, blocks kernels.Buffer, F int, a kernels.Xielu) {
	M := rowsOf(x, F)
	check(dx, x.Len())
	check(dact, x.Len())
	check(dalpha, 2)
	B := blocks.Len() - 1
	room := b.scratch(2 * (M + B))
	if b.err != nil || M == 0 {
		return
	}
	terms, parts := room.Slice(0, 2*M), room.Slice(2*M, 2*(M+B))
	args := C.struct_xielu_backward_args{dx: b.operand(dx), x: b.operand(x), dact: b.operand(dact),
		blocks: ints(blocks), terms: floats(terms), parts: floats(parts), M: C.long(M), F: C.long(F), B: C.long(B),
		by: xieluNumbers(a)}
	b.launchLanes("xielu_backward", M, unsafe.Pointer(&args))
	b.launch("xielu_parts", 2*B, unsafe.Pointer(&args))
	b.addParts(dalpha, parts, B)
}

func xieluNumbers(a kernels.Xielu) C.struct_xielu_numbers {
	return C.struct_xielu_numbers{positive: C.double(a.Positive), negative: C.double(a.Negative),
		beta: C.double(a.Beta), eps: C.double(a.Eps), d_positive: C.double(a.DPositive),
		d_negative: C.double(a.DNegative)}
}

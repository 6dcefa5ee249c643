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

// Clip implements kernels.Gates.
func (b *Backend) Clip(out, x kernels.Buffer, limit float64) {
	check(x, out.Len())
	b.launchWide("clip", 1, out.Len(), unsafe.Pointer(&C.struct_clip_args{out: b.operand(out), x: b.operand(x),
		n: C.long(out.Len()), limit: C.float(limit)}))
}

// ClipBackward implements kernels.Gates.
func (b *Backend) ClipBackward(dx, dout, x kernels.Buffer, limit float64) {
	check(x, dx.Len())
	check(dout, dx.Len())
	b.launchWide("clip_backward", 1, dx.Len(), unsafe.Pointer(&C.struct_clip_args{out: b.operand(dx),
		x: b.operand(x), dout: b.operand(dout), n: C.long(dx.Len()), limit: C.float(limit)}))
}

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

// LayerNorm implements kernels.Norm.
func (b *Backend) LayerNorm(out, stats, x, weight, bias kernels.Buffer, channels int, eps float64) {
	M := rowsOf(out, channels)
	check(x, out.Len())
	check(stats, 2*M)
	check(weight, channels)
	check(bias, channels)
	b.launch("layernorm", M*kernels.Lanes, unsafe.Pointer(&C.struct_layernorm_args{out: floats(out),
		stats: floats(stats), x: floats(x), weight: floats(weight), bias: floats(bias), M: C.long(M),
		C: C.long(channels), eps: C.float(eps)}))
}

// LayerNormBackward implements kernels.Norm.
func (b *Backend) LayerNormBackward(dx, dweight, dbias, dout, x, weight, stats, blocks kernels.Buffer, channels int) {
	M := rowsOf(dx, channels)
	check(dout, dx.Len())
	check(x, dx.Len())
	check(stats, 2*M)
	check(weight, channels)
	check(dweight, channels)
	check(dbias, channels)
	if M == 0 {
		return
	}
	b.launchColumns("layernorm_dw", channels, unsafe.Pointer(&C.struct_layernorm_dw_args{dweight: floats(dweight),
		dout: floats(dout), x: floats(x), stats: floats(stats), blocks: ints(blocks), B: C.long(blocks.Len() - 1),
		C: C.long(channels)}))
	b.sumColumns(dbias, dout, blocks)
	b.launch("layernorm_backward", M*kernels.Lanes, unsafe.Pointer(&C.struct_layernorm_backward_args{dx: floats(dx),
		dout: floats(dout), x: floats(x), weight: floats(weight), stats: floats(stats), M: C.long(M),
		C: C.long(channels)}))
}

package cpu

// #include "level/args.h"
import "C"

import (
	"unsafe"

	"exp/kernels"
)

// SegmentMean averages rows.
func (b *Backend) SegmentMean(out, x, segments kernels.Buffer, C_ int) {
	g, n := b.segments(segments, x.Len(), C_)
	check(out, n*C_)
	g.out, g.x, g.x_bf16 = floats(out), x.Addr(), isBF16(x)
	b.run(b.k.segment_mean, unsafe.Pointer(g), n, max(1, 16384*n/max(1, x.Len())))
}

// SegmentMeanBackward adds a segment's share to its rows.
func (b *Backend) SegmentMeanBackward(dx, dout, segments kernels.Buffer, C_ int) {
	g, n := b.segments(segments, dx.Len(), C_)
	check(dout, n*C_)
	g.out, g.x = floats(dx), unsafe.Pointer(floats(dout))
	b.run(b.k.segment_mean_backward, unsafe.Pointer(g), ceilDiv(C_, kernels.Lanes),
		max(1, 16384*C_/kernels.Lanes/max(1, dx.Len())))
}

// segments fills the arguments that SegmentMean and SegmentMeanBackward share, for rows with
// `elements` elements in all, and returns the number of segments. It panics if one exceeds the
// rows.
func (b *Backend) segments(list kernels.Buffer, elements, c int) (*C.struct_segment_args, int) {
	rows := elements / c
	if elements%c != 0 || list.Len()%2 != 0 {
		panic("cpu: length mismatch")
	}
	at := kernels.Elems[int32](list)
	for i := 0; i < len(at); i += 2 {
		if at[i] < 0 || at[i+1] < at[i] || int(at[i+1]) > rows {
			panic("cpu: segment out of range")
		}
	}
	g := &b.a.segment
	g.segments, g.count, g.c = ints(list), C.long(len(at)/2), C.long(c)
	return g, len(at) / 2
}

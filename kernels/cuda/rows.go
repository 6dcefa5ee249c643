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

// GatherRows implements kernels.Sequence.
func (b *Backend) GatherRows(out, x, rows kernels.Buffer, channels int) {
	check(out, rows.Len()*channels)
	rowsOf(x, channels)
	if out.DType() != x.DType() && !out.Empty() {
		panic("cuda: GatherRows: want buffers of one type")
	}
	b.rows("gather_rows", rows.Len(), b.either(out), b.either(x), rows, rows.Len(), channels)
}

// ScatterRows implements kernels.Sequence.
func (b *Backend) ScatterRows(dx, dout, rows kernels.Buffer, channels int) {
	check(dout, rows.Len()*channels)
	rowsOf(dx, channels)
	b.Zero(dx)
	b.addRows(dx, dout, rows, channels, 1)
}

// SegmentMean implements kernels.Sequence.
func (b *Backend) SegmentMean(out, x, segments kernels.Buffer, channels int) {
	n := rowsOf(segments, 2)
	check(out, n*channels)
	rowsOf(x, channels)
	b.rows("segment_mean", n, single(out), b.either(x), segments, n, channels)
}

// SegmentMeanBackward implements kernels.Sequence.
func (b *Backend) SegmentMeanBackward(dx, dout, segments kernels.Buffer, channels int) {
	n := rowsOf(segments, 2)
	check(dout, n*channels)
	b.rows("segment_mean_backward", rowsOf(dx, channels), single(dx), single(dout), segments, n, channels)
}

// rows queues a kernel that writes M rows, given R rows or segments.
func (b *Backend) rows(kernel string, M int, dst, src C.struct_operand, rows kernels.Buffer, R, channels int) {
	if R == 0 {
		return
	}
	b.launchWide(kernel, M, channels, unsafe.Pointer(&C.struct_rows_args{dst: dst, src: src, rows: ints(rows),
		M: C.long(M), R: C.long(R), C: C.long(channels)}))
}

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
	b.rows("gather_rows", out.Len(), b.operand(out), b.operand(x), rows, rows.Len(), channels)
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
	b.rows("segment_mean", out.Len(), single(out), b.operand(x), segments, n, channels)
}

// SegmentMeanBackward implements kernels.Sequence.
func (b *Backend) SegmentMeanBackward(dx, dout, segments kernels.Buffer, channels int) {
	n := rowsOf(segments, 2)
	check(dout, n*channels)
	rowsOf(dx, channels)
	b.rows("segment_mean_backward", channels, single(dx), single(dout), segments, n, channels)
}

// rows queues a kernel on R rows or segments.
func (b *Backend) rows(kernel string, threads int, dst, src C.struct_operand, rows kernels.Buffer, R, channels int) {
	if R == 0 {
		return
	}
	b.launch(kernel, threads, unsafe.Pointer(&C.struct_rows_args{dst: dst, src: src, rows: ints(rows),
		R: C.long(R), C: C.long(channels)}))
}

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

// Sink implements kernels.Sequence.
func (b *Backend) Sink(out, att, stats, sinks kernels.Buffer, s kernels.AttentionShape) {
	M := sinkRows(att, stats, sinks, s)
	check(out, att.Len())
	b.launchWide("sink", M*s.H, s.D, unsafe.Pointer(&C.struct_sink_args{out: b.operand(out), att: b.operand(att),
		stats: floats(stats), sinks: floats(sinks), M: C.long(M), H: C.long(s.H), D: C.long(s.D)}))
}

// SinkBackward implements kernels.Sequence.
func (b *Backend) SinkBackward(datt, dsinks, dout, out, stats, sinks, blocks kernels.Buffer,
	s kernels.AttentionShape) {
	M := sinkRows(out, stats, sinks, s)
	check(datt, out.Len())
	check(dout, out.Len())
	check(dsinks, s.H)
	B := blocks.Len() - 1
	room := b.scratch((M + B) * s.H)
	if b.err != nil || M == 0 {
		return
	}
	terms, parts := room.Slice(0, M*s.H), room.Slice(M*s.H, (M+B)*s.H)
	args := C.struct_sink_backward_args{datt: b.operand(datt), dout: b.operand(dout), out: b.operand(out),
		stats: floats(stats), sinks: floats(sinks), blocks: ints(blocks), terms: floats(terms), parts: floats(parts),
		M: C.long(M), H: C.long(s.H), D: C.long(s.D), B: C.long(B)}
	b.launchLanes("sink_backward", M*s.H, unsafe.Pointer(&args))
	b.launch("sink_parts", B*s.H, unsafe.Pointer(&args))
	b.addParts(dsinks, parts, B)
}

// sinkRows returns the rows of att [M,H·D], and panics unless stats and sinks fit them.
func sinkRows(att, stats, sinks kernels.Buffer, s kernels.AttentionShape) int {
	M := rowsOf(att, s.H*s.D)
	check(stats, M*s.H*2)
	check(sinks, s.H)
	return M
}

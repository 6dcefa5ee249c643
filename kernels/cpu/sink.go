package cpu

// #include "level/args.h"
import "C"

import (
	"unsafe"

	"exp/kernels"
)

// sink fills what Sink and its gradients share, and returns the rows of att.
func (b *Backend) sink(out, att, stats, sinks kernels.Buffer, s kernels.AttentionShape) (*C.struct_sink_args, int) {
	m := att.Len() / (s.H * s.D)
	check(att, m*s.H*s.D)
	check(out, m*s.H*s.D)
	check(stats, m*s.H*2)
	check(sinks, s.H)
	g := &b.a.sink
	*g = C.struct_sink_args{}
	g.out, g.att, g.stats, g.sinks = out.Addr(), att.Addr(), floats(stats), floats(sinks)
	g.h, g.d, g.bf16 = C.long(s.H), C.long(s.D), isBF16(out, att)
	return g, m
}

// Sink adds a key without a value to the attention's output.
func (b *Backend) Sink(out, att, stats, sinks kernels.Buffer, s kernels.AttentionShape) {
	g, m := b.sink(out, att, stats, sinks, s)
	b.run(b.k.sink, unsafe.Pointer(g), m, rowGrain(4*s.H*s.D))
}

// SinkBackward computes the gradients of Sink.
func (b *Backend) SinkBackward(datt, dsinks, dout, out, stats, sinks, blocks kernels.Buffer,
	s kernels.AttentionShape) {
	g, m := b.sink(datt, out, stats, sinks, s)
	check(dout, m*s.H*s.D)
	check(dsinks, s.H)
	n := blocks.Len() - 1
	sums := &b.a.norm_back
	*sums = C.struct_norm_back_args{}
	parts, _ := b.roomFor(ceilDiv(n*s.H, b.pool.n)) // of all threads
	g.dout, g.parts, g.block, g.bf16 = dout.Addr(), parts, ints(blocks), isBF16(datt, out, dout)
	b.run(b.k.sink_backward, unsafe.Pointer(g), n, 1)
	sums.dweight, sums.parts, sums.blocks, sums.dim = floats(dsinks), parts, C.long(n), C.long(s.H)
	b.run(b.k.rmsnorm_dweight, unsafe.Pointer(sums), ceilDiv(s.H, kernels.Lanes), 1)
}

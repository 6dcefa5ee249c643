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

// Attention on tensor cores, in class matrix/16x25 (heads.h).

// spanRows is the number of rows that a warp of warpThreads works on, and headWarps the number of
// warps in a block.
const (
	spanRows    = 16
	warpThreads = 32
	headWarps   = 4
)

// laneThreads is the number of threads in a block where each half warp has a row.
const laneThreads = 256

// spans is the number of warps for the spans of M rows.
func spans(M int) int { return (M + spanRows - 1) / spanRows }

// launchWarps queues a kernel on n warps or a few more.
func (b *Backend) launchWarps(name string, n int, args unsafe.Pointer) {
	b.launchBlocks(name, (n+headWarps-1)/headWarps, headWarps*warpThreads, args)
}

func (b *Backend) attentionBackwardOnWarps(dqkv, dout, out, stats, delta, qkv kernels.Buffer, p C.struct_packing,
	shape C.struct_attention_shape, M int, s kernels.AttentionShape) {
	b.launchBlocks("matrix_attention_delta", (M*s.H*kernels.Lanes+laneThreads-1)/laneThreads, laneThreads,
		unsafe.Pointer(&C.struct_matrix_attention_delta_args{delta: floats(delta), dout: b.operand(dout),
			out: b.operand(out), n: C.long(M * s.H), D: C.long(s.D)}))
	args := C.struct_matrix_attention_backward_args{dqkv: b.operand(dqkv), stats: floats(stats), delta: floats(delta),
		p: p, s: shape}
	if inPanels(s) {
		args.qkv, args.dout = b.headFactor(&b.left, qkv, M, s.Stride()), b.headFactor(&b.right, dout, M, s.H*s.D)
		on := b.pickAttention(M, int(p.S), s)
		b.launchPanels(on.dq, M, s.H, unsafe.Pointer(&args))
		b.launchPanels(on.dkv, M, s.K, unsafe.Pointer(&args))
		return
	}
	args.qkv, args.dout = b.operand(qkv), b.operand(dout)
	b.launchWarps(b.attends("matrix_attention_dq", s), spans(M)*s.H, unsafe.Pointer(&args))
	b.launchWarps(b.attends("matrix_attention_dk", s), spans(M)*s.K, unsafe.Pointer(&args))
	b.launchWarps(b.attends("matrix_attention_dv", s), spans(M)*s.K, unsafe.Pointer(&args))
}

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

// Products on tensor cores, in class matrix/16x25 (tile.h).

// A block computes tile × tile outputs with tileThreads threads; 16 bytes hold chunk elements.
const (
	tile        = 128
	tileThreads = 128
	chunk       = 8
)

// launchTiles queues a kernel on a block for each tile of [rows,columns].
func (b *Backend) launchTiles(name string, rows, columns int, args unsafe.Pointer) {
	b.launchBlocks(name, ((rows+tile-1)/tile)*((columns+tile-1)/tile), tileThreads, args)
}

// pitch returns the distance of rows in a factor.
func pitch(width int) int { return (width + chunk - 1) / chunk * chunk }

// isFactor reports whether the rows of x, width elements each, are a factor as they are.
func isFactor(x kernels.Buffer, width int) bool {
	return x.DType() == kernels.BF16 && width%chunk == 0 && uintptr(x.Addr())%(2*chunk) == 0
}

// factor returns rows of x as a factor, in room if x is none itself.
func (b *Backend) factor(room *kernels.Buffer, x kernels.Buffer, rows, width int) C.struct_factor {
	check(x, rows*width)
	if isFactor(x, width) {
		return C.struct_factor{at: x.Addr(), pitch: C.long(width)}
	}
	b.grow(room, kernels.BF16, rows*pitch(width))
	if b.err != nil {
		return C.struct_factor{}
	}
	b.pack(room.Slice(0, rows*pitch(width)), x, width)
	return C.struct_factor{at: room.Addr(), pitch: C.long(pitch(width))}
}

// pack sets dst to rows of x as a factor.
func (b *Backend) pack(dst, x kernels.Buffer, width int) {
	b.launch("pack", dst.Len(), unsafe.Pointer(&C.struct_pack_args{dst: dst.Addr(), src: array(x),
		rows: C.long(x.Len() / width), width: C.long(width), pitch: C.long(pitch(width))}))
}

// packRows sets rows of a packed matrix; x may be in host memory.
func (b *Backend) packRows(dst, x kernels.Buffer, width int) {
	if x.IsHost() {
		b.grow(&b.left, kernels.BF16, x.Len())
		if b.err != nil {
			return
		}
		staged := b.left.Slice(0, x.Len())
		b.Copy(staged, x)
		x = staged
	}
	b.pack(dst, x, width)
}

// weight returns a packed matrix as a factor.
func (b *Backend) weight(w kernels.Matrix) C.struct_factor {
	if w.Out < 1 || w.In < 1 {
		panic("cuda: matrix: length mismatch")
	}
	return b.factor(&b.weights, w.Packed, w.Out, pitch(w.In))
}

func (b *Backend) matMulOnTiles(out, x kernels.Buffer, w kernels.Matrix, bias kernels.Buffer, M int) {
	b.launchTiles("matrix_matmul", M, w.Out, unsafe.Pointer(&C.struct_matrix_matmul_args{out: b.either(out),
		x: b.factor(&b.left, x, M, w.In), w: b.weight(w), bias: floats(bias), M: C.long(M), N: C.long(w.Out),
		K: C.long(w.In)}))
}

func (b *Backend) matMulDXOnTiles(dx, dout kernels.Buffer, w kernels.Matrix, M int) {
	b.launchTiles("matrix_matmul_dx", M, w.In, unsafe.Pointer(&C.struct_matrix_matmul_dx_args{dx: b.either(dx),
		dout: b.factor(&b.left, dout, M, w.Out), w: b.weight(w), M: C.long(M), N: C.long(w.Out), K: C.long(w.In)}))
}

func (b *Backend) swiGLUOnTiles(act, gateUp, x kernels.Buffer, w kernels.Matrix, M int) {
	b.launchTiles("matrix_matmul_swiglu", M, w.Out, unsafe.Pointer(&C.struct_matrix_matmul_swiglu_args{
		act: b.operand(act), gate_up: b.operand(gateUp), x: b.factor(&b.left, x, M, w.In), w: b.weight(w),
		M: C.long(M), F: C.long(w.Out / 2), K: C.long(w.In)}))
}

func (b *Backend) dxSwiGLUOnTiles(dgateUp, gateUp, dout kernels.Buffer, w kernels.Matrix, M int) {
	b.launchTiles("matrix_matmul_dx_swiglu", M, w.In, unsafe.Pointer(&C.struct_matrix_matmul_dx_swiglu_args{
		dgate_up: b.operand(dgateUp), gate_up: b.operand(gateUp), dout: b.factor(&b.left, dout, M, w.Out),
		w: b.weight(w), M: C.long(M), N: C.long(w.Out), F: C.long(w.In)}))
}

func (b *Backend) matMulDWOnTiles(dw, dout, x, blocks kernels.Buffer, M, N, K int) {
	b.launchTiles("matrix_matmul_dw", N, K, unsafe.Pointer(&C.struct_matrix_matmul_dw_args{dw: floats(dw),
		dout: b.factor(&b.left, dout, M, N), x: b.factor(&b.right, x, M, K), blocks: ints(blocks),
		B: C.long(blocks.Len() - 1), N: C.long(N), K: C.long(K)}))
}

//go:build cuda

package cuda

/*
#include "args.h"
*/
import "C"

import (
	"math"
	"math/bits"
	"unsafe"

	"exp/kernels"
)

// PackedLen implements kernels.Linear. Tensor cores read a copy in bf16 (factor in args.h); other
// products read the weight itself.
func (b *Backend) PackedLen(out, in int) (packed, packedT int) {
	if !b.class.matrix {
		return 0, 0
	}
	return out * pitch(in), 0
}

// Pack implements kernels.Linear.
func (b *Backend) Pack(w kernels.Matrix) {
	if b.class.matrix {
		check(w.W, w.Out*w.In)
		check(w.Packed, w.Out*pitch(w.In))
		b.pack(w.Packed, w.W, w.In)
	}
}

// PackRows implements kernels.Linear. Where nothing is packed it sets rows of w.W; if those are BF16,
// class cpu/bf16 replaces their subnormals by zero.
func (b *Backend) PackRows(w kernels.Matrix, from int, rows kernels.Buffer) {
	if b.class.matrix {
		b.packRows(w.Packed.Slice(from*pitch(w.In), (from+rows.Len()/w.In)*pitch(w.In)), rows, w.In)
		return
	}
	dst := w.W.Slice(from*w.In, from*w.In+rows.Len())
	b.Copy(dst, rows)
	if b.class.tile != 0 && dst.DType() == kernels.BF16 {
		b.launchWide("flush_bf16", 1, dst.Len(), unsafe.Pointer(&C.struct_convert_args{dst: dst.Addr(),
			src: dst.Addr(), n: C.long(dst.Len())}))
	}
}

// weightsOf returns a matrix for kernels.
func weightsOf(w kernels.Matrix) C.struct_operand {
	if w.Out < 1 || w.In < 1 || w.W.Len() != w.Out*w.In {
		panic("cuda: matrix: length mismatch")
	}
	return array(w.W)
}

// MatMul implements kernels.Linear.
func (b *Backend) MatMul(out, x kernels.Buffer, w kernels.Matrix, bias kernels.Buffer) {
	M := rowsOf(out, w.Out)
	check(x, M*w.In)
	if !bias.Empty() {
		check(bias, w.Out)
	}
	if b.onTiles(w.W) {
		b.matMulOnTiles(out, x, w, bias, M)
		return
	}
	b.launch("matmul", out.Len(), unsafe.Pointer(&C.struct_matmul_args{out: b.either(out), x: b.either(x),
		bias: floats(bias), w: weightsOf(w), M: C.long(M), N: C.long(w.Out), K: C.long(w.In), tile: b.class.tile}))
}

// MatMulDX implements kernels.Linear.
func (b *Backend) MatMulDX(dx, dout kernels.Buffer, w kernels.Matrix) {
	M := rowsOf(dx, w.In)
	check(dout, M*w.Out)
	if b.onTiles(w.W) {
		b.matMulDXOnTiles(dx, dout, w, M)
		return
	}
	b.launch("matmul_dx", dx.Len(), unsafe.Pointer(&C.struct_matmul_dx_args{dx: b.either(dx), dout: b.either(dout),
		w: weightsOf(w), M: C.long(M), N: C.long(w.Out), K: C.long(w.In), tile: b.class.tile}))
}

// MatMulSwiGLU implements kernels.Linear.
func (b *Backend) MatMulSwiGLU(act, gateUp, x kernels.Buffer, w kernels.Matrix) {
	if w.Out%2 != 0 {
		panic("cuda: MatMulSwiGLU: not as many gates as ups")
	}
	F := w.Out / 2
	M := rowsOf(act, F)
	check(x, M*w.In)
	if !gateUp.Empty() {
		check(gateUp, M*w.Out)
	}
	if b.onTiles(w.W) {
		b.swiGLUOnTiles(act, gateUp, x, w, M)
		return
	}
	b.launch("matmul_swiglu", act.Len(), unsafe.Pointer(&C.struct_matmul_swiglu_args{act: b.operand(act),
		gate_up: b.operand(gateUp), x: b.either(x), w: weightsOf(w), M: C.long(M), F: C.long(F), K: C.long(w.In),
		tile: b.class.tile}))
}

// MatMulDXSwiGLU implements kernels.Linear.
func (b *Backend) MatMulDXSwiGLU(dgateUp, gateUp, dout kernels.Buffer, w kernels.Matrix) {
	M := rowsOf(dout, w.Out)
	check(gateUp, M*2*w.In)
	check(dgateUp, M*2*w.In)
	if b.onTiles(w.W) {
		b.dxSwiGLUOnTiles(dgateUp, gateUp, dout, w, M)
		return
	}
	b.launch("matmul_dx_swiglu", M*w.In, unsafe.Pointer(&C.struct_matmul_dx_swiglu_args{dgate_up: b.operand(dgateUp),
		gate_up: b.operand(gateUp), dout: b.either(dout), w: weightsOf(w), M: C.long(M), N: C.long(w.Out),
		F: C.long(w.In), tile: b.class.tile}))
}

// MatMulDW implements kernels.Linear.
func (b *Backend) MatMulDW(dw, dbias, dout, x, blocks kernels.Buffer) {
	if dout.Empty() {
		return // no rows
	}
	M := commonRows(dout.Len(), x.Len(), dw.Len())
	N, K := dout.Len()/M, x.Len()/M
	check(dw, N*K)
	check(dout, M*N)
	check(x, M*K)
	if b.onTiles(x) {
		b.matMulDWOnTiles(dw, dout, x, blocks, M, N, K)
	} else {
		b.launch("matmul_dw", dw.Len(), unsafe.Pointer(&C.struct_matmul_dw_args{dw: floats(dw), dout: b.either(dout),
			x: b.either(x), blocks: ints(blocks), B: C.long(blocks.Len() - 1), N: C.long(N), K: C.long(K)}))
	}
	if !dbias.Empty() {
		check(dbias, N)
		b.sumColumns(dbias, dout, blocks)
	}
}

// commonRows returns M, given M·N, M·K and N·K: the last block boundary, which is M too, is on
// the device.
func commonRows(mn, mk, nk int) int {
	if nk == 0 {
		panic("cuda: length mismatch")
	}
	hi, lo := bits.Mul64(uint64(mn), uint64(mk))
	if hi >= uint64(nk) {
		panic("cuda: length mismatch")
	}
	square, _ := bits.Div64(hi, lo, uint64(nk))
	M := int(math.Round(math.Sqrt(float64(square))))
	if M < 1 {
		panic("cuda: length mismatch")
	}
	return M
}

// sumColumns adds to dst the blocked sum of the rows of x.
func (b *Backend) sumColumns(dst, x, blocks kernels.Buffer) {
	b.launchColumns("column_sums", dst.Len(), unsafe.Pointer(&C.struct_column_sums_args{dst: floats(dst),
		x: b.either(x), blocks: ints(blocks), B: C.long(blocks.Len() - 1), C: C.long(dst.Len())}))
}

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

// Products on tiles (tile.h), in classes matrix/16x25 and cpu/fma.

// tiles is a family of kernels of products: a block of some threads computes rows × columns outputs, with
// shared bytes of memory from the launch. An H100 works on `resident` tiles at once. Its second-level cache allows
// them a share of its tensor limit, and each multiprocessor a share of its own (DESIGN.md, products on paper).
type tiles struct {
	family                         string
	rows, columns, threads, shared int
	resident                       int
	cache, core                    float64
}

// The families. fewTiles, thinTiles and slimTiles have forward products only; a tile of wgmmaTiles, thinTiles or
// slimTiles is two blocks'.
var (
	chainTiles  = tiles{"chain_", 128, 128, 128, 0, 132, 0, 0} // never compared with others
	matrixTiles = tiles{"matrix_", 128, 128, 128, 0, 132, 0.54, 0.62}
	fewTiles    = tiles{"few_", 64, 64, 128, 12 * stageBytes / 2, 132, 0.27, 0.62}
	largeTiles  = tiles{"large_", 256, 128, 256, 4 * stageBytes * 3 / 2, 132, 0.72, 0.62}
	wgmmaTiles  = tiles{"wgmma_", 256, 256, 384, C.WGMMA_SHARED, 66, 1.08, 1}
	thinTiles   = tiles{"thin_", 128, 128, 256, C.THIN_SHARED, 66, 0.72, 0.67}
	slimTiles   = tiles{"slim_", 64, 128, 256, C.SLIM_SHARED, 66, 0.36, 0.67}
)

const (
	stageBytes = 16 << 10 // of a stage of 128 × 128
	chunk      = 8        // elements in 16 bytes
	// About as many tiles as a GPU works on at once.
	residentTiles = 132
)

// of returns the number of tiles of [rows,columns].
func (t tiles) of(rows, columns int) int {
	return (rows + t.rows - 1) / t.rows * ((columns + t.columns - 1) / t.columns)
}

// share returns the share of an H100's tensor limit for [rows,columns]. A round of tiles takes as long as the cache or
// a multiprocessor needs; in the last one there may be few tiles, and parts of tiles lie outside.
func (t tiles) share(rows, columns int) float64 {
	n, all := t.of(rows, columns), float64(t.resident)
	time := float64(n/t.resident) * max(1/t.core, 1/t.cache)
	if rest := n % t.resident; rest > 0 {
		time += max(1/t.core, float64(rest)/all/t.cache)
	}
	return float64(rows) * float64(columns) / (float64(t.rows) * float64(t.columns) * all * time)
}

// families are those whose kernels take memory from the launch.
var families = [...]tiles{fewTiles, largeTiles, wgmmaTiles, thinTiles, slimTiles}

// pickTiles chooses a family for [rows,columns]: the largest that has work for the whole device. Bits
// do not depend on it.
func pickTiles(rows, columns int, forward bool) tiles {
	switch {
	case forward && (rows <= fewTiles.rows || matrixTiles.of(rows, columns) < residentTiles/2):
		return fewTiles
	case rows >= largeTiles.rows && largeTiles.of(rows, columns) >= 2*residentTiles:
		return largeTiles
	}
	return matrixTiles
}

// product is a product on tiles: kernel name of a family, with a structure of arguments. x has the rows of the
// result, y its columns.
type product struct {
	name          string
	rows, columns int
	x, y          side
	args          unsafe.Pointer
	bytes         uintptr
}

// side is a factor of a product: rows of `width` elements each. If byTerms is set, a row has an output's terms, else a
// term of all outputs.
type side struct {
	at          C.struct_factor
	rows, width int
	byTerms     bool
}

// launchTiles queues a kernel on a block for each tile.
func (b *Backend) launchTiles(p product) {
	t := chainTiles
	if b.class.matrix {
		t = b.pick(p.rows, p.columns, p.name == "matmul" || p.name == "matmul_swiglu" || p.name == "logits")
	}
	switch t {
	case wgmmaTiles:
		b.launchWgmma(p)
		return
	case thinTiles, slimTiles:
		b.launchTurned(t, p)
		return
	}
	b.launchShared(t.family+p.name, t.of(p.rows, p.columns), t.threads, t.shared, p.args)
}

// onTiles reports whether products with w are on tiles: chains of bf16 weights and tile sums are not.
func (b *Backend) onTiles(w kernels.Buffer) bool {
	return b.class.matrix || b.class.tile == 0 && w.DType() == kernels.F32
}

// pitch returns the distance of rows in a factor.
func pitch(width int) int { return (width + chunk - 1) / chunk * chunk }

// isFactor reports whether the rows of x, width elements each, are a factor as they are.
func isFactor(x kernels.Buffer, width int) bool {
	return x.DType() == kernels.BF16 && width%chunk == 0 && uintptr(x.Addr())%(2*chunk) == 0
}

// factor returns rows of x as a factor, in room if x is none itself. Chains read any float32.
func (b *Backend) factor(room *kernels.Buffer, x kernels.Buffer, rows, width int) C.struct_factor {
	check(x, rows*width)
	if !b.class.matrix {
		return C.struct_factor{at: unsafe.Pointer(floats(x)), pitch: C.long(width)}
	}
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
	b.launchWide("pack", 1, dst.Len(), unsafe.Pointer(&C.struct_pack_args{dst: dst.Addr(), src: array(x),
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

// weight returns a matrix as a factor: packed on tensor cores.
func (b *Backend) weight(w kernels.Matrix) C.struct_factor {
	if w.Out < 1 || w.In < 1 {
		panic("cuda: matrix: length mismatch")
	}
	if !b.class.matrix {
		return b.factor(nil, w.W, w.Out, w.In)
	}
	return b.factor(&b.weights, w.Packed, w.Out, pitch(w.In))
}

func (b *Backend) matMulOnTiles(out, x kernels.Buffer, w kernels.Matrix, bias kernels.Buffer, M int) {
	left, weight := b.factor(&b.left, x, M, w.In), b.weight(w)
	args := C.struct_matrix_matmul_args{out: b.either(out), x: left, w: weight, bias: floats(bias), M: C.long(M),
		N: C.long(w.Out), K: C.long(w.In)}
	b.launchTiles(product{"matmul", M, w.Out, side{left, M, w.In, true}, side{weight, w.Out, w.In, true},
		unsafe.Pointer(&args), unsafe.Sizeof(args)})
}

func (b *Backend) matMulDXOnTiles(dx, dout kernels.Buffer, w kernels.Matrix, M int) {
	left, weight := b.factor(&b.left, dout, M, w.Out), b.weight(w)
	args := C.struct_matrix_matmul_dx_args{dx: b.either(dx), dout: left, w: weight, M: C.long(M), N: C.long(w.Out),
		K: C.long(w.In)}
	b.launchTiles(product{"matmul_dx", M, w.In, side{left, M, w.Out, true}, side{weight, w.Out, w.In, false},
		unsafe.Pointer(&args), unsafe.Sizeof(args)})
}

func (b *Backend) swiGLUOnTiles(act, gateUp, x kernels.Buffer, w kernels.Matrix, M int) {
	left, weight := b.factor(&b.left, x, M, w.In), b.weight(w)
	args := C.struct_matrix_matmul_swiglu_args{act: b.operand(act), gate_up: b.operand(gateUp), x: left, w: weight,
		M: C.long(M), F: C.long(w.Out / 2), K: C.long(w.In)}
	b.launchTiles(product{"matmul_swiglu", M, w.Out, side{left, M, w.In, true}, side{weight, w.Out, w.In, true},
		unsafe.Pointer(&args), unsafe.Sizeof(args)})
}

func (b *Backend) dxSwiGLUOnTiles(dgateUp, gateUp, dout kernels.Buffer, w kernels.Matrix, M int) {
	left, weight := b.factor(&b.left, dout, M, w.Out), b.weight(w)
	args := C.struct_matrix_matmul_dx_swiglu_args{dgate_up: b.operand(dgateUp), gate_up: b.operand(gateUp), dout: left,
		w: weight, M: C.long(M), N: C.long(w.Out), F: C.long(w.In)}
	b.launchTiles(product{"matmul_dx_swiglu", M, w.In, side{left, M, w.Out, true}, side{weight, w.Out, w.In, false},
		unsafe.Pointer(&args), unsafe.Sizeof(args)})
}

func (b *Backend) matMulDWOnTiles(dw, dout, x, blocks kernels.Buffer, M, N, K int) {
	left, right := b.factor(&b.left, dout, M, N), b.factor(&b.right, x, M, K)
	args := C.struct_matrix_matmul_dw_args{dw: floats(dw), dout: left, x: right, blocks: ints(blocks),
		B: C.long(blocks.Len() - 1), N: C.long(N), K: C.long(K)}
	b.launchTiles(product{"matmul_dw", N, K, side{left, M, N, false}, side{right, M, K, false}, unsafe.Pointer(&args),
		unsafe.Sizeof(args)})
}

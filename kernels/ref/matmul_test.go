package ref

import "testing"

func TestMatMulKnown(t *testing.T) {
	// x = [1 2; 3 4; 5 6], w = [1 -1; 2 0], bias = [10 20].
	x := []float32{1, 2, 3, 4, 5, 6}
	w := []float32{1, -1, 2, 0}
	out := make([]float32, 6)
	MatMul(out, x, w, []float32{10, 20}, 3, 2, 2)
	// Row 0: 10 + 1-2 = 9, 20 + 2 = 22; row 1: 10 + 3-4 = 9, 20+6; row 2: 9, 20+10.
	wantExact(t, "with bias", out, []float32{9, 22, 9, 26, 9, 30})
	MatMul(out, x, w, nil, 3, 2, 2)
	wantExact(t, "without", out, []float32{-1, 2, -1, 6, -1, 10})

	dx := []float32{7, 7, 7, 7} // overwritten
	MatMulDX(dx, []float32{1, 2, -1, 3}, w, 2, 2, 2)
	// Row 0: 1·[1 -1] + 2·[2 0] = [5 -1]; row 1: -[1 -1] + 3·[2 0] = [5 1].
	wantExact(t, "dx", dx, []float32{5, -1, 5, 1})

	dw, dbias := []float32{100, 0, 0, 0}, []float32{0, 50}
	dout := []float32{1, 0, 0, 1, 2, -1}
	MatMulDW(dw, dbias, dout, x, []int32{0, 2, 3}, 3, 2, 2)
	// dw[0] = 1·[1 2] + 0·[3 4] + 2·[5 6] = [11 14], added to [100 0];
	// dw[1] = 0·[1 2] + 1·[3 4] - [5 6] = [-2 -2]; dbias = [3, 0+1-1+50].
	wantExact(t, "dw", dw, []float32{111, 14, -2, -2})
	wantExact(t, "dbias", dbias, []float32{3, 50})
}

func TestMatMulIsAChain(t *testing.T) {
	// fma keeps the tail of the second product: -(1+2⁻²²) + (1+2⁻²³)² = 2⁻⁴⁶.
	x := []float32{-(1 + 0x1p-22), 1 + 0x1p-23}
	w := []float32{1, 1 + 0x1p-23}
	out := make([]float32, 1)
	MatMul(out, x, w, nil, 1, 1, 2)
	wantExact(t, "in index order", out, []float32{0x1p-46})
	// The other way round the square rounds first, to 1+2⁻²², and nothing is left.
	MatMul(out, []float32{x[1], x[0]}, []float32{w[1], w[0]}, nil, 1, 1, 2)
	wantExact(t, "reversed", out, []float32{0})
	// The bias is the chain's start, not an addition at its end: 2²⁴ + 1 + 1
	// loses both ones, 1 + 1 + 2²⁴ would keep them.
	MatMul(out, []float32{1, 1}, []float32{1, 1}, []float32{1 << 24}, 1, 1, 2)
	wantExact(t, "bias", out, []float32{1 << 24})
}

func TestMatMulDWBlocks(t *testing.T) {
	// One block: 2²⁴ + 1 + 1 in row order loses the ones. Two blocks: 2²⁴, then
	// (1+1) is added whole.
	dout := []float32{1 << 24, 1, 1}
	x := []float32{1, 1, 1}
	one, two := []float32{0}, []float32{0}
	bone, btwo := []float32{0}, []float32{0}
	MatMulDW(one, bone, dout, x, []int32{0, 3}, 3, 1, 1)
	MatMulDW(two, btwo, dout, x, []int32{0, 1, 3}, 3, 1, 1)
	wantExact(t, "one block", []float32{one[0], bone[0]}, []float32{1 << 24, 1 << 24})
	wantExact(t, "two blocks", []float32{two[0], btwo[0]}, []float32{1<<24 + 2, 1<<24 + 2})
}

func TestMatMulGradient(t *testing.T) {
	const M, N, K = 7, 3, 5
	r := source(1)
	x, w, bias, c := normal(r, M*K), normal(r, N*K), normal(r, N), normal(r, M*N)
	out := zeros(M * N)
	loss := func() float64 {
		MatMul(out, x, w, bias, M, N, K)
		return project(out, c)
	}
	dx, dw, dbias := zeros(M*K), normal(r, N*K), normal(r, N)
	dw0, dbias0 := clone(dw), clone(dbias)
	MatMulDX(dx, c, w, M, N, K)
	MatMulDW(dw, dbias, c, x, []int32{0, 1, 5, M}, M, N, K)
	checkGradient(t, loss, limit,
		argument{"x", x, dx}, argument{"w", w, minus(dw, dw0)}, argument{"bias", bias, minus(dbias, dbias0)})
}

func TestMatMulPanics(t *testing.T) {
	x := zeros(6)
	wantPanic(t, "ref: MatMul: length mismatch", func() { MatMul(x, x, x, x[:2], 2, 3, 2) })
	wantPanic(t, "ref: MatMulDX: length mismatch", func() { MatMulDX(x, x, x, 2, 2, 3) })
	wantPanic(t, "ref: MatMulDW: length mismatch", func() { MatMulDW(x, x, x, x, []int32{0, 2}, 2, 3, 3) })
	wantPanic(t, "ref: gradient blocks do not cover the rows", func() { MatMulDW(x[:1], nil, x, x, []int32{0, 5}, 6, 1, 1) })
	wantPanic(t, "ref: gradient blocks are not in order", func() { MatMulDW(x[:1], nil, x, x, []int32{0, 5, 4, 6}, 6, 1, 1) })
}

package ref

import "testing"

func TestSwiGLUKnown(t *testing.T) {
	// Sigmoid(0) = 1/2; Sigmoid(ln 3) = 1/(1+1/3) = 3/4. F = 2, one row:
	// g = [0, ln 3], u = [5, 4]: out = [0·½·5, ln3·¾·4] = [0, 3·ln 3].
	const ln3 = 1.0986122886681098
	row := []float64{0, ln3, 5, 4}
	out := make([]float64, 2)
	SwiGLU(out, row, 2)
	wantNear(t, "out", out, []float64{0, 3 * ln3}, 1e-14)

	// dout = [2, 1]. du = dout·g·s = [0, ¾·ln 3].
	// dg = dout·u·s·(1+g(1-s)) = [2·5·½·1, 4·¾·(1+ln3/4)] = [5, 3+¾·ln 3].
	SwiGLUBackward(row, []float64{2, 1}, row, 2)
	wantNear(t, "in place", row, []float64{5, 3 + 0.75*ln3, 0, 0.75 * ln3}, 1e-14)
}

func TestSwiGLUGradient(t *testing.T) {
	const M, F = 3, 7
	r := source(6)
	x, c := normal(r, M*2*F), normal(r, M*F)
	out, dx := zeros(M*F), zeros(M*2*F)
	loss := func() float64 {
		SwiGLU(out, x, F)
		return project(out, c)
	}
	SwiGLUBackward(dx, c, x, F)
	checkGradient(t, loss, limit, argument{"gateUp", x, dx})
	wantPanic(t, "ref: SwiGLU: length mismatch", func() { SwiGLU(out, x[:F], F) })
	wantPanic(t, "ref: SwiGLUBackward: length mismatch", func() { SwiGLUBackward(dx, c[:F], x, F) })
}

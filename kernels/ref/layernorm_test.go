package ref

import "testing"

func TestLayerNormKnown(t *testing.T) {
	// [1 3 5 7]: mean 4, deviations [-3 -1 1 3], variance 20/4 = 5; with eps = 11
	// the root is 4 and rstd 1/4.
	out, stats := make([]float32, 4), make([]float32, 2)
	x, w := []float32{1, 3, 5, 7}, []float32{4, 4, 8, 8}
	LayerNorm(out, stats, x, w, []float32{0, 1, 0, 1}, 4, 11)
	wantExact(t, "out", out, []float32{-3, 0, 2, 7})
	wantExact(t, "stats", stats, []float32{4, 0.25})

	// h = [-3 -1 1 3]/4, dout = [1 0 0 1], g = [4 0 0 8], a = 12/4 = 3,
	// b = (-3 + 6)/4 = 0.75; dx = (g - 3 - 0.75·h)/4:
	// (1+0.5625)/4, (-3+0.1875)/4, (-3-0.1875)/4, (5-0.5625)/4.
	dx, dw, db := make([]float32, 4), []float32{1, 1, 1, 1}, []float32{1, 1, 1, 1}
	LayerNormBackward(dx, dw, db, []float32{1, 0, 0, 1}, x, w, stats, []int32{0, 1}, 4)
	wantExact(t, "dx", dx, []float32{0.390625, -0.703125, -0.796875, 1.109375})
	wantExact(t, "dweight", dw, []float32{0.25, 1, 1, 1.75})
	wantExact(t, "dbias", db, []float32{2, 1, 1, 2})
}

func TestLayerNormGradient(t *testing.T) {
	const M, C = 4, 21
	r := source(4)
	x, w, b, c := normal(r, M*C), normal(r, C), normal(r, C), normal(r, M*C)
	out, stats := zeros(M*C), zeros(M*2)
	loss := func() float64 {
		LayerNorm(out, stats, x, w, b, C, 1e-5)
		return project(out, c)
	}
	loss()
	dx, dw, db := zeros(M*C), normal(r, C), normal(r, C)
	dw0, db0 := clone(dw), clone(db)
	LayerNormBackward(dx, dw, db, c, x, w, stats, []int32{0, 3, M}, C)
	checkGradient(t, loss, limit,
		argument{"x", x, dx}, argument{"weight", w, minus(dw, dw0)}, argument{"bias", b, minus(db, db0)})
}

func TestLayerNormPanics(t *testing.T) {
	x := zeros(6)
	wantPanic(t, "ref: LayerNorm: length mismatch", func() { LayerNorm(x, x[:3], x, x[:3], x[:3], 3, 0) })
	wantPanic(t, "ref: LayerNormBackward: length mismatch", func() {
		LayerNormBackward(x, x[:3], x[:3], x, x, x[:3], x[:3], []int32{0, 2}, 3)
	})
}

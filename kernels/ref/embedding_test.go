package ref

import "testing"

func TestEmbedKnown(t *testing.T) {
	weight := []float32{1, 2, 3, 4, 5, 6} // three tokens, C = 2
	out := make([]float32, 6)
	Embed(out, weight, []int32{2, 0, 2}, 2, 1)
	wantExact(t, "out", out, []float32{5, 6, 1, 2, 5, 6})

	dweight := []float32{10, 0, 0, 0, 0, 1 << 24}
	EmbedBackward(dweight, []float32{1, 2, 3, 4, 5, 1}, []int32{2, 0, 2}, 2, 1)
	// Token 0: [10 0] + [3 4]. Token 2: [0 2²⁴] + [1 2] = [1 2²⁴+2], then + [5 1]:
	// 2²⁴+3 lies between two float32 and goes to the even one, 2²⁴+4. The other
	// order would give 2²⁴+1 → 2²⁴, then 2²⁴+2.
	wantExact(t, "dweight", dweight, []float32{13, 4, 0, 0, 6, 1<<24 + 4})

	Embed(out, weight, []int32{2, 0, 2}, 2, 0.5)
	wantExact(t, "half of it", out, []float32{2.5, 3, 0.5, 1, 2.5, 3})
	// A scaled gradient is rounded before it is added: 3·(1+2⁻²³) = 3+3·2⁻²³ goes to 3+2⁻²¹,
	// and -(3+2⁻²²) leaves 2⁻²²; fused it would be 2⁻²³.
	dweight = []float32{-(3 + 0x1p-22)}
	EmbedBackward(dweight, []float32{1 + 0x1p-23}, []int32{0}, 1, 3)
	wantExact(t, "dweight, scaled", dweight, []float32{0x1p-22})

	wantPanic(t, "ref: token id out of range", func() { Embed(out[:2], weight, []int32{3}, 2, 1) })
	wantPanic(t, "ref: token id out of range", func() { Embed(out[:2], weight, []int32{-1}, 2, 1) })
	wantPanic(t, "ref: Embed: length mismatch", func() { Embed(out, weight, []int32{1}, 2, 1) })
	wantPanic(t, "ref: EmbedBackward: length mismatch", func() { EmbedBackward(dweight, out, []int32{1}, 2, 1) })
}

func TestEmbedGradient(t *testing.T) {
	const V, C = 4, 3
	ids := []int32{1, 3, 1, 0, 1}
	r := source(2)
	w, c := normal(r, V*C), normal(r, len(ids)*C)
	out := zeros(len(ids) * C)
	for _, scale := range []float64{1, 1.7} {
		loss := func() float64 {
			Embed(out, w, ids, C, scale)
			return project(out, c)
		}
		dw := normal(r, V*C)
		dw0 := clone(dw)
		EmbedBackward(dw, c, ids, C, scale)
		checkGradient(t, loss, limit, argument{"weight", w, minus(dw, dw0)})
	}
}

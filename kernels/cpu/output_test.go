package cpu

import (
	"slices"
	"testing"

	"exp/kernels"
)

// Many rows of a large vocabulary go through the output layer in several blocks of both. With
// a cap and without, a frozen layer gives the gradients of a trained one, and Logits the
// bits of few rows at a time.
func TestFrozenOutputInParts(t *testing.T) {
	const R, V, C, part = 300, 1500, 40, 37
	frozen := func(t *testing.T, b *Backend) {
		w, h := b.packedMatrix(t, V, C), b.waves(t, b.Operand(), R*C)
		dlp, dent, targets := b.waves(t, kernels.F32, R), b.waves(t, kernels.F32, R), b.room(t, kernels.I32, R)
		for i, v := 0, kernels.Elems[int32](targets); i < R; i++ {
			v[i] = int32(i * 5 % V)
		}
		blocks := b.room(t, kernels.I32, 3)
		copy(kernels.Elems[int32](blocks), []int32{0, 256, R})
		sc := kernels.Scores{LogProb: b.room(t, kernels.F32, R), Entropy: b.room(t, kernels.F32, R), LSE: b.room(t, kernels.F32, R)}
		dh, dw, z := b.room(t, kernels.F32, R*C), b.room(t, kernels.F32, V*C), b.room(t, kernels.F32, R*V)
		for _, x := range []kernels.Softmax{{Temperature: 1}, {Temperature: 0.8, Cap: 2}} {
			b.LogProb(sc, h, w, targets, x)
			b.LogProbBackward(dh, dw, dlp, dent, sc, h, w, targets, blocks, x)
			b.Sync()
			trained := bitsOf(dh)
			b.Zero(dh)
			b.LogProbBackward(dh, kernels.Buffer{}, dlp, dent, sc, h, w, targets, blocks, x)
			b.Sync()
			if !slices.Equal(bitsOf(dh), trained) {
				t.Errorf("%+v: the gradient of a frozen layer differs", x)
			}
			b.Logits(z, h, w, x.Cap)
			b.Sync()
			all, few := bitsOf(z), b.room(t, kernels.F32, part*V)
			for r := 0; r < R; r += part {
				n := min(part, R-r)
				b.Logits(few.Slice(0, n*V), h.Slice(r*C, (r+n)*C), w, x.Cap)
				b.Sync()
				if !slices.Equal(bitsOf(few)[:n*V], all[r*V:(r+n)*V]) {
					t.Fatalf("%+v: logits of rows from %d differ", x, r)
				}
			}
		}
	}
	for l := AVX512; l >= Portable; l-- {
		if l.Supported() && triesLarge(l) {
			t.Run("f32/"+l.String(), func(t *testing.T) { frozen(t, open(t, l, 2)) })
		}
	}
	eachTileLevel(t, frozen)
}

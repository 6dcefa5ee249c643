package cpu

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"exp/kernels/ref"
)

// A row's most probable tokens are those that kernels/ref chooses, also among equal, rising, falling and infinite logits.
func TestTopOf(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	inf := float32(math.Inf(1))
	rows := map[string]func(v int) float32{
		"random":    func(int) float32 { return rng.Float32() },
		"equal":     func(int) float32 { return 1 },
		"few":       func(int) float32 { return float32(rng.IntN(3)) },
		"rising":    func(v int) float32 { return float32(v) },
		"falling":   func(v int) float32 { return -float32(v) },
		"excluded":  func(v int) float32 { return []float32{-inf, 1, 2, -inf, 0}[v%5] },
		"zeros":     func(v int) float32 { return []float32{0, float32(math.Copysign(0, -1))}[rng.IntN(2)] },
		"one large": func(v int) float32 { return float32(v % 97 / 96) },
	}
	for name, row := range rows {
		for _, V := range []int{1, 2, 7, 300} {
			for _, K := range []int{0, 1, 2, 3, 6, 7, 64, 299, 300} {
				if K > V {
					continue
				}
				z := make([]float32, V)
				for v := range z {
					z[v] = row(v)
				}
				got, want := make([]int32, K), make([]int32, K)
				topOf(got, z, 1)
				if ref.PickTop(want, z, 1, make([]int32, V)); !slices.Equal(got, want) {
					t.Errorf("%s, V=%d K=%d: tokens %v, want %v", name, V, K, got, want)
				}
			}
		}
	}
	ids := []int32{9, 9, 9}
	if topOf(ids, []float32{1, 2, 3, 4}, float32(math.NaN())); !slices.Equal(ids, []int32{0, 1, 2}) {
		t.Errorf("of a row without a sum: tokens %v, want 0 to 2", ids)
	}
}

func BenchmarkTopOf(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	z, ids := make([]float32, 150000), make([]int32, 64)
	for v := range z {
		z[v] = float32(rng.NormFloat64())
	}
	order := make([]int32, len(z))
	b.Run("impl=ref", func(b *testing.B) {
		for b.Loop() {
			ref.PickTop(ids, z, 1, order)
		}
	})
	b.Run("impl=cpu", func(b *testing.B) {
		for b.Loop() {
			topOf(ids, z, 1)
		}
	})
}

package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"exp/kernels"
	"exp/kernels/ref"
)

// exponentialsOf returns exp(z-max z) and their sum.
func exponentialsOf(z []float32) (e []float32, s float32) {
	most := slices.Max(z)
	for _, x := range z {
		e = append(e, ref.Exp(x-most))
		s += e[len(e)-1]
	}
	return e, s
}

// A picker draws what kernels/ref draws, from peaked and flat rows, with ties, excluded tokens and any filters.
func TestPicker(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	inf := float32(math.Inf(1))
	rows := map[string]func(v int) float32{
		"peaked":   func(int) float32 { return float32(4 * rng.NormFloat64()) },
		"flat":     func(int) float32 { return rng.Float32() },
		"equal":    func(int) float32 { return 1 },
		"ties":     func(int) float32 { return float32(rng.IntN(30)) },
		"excluded": func(v int) float32 { return []float32{-inf, 9, 2, -inf, 0}[v%5] },
		"one":      func(v int) float32 { return []float32{-inf, 0}[min(1, v/1000)] },
		"zeros":    func(int) float32 { return []float32{0, float32(math.Copysign(0, -1)), -1}[rng.IntN(3)] },
		"below":    func(int) float32 { return -rng.Float32() },
		"signs":    func(int) float32 { return float32(rng.IntN(9)-6) / 2 },
		"last":     func(v int) float32 { return float32(v) / 50 },
	}
	k := &picker{}
	ways := map[string]int{}
	for name, row := range rows {
		for _, V := range []int{5, 1200, 2999} {
			z := make([]float32, V)
			for v := range z {
				z[v] = row(v)
			}
			if name == "one" && V <= 1000 {
				continue
			}
			e, s := exponentialsOf(z)
			for _, p := range []kernels.Sampling{{TopP: 1}, {TopK: 1, TopP: 1}, {TopK: 20, TopP: 0.95}, {TopK: 64, TopP: 1},
				{TopK: 65, TopP: 1, MinP: 0.1}, {TopK: 150, TopP: 0.9999}, {TopP: 0.5, MinP: 0.05}, {TopK: 70, TopP: 1, MinP: float64(ref.Exp(float32(-1)))}, {TopP: 0.99}, {TopP: 1, MinP: 0.2},
				{TopP: 1e-9}, {TopK: 2000, TopP: 0.8}} {
				p.Temperature = 1
				for _, u := range []float32{0, 0.1, 0.5, 0.93, math.Nextafter32(1, 0)} {
					mine := slices.Clone(e)
					got, want := k.pick(z, mine, s, u, p), ref.Pick(z, slices.Clone(e), s, u, p, make([]int32, V))
					if got != want {
						t.Errorf("%s, V=%d, %+v, u=%v: token %d, want %d", name, V, p, u, got, want)
					}
				}
				ways[fmt.Sprint(k.prefix(z, e, s, p) != nil)]++
			}
		}
	}
	if ways["true"] < 50 || ways["false"] < 50 {
		t.Errorf("ways %v, want many of both", ways)
	}
	z := make([]float32, 2000)
	z[1500] = 1
	e, s := exponentialsOf(z)
	if got := k.pick(z, e, float32(math.NaN()), 0.5, kernels.Sampling{Temperature: 1, TopK: 2, TopP: 1}); got != 0 {
		t.Errorf("without a sum: token %d", got)
	}
	if got := k.pick(z, e, s, 0.1, kernels.Sampling{TopK: 3, TopP: 1}); got != 1500 {
		t.Errorf("greedy: token %d", got)
	}
	clear(e)
	if got := k.draw(e, 0.5, []int32{500, 1700}); got != 0 {
		t.Errorf("without weights: token %d", got)
	}
}

func BenchmarkPick(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	z := make([]float32, 151936)
	for _, sd := range []float64{1, 4, 8} { // of logits: top_p 0.95 keeps most of the tokens, thousands, a few
		for v := range z {
			z[v] = float32(sd * rng.NormFloat64())
		}
		e, s := exponentialsOf(z)
		for name, p := range map[string]kernels.Sampling{"top_p=0.95": {TopP: 0.95}, "top_k=20": {TopK: 20, TopP: 0.95}} {
			p.Temperature = 1
			order, mine := make([]int32, len(z)), make([]float32, len(z))
			b.Run(fmt.Sprintf("sd=%v/%s/impl=ref", sd, name), func(b *testing.B) {
				for b.Loop() {
					copy(mine, e)
					ref.Pick(z, mine, s, 0.5, p, order)
				}
			})
			b.Run(fmt.Sprintf("sd=%v/%s/impl=cpu", sd, name), func(b *testing.B) {
				k := &picker{}
				for b.Loop() {
					copy(mine, e)
					k.pick(z, mine, s, 0.5, p)
				}
			})
		}
	}
}

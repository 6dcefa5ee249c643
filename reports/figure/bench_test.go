package figure

import (
	"math/rand/v2"
	"testing"
)

// BenchmarkDraw draws each sample. The goal is 100 ms a figure.
func BenchmarkDraw(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	long := Curve{
		Head: head("long", "Two arms of three seeds and 10,000 steps"), X: stepAxis, Y: accuracyAxis, Band: TInterval, Smooth: 9,
		Arms: []Arm{arm(rng, "FlowRL", 3, 10_000, .2, .5, .1), arm(rng, "PPO", 3, 10_000, .2, .4, .1)},
	}
	for _, s := range append(samples(), sample{long, long.Name}) {
		b.Run("figure="+s.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := s.Draw(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

package rl

import (
	"encoding/binary"
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestBits pins the bits of every loss, gradient, statistic and advantage on one
// random mini-batch. They are the same with every compiler target (try
// GOAMD64=v3, which fuses); where a formula changes on purpose, so do the
// results of every run, and this number.
func TestBits(t *testing.T) {
	const seed, want = 6, 0xb9fddad46338f734
	h := fnv.New64a()
	write := func(xs ...float64) {
		for _, x := range xs {
			binary.Write(h, binary.LittleEndian, math.Float64bits(x))
		}
	}
	r := rand.New(rand.NewPCG(seed, 0))
	s := newSample[float64](r, 40)
	n := Count(s.Mask, s.Rows)
	n.Scale = 16
	all := objectives[float64]()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for mode := TokenMean; mode <= SeqMeanTokenMean; mode++ {
			o := evaluate(all[name], []*sample[float64]{s}, mode, n)
			write(o.tokens...)
			write(o.rows...)
			for _, m := range o.metrics {
				write(m.Value)
			}
		}
	}
	adv, ret := make([]float64, len(s.Mask)), make([]float64, len(s.Mask))
	GAE(adv, ret, s.Ret, s.Value, s.Mask, s.Rows, 0.99, 0.95)
	if err := Whiten(adv, s.Mask, false); err != nil {
		t.Fatal(err)
	}
	write(adv...)
	write(ret...)
	group := make([]int, len(s.LogZ))
	for i := range group {
		group[i] = i % 7
	}
	GroupAdvantage(s.LogZ, s.LogZ, group, true)
	write(s.LogZ...)
	write(RewardKL(adv, ret, s.OldLogProb, s.RefLogProb, s.Mask, s.Rows, KL{Kind: KLK3}, 0.3))
	write(adv...)
	write(ExplainedVariance(s.Value, s.Ret, s.Mask), KLControl{true, 0.1, 1000}.Next(0.3, 0.11, 7))
	if got := h.Sum64(); got != want {
		t.Errorf("seed %d: bits %#x, want %#x", seed, got, uint64(want))
	}
}

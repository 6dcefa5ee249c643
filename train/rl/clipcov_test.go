package rl

import (
	"math"
	"slices"
	"testing"
)

// covExample is a row of five tokens, the second masked out: mean advantage 1,
// mean log-prob -2, covariances 3, (masked), -2, 2 and 1.
func covExample() *Batch[float64] {
	lp := []float64{-1, nan, -4, -1, -2 + 0}
	return &Batch[float64]{Rows: Rows{0, 5}, Mask: []bool{on, off, on, on, on}, Coef: []float64{1, 0, 1, 1, 1},
		LogProb: lp, OldLogProb: slices.Clone(lp), Adv: []float64{4, nan, 2, 3, -5}}
}

func TestClipCovTokens(t *testing.T) {
	key := []uint64{9, 0, 1, 7, 5}
	c := ClipCovConfig{Ratio: 0.5, Low: 0.5, High: 5} // 2 of 4
	tests := []struct {
		name   string
		change func(b *Batch[float64], c *ClipCovConfig)
		want   []int
	}{
		{"the candidates", func(*Batch[float64], *ClipCovConfig) {}, []int{0, 3}},
		{"at least one, by key", func(_ *Batch[float64], c *ClipCovConfig) { c.Ratio = 0 }, []int{3}},
		{"bounds are exclusive", func(_ *Batch[float64], c *ClipCovConfig) { c.Low = 2 }, []int{0}},
		{"none", func(_ *Batch[float64], c *ClipCovConfig) { c.Low = 4 }, nil},
		{"not the tokens that the ratio clips", func(b *Batch[float64], _ *ClipCovConfig) { b.OldLogProb[0] = -1 - math.Ln2 }, []int{3}},
		{"but those whose clip does not act", func(b *Batch[float64], c *ClipCovConfig) { b.OldLogProb[0], c.Low = -1+math.Ln2, 2.5 }, []int{0}},
		{"empty mask", func(b *Batch[float64], _ *ClipCovConfig) { b.Mask = make([]bool, 5) }, nil},
	}
	for _, tt := range tests {
		b, c := covExample(), c
		tt.change(b, &c)
		picked := []bool{on, on, on, on, on}
		ClipCovTokens(picked, b, 0.2, 0.2, c, key)
		if got := trueAt(picked); !slices.Equal(got, tt.want) {
			t.Errorf("%s: picked %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestClipCov(t *testing.T) {
	tests := []tokenCase{
		{"inside", 1.1, 2, -2.2, -2.2, 0, 0},
		{"too high, good", 1.5, 2, -2.4, 0, 0, 0},
		{"no dual clip", 25, -2, 50, 50, 0, 0},
		{"no bound at e^20", math.Exp(25), -2, 2 * math.Exp(25), 2 * math.Exp(25), 0, 0},
		{"but at e^80", math.Exp(81), -2, 2 * math.Exp(80), 0, 0, 0},
	}
	picked := []bool{off}
	run := func(d []float64, b *Batch[float64], s *PolicyStats) { ClipCov(d, b, picked, 0.2, 0.2, s) }
	checkTokens(t, tests, run)
	picked[0] = on
	for i := range tests {
		tests[i].loss, tests[i].grad, tests[i].clipped = 0, 0, 1
	}
	checkTokens(t, tests, run)
}

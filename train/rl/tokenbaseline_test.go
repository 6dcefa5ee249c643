package rl

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Two rows of one group, tokens of probability ½ with Σπ² = ½: w = 1-1+½ = ½, and W
// grows by ½ a token. A third row is alone.
func TestOptimalTokenBaseline(t *testing.T) {
	half := math.Log(0.5)
	b := &Batch[float64]{
		Rows:       Rows{0, 4, 5, 6},
		Mask:       []bool{on, off, on, on, on, on},
		OldLogProb: []float64{half, nan, half, half, half, half},
	}
	sumPiSquared := []float64{0.5, nan, 0.5, 0.5, 0.5, 0.5}
	reward := []float64{1, nan, 0, 2, 5, 7} // returns 3, -, 2, 2; 5; 7
	group := []int{3, 3, 8}
	tests := []struct {
		name   string
		c      TokenBaseline
		weight []float64
		want   []float64
	}{
		// Position 0: (½·3 + ½·5)/1 = 4. The rest is the longest row's alone, and has
		// no baseline.
		{"zero tail", TokenBaseline{}, nil, []float64{-1, 0, 2, 2, 1, 7}},
		{"with tail", TokenBaseline{KeepTail: true}, nil, []float64{-1, 0, 0, 0, 1, 7}},
		// Weight 3 makes w of the second row 9 times as much: (½·3 + 4½·5)/5 = 4.8
		{"weighted", TokenBaseline{}, []float64{1, nan, 1, 1, 3, 1}, []float64{-1.8, 0, 2, 2, 0.2, 7}},
		{"columns", TokenBaseline{Columns: true}, nil, []float64{-1, 0, 2, 2, 1, 7}},
	}
	for _, tt := range tests {
		b.Weight = tt.weight
		adv, ret := make([]float64, 6), make([]float64, 6)
		OptimalTokenBaseline(adv, ret, b, reward, sumPiSquared, group, tt.c)
		for i, want := range tt.want {
			if !near(adv[i], want, 1e-6) {
				t.Errorf("%s: A[%d] = %g, want %g", tt.name, i, adv[i], want)
			}
		}
		for i, want := range []float64{3, 2, 2, 2, 5, 7} {
			if ret[i] != want {
				t.Errorf("%s: return %d = %g, want %g", tt.name, i, ret[i], want)
			}
		}
	}
}

// After a tool turn, columns compare the row's second token with nothing: it is its
// own baseline, and learns nothing. Positions compare it with the other row's second.
func TestTokenBaselineColumns(t *testing.T) {
	half := math.Log(0.5)
	b := &Batch[float64]{
		Rows: Rows{0, 3, 5}, Mask: []bool{on, off, on, on, on},
		OldLogProb: []float64{half, nan, half, half, half},
	}
	sum := []float64{0.5, nan, 0.5, 0.5, 0.5}
	adv, ret := make([]float64, 5), make([]float64, 5)
	for _, columns := range []bool{false, true} {
		OptimalTokenBaseline(adv, ret, b, []float64{0, nan, 4, 0, 2}, sum, []int{0, 0}, TokenBaseline{Columns: columns})
		want := []float64{1, 0, 1, -1, -1} // over 3
		if columns {
			want = []float64{1, 0, 0, -1, 0}
		}
		for i := range want {
			if !near(adv[i], want[i], 1e-6) {
				t.Errorf("columns %t: A[%d] = %g, want %g", columns, i, adv[i], want[i])
			}
		}
	}
}

// The baseline minimises the variance: Σ W·A² over the rows of a group at a
// position is stationary, Σ W·A = 0. A row that is alone in its group because the others
// have no tokens keeps its return.
func TestTokenBaselineIsOptimal(t *testing.T) {
	const seed = 17
	r := rand.New(rand.NewPCG(seed, 0))
	for range 20 {
		s := newSample[float64](r, len(threeGroups))
		b := &Batch[float64]{Rows: s.Rows, Mask: s.Mask, OldLogProb: s.LogProb, Weight: s.Weight}
		sumPiSquared := squaredProbs(s)
		adv, ret := make([]float64, len(s.Mask)), make([]float64, len(s.Mask))
		OptimalTokenBaseline(adv, ret, b, s.Ret, sumPiSquared, threeGroups, TokenBaseline{KeepTail: true})
		slope := make(map[[2]int]float64) // by group and position
		rows := make(map[int]int)         // of a group, with tokens
		for i, g := range threeGroups {
			path := 0.0
			if countTrue(s.Mask[s.Rows[i]:s.Rows[i+1]]) > 0 {
				rows[g]++
			}
			for k, tok := range unmasked(s.Mask, s.Rows[i], s.Rows[i+1]) {
				p := math.Exp(s.LogProb[tok])
				path += (1 - 2*p + sumPiSquared[tok]) * s.Weight[tok] * s.Weight[tok]
				slope[[2]int{g, k}] += path * adv[tok]
			}
		}
		for at, d := range slope {
			if rows[at[0]] > 1 && math.Abs(d) > 1e-7 {
				t.Errorf("seed %d: group %d, position %d: slope %g", seed, at[0], at[1], d)
			}
		}
	}
}

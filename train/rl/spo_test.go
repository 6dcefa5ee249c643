package rl

import (
	"math"
	"slices"
	"testing"
)

func recipeSPO() SPOConfig {
	return SPOConfig{First: 8, RhoMin: 0.875, RhoMax: 0.96, HalfLife: 0.06, Explore: 0.05}
}

// The tracker of one problem, by hand; the recipe's own code gives the same numbers.
func TestSPOTracker(t *testing.T) {
	c := recipeSPO()
	b := c.Start(6, 8) // 1/(1 - 0.875) = 8 completions, 6.5/9 of them right
	if want := (BetaValue{8 * 6.5 / 9, 8 * 2.5 / 9}); !near(b.Alpha, want.Alpha, 1e-15) || !near(b.Beta, want.Beta, 1e-15) {
		t.Errorf("start %v, want %v", b, want)
	}
	if b := c.Start(0, 0); b != (BetaValue{0.5, 0.5}) || b.Value() != 0.5 {
		t.Errorf("start without completions: %v", b)
	}
	for _, tt := range []struct{ distance, want float64 }{
		{0, 0.96},                  // 1 above the bound
		{0.006, math.Exp2(-0.1)},   // 0.933
		{0.06, 0.875}, {50, 0.875}, // 1/2 and 0 below the bound
	} {
		if got := c.Rho(tt.distance); !near(got, tt.want, 1e-15) {
			t.Errorf("rho of %v is %v, want %v", tt.distance, got, tt.want)
		}
	}
	b = BetaValue{6, 2}.Update(0.9, 0.75) // 5.4 + 0.75, 1.8 + 0.25
	if !near(b.Alpha, 6.15, 1e-15) || !near(b.Beta, 2.05, 1e-15) || !near(b.Value(), 0.75, 1e-15) {
		t.Errorf("update gives %v", b)
	}
	if got := c.Weight(0.2); !near(got, 0.45, 1e-15) { // sqrt(0.16) + 0.05
		t.Errorf("weight %v", got)
	}
	if c.Weight(1+1e-16) != 0.05 {
		t.Error("a value of 1 has more than the least weight")
	}
	now, then := []float64{-1, math.NaN(), -3}, []float64{-1.5, math.NaN(), -2}
	if got := Distance(now, then, []bool{true, false, true}); got != 0.75 {
		t.Errorf("distance %v, want 0.75", got)
	}
	if got := Distance(now[1:2], then[1:2], []bool{false}); got != 0 {
		t.Errorf("distance of nothing %v", got)
	}
}

// Bounds that leave nothing to the distance are a constant rho.
func TestSPOConstant(t *testing.T) {
	c := recipeSPO()
	c.RhoMax = c.RhoMin
	if !c.Constant() || c.Rho(0) != 0.875 || c.Rho(9) != 0.875 || recipeSPO().Constant() {
		t.Error("rho_min = rho_max is not constant")
	}
}

func TestDrawWithout(t *testing.T) {
	index := make([]int, 4)
	// of 1 2 3 4: 0.35·10 is in the third; of 1 2 4: 0·7; of 2 4: 0.99·6; the last is all there is
	DrawWithout(index, []float64{1, 2, 3, 4}, []float64{0.35, 0, 0.99, 0.5})
	if want := []int{2, 0, 3, 1}; !slices.Equal(index, want) {
		t.Errorf("drew %v, want %v", index, want)
	}
	// Shares of first and second draws of three problems: the second is i after j with w_j·w_i/(1 - w_j).
	weight := []float64{0.5, 0.3, 0.2}
	var first, second [3]float64
	const n = 400
	for i := range n {
		for j := range n {
			DrawWithout(index[:2], weight, []float64{(float64(i) + 0.5) / n, (float64(j) + 0.5) / n})
			first[index[0]] += 1. / (n * n)
			second[index[1]] += 1. / (n * n)
		}
	}
	for i, w := range weight {
		want := 0.0
		for j, o := range weight {
			if j != i {
				want += o * w / (1 - o)
			}
		}
		if !near(first[i], w, 1e-2) || !near(second[i], want, 1e-2) {
			t.Errorf("problem %d is first in %v, second in %v, want %v and %v", i, first[i], second[i], w, want)
		}
	}
}

func TestTrackedAdvantage(t *testing.T) {
	// differences ½, -½, ¾: mean ¼, sum of squares 1/16 + 9/16 + 4/16, std √(7/16)
	std := math.Sqrt(7./16) + 1e-8
	score, want := []float64{1, 0, 1}, []float64{0.25 / std, -0.75 / std, 0.5 / std}
	TrackedAdvantage(score, score, []float64{0.5, 0.5, 0.25})
	for i := range score {
		if !near(score[i], want[i], 1e-15) {
			t.Errorf("advantages %v, want %v", score, want)
		}
	}
	one := []float64{1}
	TrackedAdvantage(one, one, []float64{0.5})
	equal := []float64{1, 1}
	TrackedAdvantage(equal, equal, []float64{0.5, 0.5})
	if one[0] != 0 || equal[0] != 0 || equal[1] != 0 {
		t.Errorf("one row %v, equal rows %v, want 0", one, equal)
	}
	TrackedAdvantage[float64](nil, nil, nil)
}

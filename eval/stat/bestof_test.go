package stat

import (
	"math"
	"slices"
	"testing"
)

func TestMomentsOf(t *testing.T) {
	if got, want := MomentsOf([]float64{1, 3, 5, 7}), (Moments{4, math.Sqrt(5)}); got != want { // 9+1+1+9 over 4
		t.Errorf("got %v, want %v", got, want)
	}
}

// The bootstrap is close to what it samples: with c of n samples correct, a draw of size k contains a
// correct one with probability 1 - (1-c/n)^k, which is below pass@k.
func TestBootstrapSubsets(t *testing.T) {
	values := []float64{0, 1, 0, 0, 1, 0, 0, 0}
	best := func(index []int) float64 { return slices.Max(pick(values, index)) }
	for _, k := range []int{1, 2, 4, 8} {
		p := 1 - math.Pow(0.75, float64(k))
		got := BootstrapSubsets(len(values), k, SubsetDraws{Draws: 4000, Seed: 1}, best)
		if spread := math.Sqrt(p * (1 - p)); !near(got.Mean, p, 4*spread/math.Sqrt(4000)) || !near(got.Std, spread, 0.03) {
			t.Errorf("best of %d: %v, want %g ± %g", k, got, p, spread)
		}
		if again := BootstrapSubsets(len(values), k, SubsetDraws{Draws: 4000, Seed: 1}, best); again != got {
			t.Errorf("best of %d: %v the first time, then %v", k, got, again)
		}
		if unbiased, err := PassAtK(8, 2, k); err != nil || k > 1 && got.Mean >= unbiased {
			t.Errorf("best of %d: %g, not below pass@k = %g, %v", k, got.Mean, unbiased, err)
		}
	}
}

func TestMajority(t *testing.T) {
	answers, values := []string{"a", "b", "c", "b", "c"}, []float64{1, 2, 3, 4, 5}
	tests := []struct {
		index []int
		want  float64
	}{
		{[]int{0, 1, 2, 3}, 2},    // two b, the first of them
		{[]int{3, 0, 1}, 4},       // in the order drawn
		{[]int{0, 1, 2, 3, 4}, 2}, // b and c twice; b came first
		{[]int{4, 3, 1, 2}, 5},    // c and b twice; c came first
		{[]int{0, 0, 1}, 1},       // drawn twice is two votes
		{[]int{2}, 3},
	}
	for _, tt := range tests {
		if got := Majority(answers, values, tt.index); got != tt.want {
			t.Errorf("majority of %v = %g, want %g", tt.index, got, tt.want)
		}
	}
}

// Two problems with two samples and one with one, in one source; a second source.
func TestValidationMetrics(t *testing.T) {
	v := Validation{
		Source:    []string{"x", "x", "y", "x", "x", "x"},
		Problem:   []string{"p", "q", "p", "p", "q", "r"},
		Variables: []Variable{{"reward", []float64{1, 0, 5, 1, 0, 1}}, {"acc", []float64{1, 0, 1, 0, 1, 1}}},
		Turns:     []int{1, 3, 5, 1, 1, 1},
	}
	got := make(map[string]float64)
	for _, m := range v.Metrics(SubsetDraws{Draws: 10, Seed: 42}) {
		got[m.Name] = m.Value
	}
	for name, want := range map[string]float64{
		"val-aux/x/reward/mean@2":       0.5, // 1 of p, 0 of q
		"val-aux/x/reward/std@2":        0,
		"val-aux/x/reward/best@2/mean":  0.5,
		"val-aux/x/reward/best@2/std":   0,
		"val-aux/x/reward/worst@2/mean": 0.5,
		"val-aux/x/reward/mean@1":       1, // r
		"val-core/x/acc/mean@2":         0.5,
		"val-aux/x/acc/std@2":           0.5,
		"val-aux/x/acc/mean@1":          1, // the core is of the greatest n
		"val-core/y/acc/mean@1":         1, // problem p of another source
		"val-aux/y/reward/mean@1":       5,
		"val-aux/num_turns/min":         1,
		"val-aux/num_turns/max":         5,
		"val-aux/num_turns/mean":        2,
	} {
		if g, ok := got[name]; !ok || g != want {
			t.Errorf("%s = %g, %t, want %g", name, g, ok, want)
		}
	}
	for _, name := range []string{"val-core/x/acc/best@2/mean", "val-core/x/acc/best@2/std", "val-aux/x/acc/worst@2/mean"} {
		if _, ok := got[name]; !ok {
			t.Errorf("no %s", name)
		}
	}
	for _, name := range []string{"val-core/x/acc/maj@2/mean", "val-aux/x/acc/maj@2/mean", "val-aux/y/acc/std@1"} {
		if _, ok := got[name]; ok {
			t.Errorf("%s without what it is of", name)
		}
	}
}

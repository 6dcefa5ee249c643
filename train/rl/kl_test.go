package rl

import (
	"math"
	"slices"
	"testing"
)

func TestKL(t *testing.T) {
	e := math.E
	tests := []struct {
		name        string
		d           float64 // logProb - refLogProb
		value, grad float64
	}{
		{"k1", 2, 2, 1},
		{"kl", -2, -2, 1},
		{"k2", -3, 4.5, -3},
		{"mse", 3, 4.5, 3},
		{"k3", 1, 1 / e, 1 - 1/e},        // e⁻¹+1-1
		{"low_var_kl", -1, e - 2, 1 - e}, // e-1-1
		{"k3", 0, 0, 0},                  //
		{"k3", -3, 10, 0},                // e³-3-1 = 16 is bounded
		{"k3", 12, 10, 0},                // e⁻¹²+12-1 = 11
		{"k3", 25, 10, 0},                //
		{"abs", -2, 2, -1},
		{"abs", 0, 0, 0},
		{"k1+", -3, -3, -3}, // the gradient of k2
		{"k2+", -3, 4.5, -3},
		{"low_var_kl+", -3, 10, -3}, // the bounds are on the value only
		{"abs+", -3, 3, -3},
	}
	for _, tt := range tests {
		kl, err := ParseKL(tt.name)
		if err != nil {
			t.Fatal(err)
		}
		value, grad := kl.At(tt.d-5, -5)
		if !near(value, tt.value, 1e-15) || !near(grad, tt.grad, 1e-15) {
			t.Errorf("%s of %g: %g, gradient %g, want %g, %g", tt.name, tt.d, value, grad, tt.value, tt.grad)
		}
		if v, g := kl.At(nan, -5); v == v || g == g && kl.StraightThrough {
			t.Errorf("%s of NaN: %g, gradient %g", tt.name, v, g)
		}
	}
	for _, name := range []string{"", "full", "k4", "+", "k3++"} {
		if _, err := ParseKL(name); err == nil {
			t.Errorf("ParseKL accepts %q", name)
		}
	}
	if !panics(func() { KL{}.At(0, 0) }) {
		t.Error("the zero KL does not panic")
	}
}

func TestKLLoss(t *testing.T) {
	b := &Batch[float64]{Mask: []bool{on, off, on}, Coef: []float64{0.5, 0, 0.25},
		LogProb: []float64{-1, nan, -2}, RefLogProb: []float64{-3, nan, -1}}
	sum := 100.0
	d := []float64{1, 1, 1}
	KLLoss(d, b, KL{Kind: KLK2}, 0.1, &sum)
	// ½·2²·0.5 + ½·1²·0.25 = 1.125; gradients 0.1·0.5·2 and 0.1·0.25·(-1)
	if want := []float64{1.1, 1, 0.975}; sum != 101.125 || !slices.Equal(d, want) {
		t.Errorf("sum %g, gradient %v, want 101.125, %v", sum, d, want)
	}
}

// Weighted by π/π_old, k1 and k3 have one gradient in expectation over π_old's tokens: that of KL(π‖π_ref), found
// here by finite differences of a distribution over three tokens.
func TestWeightedKLLoss(t *testing.T) {
	b := &Batch[float64]{Mask: []bool{on, off, on, on}, Coef: []float64{0.5, 0, 0.25, 0.25},
		LogProb: []float64{-1, nan, -2, -1}, OldLogProb: []float64{-1 - math.Ln2, nan, -2, -31}, RefLogProb: []float64{-3, nan, -1, -2}}
	sum := 100.0
	d := []float64{1, 1, 1, 0}
	KLLoss(d, b, KL{Kind: KLK2, Weighted: true}, 0.1, &sum)
	// ratios 2, 1 and the bound e^20: 2·½·2²·0.5 + ½·1²·0.25 + e^20·½·1²·0.25; gradients 0.1·0.5·2·(2 + 2),
	// 0.1·0.25·(-1 + ½) and, where the ratio is bounded, 0.1·0.25·e^20·1
	e20 := math.Exp(20)
	if want := 100 + 2 + 0.125 + e20/8; !near(sum, want, 1e-12) {
		t.Errorf("sum %g, want %g", sum, want)
	}
	for i, want := range []float64{1.4, 1, 0.9875, e20 / 40} {
		if !near(d[i], want, 1e-12) {
			t.Errorf("gradient %d is %g, want %g", i, d[i], want)
		}
	}

	logits, old, ref := []float64{0.3, -0.4, 1}, []float64{-1.5, -0.9, -math.Log(1 / (1 - math.Exp(-1.5) - math.Exp(-0.9)))},
		[]float64{-0.7, -1.4, math.Log(1 - math.Exp(-0.7) - math.Exp(-1.4))}
	logProbs := func(z []float64) (lp []float64) {
		var total float64
		for _, x := range z {
			total += math.Exp(x)
		}
		for _, x := range z {
			lp = append(lp, x-math.Log(total))
		}
		return lp
	}
	kl := func(z []float64) (sum float64) {
		for v, lp := range logProbs(z) {
			sum += math.Exp(lp) * (lp - ref[v])
		}
		return sum
	}
	lp := logProbs(logits)
	for _, kind := range []KLKind{KLK1, KLK3} {
		got := make([]float64, 3) // of the logits
		for v := range lp {
			one := []float64{0}
			var value float64
			KLLoss(one, &Batch[float64]{Mask: []bool{on}, Coef: []float64{1}, LogProb: lp[v : v+1], OldLogProb: old[v : v+1],
				RefLogProb: ref[v : v+1]}, KL{Kind: kind, Weighted: true}, 1, &value)
			for k := range got {
				same := 0.0
				if k == v {
					same = 1
				}
				got[k] += math.Exp(old[v]) * one[0] * (same - math.Exp(lp[k]))
			}
		}
		for k := range logits {
			const h = 1e-5
			up, down := slices.Clone(logits), slices.Clone(logits)
			up[k] += h
			down[k] -= h
			if want := (kl(up) - kl(down)) / (2 * h); !near(got[k], want, 1e-8) {
				t.Errorf("kind %d, logit %d: gradient %g, want %g", kind, k, got[k], want)
			}
		}
	}
}

func TestRewardKL(t *testing.T) {
	rows := Rows{0, 3, 3, 4}
	score := []float64{0, 5, 1, -1}
	// k1: row 0 has 2 and (masked) nothing and -1, mean ½; row 1 counts as 0; row 2 has 4.
	old := []float64{-1, nan, -3, -1}
	ref := []float64{-3, nan, -2, -5}
	mask := []bool{on, off, on, on}
	got := RewardKL(score, score, old, ref, mask, rows, KL{Kind: KLK1}, 0.5)
	if want := (0.5 + 0 + 4) / 3; !near(got, want, 2e-8) {
		t.Errorf("mean KL %g, want %g", got, want)
	}
	// r = score - ½·kl
	if want := []float64{-1, 5, 1.5, -3}; !slices.Equal(score, want) {
		t.Errorf("rewards %v, want %v", score, want)
	}
}

func TestKLControl(t *testing.T) {
	c := KLControl{Adaptive: true, Target: 0.1, Horizon: 1000}
	tests := []struct {
		name    string
		c       KLControl
		current float64
		want    float64
	}{
		{"fixed", KLControl{}, 7, 0.01},
		{"on target", c, 0.1, 0.01},
		{"a little over", c, 0.11, 0.01 * (1 + 0.1*50/1000)},
		{"far over", c, 7, 0.01 * (1 + 0.2*50/1000)},
		{"far under", c, -1, 0.01 * (1 - 0.2*50/1000)},
	}
	for _, tt := range tests {
		if got := tt.c.Next(0.01, tt.current, 50); !near(got, tt.want, 1e-16) {
			t.Errorf("%s: %g, want %g", tt.name, got, tt.want)
		}
	}
}

func TestEntropyBonus(t *testing.T) {
	sum := 0.0
	d := []float64{1, 1, 1}
	EntropyBonus(d, []float64{2, nan, 3}, []bool{on, off, on}, []float64{0.5, 0, 0.25}, 0.1, &sum)
	// Σ coef·H = 1 + 0.75; gradients -0.1·coef, added to the ones
	if want := []float64{0.95, 1, 0.975}; sum != 1.75 || !slices.Equal(d, want) {
		t.Errorf("sum %g, gradient %v, want 1.75, %v", sum, d, want)
	}
}

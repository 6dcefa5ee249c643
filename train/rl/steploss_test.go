package rl

import (
	"math"
	"testing"
)

// The loss is the cross entropy of two logits whose difference is the score, and the slope its derivative.
func TestStepLoss(t *testing.T) {
	for _, score := range []float64{-40, -3, -0.5, 0, 0.25, 2, 40} {
		for _, right := range []bool{false, true} {
			z := [2]float64{0.3, 0.3 + score} // of wrong, of right
			label := 0
			if right {
				label = 1
			}
			top := max(z[0], z[1])
			want := top + math.Log(math.Exp(z[0]-top)+math.Exp(z[1]-top)) - z[label]
			loss, slope := StepLoss(score, right)
			if math.Abs(loss-want) > 1e-12*(1+want) {
				t.Errorf("score %g, right %t: loss %g, want %g", score, right, loss, want)
			}
			const h = 1e-6
			up, _ := StepLoss(score+h, right)
			down, _ := StepLoss(score-h, right)
			if d := (up - down) / (2 * h); math.Abs(d-slope) > 1e-8 {
				t.Errorf("score %g, right %t: slope %g, want %g", score, right, slope, d)
			}
		}
	}
	if loss, slope := StepLoss(0, true); loss != math.Log(2) || slope != -0.5 {
		t.Errorf("of an undecided score: %g, %g", loss, slope)
	}
}

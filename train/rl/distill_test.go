package rl

import (
	"math"
	"testing"
)

func TestTeach(t *testing.T) {
	old := []float32{-1, -2, -0.5, -8}
	ref := []float32{-0.5, -2, -4, -1}
	for _, tt := range []struct {
		d    Distillation
		want []float32
	}{
		{Distillation{1, math.Inf(1)}, []float32{1.5, 0, -3.5, 2}},
		{Distillation{0.5, math.Inf(1)}, []float32{1.25, 0, -1.75, 2}},
		{Distillation{2, 1}, []float32{2, 0, -2, 2}},
	} {
		adv := []float32{1, 0, 0, 2}
		tt.d.Teach(adv, old, ref, []bool{true, true, true, false})
		for i, want := range tt.want {
			if adv[i] != want {
				t.Errorf("%+v: advantage %d is %g, want %g", tt.d, i, adv[i], want)
			}
		}
	}
}

// NaN stays NaN: the step's check of its metrics must see it.
func TestTeachKeepsNaN(t *testing.T) {
	adv := []float32{0}
	Distillation{1, 10}.Teach(adv, []float32{float32(math.NaN())}, []float32{-1}, []bool{true})
	if adv[0] == adv[0] {
		t.Errorf("the advantage is %g", adv[0])
	}
}

// The expected policy gradient with the teacher's advantages is the gradient of the reverse KL, over all
// next tokens of a softmax.
func TestTeachIsReverseKL(t *testing.T) {
	logits, teacher := []float64{0.3, -1.2, 0.8, 0.1}, []float64{1.1, 0.2, -0.4, 0}
	logSoftmax := func(x []float64) []float64 {
		var sum float64
		for _, v := range x {
			sum += math.Exp(v)
		}
		out := make([]float64, len(x))
		for i, v := range x {
			out[i] = v - math.Log(sum)
		}
		return out
	}
	q := logSoftmax(teacher)
	kl := func(x []float64) (sum float64) {
		for i, lp := range logSoftmax(x) {
			sum += math.Exp(lp) * (lp - q[i])
		}
		return sum
	}
	p := logSoftmax(logits)
	adv, old, ref, mask := make([]float32, 4), make([]float32, 4), make([]float32, 4), make([]bool, 4)
	for i := range p {
		old[i], ref[i], mask[i] = float32(p[i]), float32(q[i]), true
	}
	Distillation{1, math.Inf(1)}.Teach(adv, old, ref, mask)
	for j := range logits {
		var descent float64 // -Σ_v π(v)·A(v)·dlog π(v)/dlogit_j
		for v := range p {
			grad := -math.Exp(p[j])
			if v == j {
				grad++
			}
			descent -= math.Exp(p[v]) * float64(adv[v]) * grad
		}
		const h = 1e-5
		up, down := append([]float64{}, logits...), append([]float64{}, logits...)
		up[j] += h
		down[j] -= h
		if want := (kl(up) - kl(down)) / (2 * h); math.Abs(descent-want) > 1e-6 {
			t.Errorf("gradient of logit %d: %g, want %g", j, descent, want)
		}
	}
}

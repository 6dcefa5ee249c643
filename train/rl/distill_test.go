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
		{Distillation{Coef: 1, Max: math.Inf(1)}, []float32{1.5, 0, -3.5, 2}},
		{Distillation{Coef: 0.5, Max: math.Inf(1)}, []float32{1.25, 0, -1.75, 2}},
		{Distillation{Coef: 2, Max: 1}, []float32{2, 0, -2, 2}},
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
	Distillation{Coef: 1, Max: 10}.Teach(adv, []float32{float32(math.NaN())}, []float32{-1}, []bool{true})
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
	Distillation{Coef: 1, Max: math.Inf(1)}.Teach(adv, old, ref, mask)
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

// Two tokens with two of the teacher's likeliest tokens each, by hand.
func TestForwardKL(t *testing.T) {
	ln := func(x float64) float32 { return float32(math.Log(x)) }
	x := Taught{K: 2, Teacher: []float32{ln(0.5), ln(0.25), ln(0.9), ln(0.1)},
		Student: []float32{ln(0.25), ln(0.25), ln(0.6), ln(0.001)}}
	mask, coef := []bool{true, true}, []float64{0.5, 2}
	// ½·ln 2 and 0.9·ln 1.5 + 0.1·ln 100.
	first, second := 0.5*math.Ln2, 0.9*math.Log(1.5)+0.1*math.Log(100)
	for _, tt := range []struct {
		name string
		d    Distillation
		loss float64
		grad []float64
	}{
		{"plain", Distillation{Coef: 3, Max: math.Inf(1), Floor: math.Inf(-1)}, 0.5*first + 2*second,
			[]float64{-0.75, -0.375, -5.4, -0.6}},
		{"the second is above the bound", Distillation{Coef: 3, Max: 0.5, Floor: math.Inf(-1)}, 0.5*first + 2*0.5,
			[]float64{-0.75, -0.375, 0, 0}},
		{"the last log-prob is below the floor", Distillation{Coef: 3, Max: math.Inf(1), Floor: math.Log(0.01)},
			0.5*first + 2*(0.9*math.Log(1.5)+0.1*math.Log(10)), []float64{-0.75, -0.375, -5.4, 0}},
	} {
		grad, stats := make([]float32, 4), DistillStats{}
		tt.d.ForwardKL(grad, x, mask, coef, &stats)
		m := stats.Metrics()
		if math.Abs(m[0].Value-tt.loss) > 1e-6 {
			t.Errorf("%s: loss %.7f, want %.7f", tt.name, m[0].Value, tt.loss)
		}
		if math.Abs(m[1].Value-(0.75+1)/2) > 1e-6 || math.Abs(m[2].Value-(0.5+0.601)/2) > 1e-6 {
			t.Errorf("%s: masses %v, want 0.875 and 0.5505", tt.name, m[1:])
		}
		for k, want := range tt.grad {
			if math.Abs(float64(grad[k])-want) > 1e-6 {
				t.Errorf("%s: gradient %d is %g, want %g", tt.name, k, grad[k], want)
			}
		}
	}
}

// Masked tokens, tokens that the policy does not know, and sums below 0 teach nothing; NaN is seen.
func TestForwardKLOfNothing(t *testing.T) {
	inf, nan := float32(math.Inf(-1)), float32(math.NaN())
	d := Distillation{Coef: 1, Max: math.Inf(1), Floor: -20}
	for name, tt := range map[string]struct {
		teacher, student float32
		on               bool
		loss             float64
	}{
		"masked":              {-1, -3, false, 0},
		"unknown":             {inf, -3, true, 0},
		"likelier already":    {-3, -1, true, 0},
		"not a number":        {-1, nan, true, math.NaN()},
		"impossible, floored": {-1, inf, true, math.Exp(-1) * 19},
	} {
		grad, stats := []float32{0}, DistillStats{}
		d.ForwardKL(grad, Taught{1, []float32{tt.teacher}, []float32{tt.student}}, []bool{tt.on}, []float64{1}, &stats)
		got := stats.Metrics()[0].Value
		if grad[0] != 0 && tt.loss == tt.loss || math.Abs(got-tt.loss) > 1e-6 || (got != got) != (tt.loss != tt.loss) {
			t.Errorf("%s: loss %g, gradient %g, want loss %g and no gradient", name, got, grad[0], tt.loss)
		}
	}
}

// With all tokens the loss is the KL of whole distributions: its gradient with respect to logits is q - p.
func TestForwardKLOfAll(t *testing.T) {
	p, q := []float64{0.5, 0.2, 0.3}, []float64{0.1, 0.6, 0.3}
	x, grad := Taught{K: 3}, make([]float32, 3)
	for v := range p {
		x.Teacher, x.Student = append(x.Teacher, float32(math.Log(p[v]))), append(x.Student, float32(math.Log(q[v])))
	}
	Distillation{Coef: 1, Max: math.Inf(1), Floor: math.Inf(-1)}.ForwardKL(grad, x, []bool{true}, []float64{1},
		&DistillStats{})
	var sum float64
	for _, g := range grad {
		sum += float64(g)
	}
	for v := range p { // of the softmax: d log q_k / d z_v = [k = v] - q_v
		if dz := float64(grad[v]) - q[v]*sum; math.Abs(dz-(q[v]-p[v])) > 1e-6 {
			t.Errorf("the gradient of logit %d is %g, want %g", v, dz, q[v]-p[v])
		}
	}
}

package ref

import (
	"fmt"
	"math"
	"testing"

	"exp/kernels"
)

const ln2, ln3 = math.Ln2, 1.0986122886681098

func TestRouteKnown(t *testing.T) {
	tests := []struct {
		name          string
		r             kernels.Routing
		logits        []float64
		choice        []int32
		weight, probs []float64
	}{
		// exp is 1 3 2 2, their sum 8. Experts 2 and 3 are as good: the lower number.
		{"tie", kernels.Routing{Experts: 4, Top: 2}, []float64{0, ln3, ln2, ln2}, []int32{1, 2}, []float64{0.375, 0.25}, []float64{0.125, 0.375, 0.25, 0.25}},
		// 3/8 and 2/8 of 5/8.
		{"renormalised", kernels.Routing{Experts: 4, Top: 2, Renorm: true}, []float64{0, ln3, ln2, ln2}, []int32{1, 2}, []float64{0.6, 0.4}, []float64{0.125, 0.375, 0.25, 0.25}},
		// 2/6 1/6 3/6: in ascending order, not by weight. Sigmoid(ln 3) = 3/4.
		{"shared", kernels.Routing{Experts: 3, Top: 2, Shared: true}, []float64{ln2, 0, ln3, ln3}, []int32{0, 2, 3}, []float64{1. / 3, 0.5, 0.75}, []float64{1. / 3, 1. / 6, 0.5}},
		// Renorm divides by 5/6, and leaves the shared one alone.
		{"shared, renormalised", kernels.Routing{Experts: 3, Top: 2, Shared: true, Renorm: true}, []float64{ln2, 0, ln3, 0}, []int32{0, 2, 3}, []float64{0.4, 0.6, 0.5}, []float64{1. / 3, 1. / 6, 0.5}},
		{"all equal", kernels.Routing{Experts: 4, Top: 3}, []float64{7, 7, 7, 7}, []int32{0, 1, 2}, []float64{0.25, 0.25, 0.25}, []float64{0.25, 0.25, 0.25, 0.25}},
		{"everybody", kernels.Routing{Experts: 2, Top: 2}, []float64{0, ln3}, []int32{0, 1}, []float64{0.25, 0.75}, []float64{0.25, 0.75}},
		{"one that cannot be", kernels.Routing{Experts: 3, Top: 2}, []float64{math.Inf(-1), 0, 0}, []int32{1, 2}, []float64{0.5, 0.5}, []float64{0, 0.5, 0.5}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			J := tt.r.Choices()
			choice, weight, probs := make([]int32, 2*J), zeros(2*J), zeros(2*tt.r.Experts)
			Route(choice, weight, probs, append(clone(tt.logits), tt.logits...), nil, tt.r) // two rows alike
			for row := range 2 {
				if got := choice[row*J : (row+1)*J]; fmt.Sprint(got) != fmt.Sprint(tt.choice) {
					t.Errorf("choice of row %d = %v, want %v", row, got, tt.choice)
				}
				wantNear(t, "weight", weight[row*J:(row+1)*J], tt.weight, 1e-15)
				wantNear(t, "probs", probs[row*tt.r.Experts:(row+1)*tt.r.Experts], tt.probs, 1e-15)
			}
		})
	}
}

// Sigmoids of ln 3, 0, -ln 3 and 0 are 3/4, 1/2, 1/4, 1/2.
func TestRouteBySigmoid(t *testing.T) {
	z := []float64{ln3, 0, -ln3, 0}
	for _, tt := range []struct {
		name   string
		r      kernels.Routing
		bias   []float64
		choice []int32
		weight []float64
	}{
		{"the best", kernels.Routing{Top: 2}, nil, []int32{0, 1}, []float64{0.75, 0.5}},
		{"normalised and scaled", kernels.Routing{Top: 2, Renorm: true, Scale: 2.5}, nil, []int32{0, 1}, []float64{1.5, 1}},
		// 0.75 and 0.5 are divided by 1.5.
		{"with more in the sum", kernels.Routing{Top: 2, Renorm: true, Eps: 0.25}, nil, []int32{0, 1}, []float64{0.5, 1. / 3}},
		// 0.75 0.5 1.25 0.5: the bias changes the choice, not the weights.
		{"by a bias", kernels.Routing{Top: 2}, []float64{0, 0, 1, 0}, []int32{0, 2}, []float64{0.75, 0.25}},
		// The two largest of the groups add up to 1.25 and 0.75.
		{"of one group", kernels.Routing{Top: 2, Groups: 2, TopGroups: 1}, nil, []int32{0, 1}, []float64{0.75, 0.5}},
		// With the bias 1.25 and 1.5.
		{"of another", kernels.Routing{Top: 2, Groups: 2, TopGroups: 1}, []float64{0, 0, 0.75, 0}, []int32{2, 3}, []float64{0.25, 0.5}},
		{"and shared", kernels.Routing{Top: 1, Shared: true, Ungated: true, Scale: 3}, nil, []int32{0, 4}, []float64{2.25, 1}},
	} {
		tt.r.Experts, tt.r.Sigmoid = 4, true
		J := tt.r.Choices()
		choice, weight, probs := make([]int32, J), zeros(J), zeros(4)
		Route(choice, weight, probs, z, tt.bias, tt.r)
		if fmt.Sprint(choice) != fmt.Sprint(tt.choice) {
			t.Errorf("%s: choice %v, want %v", tt.name, choice, tt.choice)
		}
		wantNear(t, tt.name, weight, tt.weight, 1e-15)
		wantNear(t, tt.name, probs, []float64{0.75, 0.5, 0.25, 0.5}, 1e-15)
	}
	// With a softmax a group is as good as its best: 3/12 beats 2/12 and 2/12, though these are more together.
	choice, weight := make([]int32, 1), zeros(1)
	Route(choice, weight, zeros(4), []float64{ln2, ln2, ln3, math.Inf(-1)}, nil, kernels.Routing{Experts: 4, Top: 1, Groups: 2, TopGroups: 1, Scale: 16})
	if choice[0] != 2 {
		t.Errorf("the group of the best expert is not chosen, but expert %d", choice[0])
	}
	wantNear(t, "scaled", weight, []float64{16 * 3. / 7}, 1e-14)
}

// A NaN among the logits makes all probabilities NaN; some experts are chosen still.
func TestRouteNaN(t *testing.T) {
	nan := math.NaN()
	choice, weight, probs := make([]int32, 2), zeros(2), zeros(3)
	Route(choice, weight, probs, []float64{1, 2, nan}, nil, kernels.Routing{Experts: 3, Top: 2, Renorm: true})
	if choice[0] != 0 || choice[1] != 1 || weight[0] == weight[0] || weight[1] == weight[1] || probs[0] == probs[0] {
		t.Errorf("choice %v, weight %v, probs %v; want 0 and 1, and NaN", choice, weight, probs)
	}
	for _, tt := range []struct {
		p    []float64
		want []int32
	}{
		{[]float64{nan, 0.2, nan, 0.5}, []int32{1, 3}},
		{[]float64{nan, 0.2, nan, 0.5}, []int32{0, 1, 3}},
		{[]float64{nan, nan, nan}, []int32{0, 1}},
		{[]float64{0.1, 0.4, 0.4, 0.1}, []int32{1, 2}},
		{[]float64{0.4, 0.1, 0.1, 0.1}, []int32{0, 1}},
	} {
		got := make([]int32, len(tt.want))
		best(got, tt.p, []int32{0, 1, 2, 3}[:len(tt.p)])
		if fmt.Sprint(got) != fmt.Sprint(tt.want) {
			t.Errorf("best of %v = %v, want %v", tt.p, got, tt.want)
		}
	}
}

func TestRouteBackwardKnown(t *testing.T) {
	probs, choice, dweight := []float64{0.125, 0.375, 0.25, 0.25}, []int32{1, 2}, []float64{1, 2}
	// dp = [0 1 2 0]; u = 3/8 + 2/4 = 7/8; p·(dp-u).
	dz := zeros(4)
	RouteBackward(dz, dweight, choice, []float64{0.375, 0.25}, probs, kernels.Routing{Experts: 4, Top: 2})
	wantExact(t, "plain", dz, []float64{-7. / 64, 3. / 64, 18. / 64, -14. / 64})
	// W = 5/8, t = 1·0.6 + 2·0.4 = 1.4; dp = [0 -0.4/W 0.6/W 0] = [0 -0.64 0.96 0];
	// u = -0.24 + 0.24 = 0.
	RouteBackward(dz, dweight, choice, []float64{0.6, 0.4}, probs, kernels.Routing{Experts: 4, Top: 2, Renorm: true})
	wantNear(t, "renormalised", dz, []float64{0, -0.24, 0.24, 0}, 1e-15)
	// The shared expert's: 4·(3/4·1/4) = 3/4.
	dz = zeros(5)
	RouteBackward(dz, []float64{1, 2, 4}, []int32{1, 2, 4}, []float64{0.375, 0.25, 0.75}, probs, kernels.Routing{Experts: 4, Top: 2, Shared: true})
	wantExact(t, "shared", dz, []float64{-7. / 64, 3. / 64, 18. / 64, -14. / 64, 0.75})
	// One renormalised expert has weight 1 whatever the logits: t = dweight, dp = 0.
	dz = zeros(4)
	RouteBackward(dz, []float64{5}, []int32{1}, []float64{1}, probs, kernels.Routing{Experts: 4, Top: 1, Renorm: true})
	wantExact(t, "one, renormalised", dz, zeros(4))
}

func TestRouteGradient(t *testing.T) {
	for _, r := range []kernels.Routing{
		{Experts: 5, Top: 1}, {Experts: 5, Top: 2}, {Experts: 5, Top: 2, Renorm: true}, {Experts: 19, Top: 4, Shared: true},
		{Experts: 6, Top: 2, Sigmoid: true}, {Experts: 6, Top: 3, Sigmoid: true, Renorm: true, Scale: 2.5, Shared: true},
		{Experts: 8, Top: 2, Sigmoid: true, Renorm: true, Groups: 4, TopGroups: 2, Shared: true, Ungated: true},
		{Experts: 8, Top: 2, Groups: 2, TopGroups: 1, Scale: 16}, {Experts: 8, Top: 2, Renorm: true, Scale: 3},
		{Experts: 6, Top: 3, Sigmoid: true, Renorm: true, Eps: 0.5},
		{Experts: 19, Top: 4, Renorm: true, Shared: true}, {Experts: 3, Top: 3, Renorm: true}, {Experts: 1, Top: 1, Shared: true},
	} {
		t.Run(fmt.Sprintf("%+v", r), func(t *testing.T) {
			const M = 4
			src, J := source(8), r.Choices()
			z, c := normal(src, M*r.Logits()), normal(src, M*J)
			choice, weight, probs := make([]int32, M*J), zeros(M*J), zeros(M*r.Experts)
			loss := func() float64 { // no choice is so close that a step changes it
				Route(choice, weight, probs, z, nil, r)
				return project(weight, c)
			}
			loss()
			dz := normal(src, M*r.Logits()) // overwritten
			RouteBackward(dz, c, choice, weight, probs, r)
			checkGradient(t, loss, limit, argument{"logits", z, dz})
		})
	}
}

func TestRoutePanics(t *testing.T) {
	x, i := zeros(8), make([]int32, 8)
	const few = "kernels: a row goes to at least one expert and at most all"
	wantPanic(t, few, func() { Route(i[:2], x[:2], x[:2], x[:2], nil, kernels.Routing{Experts: 2}) })
	wantPanic(t, few, func() { Route(i[:3], x[:3], x[:2], x[:2], nil, kernels.Routing{Experts: 2, Top: 3}) })
	wantPanic(t, "kernels: a row's groups do not have the experts that it goes to", func() {
		Route(i[:3], x[:3], x[:4], x[:4], nil, kernels.Routing{Experts: 4, Top: 3, Groups: 2, TopGroups: 1})
	})
	wantPanic(t, "ref: routing: length mismatch", func() { Route(i[:2], x[:2], x[:4], x[:4], nil, kernels.Routing{Experts: 4, Top: 2, Shared: true}) })
	wantPanic(t, "ref: RouteBackward: length mismatch", func() {
		RouteBackward(x[:4], x[:1], i[:2], x[:2], x[:4], kernels.Routing{Experts: 4, Top: 2})
	})
}

func TestCombineKnown(t *testing.T) {
	// Two rows, two choices each, C = 2. Row 0: 2·x[3] + 3·x[0]; row 1: 5·x[1] + 7·x[2].
	x := []float64{1, 2, 3, 4, 5, 6, 7, 8}
	slot, weight := []int32{3, 0, 1, 2}, []float64{2, 3, 5, 7}
	out := []float64{9, 9, 9, 9}
	Combine(out, x, slot, weight, 2, 2)
	wantExact(t, "out", out, []float64{2*7 + 3*1, 2*8 + 3*2, 5*3 + 7*5, 5*4 + 7*6})

	// dx[slot] = weight·dout; dweight = dout·x[slot].
	dx, dweight := []float64{9, 9, 9, 9, 9, 9, 9, 9}, zeros(4)
	CombineBackward(dx, dweight, []float64{1, 10, 100, 1000}, x, slot, weight, 2, 2)
	wantExact(t, "dx", dx, []float64{3, 30, 500, 5000, 700, 7000, 2, 20})
	wantExact(t, "dweight", dweight, []float64{7 + 80, 1 + 20, 300 + 4000, 500 + 6000})

	// A chain in the order of the choices, not of the slots: 2²⁴ takes up 1 + 1 only if
	// these are added first.
	one := make([]float32, 1)
	Combine(one, []float32{1 << 24, 1, 1}, []int32{1, 2, 0}, []float32{1, 1, 1}, 1, 3)
	wantExact(t, "order", one, []float32{1<<24 + 2})
}

func TestCombineGradient(t *testing.T) {
	const M, J, C = 3, 4, 19
	r := source(5)
	x, weight, c := normal(r, M*J*C), normal(r, M*J), normal(r, M*C)
	var slot []int32
	for _, s := range r.Perm(M * J) {
		slot = append(slot, int32(s))
	}
	out := zeros(M * C)
	loss := func() float64 {
		Combine(out, x, slot, weight, C, J)
		return project(out, c)
	}
	dx, dweight := normal(r, M*J*C), normal(r, M*J) // overwritten
	CombineBackward(dx, dweight, c, x, slot, weight, C, J)
	checkGradient(t, loss, limit, argument{"x", x, dx}, argument{"weight", weight, dweight})

	wantPanic(t, "ref: row out of range", func() { Combine(out[:C], x[:C], []int32{1}, weight[:1], C, 1) })
	wantPanic(t, "ref: Combine: length mismatch", func() { Combine(out[:C], x[:2*C], []int32{1}, weight[:1], C, 1) })
	wantPanic(t, "ref: CombineBackward: length mismatch", func() {
		CombineBackward(dx[:C], dweight[:2], out[:C], x[:C], []int32{0}, weight[:1], C, 1)
	})
}

package rl

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestResamplingWeights(t *testing.T) {
	score := []float64{-3, 0, 1, 2, 2}
	tests := []struct {
		by    Reweighting
		power float64
		want  []float64
	}{
		{WeighPower, 2, []float64{9, 0, 1, 4, 4}},
		{WeighPower, 0.5, []float64{math.Sqrt(3), 0, 1, math.Sqrt2, math.Sqrt2}},
		{WeighPower, 0, []float64{1, 1, 1, 1, 1}},
		{WeighMaxMin, 2, []float64{1, 0, 0, 1, 1}},
		{WeighMaxRandom, 2, []float64{0.1, 0.1, 0.1, 0.4, 0.4}},
	}
	for _, tt := range tests {
		got := make([]float64, len(score))
		ResamplingWeights(got, score, tt.by, tt.power)
		for i, w := range tt.want {
			if got[i] != w+1e-8 {
				t.Errorf("method %d, power %g: weight %d = %.17g, want %.17g", tt.by, tt.power, i, got[i], w+1e-8)
			}
		}
	}
	ResamplingWeights(nil, []float32(nil), WeighMaxMin, 2)
	if !panics(func() { ResamplingWeights(make([]float64, 1), []float64{1}, WeighPower, -1) }) {
		t.Error("no panic for a negative power")
	}
	for _, name := range []string{"pow", "max_min", "max_random"} {
		if _, err := ParseReweighting(name); err != nil {
			t.Error(err)
		}
	}
	if _, err := ParseReweighting("even"); err == nil {
		t.Error("no error for an unknown method")
	}
}

func TestPow(t *testing.T) {
	for _, p := range []float64{0, 0.1, 0.25, 0.5, 1, 1.7, 2, 3, 7.75, 20} {
		for _, x := range []float64{0, 1e-9, 0.3, 1, 2.5, 1e6} {
			if got, want := pow(x, p), math.Pow(x, p); !(math.Abs(got-want) <= 1e-14*want) {
				t.Errorf("%g to the power %g = %.17g, want %.17g", x, p, got, want)
			}
		}
	}
}

func TestResample(t *testing.T) {
	rows := make([]int, 6)
	// Shares end at ¼, ¼, ¾ and 1.
	Resample(rows, []float64{1, 0, 2, 1}, []float64{0, 0.2499, 0.25, 0.7499, 0.75, math.Nextafter(1, 0)})
	if want := []int{0, 0, 2, 2, 3, 3}; !slices.Equal(rows, want) {
		t.Errorf("got %v, want %v", rows, want)
	}
	// A product that rounds up to the total draws the last row with a weight.
	Resample(rows[:1], []float64{5e-324, 0}, []float64{math.Nextafter(1, 0)})
	if rows[0] != 0 {
		t.Errorf("row %d drawn, which has no weight", rows[0])
	}
	for name, f := range map[string]func(){
		"no weight":       func() { Resample(rows, []float64{0, 0}, make([]float64, 6)) },
		"no rows":         func() { Resample(rows, nil, make([]float64, 6)) },
		"negative":        func() { Resample(rows, []float64{2, -1}, make([]float64, 6)) },
		"NaN":             func() { Resample(rows, []float64{2, nan}, make([]float64, 6)) },
		"infinite":        func() { Resample(rows, []float64{2, math.Inf(1)}, make([]float64, 6)) },
		"one is too much": func() { Resample(rows[:1], []float64{2}, []float64{1}) },
		"lengths differ":  func() { Resample(rows, []float64{2}, []float64{0}) },
	} {
		if !panics(f) {
			t.Errorf("%s: no panic", name)
		}
	}
}

// Rows are drawn as often as their weights say: 4 standard deviations of a binomial.
func TestResampleFrequencies(t *testing.T) {
	const seed, n = 18, 20000
	r := rand.New(rand.NewPCG(seed, 0))
	weight := []float64{0.1, 3, 0, 1.4, 0.5}
	uniform, rows := make([]float64, n), make([]int, n)
	for i := range uniform {
		uniform[i] = r.Float64()
	}
	Resample(rows, weight, uniform)
	var times [5]float64
	for _, i := range rows {
		times[i]++
	}
	for i, w := range weight {
		p := w / 5
		if math.Abs(times[i]-n*p) > 4*math.Sqrt(n*p*(1-p)) {
			t.Errorf("seed %d: row %d drawn %g times of %d, weight %g of 5", seed, i, times[i], n, w)
		}
	}
}

func TestPickRows(t *testing.T) {
	rows, x, index := Rows{0, 2, 2, 5}, []string{"a", "b", "c", "d", "e"}, []int{2, 0, 0, 1}
	if got, want := rows.Pick(index), (Rows{0, 3, 5, 7, 7}); !slices.Equal(got, want) {
		t.Errorf("rows %v, want %v", got, want)
	}
	if got, want := PickRows(x, rows, index), []string{"c", "d", "e", "a", "b", "a", "b"}; !slices.Equal(got, want) {
		t.Errorf("elements %v, want %v", got, want)
	}
}

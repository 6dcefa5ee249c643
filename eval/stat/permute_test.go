package stat

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestSignFlipExact(t *testing.T) {
	tests := []struct {
		name     string
		d        []float64
		clusters []string
		want     float64
	}{
		{"all one way", []float64{1, 2, 3}, nil, 2.0 / 8}, // only ±(1+2+3) reach 6
		{"five equal", []float64{0.1, 0.1, 0.1, 0.1, 0.1}, nil, 2.0 / 32},
		{"mixed", []float64{2, -1}, nil, 1},                   // every pattern reaches 1
		{"three and one", []float64{1, 1, 1, -1}, nil, 0.625}, // |Σ| ≥ 2: 2·(C(4,0)+C(4,1)) of 16
		// with +0.6 the other three add 0.6, 0.4, 0.2, 0, 0, -0.2, -0.4, -0.6: five reach 0.6
		{"ties differ by rounding", []float64{0.1, 0.2, -0.3, 0.6}, nil, 5.0 / 8},
		{"clusters move together", []float64{1, 1, 1, 1}, []string{"a", "a", "b", "b"}, 0.5},
		{"zeros change nothing", []float64{0, 1, 0, 2, 3, 0}, nil, 2.0 / 8},
		{"only zeros", []float64{0, 0}, nil, 1},
		{"nothing", nil, nil, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, exact := SignFlip(tt.d, tt.clusters, 0)
			if !exact || !near(got, tt.want, 1e-15) {
				t.Errorf("p = %v (exact %v), want %v", got, exact, tt.want)
			}
		})
	}
}

// One more cluster than can be counted in time: the drawn p value is close to the counted one.
func TestSignFlipDrawn(t *testing.T) {
	const seed = 3
	r := rand.New(rand.NewPCG(seed, 0))
	d := make([]float64, 21)
	var sum, scale float64
	for i := range d {
		d[i] = r.NormFloat64() + 0.4
		sum += d[i]
		scale += math.Abs(d[i])
	}
	want := flipAll(d, math.Abs(sum)-signTie*scale)
	got, exact := SignFlip(d, nil, seed)
	// five standard errors of 20 000 draws
	tol := 5 * math.Sqrt(want*(1-want)/permutationDraws)
	if exact || !near(got, want, tol) {
		t.Errorf("seed %d: p = %v (exact %v), counted %v ± %v", seed, got, exact, want, tol)
	}
	if again, _ := SignFlip(d, nil, seed); again != got {
		t.Errorf("the same seed gave %v and %v", got, again)
	}
}

// A pattern cannot be less extreme than none: p is never zero.
func TestSignFlipDrawnIsNeverZero(t *testing.T) {
	d := make([]float64, 200)
	for i := range d {
		d[i] = 1
	}
	if got, _ := SignFlip(d, nil, 1); got != 1.0/20_001 {
		t.Errorf("p = %v, want 1/20001", got)
	}
}

func TestHolm(t *testing.T) {
	tests := []struct{ p, want []float64 }{
		{[]float64{0.01, 0.04, 0.03}, []float64{0.03, 0.06, 0.06}}, // 3·0.01; 2·0.03; max(0.06, 0.04)
		{[]float64{0.5, 0.6}, []float64{1, 1}},
		{[]float64{0.02}, []float64{0.02}},
		{[]float64{0.01, 0.01}, []float64{0.02, 0.02}},
		{nil, []float64{}},
	}
	for _, tt := range tests {
		got := Holm(tt.p)
		for i := range got {
			if len(got) != len(tt.want) || !near(got[i], tt.want[i], 1e-15) {
				t.Errorf("Holm(%v) = %v, want %v", tt.p, got, tt.want)
				break
			}
		}
	}
}

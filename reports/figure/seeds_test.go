package figure

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var nan = math.NaN()

// same compares numbers to a relative error of 1e-12, NaN equal to NaN.
func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateApprox(1e-12, 1e-12), cmpopts.EquateNaNs()); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func TestMergeRange(t *testing.T) {
	got := merge([]Series{
		{Step: []float64{1, 2, 3}, Y: []float64{1, 2, 9}},
		{Step: []float64{1, 2}, Y: []float64{3, math.Inf(1)}},
		{Step: []float64{1, 4}, Y: []float64{8, nan}},
	}, Axis{}, Range)
	same(t, "step", got.step, []float64{1, 2, 3, 4})
	same(t, "mean", got.y, []float64{4, 2, 9, nan}) // (1+3+8)/3; Inf and NaN are missing
	same(t, "lo", got.lo, []float64{1, nan, nan, nan})
	same(t, "hi", got.hi, []float64{8, nan, nan, nan})
	same(t, "seeds", got.seeds, []int{3, 1, 1, 0})
}

func TestMergeTInterval(t *testing.T) {
	got := merge([]Series{
		{Step: []float64{0, 1, 2}, Y: []float64{1, 5, 2}},
		{Step: []float64{0, 1, 2}, Y: []float64{2, 5, 4}},
		{Step: []float64{0, 1}, Y: []float64{3, 5}},
	}, Axis{}, TInterval)
	// Step 0: mean 2, s = sqrt((1+0+1)/2) = 1, SE = 1/√3; t(0.975; 2) = 4.302652729911275
	// (the quantile of two degrees of freedom is p' = 0.95: p'·sqrt(2/(1−p'²))).
	// Step 1: all equal, s = 0. Step 2: mean 3, s = √2, SE = 1, t(0.975; 1) = tan(0.475π).
	t2 := 0.95 * math.Sqrt(2/(1-0.95*0.95))
	t1 := math.Tan(0.475 * math.Pi)
	same(t, "mean", got.y, []float64{2, 5, 3})
	near := cmpopts.EquateApprox(1e-7, 0) // the quantile is found by iteration
	if d := cmp.Diff([]float64{2 - t2/math.Sqrt(3), 5, 3 - t1}, got.lo, near); d != "" {
		t.Errorf("lo (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]float64{2 + t2/math.Sqrt(3), 5, 3 + t1}, got.hi, near); d != "" {
		t.Errorf("hi (-want +got):\n%s", d)
	}
}

// x is averaged over the seeds that are in the mean of y.
func TestMergeX(t *testing.T) {
	got := merge([]Series{
		{Step: []float64{1, 2}, X: []float64{100, 200}, Y: []float64{0, 0}},
		{Step: []float64{1, 2}, X: []float64{120, 260}, Y: []float64{1, nan}},
	}, Axis{}, Range)
	same(t, "x", got.x, []float64{110, 200})
	same(t, "y", got.y, []float64{0.5, 0})
}

// On a logarithmic axis, values that are not positive are missing.
func TestMergeLog(t *testing.T) {
	got := merge([]Series{
		{Step: []float64{1, 2}, Y: []float64{0, -1}},
		{Step: []float64{1, 2}, Y: []float64{2, 4}},
	}, Axis{Log: true}, Range)
	same(t, "y", got.y, []float64{2, 4})
}

// The mean lies in the band, and the order of the seeds changes nothing but
// rounding.
func TestMergeProperties(t *testing.T) {
	const seed = 7
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		var seeds []Series
		for range 1 + rng.IntN(5) {
			var s Series
			for step := range 12 {
				if rng.IntN(3) > 0 {
					s.Step, s.Y = append(s.Step, float64(step)), append(s.Y, rng.NormFloat64())
				}
			}
			seeds = append(seeds, s)
		}
		band := Band(rng.IntN(2))
		a := merge(seeds, Axis{}, band)
		rng.Shuffle(len(seeds), func(i, j int) { seeds[i], seeds[j] = seeds[j], seeds[i] })
		b := merge(seeds, Axis{}, band)
		for i := range a.y {
			if a.seeds[i] > 1 && !(a.lo[i] <= a.y[i]+1e-12 && a.y[i] <= a.hi[i]+1e-12) {
				t.Fatalf("seed %d, %v: mean %v outside [%v, %v]", seed, band, a.y[i], a.lo[i], a.hi[i])
			}
			if a.seeds[i] == 1 && !math.IsNaN(a.lo[i]) {
				t.Fatalf("seed %d: one value has the band [%v, %v]", seed, a.lo[i], a.hi[i])
			}
		}
		same(t, "means in another order", b.y, a.y)
	}
}

func TestSmooth(t *testing.T) {
	tests := []struct {
		name   string
		y      []float64
		axis   Axis
		window int
		want   []float64
	}{
		{"three", []float64{3, 6, 0, 9}, Axis{}, 3, []float64{4.5, 3, 5, 4.5}}, // ends: (3+6)/2, (0+9)/2
		{"wider than the series", []float64{1, 2, 3}, Axis{}, 9, []float64{2, 2, 2}},
		{"gap", []float64{1, nan, 3, 5}, Axis{}, 3, []float64{1, nan, 4, 4}},
		{"infinite", []float64{1, math.Inf(1), 3}, Axis{}, 3, []float64{1, math.Inf(1), 3}},
		{"log", []float64{1, -5, 3}, Axis{Log: true}, 3, []float64{1, -5, 3}},
		{"empty", nil, Axis{}, 3, []float64{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			same(t, "smooth", smooth(tt.y, tt.axis, tt.window), tt.want)
		})
	}
}

func TestSeriesCheck(t *testing.T) {
	tests := []struct {
		name   string
		series Series
		want   string // "" for none
	}{
		{"good", Series{Step: []float64{1, 2}, Y: []float64{1, nan}}, ""},
		{"empty", Series{}, ""},
		{"short y", Series{Step: []float64{1, 2}, Y: []float64{1}}, "2 steps, 0 x and 1 y"},
		{"short x", Series{Step: []float64{1}, X: []float64{}, Y: []float64{1}}, "1 steps, 0 x and 1 y"},
		{"twice", Series{Step: []float64{1, 1}, Y: []float64{1, 1}}, "point 1: step 1 follows step 1"},
		{"NaN", Series{Step: []float64{nan}, Y: []float64{1}}, "point 0: step NaN"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			if err := tt.series.check(); err != nil {
				got = err.Error()
			}
			if (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
				t.Errorf("check() = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestSeedsText(t *testing.T) {
	tests := []struct {
		names  []string
		counts []int
		want   string
	}{
		{nil, nil, ""},
		{[]string{"A"}, []int{1}, "1 seed"},
		{[]string{"A", "B"}, []int{3, 3}, "3 seeds per arm"},
		{[]string{"A", "B"}, []int{3, 1}, "A 3 seeds, B 1 seed"},
	}
	for _, tt := range tests {
		if got := seedsText(tt.names, tt.counts); got != tt.want {
			t.Errorf("seedsText(%v, %v) = %q, want %q", tt.names, tt.counts, got, tt.want)
		}
	}
}

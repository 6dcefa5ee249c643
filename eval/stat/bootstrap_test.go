package stat

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The mean of two draws from {0, 1} is 0, ½, 1 with probability ¼, ½, ¼.
func TestBootstrapTwoPoints(t *testing.T) {
	wide, ok := Bootstrap([]float64{0, 1}, nil, Resampling{Draws: 4000, Seed: 1, Level: 0.95})
	if !ok || wide.Lo != 0 || wide.Hi != 1 {
		t.Errorf("95 %%: %+v, want [0, 1]", wide)
	}
	narrow, _ := Bootstrap([]float64{0, 1}, nil, Resampling{Draws: 4000, Seed: 1, Level: 0.4})
	if narrow.Lo != 0.5 || narrow.Hi != 0.5 {
		t.Errorf("40 %%: %+v, want [0.5, 0.5]", narrow)
	}
}

// With many problems and one seed the interval is close to mean ± 1.96·SE.
func TestBootstrapAgreesWithStandardError(t *testing.T) {
	const seed = 7
	r := rand.New(rand.NewPCG(seed, 0))
	row := make([]float64, 600)
	names := make([]string, len(row))
	for i := range row {
		row[i] = r.Float64()
		if i%3 > 0 { // two of three problems come in pairs
			row[i] = row[i-i%3+1]
			names[i] = string(rune('a' + i/3))
		}
	}
	m := ClusterMean(row, names)
	iv, _ := Bootstrap(row, names, Resampling{Draws: 10_000, Seed: seed, Level: 0.95})
	if want := 2 * 1.96 * m.SE; math.Abs(iv.Hi-iv.Lo-want) > 0.05*want {
		t.Errorf("seed %d: width %.5f, want %.5f within 5 %%", seed, iv.Hi-iv.Lo, want)
	}
}

func TestBootstrapIsAFunctionOfItsSeed(t *testing.T) {
	scores := []float64{0.1, 0.7, 0.3, 0.9, 0.4}
	draw := func(seed uint64) Interval {
		iv, _ := Bootstrap(scores, nil, Resampling{Draws: 200, Seed: seed, Level: 0.9})
		return iv
	}
	if a, b := draw(1), draw(1); a != b {
		t.Errorf("seed 1 gave %+v and %+v", a, b)
	}
	if a, b := draw(1), draw(2); a == b {
		t.Errorf("seeds 1 and 2 both gave %+v", a)
	}
}

func TestBootstrapOfOneCluster(t *testing.T) {
	r := Resampling{Draws: 100, Seed: 1, Level: 0.95}
	if iv, ok := Bootstrap([]float64{0.5, 0.7}, []string{"a", "a"}, r); ok {
		t.Errorf("one cluster: %+v, want none", iv)
	}
}

func TestQuantile(t *testing.T) {
	xs := []float64{1, 2, 4, 8}
	tests := []struct{ p, want float64 }{
		{0, 1}, {1, 8}, {0.5, 3}, // between 2 and 4
		{0.25, 1.75}, // at 0.75 between 1 and 2
		{0.9, 6.8},   // at 2.7: 4 + 0.7·4
	}
	for _, tt := range tests {
		if got := Quantile(xs, tt.p); !near(got, tt.want, 1e-12) {
			t.Errorf("Quantile(%v) = %v, want %v", tt.p, got, tt.want)
		}
	}
}

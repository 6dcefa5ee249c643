package rl

import (
	"math"
	"testing"
)

func TestLogRatio(t *testing.T) {
	nan := math.NaN()
	tests := []struct {
		logProb, old, want float64
		inside             bool
	}{
		{-1, -2, 1, true},
		{-21, -1, -20, true}, // on the bound
		{-22, -1, -20, false},
		{-1, -26, 20, false},
		{nan, -1, nan, true},
	}
	for _, tt := range tests {
		got, inside := logRatio(tt.logProb, tt.old)
		if !same(got, tt.want) || inside != tt.inside {
			t.Errorf("logRatio(%g, %g) = %g, %t, want %g, %t", tt.logProb, tt.old, got, inside, tt.want, tt.inside)
		}
	}
}

// same reports equality, NaN being equal to itself.
func same(a, b float64) bool { return a == b || a != a && b != b }

// near reports |got-want| ≤ tol·max(1,|want|), NaN being near NaN only.
func near(got, want, tol float64) bool {
	return same(got, want) || math.Abs(got-want) <= tol*math.Max(1, math.Abs(want))
}

package stat

import (
	"math"
	"testing"
)

func TestMeanStd(t *testing.T) {
	tests := []struct {
		values    []float64
		mean, std float64
	}{
		{[]float64{1, 2, 3}, 2, 1},             // sqrt((1+0+1)/2)
		{[]float64{0, 1}, 0.5, math.Sqrt2 / 2}, // sqrt((1/4+1/4)/1)
		{[]float64{4}, 4, math.NaN()},
		{nil, math.NaN(), math.NaN()},
	}
	equal := func(x, y float64) bool { return math.IsNaN(x) && math.IsNaN(y) || math.Abs(x-y) < 1e-15 }
	for _, tt := range tests {
		if mean, std := MeanStd(tt.values); !equal(mean, tt.mean) || !equal(std, tt.std) {
			t.Errorf("MeanStd(%v) = %v, %v, want %v, %v", tt.values, mean, std, tt.mean, tt.std)
		}
	}
}

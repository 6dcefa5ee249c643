package rl

import (
	"slices"
	"testing"
)

func TestCoefficients(t *testing.T) {
	// Rows of 3 (2 unmasked), 0, 2 (none unmasked) and 1 tokens.
	rows := Rows{0, 3, 3, 5, 6}
	mask := []bool{on, off, on, off, off, on}
	local := Count(mask, rows)
	if want := (Counts{Tokens: 3, Rows: 2}); local != want {
		t.Fatalf("Count = %+v, want %+v", local, want)
	}
	global := Counts{Tokens: 12, Rows: 5, Scale: 8}
	tests := []struct {
		mode Aggregation
		n    Counts
		a, b float64 // of the first and of the last row's tokens
	}{
		{TokenMean, local, 1. / 3, 1. / 3},
		{TokenMean, global, 1. / 12, 1. / 12},
		{TokenSum, global, 1, 1},
		{SeqMeanTokenSum, local, 1. / 2, 1. / 2},
		{SeqMeanTokenSum, global, 1. / 5, 1. / 5},
		{SeqMeanTokenSumNorm, global, 1. / 40, 1. / 40},
		{SeqMeanTokenMean, local, 0.5 / 2.00000001, 0.5 / 1.00000001},
		{SeqMeanTokenMean, global, 0.2 / 2.00000001, 0.2 / 1.00000001},
	}
	for _, tt := range tests {
		coef := []float64{nan, nan, nan, nan, nan, nan}
		tt.mode.Coefficients(coef, mask, rows, tt.n)
		for i, want := range []float64{tt.a, 0, tt.a, 0, 0, tt.b} {
			if !near(coef[i], want, 1e-16) {
				t.Errorf("%v %+v: coef[%d] = %.17g, want %.17g", tt.mode, tt.n, i, coef[i], want)
			}
		}
	}
}

func TestCoefficientsOfNothing(t *testing.T) {
	for a := TokenMean; a <= SeqMeanTokenMean; a++ {
		coef := []float64{1, 2}
		a.Coefficients(coef, []bool{off, off}, Rows{0, 2}, Counts{}) // verl: 0/0
		if !slices.Equal(coef, []float64{0, 0}) {
			t.Errorf("%v: %v, want zeros", a, coef)
		}
	}
}

func TestCoefficientsPanics(t *testing.T) {
	mask, rows, coef := []bool{on, on}, Rows{0, 1, 2}, make([]float64, 2)
	for name, f := range map[string]func(){
		"too few tokens": func() { TokenMean.Coefficients(coef, mask, rows, Counts{Tokens: 1, Rows: 2}) },
		"too few rows":   func() { TokenMean.Coefficients(coef, mask, rows, Counts{Tokens: 2, Rows: 1}) },
		"no scale":       func() { SeqMeanTokenSumNorm.Coefficients(coef, mask, rows, Counts{Tokens: 2, Rows: 2}) },
		"no mode":        func() { Aggregation(0).Coefficients(coef, mask, rows, Counts{Tokens: 2, Rows: 2}) },
		"short coef":     func() { TokenMean.Coefficients(coef[:1], mask, rows, Counts{Tokens: 2, Rows: 2}) },
	} {
		if !panics(f) {
			t.Errorf("%s: no panic", name)
		}
	}
}

func TestParseAggregation(t *testing.T) {
	for a := TokenMean; a <= SeqMeanTokenMean; a++ {
		if got, err := ParseAggregation(a.String()); got != a || err != nil {
			t.Errorf("ParseAggregation(%q) = %v, %v", a.String(), got, err)
		}
	}
	for _, name := range []string{"", "mean", "unknown"} {
		if _, err := ParseAggregation(name); err == nil {
			t.Errorf("ParseAggregation accepts %q", name)
		}
	}
}

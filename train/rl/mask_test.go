package rl

import (
	"errors"
	"math"
	"slices"
	"testing"
)

const (
	on  = true
	off = false
)

var nan = math.NaN()

func TestMaskedReductions(t *testing.T) {
	tests := []struct {
		name          string
		x             []float64
		mask          []bool
		sum, mean, va float64 // unbiased variance
	}{
		// mean 6/3 = 2, squares 1+1+0 = 2 over n-1 = 2
		{"all", []float64{1, 3, 2}, []bool{on, on, on}, 6, 2, 1},
		{"NaN and infinity outside", []float64{nan, 1, 3, 2, math.Inf(1)}, []bool{off, on, on, on, off}, 6, 2, 1},
		// mean 3, squares 4+4 = 8 over 1
		{"gap", []float64{1, 9, 5}, []bool{on, off, on}, 6, 3, 8},
		{"NaN inside", []float64{1, nan}, []bool{on, on}, nan, nan, nan},
	}
	for _, tt := range tests {
		if got := MaskedSum(tt.x, tt.mask); !same(got, tt.sum) {
			t.Errorf("%s: MaskedSum = %g, want %g", tt.name, got, tt.sum)
		}
		// The denominator is n+1e-8, so a mean is off by 1e-8/n.
		if got := MaskedMean(tt.x, tt.mask); !near(got, tt.mean, 1e-8) {
			t.Errorf("%s: MaskedMean = %g, want %g", tt.name, got, tt.mean)
		}
		got, err := MaskedVar(tt.x, tt.mask, true)
		if err != nil || !near(got, tt.va, 2e-8) {
			t.Errorf("%s: MaskedVar = %g, %v, want %g", tt.name, got, err, tt.va)
		}
	}
}

// The mean of two is 4/(2+1e-8), not 2.
func TestMaskedMeanEpsilon(t *testing.T) {
	if got, want := MaskedMean([]float64{1, 3}, []bool{on, on}), 4/2.00000001; got != want {
		t.Errorf("got %.17g, want %.17g", got, want)
	}
	if got := MaskedMean([]float32{1, 3}, []bool{off, off}); got != 0 {
		t.Errorf("mean of nothing = %g, want 0", got)
	}
	if got, err := MaskedVar([]float32{1, 3}, []bool{off, off}, false); got != 0 || err != nil {
		t.Errorf("biased variance of nothing = %g, %v, want 0", got, err)
	}
}

func TestTooFew(t *testing.T) {
	for _, mask := range [][]bool{{off, off}, {off, on}} {
		x := []float64{7, 8}
		if _, err := MaskedVar(x, mask, true); !errors.Is(err, ErrTooFew) {
			t.Errorf("MaskedVar of mask %v: error %v", mask, err)
		}
		if err := Whiten(x, mask, true); !errors.Is(err, ErrTooFew) || !slices.Equal(x, []float64{7, 8}) {
			t.Errorf("Whiten of mask %v: error %v, x = %v", mask, err, x)
		}
	}
}

func TestWhiten(t *testing.T) {
	mask := []bool{on, on, off, on}
	// mean 2, unbiased variance (1+0+1)/2 = 1: (x-2)/1, the masked 4 becomes 2.
	x := []float64{1, 2, 4, 3}
	if err := Whiten(x, mask, true); err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{-1, 0, 2, 1} {
		if !near(x[i], want, 3e-8) {
			t.Errorf("shifted: x[%d] = %g, want %g", i, x[i], want)
		}
	}
	x = []float64{2, 4, nan, 6} // mean 4, variance 4, std 2: 4 + (x-4)/2
	if err := Whiten(x, mask, false); err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{3, 4, nan, 5} {
		if !near(x[i], want, 3e-8) {
			t.Errorf("not shifted: x[%d] = %g, want %g", i, x[i], want)
		}
	}
}

func TestRowSumsAndSpread(t *testing.T) {
	rows := Rows{0, 2, 2, 5}
	sums := make([]float32, 3)
	RowSums(sums, []float32{1, 2, 4, 8, 16}, rows)
	if want := []float32{3, 0, 28}; !slices.Equal(sums, want) {
		t.Errorf("RowSums = %v, want %v", sums, want)
	}
	dst := []float32{9, 9, 9, 9, 9}
	Spread(dst, []float32{5, 6, 7}, []bool{on, off, on, on, off}, rows)
	if want := []float32{5, 0, 7, 7, 0}; !slices.Equal(dst, want) {
		t.Errorf("Spread = %v, want %v", dst, want)
	}
}

func TestRowsCheck(t *testing.T) {
	for _, rows := range []Rows{nil, {}, {1, 3}, {0, 2}, {0, 4, 3}, {0, 3, 1, 3}} {
		if !panics(func() { rows.check(3) }) {
			t.Errorf("%v: no panic for 3 tokens", rows)
		}
	}
	Rows{0, 0, 2, 2, 3}.check(3)
	Rows{0}.check(0)
}

func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}

package rl

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestReturns(t *testing.T) {
	got := []float64{1, 9, 2, 4, 8} // in place
	Returns(got, got, []bool{on, off, on, on, on}, Rows{0, 4, 5}, 0.5)
	// 4, 2+½·4, then the masked 9 is dropped and passes 4 on, 1+½·4; the second row
	// starts over.
	if want := []float64{3, 4, 4, 4, 8}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Returns equal GAE's with lambda 1 and no critic.
func TestReturnsAreGAE(t *testing.T) {
	const seed = 16
	r := rand.New(rand.NewPCG(seed, 0))
	s := newSample[float64](r, 20)
	n := len(s.Mask)
	ret, adv, want := make([]float64, n), make([]float64, n), make([]float64, n)
	Returns(ret, s.Ret, s.Mask, s.Rows, 0.9)
	GAE(adv, want, s.Ret, make([]float64, n), s.Mask, s.Rows, 0.9, 1)
	for i := range ret {
		if !near(ret[i], want[i], 1e-14) {
			t.Errorf("seed %d: return %d = %g, want %g", seed, i, ret[i], want[i])
		}
	}
}

func TestReinforcePlusPlus(t *testing.T) {
	mask, rows := []bool{on, off, on, on}, Rows{0, 3, 4}
	adv, ret := make([]float64, 4), make([]float64, 4)
	if err := ReinforcePlusPlus(adv, ret, []float64{0, nan, 2, 3}, mask, rows, 0.5); err != nil {
		t.Fatal(err)
	}
	if want := []float64{1, 0, 2, 3}; !slices.Equal(ret, want) {
		t.Errorf("returns %v, want %v", ret, want)
	}
	for i, want := range []float64{-1, 0, 0, 1} { // mean 2, std 1
		if !near(adv[i], want, 3e-8) {
			t.Errorf("A[%d] = %g, want %g", i, adv[i], want)
		}
	}
	// Centred on the mean of its group, 2, and of a row alone, 0: -1, 1, 3 over three
	// tokens have mean 1 and std 2.
	if err := ReinforcePlusPlusBaseline(adv, []float64{1, 3, 3}, []int{5, 5, 6}, mask, Rows{0, 1, 3, 4}); err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{-1, 0, 0, 1} {
		if !near(adv[i], want, 3e-8) {
			t.Errorf("with the groups' means: A[%d] = %g, want %g", i, adv[i], want)
		}
	}
	if err := ReinforcePlusPlus(adv, ret, adv, make([]bool, 4), rows, 1); !errors.Is(err, ErrTooFew) {
		t.Errorf("nothing unmasked: error %v", err)
	}
}

func TestReMax(t *testing.T) {
	adv, ret := make([]float64, 4), make([]float64, 4)
	ReMax(adv, ret, []float64{1, nan, 2, 3}, []float64{0.5, 5}, []bool{on, off, on, on}, Rows{0, 3, 4})
	if want := []float64{3, 2, 2, 3}; !slices.Equal(ret, want) {
		t.Errorf("returns %v, want %v", ret, want)
	}
	if want := []float64{2.5, 2, 1.5, -2}; !slices.Equal(adv, want) {
		t.Errorf("advantages %v, want %v", adv, want)
	}
}

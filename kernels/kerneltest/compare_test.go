package kerneltest

import (
	"math"
	"strings"
	"testing"

	"exp/kernels"
	"exp/kernels/ref"
)

func TestNear(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	zero := float32(math.Copysign(0, -1))
	loose := tolerance{abs: 0.5, rel: 0.25}
	tests := []struct {
		name      string
		got, want float32
		tol       tolerance
		near      bool
	}{
		{"equal", 1, 1, exactly, true},
		{"one bit", math.Nextafter32(1, 2), 1, exactly, false},
		{"sign of zero", zero, 0, exactly, false},
		{"sign of zero, loosely", zero, 0, loose, true},
		{"NaN of another payload", bandNaN(), nan, exactly, true},
		{"NaN for a number", nan, 1, loose, false},
		{"a number for NaN", 1, nan, loose, false},
		{"infinities of one sign", inf, inf, loose, true},
		{"infinities of two signs", inf, -inf, loose, false},
		{"a number for infinity", 1e30, inf, loose, false},
		{"infinity for a number", inf, 1e30, loose, false},
		{"at the bound", 9.5, 12, loose, true}, // 2.5 ≤ 0.5 + 0.25·12 = 3.5
		{"beyond it", 8.4, 12, loose, false},   // 3.6
	}
	for _, tt := range tests {
		want := image{f: []float32{tt.want}}
		if near := want.near(image{f: []float32{tt.got}}, 0, tt.tol); near != tt.near {
			t.Errorf("%s: %v near %v is %v", tt.name, tt.got, tt.want, near)
		}
	}
}

func TestSameNamesThePlace(t *testing.T) {
	want := []result{{"out", image{f: []float32{1, 2, 3}}}}
	got := []result{{"out", image{f: []float32{1, 2.5, 3}}}}
	err := same(got, want, exactly)
	const message = "out[1] = 2.5 (0x40200000), want 2 (0x40000000) (3 elements)"
	if err == nil || err.Error() != message {
		t.Errorf("got %v, want %s", err, message)
	}
	if err := same(nil, nil, exactly); err != errNoResult {
		t.Errorf("nothing to compare gives %v", err)
	}
}

func TestCallFindsStrayWrites(t *testing.T) {
	tests := []struct {
		name  string
		at    int
		found string
	}{
		{"inside an input", 2, "x: input changed at 2"},
		{"before", -3, "x: wrote 3 elements before the buffer"},
		{"after", 4, "x: wrote at 4, the buffer has 4 elements"},
	}
	for _, tt := range tests {
		_, err := run(ref.New[float32](), func(c *call) { flip(c.floats("x", make([]float32, 4)), tt.at) })
		if err == nil || err.Error() != tt.found {
			t.Errorf("%s: got %v, want %s", tt.name, err, tt.found)
		}
	}
	if _, err := run(ref.New[float32](), func(c *call) { flip(c.out("x", 4), 2) }); err != nil {
		t.Errorf("writing an output gives %v", err)
	}
}

// TestEveryToleranceHasAReason also holds the table against the operations, so
// that a backend of another class does not stop at a missing entry.
func TestEveryToleranceHasAReason(t *testing.T) {
	for op, b := range bounds() {
		if strings.TrimSpace(b.why) == "" {
			t.Errorf("%s has no reason", op)
		}
	}
	for _, op := range operations() {
		if op == "Zero" {
			continue // compared as Copy
		}
		if tol := toleranceOf(op, kernels.F32); tol.abs < 0 || tol.rel < 0 {
			t.Errorf("%s: tolerance %+v", op, tol)
		}
	}
}

func TestChiSquare(t *testing.T) {
	prob := []float64{0.5, 0.25, 0.25}
	if err := chiSquare([]int{500, 250, 250}, prob, 1000); err != nil {
		t.Errorf("exact counts: %v", err)
	}
	// (600-500)²/500 + 2·(200-250)²/250 = 20 + 20 = 40; the limit at two degrees of
	// freedom is 2·(1-1/9+5/3)³ = 33.4.
	if err := chiSquare([]int{600, 200, 200}, prob, 1000); err == nil {
		t.Error("100 draws too many go unnoticed")
	}
}

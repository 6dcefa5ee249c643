package metric

import "testing"

// An interval ends where a mean of the metric's values must end.
func TestCut(t *testing.T) {
	for _, tt := range []struct {
		name   string
		lo, hi float64
	}{
		{"pass@1", 0, 1},
		{"length_mean", 0, 9},
		{"reward_mean", -2, 9},
		{"judged_diversity", 1, 5},
		{"nobody's", -2, 9},
	} {
		if lo, hi := CutOf(tt.name, -2, 9); lo != tt.lo || hi != tt.hi {
			t.Errorf("%s: %g to %g, want %g to %g", tt.name, lo, hi, tt.lo, tt.hi)
		}
		if lo, hi := CutOf(tt.name, 1.25, 1.5); tt.name != "pass@1" && (lo != 1.25 || hi != 1.5) {
			t.Errorf("%s: %g to %g, which it can have", tt.name, lo, hi)
		}
	}
}

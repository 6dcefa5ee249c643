package compare

import (
	"slices"
	"strings"
	"testing"
)

func TestCompareLabels(t *testing.T) {
	for _, want := range [][]string{
		{"beta=1", "beta=5", "beta=15"},
		{"lr=1e-6", "lr=3e-06", "lr=0.00001", "lr=1"},
		{"flowrl", "flowrl-2", "flowrl-10", "grpo"},
		{"beta=0.5", "beta=1.5", "beta=1.5 x", "no beta"},
		{"a", "a01", "a1", "a2"},
		{"x1e400", "x1e500", "y"}, // beyond float64
	} {
		got := slices.Clone(want)
		slices.Reverse(got)
		slices.SortFunc(got, CompareLabels)
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Of several values of an arm, the absent one is a dash; digests are short.
func TestDifferenceText(t *testing.T) {
	digest := strings.Repeat("0123456789abcdef", 4)
	d := Difference{Values: []string{"", " | 0", digest + " | x", "a |  | b"}}
	for arm, want := range []string{"", "– | 0", "01234567 | x", "a | – | b"} {
		if got := d.Text(arm); got != want {
			t.Errorf("%q: %q, want %q", d.Values[arm], got, want)
		}
	}
}

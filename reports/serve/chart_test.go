package serve

import (
	"math"
	"slices"
	"testing"

	"exp/eval"
	"exp/reports/figure"
)

func TestFocused(t *testing.T) {
	line := func(name string, ends ...float64) figure.Arm {
		a := figure.Arm{Name: name}
		for _, v := range ends {
			a.Seeds = append(a.Seeds, figure.Series{Step: []float64{1, 2}, Y: []float64{0, v}})
		}
		return a
	}
	arms := []figure.Arm{line("a", 9), line("b", 1, 3), line("c", 4), line("d", 3, 4), line("e", 0)}
	for better, want := range map[eval.Direction][]string{eval.Up: {"a", "c", "d"}, eval.Down: {"a", "e", "b"}, eval.Neutral: {"a"}} {
		if got := focused([]string{"a", "b"}, arms, better); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", better, got, want)
		}
	}
	// An arm that diverged is not one of the best, and the first arm lacks this metric.
	arms = []figure.Arm{line("b", 5), line("c", math.NaN()), line("d", 4, math.NaN()), line("e", 7), line("f", 6)}
	for better, want := range map[eval.Direction][]string{eval.Up: {"b", "e", "f"}, eval.Down: {"b", "f", "e"}} {
		if got := focused([]string{"a", "b"}, arms, better); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", better, got, want)
		}
	}
	if got := focused([]string{"a"}, nil, eval.Up); got != nil {
		t.Errorf("no arm has the metric: %v", got)
	}
}

package serve

import (
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
}

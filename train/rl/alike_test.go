package rl

import (
	"math"
	"testing"
)

// A run hears once that rewards tell nothing, unless one of its first steps had different ones.
func TestAlike(t *testing.T) {
	score := func(low, high float64) []Metric {
		return []Metric{{Name: "critic/score/mean"}, {Name: "critic/score/max", Value: high}, {Name: "critic/score/min", Value: low}}
	}
	for name, tt := range map[string]struct {
		odd  []Metric // at step 7
		want string
	}{
		"alike":           {score(-1, -1), "all completions of steps 5 to 14 earned -1: nothing tells good ones from bad ones"},
		"a better one":    {score(-1, 0), ""},
		"another reward":  {score(0, 0), ""},
		"none was graded": {score(math.NaN(), math.NaN()), ""},
		"not measured":    {nil, ""},
	} {
		var a Alike
		got := ""
		for step := 5; step < 40; step++ {
			list := score(-1, -1)
			if step == 7 {
				list = tt.odd
			}
			got += a.Add(step, list)
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

package grade

import (
	"strings"
	"testing"
)

func TestCheckGold(t *testing.T) {
	for _, tt := range []struct{ gold, problem string }{
		{"12", ""}, {"\\frac{1}{2}", ""}, {"(1,2]", ""}, {"\\boxed{x=5}", ""}, {"\\text{Evelyn}", ""},
		{"\\textbf{(B)}\\ 12", ""},
		{"9\\text{ a.m.}", ""}, {"12\\text{ cm}^2", ""}, {"12\\text{ apples}", ""}, {"no solution", ""}, {"100,200",
			""}, {"x\\ge5", ""},
		{"", "empty"}, {"\\frac{1}{", "not understood"}, {"12 13", "not understood"}, {"12\\text{ squared}",
			"not a unit"},
		{"\\foo{12}", "unknown command"}, {strings.Repeat("1", 10_000), "longer"},
	} {
		err := CheckGold(tt.gold)
		if tt.problem == "" && err != nil || tt.problem != "" && (err == nil || !strings.Contains(err.Error(),
			tt.problem)) {
			t.Errorf("%.60q: %v, want %q", tt.gold, err, tt.problem)
		}
	}
}

// TestGoldsAreUnderstood: nearly every gold answer of the benchmarks is.
func TestGoldsAreUnderstood(t *testing.T) {
	golds := benchmarkGolds(t)
	bad := 0
	for _, g := range golds {
		if err := CheckGold(g); err != nil {
			bad++
			t.Logf("%q: %v", g, err)
		}
	}
	if bad*500 > len(golds) {
		t.Errorf("%d of %d gold answers are not understood, at most 1 in 500", bad, len(golds))
	}
}

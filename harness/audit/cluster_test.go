package audit

import (
	"slices"
	"testing"
)

func TestFormOf(t *testing.T) {
	for _, tt := range []struct{ answer, want string }{
		{"12", "#"}, {"1,234.5 dollars", "# dollars"}, {"12 squared", "# squared"}, {"12 or 13", "# or #"},
		{"x = 5", "x = #"}, {"\\frac{3}{4}", "\\frac{#}{#}"}, {"a+b", "x+x"}, {"1, 2, 3, 4", "#, …, #"},
		{"So  the\nBOX holds 7 apples", "so the box holds # apples"}, {"", ""},
		{"one two three four five six seven eight nine ten eleven", "one two three four five six seven eight nine te…"},
	} {
		if got := formOf(tt.answer); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.answer, got, tt.want)
		}
	}
}

// Findings are clustered by cause and form, disagreements also by who agrees; every step is in one range.
func TestCluster(t *testing.T) {
	var a auditor
	for step := int64(1); step <= 20; step++ {
		f := finding{step: step, right: true, form: "#"}
		if step > 10 {
			f.cause, f.form, f.example = Unit, "# dollars", Example{Step: step}
		}
		a.found = append(a.found, f, finding{step: step})
	}
	a.found = append(a.found, finding{step: 3, cause: Disagreement, form: "#", accepted: []string{"exp"}, refused: []string{"prime"}},
		finding{step: 4, cause: Disagreement, form: "#", accepted: []string{"prime"}, refused: []string{"exp"}})
	a.cluster()
	r := a.report
	if r.Completions != 42 || r.Right != 20 || r.Suspicious != 12 || len(r.Clusters) != 3 || len(r.Bins) != bins {
		t.Fatalf("%+v", r)
	}
	c := r.Clusters[0]
	if c.Cause != Unit || c.Form != "# dollars" || c.Completions != 10 || c.First != 11 || c.Last != 20 || c.Example.Step != 20 {
		t.Errorf("%+v", c)
	}
	if shares := r.Share(c); shares[0] != 0 || shares[bins-1] != 0.5 || !slices.IsSorted(shares) {
		t.Errorf("shares %v", shares)
	}
	n, end := 0, int64(0)
	for _, b := range r.Bins {
		if b.First != end+1 {
			t.Errorf("a range from %d after one to %d", b.First, end)
		}
		n, end = n+b.Completions, b.Last
	}
	if n != 42 || end != 20 {
		t.Errorf("%d completions up to step %d", n, end)
	}
}

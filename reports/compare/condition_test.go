package compare

import (
	"strings"
	"testing"

	"exp/experiments/query"
)

func TestCondition(t *testing.T) {
	v := func(x float64) *float64 { return &x }
	metric := func(name string, delta, p float64) Metric {
		return Metric{Name: name, Tested: true, Pairs: []Pair{
			{A: 0, B: 2, Delta: v(delta), P: v(p), PHolm: v(2 * p), Interval: &Interval{Lo: delta - 0.1, Hi: delta + 0.1}},
			{A: 1, B: 2, Delta: v(-delta), P: v(p), PHolm: v(2 * p)}}}
	}
	r := &Result{Suites: []Suite{
		{Name: "countdown/test", Metrics: []Metric{metric("pass@1", -0.2, 0.01), metric("distinct_correct", 0.5, 0.3)}},
		{Name: "countdown/val", Metrics: []Metric{metric("pass@1", 0.3, 0.02)}},
	}}
	for _, test := range []struct {
		text  string
		pairs int // for how many of the two pairs it holds
	}{
		{"delta(test) < -0.01 and p < 0.05", 1},
		{"delta(countdown/test) < -0.01", 1},
		{"p(test) < 0.05", 2},
		{"p_holm(test) <= 0.02", 2},
		{"p_holm(test)<0.02", 0},
		{"delta(test) < 0 and delta(val) > 0", 1},
		{"delta(test) < 0 and p < 0.015 and delta(val) > 0 and p > 0.015", 1}, // p is of the suite named last
		{"delta(test, distinct_correct) > 0.4 and p > 0.2", 1},
		{"delta(test) > 1 or p(val) = 0.02", 2},
		{"delta(test) > 1 or p = 0.01 and delta = 5", 0}, // and binds more
		{"(delta(test) > 1 or p = 0.01) and delta != 5", 2},
		{"not delta(test) > 0", 1},
		{"not not delta(test) > 0", 1},
		{"delta(test) > -1e3", 2},
		{"delta(test) >= -0.2 and delta <= 0.2", 2},
	} {
		c, err := ParseCondition(test.text)
		if err != nil {
			t.Errorf("%s: %v", test.text, err)
			continue
		}
		got, err := c.Holds(r)
		if err != nil || len(got) != test.pairs {
			t.Errorf("%s holds for %d pairs (%v), want %d", test.text, len(got), err, test.pairs)
		}
	}
}

func TestConditionErrors(t *testing.T) {
	for _, test := range []struct {
		text, want string
		col        int
	}{
		{"", "a condition is missing", 0},
		{"delta(test) <", `expected a number after "<"`, 13},
		{"delta(test) < much", `expected a number after "<"`, 14},
		{"delta(test) < NaN", `expected a number after "<"`, 14},
		{"delta(test) 0.1", "expected one of = != < <= > >=", 12},
		{"delta(test) ~ 1", "expected one of = != < <= > >=", 12},
		{"delta(test) is set", "expected one of = != < <= > >=", 12},
		{"delta(test) in [1, 2]", `"in" is not for numbers here`, 12},
		{"delta(test) = '1'", `expected a number after "="`, 14},
		{"speed(test) < 1", `no field "speed" in a comparison`, 0},
		{"delta(test < 1", `expected ")", found "<"`, 11},
		{"delta() < 1", "expected the name of a suite", 6},
		{"delta(test,) < 1", "expected the name of a metric", 11},
		{"(delta(test) < 1", `expected ")"`, 16},
		{"delta(test) < 1 p < 1", `expected and, or, or the end, found "p"`, 16},
		{"delta(test) < 1 and", "a condition is missing", 19},
		{"é < 1", `no field "é"`, 0},
		{"delta(prüf) ! 1", "expected one of = != < <= > >=", 12},
	} {
		_, err := ParseCondition(test.text)
		e, ok := err.(*query.SyntaxError)
		if !ok || !strings.HasPrefix(e.Msg, test.want) || e.Col != test.col {
			t.Errorf("%q: %v, want %q at %d", test.text, err, test.want, test.col)
		}
	}
}

// "in" is not an interval; the error shows how to write one.
func TestConditionInterval(t *testing.T) {
	_, err := ParseCondition("p < 1 or delta(test, pass@8) in [-0.1, 0.1]")
	e, ok := err.(*query.SyntaxError)
	if want := "delta(test,pass@8) >= -0.1 and delta(test,pass@8) <= 0.1"; !ok || !strings.Contains(e.Help, want) {
		t.Errorf("%v, want help with %s", err, want)
	}
	if _, err := ParseCondition("delta(test,pass@8) >= -0.1 and delta(test,pass@8) <= 0.1"); err != nil {
		t.Errorf("the suggested interval: %v", err)
	}
}

// A condition about a missing value is an error, not false, even if the other side settles
// the answer: a gate must not pass by a typing error.
func TestConditionOfMissingValue(t *testing.T) {
	v := 1.0
	r := &Result{Suites: []Suite{
		{Name: "countdown/test", Metrics: []Metric{{Name: "pass@1", Pairs: []Pair{{B: 1, Delta: &v}}}}},
		{Name: "words/test", Metrics: []Metric{{Name: "pass@1", Pairs: []Pair{{B: 1, Delta: &v}}}}},
	}}
	for text, want := range map[string]string{
		"delta(math) < 1":              `no suite "math"`,
		"delta < 1":                    "which suite?",
		"delta(test) < 1":              "which suite?",
		"delta(words/test, speed) < 1": `words/test has no metric "speed"`,
		"p(words/test) < 1":            "p of pass@1 on words/test is not known",
		"delta(words/test) > 5 and lo(words/test) < 1":  "lo of pass@1",
		"delta(words/test) < 5 or delta(nowhere) < 0.1": `no suite "nowhere"`,
	} {
		c, err := ParseCondition(text)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Holds(r)
		e, ok := err.(*query.SyntaxError)
		if !ok || !strings.HasPrefix(e.Msg, want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func FuzzParseCondition(f *testing.F) {
	for _, seed := range []string{"delta(test) < -0.01 and p < 0.05", "not (p > 1 or lo(a, b) != 2)", "((((", "é!"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if c, err := ParseCondition(text); err == nil {
			if again, err := ParseCondition(c.String()); err != nil || again.String() != text {
				t.Errorf("%q reads differently a second time: %v", text, err)
			}
		} else if e := err.(*query.SyntaxError); e.Col < 0 || e.Col > len([]rune(text)) {
			t.Errorf("%q: column %d", text, e.Col)
		}
	})
}

package reports

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"exp/experiments/store"
)

// Every figure of a report has a kind that exp figure lists, and One draws the same.
func TestKindsCoverReports(t *testing.T) {
	study := newStudy(t)
	in := Input{DB: study.db, Comparison: study.comparison()}
	r, err := New(context.Background(), in)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for _, k := range Kinds() {
		if k.About == "" || kinds[k.Name] {
			t.Errorf("kind %q has no text, or comes twice", k.Name)
		}
		kinds[k.Name] = true
	}
	names := []string{}
	for _, f := range r.drawn.figures {
		names = append(names, f.Name)
	}
	for _, o := range r.drawn.omitted {
		names = append(names, o.Name)
	}
	for _, name := range names {
		if !slices.ContainsFunc(Kinds(), func(k Kind) bool {
			return name == k.Name || strings.HasPrefix(name, k.Name+"-")
		}) {
			t.Errorf("no kind covers the figure %s", name)
		}
	}
	want := r.drawn.figures[0]
	got, err := One(context.Background(), in, want.Name)
	if err != nil || string(got.SVG) != string(want.SVG) {
		t.Errorf("One draws another %s, or none: %v", want.Name, err)
	}
}

func TestOne(t *testing.T) {
	study := newStudy(t)
	in := Input{DB: study.db, Comparison: study.comparison()}
	for _, c := range []struct{ kind, name, err, help string }{
		{kind: "entropy", name: "entropy"},
		{kind: "pass-at-k", name: "pass-at-k-countdown-test"},
		{kind: "critic/vf_loss", name: "critic-vf-loss"},
		{kind: "entrpy", err: "unknown kind", help: "did you mean entropy?"},
		{kind: "zzz", err: "unknown kind", help: "one of optimum, "},
		{kind: "differences", err: "there are several", help: "differences-share"},
		{kind: "graders", err: "these runs have none", help: "exp report"},
		{kind: "value-clip", err: "no run recorded critic/vf_clipfrac", help: "exp metrics"},
	} {
		f, err := One(context.Background(), in, c.kind)
		var failed *KindError
		switch {
		case c.err == "" && (err != nil || f.Name != c.name):
			t.Errorf("%s: %q, %v; want %s", c.kind, f.Name, err, c.name)
		case c.err != "" && (!errors.As(err, &failed) || !strings.Contains(failed.Reason, c.err) ||
			!strings.Contains(failed.Help, c.help) || failed.ExitCode() == 0):
			t.Errorf("%s: %v, want %q with help %q", c.kind, err, c.err, c.help)
		}
	}
}

// Every kind that some runs cannot have says why.
func TestKindsSayWhatTheyNeed(t *testing.T) {
	study := newStudy(t)
	s, err := read(context.Background(), Input{DB: study.db, Comparison: study.comparison()})
	if err != nil {
		t.Fatal(err)
	}
	s.arms, s.result = s.arms[:1], nil
	for _, r := range s.arms[0].Runs {
		r.evals, r.scores, r.policies = nil, nil, nil
	}
	for _, k := range Kinds() {
		var missing *KindError
		if _, err := s.named(k.Name); errors.As(err, &missing) && strings.HasSuffix(missing.Reason, ": ") {
			t.Errorf("%s does not say why: %s", k.Name, missing.Reason)
		}
	}
}

// The line of the score before training names its suite; scores that differ are in the caption.
func TestStartOf(t *testing.T) {
	with := func(evals ...store.Eval) *arm { return &arm{Runs: []*run{{evals: evals}}} }
	score := func(suite string, v float64) store.Eval {
		return store.Eval{SuiteName: suite, Metric: "pass@1", Value: v}
	}
	for _, c := range []struct {
		arms       []*arm
		line, said string
	}{
		{[]*arm{with(score("t/a", 0.5))}, "", ""},
		{[]*arm{with(score("t/a@start", 0.25)), with(score("t/a@start", 0.25))}, "start on t/a",
			"Grey: pass@1 on t/a before training"},
		{[]*arm{with(score("t/a@start", 0.25), score("t/b@start", 0.5))}, "",
			"pass@1 before training: 0.250 on t/a and 0.500 on t/b"},
		{[]*arm{with(score("t/a@start", 0.25)), with(score("t/a@start", 0.5))}, "",
			"pass@1 before training: 0.250 to 0.500 on t/a"},
	} {
		r, said := startOf(c.arms, "pass@1")
		if said != c.said || (r != nil) != (c.line != "") || r != nil && r.Name != c.line {
			t.Errorf("line %v, %q; want %q, %q", r, said, c.line, c.said)
		}
	}
}

package reports

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
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

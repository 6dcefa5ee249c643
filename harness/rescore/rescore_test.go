package rescore

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exp/eval"
	"exp/eval/exchange"
)

const responses = `{"id":"a","problem":"Half?","gold":"1/2","response":"So \\boxed{0.5}."}
{"id":"a","problem":"Half?","gold":"1/2","response":"So \\boxed{2}."}
{"id":"b","problem":"Six?","gold":"6","response":"So \\boxed{6}."}
{"id":"b","problem":"Six?","gold":"6","response":"I do not know"}
`

func read(t *testing.T, text string) *exchange.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "responses.jsonl")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := exchange.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Graders stand side by side with their union, and the output can be scored again.
func TestGrade(t *testing.T) {
	e, err := New(Options{File: read(t, responses)})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Grade(context.Background(), []string{"exp", "math_reward"}, nil); err != nil {
		t.Fatal(err)
	}
	r := e.Report()
	want := map[string]float64{"exp": 0.5, "math_reward": 0.5, "union": 0.5}
	for _, g := range r.Graders {
		if g.Metrics[0].Name != "pass@1" || g.Metrics[0].Value != want[g.Name] {
			t.Errorf("%s: %+v", g.Name, g.Metrics[0])
		}
		if lo := g.Metrics[0].Lo; lo != nil || g.Metrics[0].SE == nil { // both problems score 0.5
			t.Errorf("%s: an interval without width from %v", g.Name, *lo)
		}
		delete(want, g.Name)
	}
	if len(want) > 0 || r.Problems != 2 || r.Samples != 4 || r.Least != 2 || r.Most != 2 {
		t.Errorf("no %v; %+v", want, r)
	}
	var b bytes.Buffer
	if err := e.Write(&b, "verl-dump"); err != nil || strings.Count(b.String(), "\n") != 4 {
		t.Errorf("%v\n%s", err, b.String())
	}
	b.Reset()
	if err := e.WriteVerdicts(&b); err != nil || strings.Count(b.String(), `"grader":"union"`) != 4 {
		t.Errorf("%v\n%s", err, b.String())
	}
}

// Too few responses, and options that make no sense, are errors with a way out.
func TestNewRefuses(t *testing.T) {
	protocol := eval.Protocol{Name: "p", N: 3}
	uneven := strings.Join(strings.SplitAfter(responses, "\n")[:3], "")
	for _, tt := range []struct {
		name string
		o    Options
		want string
		help bool
	}{
		{"uneven", Options{File: read(t, uneven)}, "some problems have 1 responses and others 2", true},
		{"protocol", Options{File: read(t, responses), Protocol: &protocol}, "protocol p has 3 samples per problem; the file has 2", true},
		{"k", Options{File: read(t, responses), K: "1,x"}, "whole numbers from 1", false},
		{"large k", Options{File: read(t, responses), K: "3"}, "pass@k is not extrapolated", false},
		{"no gold", Options{File: read(t, `{"id":"a","response":"x"}`)}, "", true},
	} {
		_, err := New(tt.o)
		var bad *InputError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), tt.want) || (bad.Help != "") != tt.help {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	if _, err := New(Options{File: read(t, uneven), Partial: true}); err != nil {
		t.Errorf("partial: %v", err)
	}
	e, err := New(Options{File: read(t, responses)})
	if err != nil {
		t.Fatal(err)
	}
	var bad *InputError
	for _, graders := range [][]string{{"nix"}, {"code"}, {"code", "exp"}} {
		if err := e.Grade(context.Background(), graders, nil); !errors.As(err, &bad) {
			t.Errorf("%v: %v", graders, err)
		}
	}
}

package code

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/sandbox"
	"exp/train/rollout"
)

// printer runs programs whose text is their output, and counts the runs.
type printer struct{ runs atomic.Int64 }

func (r *printer) Run(_ context.Context, q sandbox.Request) sandbox.Result {
	out := sandbox.Result{Verdict: sandbox.OK}
	for i := range q.Tests {
		r.runs.Add(1)
		run := sandbox.Run{Status: sandbox.OK, Stdout: []byte(q.Source)}
		if q.Source == "broken" {
			return sandbox.Result{Verdict: sandbox.InfraError, Runs: []sandbox.Run{{Status: sandbox.InfraError, Detail: "no slot"}}}
		}
		run.Status, run.Detail = q.Judge(i, run)
		out.Runs = append(out.Runs, run)
		if run.Status == sandbox.OK {
			out.Passed++
			continue
		}
		if out.Verdict == sandbox.OK {
			out.Verdict = run.Status
		}
		if !q.RunAll {
			break
		}
	}
	return out
}

// Three ways give the verdicts that three graders would, with one execution per test: YES for yes passes
// only TACO's published comparator.
func TestSheet(t *testing.T) {
	p := &Problem{ID: "p", Family: TACO, Tests: []Test{{Stdin: "1", Stdout: "yes"}, {Stdin: "2", Stdout: "YES"}, {Stdin: "3", Stdout: "yes"}}}
	ways := []Options{{Rules: Strict}, {Rules: Upstream}, {Rules: Strict, Partial: true}}
	run := &printer{}
	sheet, err := NewSheet(run, ways...)
	if err != nil {
		t.Fatal(err)
	}
	const response = "So:\n```python\nYES\n```\n"
	got, err := sheet.Response(context.Background(), p, response)
	if err != nil {
		t.Fatal(err)
	}
	type short struct {
		Correct bool
		Passed  int
		Score   float64
	}
	var have []short
	for i, v := range got {
		have = append(have, short{v.Correct, v.Passed, v.Score})
		alone, err := grader(t, &printer{}, ways[i]).Response(context.Background(), p, response)
		if err != nil || alone.Correct != v.Correct || alone.Score != v.Score {
			t.Errorf("way %d: %+v, alone %+v, %v", i, v, alone, err)
		}
	}
	want := []short{{false, 0, 0}, {true, 3, 1}, {false, 1, 1.0 / 3}}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Error(diff)
	}
	// One way trims the block, which makes two programs: it runs all three tests; strict runs the first
	// test of the other, strict with all tests the remaining two.
	if n := run.runs.Load(); n != 6 {
		t.Errorf("%d runs, want 3 + 1 + 2", n)
	}
}

// A sample is executed once for all graders of a sheet; a broken sandbox gives no verdict under any.
func TestSheetGraders(t *testing.T) {
	p, err := (&Problem{ID: "p", Family: LiveCodeBench, Tests: []Test{{Stdin: "1", Stdout: "7"}}}).Rollout()
	if err != nil {
		t.Fatal(err)
	}
	run := &printer{}
	sheet, err := NewSheet(run, Options{}, Options{Partial: true})
	if err != nil {
		t.Fatal(err)
	}
	graders := sheet.Graders(true)
	completions := []*rollout.Completion{{Text: "7"}, {Text: "8"}, {Text: "broken"}}
	for _, g := range graders {
		for i, want := range []rollout.Verdict{
			{Status: rollout.Graded, Correct: true, Reward: 1, Answer: "7", Reason: "all tests pass"},
			{Status: rollout.Graded, Answer: "8", Reason: `test 1: another output: "8"`},
			{Reason: "problem p: the sandbox failed: no slot"},
		} {
			got, err := g.Grade(context.Background(), &p, completions[i])
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("%d: %v\n%s", i, err, diff)
			}
		}
	}
	if n := run.runs.Load(); n != 3 {
		t.Errorf("%d runs for 3 samples", n)
	}
	if _, err := graders[0].Grade(context.Background(), &rollout.Problem{ID: "q"}, &rollout.Completion{}); err == nil {
		t.Error("a problem without tests has a verdict")
	}
}

// In the sandbox, a sheet agrees with single graders on each kind of test.
func TestSheetInSandbox(t *testing.T) {
	pool := openPool(t)
	sheet, err := NewSheet(pool, Options{}, Options{Rules: Upstream}, Options{Partial: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []*Problem{squareStdio(), squareCall(), squareAsserts()} {
		for _, tt := range []struct {
			program string
			want    bool
		}{
			{"def square(x): return x*x\nif __name__ == '__main__': print(square(int(input())))", true},
			{"def square(x): return 9\nif __name__ == '__main__': print(9)", false},
		} {
			got, err := sheet.Program(context.Background(), p, tt.program)
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range got {
				if v.Correct != tt.want {
					t.Errorf("%s, way %d: %+v, want %v", p.ID, i, v, tt.want)
				}
			}
			if share := fmt.Sprintf("%.2f", got[2].Score); !tt.want && share != "0.33" {
				t.Errorf("%s: a score of %s for one test of three", p.ID, share)
			}
		}
	}
}

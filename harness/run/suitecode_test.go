package run

import (
	"context"
	"strings"
	"testing"

	"exp/experiments/store"
)

// A benchmark in the file layout of HumanEval, whose prompts have only characters that
// the model of the functions task can read.
var heads = []string{
	`{"task_id":"own/0","prompt":"a=b\n","entry_point":"f","canonical_solution":"def f(a):\n    return a+1\n","test":"def check(candidate):\n    assert candidate(1) == 2\n"}`,
	`{"task_id":"own/1","prompt":"b=a\n","entry_point":"f","canonical_solution":"def f(a):\n    return a*2\n","test":"def check(candidate):\n    assert candidate(2) == 4\n    assert candidate(3) == 6\n"}`,
}

// A suite of programs joins a run: its samples are run in the sandbox by its graders, and
// each has a verdict with how the program ended.
func TestSuiteOfPrograms(t *testing.T) {
	needsSandbox(t)
	l := newLab(t)
	l.addSuite("heads", heads...)
	res, q := l.execute(l.planSuites(programs, "train.steps=2", "rollout.n=2", "eval.online.every_steps=0",
		"eval.final.suites=[heads]"))
	for _, stage := range []string{"eval.gen[heads]", "eval.score[heads]"} {
		if !strings.Contains(executedStages(q), stage) {
			t.Errorf("%s was not executed: %s", stage, executedStages(q))
		}
	}
	evals, err := l.db.Evals(context.Background(), res.Run.ID)
	if err != nil {
		t.Fatal(err)
	}
	metrics := map[string]float64{}
	for _, e := range evals {
		if e.SuiteName == "heads" {
			metrics[e.Metric] = e.Value
			if e.Items != 2 {
				t.Errorf("%s of %d problems", e.Metric, e.Items)
			}
		}
	}
	for _, name := range []string{"pass@1", "accuracy/code", "accuracy/code_upstream"} {
		if v, ok := metrics[name]; !ok || v < 0 || v > 1 {
			t.Errorf("%s is %v in %v", name, v, metrics)
		}
	}
	samples, err := l.db.Samples(context.Background(), res.Run.ID, store.SampleQuery{Scope: "eval", Label: "heads"})
	if err != nil || len(samples) == 0 || len(samples)%2 > 0 {
		t.Fatalf("%d samples, %v", len(samples), err)
	}
	for _, s := range samples {
		if s.Verdict == nil || !strings.HasPrefix(s.Verdict.Scorer.Name, "code/") || !s.Verdict.Graded || !s.Verdict.Correct && s.Verdict.Reason == "" {
			t.Fatalf("verdict %+v", s.Verdict)
		}
	}
}

package compare

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"exp/eval"
	"exp/experiments/ident"
	"exp/experiments/recorded"
	"exp/experiments/store"
)

// judge records scores of a run's problems on a suite, a list of passes each. A problem without passes was not judged.
func (f *fixture) judge(run store.Run, label string, how recorded.Judging, responses int, scores ...[]float64) {
	f.t.Helper()
	var list []recorded.JudgedProblem
	for i, s := range scores {
		if s != nil {
			list = append(list, recorded.JudgedProblem{ID: answers(make([]int, 9)...)[i].ProblemID, Responses: responses, Scores: s})
		}
	}
	f.judged(run, label, recorded.Judgements{Judging: how, Problems: list})
}

// judged records judgements of a run's problems on a suite.
func (f *fixture) judged(run store.Run, label string, j recorded.Judgements) {
	f.t.Helper()
	text, err := json.Marshal(j)
	f.must(err)
	d, err := f.db.Blobs.PutBytes(text)
	f.must(err)
	out := []store.IO{{Role: recorded.RoleJudgements, Digest: d, Size: int64(len(text))}}
	s, err := f.db.BeginStage(context.Background(), store.Stage{Run: run.ID, Kind: recorded.JudgeStage, Label: label, Inputs: out,
		SID: ident.Sum([]byte(run.RID.String() + label + string(text)))})
	f.must(err)
	f.must(f.db.FinishStage(context.Background(), s.ID, out, store.StageResult{}, nil))
}

// By hand: a has 2 and (3+5)/2 = 4, b 3 and 4 on the problems with a score in both; differences are -1 and 0.
func TestJudged(t *testing.T) {
	f := newFixture(t)
	items := answers(1, 0, 2, 1)
	a, b := f.put(startAndEnd("a", "flowrl", items)), f.put(startAndEnd("b", "ppo", items))
	how := recorded.Judging{Model: "m", Passes: 2}
	compared := func() *Result {
		r, err := f.compareRuns(Options{}, []store.Run{a}, []store.Run{b})
		f.must(err)
		return r
	}
	notes := func(r *Result) string {
		return strings.Join(slices.DeleteFunc(r.Notes, func(n string) bool { return !strings.Contains(n, "judge") }), "; ")
	}
	if r := compared(); r.Suites[0].Metric(recorded.JudgedDiversity) != nil || notes(r) != "" {
		t.Errorf("before judgements: %+v", r.Notes)
	}
	f.judge(a, "test", how, 6, []float64{2, 2}, []float64{3, 5}, []float64{1, 0}, []float64{5, 5})
	f.judge(a, "test@start", how, 6, []float64{1, 1}, []float64{2, 2})
	if r := compared(); r.Suites[0].Metric(recorded.JudgedDiversity) != nil ||
		notes(r) != "judged_diversity on countdown/test is excluded: only 1 of 2 runs were judged; exp diversity judges all of them" {
		t.Errorf("one judged run: %s", notes(r))
	}
	f.judge(b, "test", recorded.Judging{Model: "n", Passes: 2}, 6, []float64{5, 5}, []float64{5, 5})
	if r := compared(); !strings.HasSuffix(notes(r), "is excluded: runs were judged in different ways: model m and n; exp diversity judges all of them alike") {
		t.Errorf("two ways: %s", notes(r))
	}
	f.judge(b, "test", how, 6, []float64{3, 3}, []float64{4, 4}, []float64{0, 0})
	f.judge(b, "test", recorded.Judging{Model: "new"}, 6, []float64{5}, []float64{5})
	r := compared()
	m := r.Suites[0].Metric(recorded.JudgedDiversity)
	if m == nil {
		t.Fatalf("no judged diversity: %s", notes(r))
	}
	near(t, "arm a", m.Arms[0].Mean, 3)
	near(t, "arm b", m.Arms[1].Mean, 3.5)
	near(t, "a before training", m.Arms[0].Start, 1.5)
	near(t, "difference", m.Pairs[0].Delta, -0.5)
	if m.Items != 2 || !m.Tested || m.Arms[1].Start != nil {
		t.Errorf("%d problems, tested %v", m.Items, m.Tested)
	}
	if want := "judged_diversity on countdown/test is over 2 of 4 problems: the others were not judged in every run"; notes(r) != want {
		t.Errorf("notes %s", notes(r))
	}
	// Another number of completions of a problem is another measurement.
	f.judged(b, "test", recorded.Judgements{Judging: how, Problems: []recorded.JudgedProblem{{ID: items[0].ProblemID, Responses: 6, Scores: []float64{3}},
		{ID: items[1].ProblemID, Responses: 5, Scores: []float64{4}}, {ID: items[2].ProblemID, Responses: 6, Scores: []float64{1}}}})
	if m := compared().Suites[0].Metric(recorded.JudgedDiversity); m == nil || m.Items != 2 || *m.Pairs[0].Delta != -0.5 {
		t.Errorf("6 and 5 completions of one problem: %+v", m)
	}
	f.judge(b, "test", how, 5, []float64{3, 3}, []float64{4, 4})
	if r := compared(); r.Suites[0].Metric(recorded.JudgedDiversity) != nil || !strings.Contains(notes(r), "by equally many completions") {
		t.Errorf("6 and 5 completions of a problem were compared: %s", notes(r))
	}
}

// startAndEnd is a run that was evaluated before training, too.
func startAndEnd(name, algo string, items []eval.Item) fakeRun {
	r := plainRun(name, algo, 0, items...)
	r.suites["test@start"] = items
	return r
}

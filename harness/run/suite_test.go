package run

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exp/eval/suite"
	"exp/experiments/ident"
	"exp/experiments/store"
	"exp/harness/plan"
	"exp/harness/stage"
)

// addSuite keeps a suite in the lab's store, as exp suite add does.
func (l *lab) addSuite(name string, rows ...string) {
	l.t.Helper()
	path := filepath.Join(l.t.TempDir(), name+".jsonl")
	if err := os.WriteFile(path, []byte(strings.Join(rows, "\n")), 0o644); err != nil {
		l.t.Fatal(err)
	}
	s, err := suite.Read(name, path, suite.Options{})
	if err != nil {
		l.t.Fatal(err)
	}
	data, err := s.Encode()
	if err != nil {
		l.t.Fatal(err)
	}
	if _, _, err := l.db.Blobs.Put(bytes.NewReader(data)); err != nil {
		l.t.Fatal(err)
	}
	row := store.Suite{Digest: ident.Sum(data), Name: s.Name, Version: "v1", Scorer: strings.Join(s.Graders, ",")}
	for _, p := range s.Problems {
		row.Items = append(row.Items, store.Item{ID: p.ID})
	}
	if _, err := l.db.AddSuite(context.Background(), row, int64(len(data))); err != nil {
		l.t.Fatal(err)
	}
}

// planSuites is plan with the store's suites.
func (l *lab) planSuites(sets ...string) *plan.Run {
	l.t.Helper()
	r := smoke(l.t, sets...)
	suites, err := Suites(context.Background(), l.db, r)
	if err != nil {
		l.t.Fatal(err)
	}
	p, err := plan.New(r, 0, l.be.Class(), l.sources, suites...)
	if err != nil {
		l.t.Fatal(err)
	}
	return p
}

// executedStages are the stages that a run executed.
func executedStages(q *quiet) string { return strings.Join(q.started, " ") }

var puzzles = []string{`{"nums":[3,4],"target":12}`, `{"nums":[5,6],"target":11}`, `{"nums":[2,3,4],"target":9}`}

// A suite of the store joins a finished run: nothing is trained, and nothing of the
// other suites is sampled or scored again.
func TestSuiteOfTheStore(t *testing.T) {
	l := startedLab(t)
	base, _ := l.execute(l.plan(0))
	l.addSuite("puzzles", puzzles...)
	sets := []string{"eval.final.suites=[test,puzzles]"}
	res, q := l.execute(l.planSuites(sets...))
	if want := "eval.gen[puzzles@start] eval.score[puzzles@start] eval.gen[puzzles] eval.score[puzzles]"; executedStages(q) != want {
		t.Errorf("executed %s\nwant     %s", executedStages(q), want)
	}
	if res.Run.RID != base.Run.RID {
		t.Error("a suite made another run")
	}
	evals, err := l.db.Evals(t.Context(), res.Run.ID)
	if err != nil {
		t.Fatal(err)
	}
	items, protocols := map[string]int64{}, map[ident.Digest]bool{}
	for _, e := range evals {
		items[e.SuiteName], protocols[e.Protocol] = e.Items, true
		if e.SuiteName == "puzzles" && e.Metric == "pass@1" && e.N != 4 {
			t.Errorf("%d samples of each problem", e.N)
		}
	}
	if len(protocols) != 1 || items["puzzles"] != 3 || items["puzzles@start"] != 3 || items["countdown/test"] != 16 {
		t.Errorf("items %v, %d protocols", items, len(protocols))
	}
	samples, err := l.db.Samples(t.Context(), res.Run.ID, store.SampleQuery{Scope: "eval", Label: "puzzles"})
	if err != nil || len(samples) != 12 {
		t.Fatalf("%d samples, %v", len(samples), err)
	}
	for _, s := range samples {
		if s.Verdict == nil || s.Verdict.Scorer.Name != "countdown/1" {
			t.Fatalf("verdict %+v", s.Verdict)
		}
	}
	if _, q = l.execute(l.planSuites(sets...)); executedStages(q) != "" {
		t.Errorf("the second time it executed %s", executedStages(q))
	}
	// Another prompt around the problem is other samples, of suites only.
	_, q = l.execute(l.planSuites(append(sets, `eval.final.prompt="={problem}"`)...))
	if want := "eval.gen[puzzles@start] eval.score[puzzles@start] eval.gen[puzzles] eval.score[puzzles]"; executedStages(q) != want {
		t.Errorf("with another prompt it executed %s", executedStages(q))
	}
}

func TestSuiteThatIsNotThere(t *testing.T) {
	l := newLab(t)
	_, err := Suites(t.Context(), l.db, smoke(t, "eval.final.suites=[test,math500]"))
	var lack *RequireError
	if !errors.As(err, &lack) || lack.ExitCode() != 7 || !strings.Contains(err.Error(), "exp suite add math500 FILE") {
		t.Errorf("%v", err)
	}
	if _, err := plan.New(smoke(t, "eval.final.suites=[math500]"), 0, l.be.Class(), l.sources); err == nil || !strings.Contains(err.Error(), `no suite "math500"`) {
		t.Errorf("a plan without the suite: %v", err)
	}
}

// A suite that the model cannot read is refused before anything is trained.
func TestSuiteThatCannotBeRead(t *testing.T) {
	l := newLab(t)
	l.addSuite("letters", `{"problem":"What is seven?","answer":"7"}`)
	q := &quiet{}
	_, err := l.try(t.Context(), l.planSuites("eval.final.suites=[letters]"), q)
	if err == nil || !strings.Contains(err.Error(), "suite letters: problem 0") || strings.Contains(executedStages(q), "train") {
		t.Errorf("%v, executed %s", err, executedStages(q))
	}
}

// Several graders score the same samples: adding one samples nothing, and their
// verdicts, union and forms are metrics of the suite.
func TestGradersSideBySide(t *testing.T) {
	l := newLab(t)
	first, _ := l.execute(l.plan(0))
	l.addSuite("sums", `{"problem":"2+3=","answer":"5"}`, `{"problem":"4+4=","answer":"8"}`)
	model := filepath.Join(l.db.RunDir(first.Run.RID), stage.MergedDir)
	sets := []string{"name=graders", "sft.steps=0", "train.steps=0", "tokenizer.kind=model", "model={init: pretrained, base: " + model + "}", "eval.final.suites=[sums]"}
	graders := func(list string) (map[string]float64, string) {
		res, q := l.execute(l.planSuites(append(sets, fmt.Sprintf("eval.final.graders=[%s]", list))...))
		evals, err := l.db.Evals(t.Context(), res.Run.ID)
		if err != nil {
			t.Fatal(err)
		}
		last, m := int64(0), map[string]float64{}
		for _, e := range evals {
			last = max(last, e.StageScore)
		}
		for _, e := range evals {
			if e.StageScore == last {
				m[e.Metric] = e.Value
			}
		}
		return m, executedStages(q)
	}
	one, _ := graders("exp")
	if _, there := one["accuracy/exp"]; there {
		t.Error("one grader is compared with itself")
	}
	three, executed := graders("exp, math_dapo, gsm8k_flexible, anls")
	if executed != "eval.score[sums]" {
		t.Errorf("another grader executed %s", executed)
	}
	forms := 0.0
	for name, v := range three {
		if strings.HasPrefix(name, "form/") {
			forms += v
		}
	}
	if three["accuracy/exp"] != three["pass@1"] || three["accuracy/union"] < three["accuracy/gsm8k_flexible"] || forms < 1-1e-12 || forms > 1+1e-12 {
		t.Errorf("metrics %v", three)
	}
	if s, there := three["score/anls"]; !there || s < 0 || s > 1 {
		t.Errorf("metrics %v", three)
	}
	if _, there := three["accuracy/math_dapo"]; !there {
		t.Errorf("metrics %v", three)
	}
	// The grader that gives the verdicts is recorded with each.
	graders("math_dapo")
	samples, err := l.db.Samples(t.Context(), 2, store.SampleQuery{Scope: "eval", Label: "sums"})
	if err != nil || len(samples) == 0 || samples[0].Verdict.Scorer.Name != "math_dapo/1" {
		t.Errorf("%v, %+v", err, samples)
	}
	// Other samples, which the older of these graders judged last.
	sets = append(sets, "eval.final.temperature=0.5")
	graders("math_dapo")
	graders("exp")
	samples, err = l.db.Samples(t.Context(), 2, store.SampleQuery{Scope: "eval", Label: "sums"})
	if err != nil || samples[0].Verdict.Scorer.Name != "math_dapo/1" ||
		samples[len(samples)-1].Verdict.Scorer.Name != "exp/1" {
		t.Errorf("judged again: %v, %+v … %+v", err, samples[0].Verdict, samples[len(samples)-1].Verdict)
	}
	// The view for other programs has the same verdicts, and tells the samples of the two evaluations apart.
	view, err := sql.Open("sqlite3", "file:"+filepath.Join(l.db.Dir(), "exp.db")+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	var got string
	if err := view.QueryRow(`SELECT group_concat(scorer || ' ' || n, ', ') FROM (SELECT scorer, count(*) AS n FROM v_samples
		WHERE evaluation = 'sums' GROUP BY protocol, scorer ORDER BY scorer)`).Scan(&got); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("exp/1 %d, math_dapo/1 %[1]d", len(samples)/2); got != want {
		t.Errorf("the view has %q, want %q", got, want)
	}
}

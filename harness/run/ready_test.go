package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exp/harness/config"
	"exp/harness/forecast"
)

// What would fail in the end fails in the beginning.
func TestReady(t *testing.T) {
	l := newLab(t)
	q := &quiet{}
	_, err := l.try(context.Background(), l.plan(0, "data.max_prompt_tokens=4"), q)
	var bad config.Errors
	if !errors.As(err, &bad) || bad[0].Place() != "--set #1:24" || !strings.Contains(err.Error(), "data.train: problem ") {
		t.Errorf("a prompt that is too long: %v", err)
	}
	for _, want := range []string{"prompts that are too long", "nothing was run but stage prepare"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, err)
		}
	}
	if got := strings.Join(q.started, " "); got != "prepare" {
		t.Errorf("a prompt that is too long: executed %s", got)
	}
	e, err := forecast.Of(smoke(t), 1).Estimate()
	if err != nil {
		t.Fatal(err)
	}
	// 19232 parameters; the log Z head has more. Two checkpoints of weights and two
	// moments each.
	if n := int64(e.Parameters + e.Heads); e.StageBytes(config.Train) != 2*12*n+4*n || e.StageBytes(config.Init) != 4*n || e.StageBytes(config.EvalGen) != 0 {
		t.Errorf("train needs %d bytes, init %d for %d parameters", e.StageBytes(config.Train), e.StageBytes(config.Init), n)
	}
}

// Problems of an evaluation that the run trains on are reported: before training, or when a suite joins later.
func TestContaminationIsReported(t *testing.T) {
	told := func(q *quiet) (list []string) {
		for _, w := range q.warnings {
			if strings.Contains(w, "word for word") {
				list = append(list, w)
			}
		}
		return list
	}
	l := newLab(t)
	rows := []string{`{"nums":[13,14],"target":27}`, `{"nums":[15,16],"target":31}`, `{"nums":[17,18],"target":35}`}
	file := filepath.Join(t.TempDir(), "train.jsonl")
	if err := os.WriteFile(file, []byte(strings.Join(rows[:2], "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	l.addSuite("puzzles", rows...)
	sets := []string{"data.train={source: " + file + ", size: 0}", "sft.steps=0", "train.prompts_per_step=2",
		"train.prompts_per_update=2"}
	if _, q := l.execute(l.plan(0, sets...)); told(q) != nil {
		t.Errorf("of other problems: %q", told(q))
	}
	_, q := l.execute(l.planSuites(append(sets, "eval.final.suites=[test,puzzles]")...))
	want := "suite puzzles: of 3 problems, data.train holds word for word 2 (13,14=27, 15,16=31): scores on them say " +
		"little about new problems"
	if got := told(q); len(got) != 1 || got[0] != want {
		t.Errorf("a suite that joins later: %q", got)
	}
	_, q = l.execute(l.planSuites(append(sets, "eval.final.suites=[test,puzzles]", "train.optim.lr=1e-5")...))
	if got := told(q); len(got) != 1 || got[0] != want {
		t.Errorf("with training: %q", got)
	}
}

// Rests of a killed process in a run's directory are removed by the next.
func TestSweep(t *testing.T) {
	l := newLab(t)
	p := l.plan(0)
	dir := l.db.RunDir(p.RID)
	rests := []string{filepath.Join(dir, "verify.partial", "weights"), filepath.Join(dir, "model.partial", "config.json")}
	for _, f := range rests {
		if err := errors.Join(os.MkdirAll(filepath.Dir(f), 0o777), os.WriteFile(f, []byte("half"), 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	l.execute(p)
	for _, f := range rests {
		if _, err := os.Stat(f); err == nil {
			t.Errorf("%s is still there", f)
		}
	}
}

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// exp eval --score-by has a reward model choose among completions that a run has: nothing is sampled, every completion
// has a score in the record, and exp verify computes the scores again. Where the reward model lies changes nothing.
func TestEvalScorer(t *testing.T) {
	dir := t.TempDir()
	db := filepath.Join(dir, "store")
	if err := os.CopyFS(db, os.DirFS(smokeStore(t))); err != nil {
		t.Fatal(err)
	}
	t.Chdir("../..")
	run := func(args ...string) ended { return call{}.run(append(args, "--store", db)...) }
	judge := func(name string, sets ...string) {
		t.Helper()
		args := []string{"-q", "run", "configs/reward_cpu.yaml"}
		for _, set := range append([]string{"name=" + name, "task={kind: words}", "sft.steps=0", "reward.kind=task", "train.steps=0",
			"data.train.source=none", "data.test.source=none", "eval.final.suites=[]", "reward_model.steps=2"}, sets...) {
			args = append(args, "--set", set)
		}
		run(args...).succeeds(t)
	}
	judge("judge")
	scored := func(args ...string) (ended, map[string]float64) {
		t.Helper()
		e := run(append([]string{"eval", "smoke#0", "--suite", "test", "--json"}, args...)...)
		e.succeeds(t)
		var got struct {
			Data []struct {
				Metric string
				Value  float64
			}
		}
		if err := json.Unmarshal([]byte(e.stdout), &got); err != nil {
			t.Fatal(err)
		}
		values := map[string]float64{}
		for _, r := range got.Data {
			values[r.Metric] = r.Value
		}
		return e, values
	}
	e, values := scored("--score-by", "judge")
	if strings.Contains(e.stderr, "eval.gen label=test start") || !strings.Contains(e.stderr, "eval.score label=test start") {
		t.Errorf("executed:\n%s", e.stderr)
	}
	for _, name := range []string{"best@2", "best@4", "maj@2", "maj@4", "weighted_majority"} {
		v, ok := values[name]
		if !ok || v < 0 || v > values["pass@4"] {
			t.Errorf("%s is %g, %t, with pass@4 %g", name, v, ok, values["pass@4"])
		}
	}

	folder, err := filepath.Glob(filepath.Join(db, "runs", "*", "reward_model"))
	if err != nil || len(folder) != 1 {
		t.Fatal(folder, err)
	}
	moved := filepath.Join(dir, "moved")
	if err := os.CopyFS(moved, os.DirFS(folder[0])); err != nil {
		t.Fatal(err)
	}
	if e, _ := scored("--score-by", moved, "--score-with", "end=true"); strings.Contains(e.stderr, "label=test start") {
		t.Errorf("the same model elsewhere scored again:\n%s", e.stderr)
	}
	e, other := scored("--score-by", moved, "--score-with", "end=true", "--score-with", "vote=exp")
	if !strings.Contains(e.stderr, "label=test start") || other["best@4"] != values["best@4"] {
		t.Errorf("with another vote: %v\n%s", other, e.stderr)
	}
	var first struct {
		Score *float64 `json:"model_score"`
	}
	shown := run("samples", "smoke#0", "-n", "1", "-o", "jsonl")
	if err := json.Unmarshal([]byte(shown.stdout), &first); err != nil || first.Score == nil {
		t.Errorf("no score: %v\n%s", err, shown.stdout)
	}
	if e := run("samples", "smoke#0", "-n", "1"); !strings.Contains(e.stdout, "model score") {
		t.Errorf("people see no score:\n%s", e.stdout)
	}
	if e := run("verify", "smoke#0", "--level", "score"); e.code != 0 || !strings.Contains(e.stdout, "6 stages repeated") {
		t.Errorf("not all of the evaluation before training and after, as first scored and by both votes:\n%s%s", e.stdout, e.stderr)
	}
	if e := run("figure", "choice", "smoke#0", "-o", filepath.Join(dir, "choice.svg")); e.code != 0 {
		t.Errorf("%s%s", e.stdout, e.stderr)
	}
	judge("other", "reward_model.seed=1")
	if e, _ := scored("--score-by", "other"); !strings.Contains(e.stderr, "eval.score label=test start") {
		t.Errorf("another model does not score:\n%s", e.stderr)
	}

	// A process reward model of a run reads steps as it learned them: its scores are probabilities.
	run("-q", "run", "configs/steps_cpu.yaml", "--set", "name=stepwise", "--set", "sft.steps=1", "--set", "reward_model.steps=1",
		"--set", "reward_model.separator=;;", "--set", "eval.final.suites=[]").succeeds(t)
	scored("--score-by", "stepwise")
	shown = run("samples", "smoke#0", "-n", "1", "-o", "jsonl")
	if err := json.Unmarshal([]byte(shown.stdout), &first); err != nil || !(*first.Score > 0 && *first.Score < 1) {
		t.Errorf("no probability: %v\n%s", err, shown.stdout)
	}
	e = run("query", "SELECT json_extract(params, '$.\"eval.final.scorer.separator\"') FROM stages "+
		"WHERE kind = 'eval.score' ORDER BY id DESC LIMIT 1")
	if !strings.Contains(e.stdout, ";;") {
		t.Errorf("another separator:\n%s%s", e.stdout, e.stderr)
	}

	eval := func(args ...string) ended {
		return run(append([]string{"eval", "smoke#0", "--suite", "test"}, args...)...)
	}
	eval("--score-by", "smoke#0").refuses(t, 3, "has trained no reward model")
	eval("--score-by", "nobody").refuses(t, 3, "nobody")
	eval("--score-with", "end=true").refuses(t, 2, "--score-by")
	eval("--score-by", moved, "--score-with", `split="x`).refuses(t, 2, "not a text in quotes")
	eval("--score-by", moved, "--score-with", "ends=true").refuses(t, 2, "unknown key eval.final.scorer.ends")
	eval("--score-by", "configs").refuses(t, 2, "configs/config.json")
}

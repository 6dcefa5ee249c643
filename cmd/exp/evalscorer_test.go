package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
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

// Programs and judges score completions as they reward them: their scores are in the record, what they are is part of
// the evaluation, and exp verify computes the scores again, the judge's from its kept answers.
func TestEvalScorersOfRewards(t *testing.T) {
	dir := t.TempDir()
	db := filepath.Join(dir, "store")
	if err := os.CopyFS(db, os.DirFS(smokeStore(t))); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	eval := func(args ...string) ended {
		return call{}.run(append([]string{"eval", "smoke#0", "--suite", "test", "--store", db}, args...)...)
	}
	scores := func() map[float64]int {
		t.Helper()
		shown := call{}.run("samples", "smoke#0", "-n", "100", "-o", "jsonl", "--store", db)
		found := map[float64]int{}
		for line := range strings.Lines(shown.stdout) {
			var s struct {
				Score *float64 `json:"model_score"`
			}
			if err := json.Unmarshal([]byte(line), &s); err != nil || s.Score == nil {
				t.Fatalf("no score: %v: %s", err, line)
			}
			found[*s.Score]++
		}
		return found
	}
	executed := func(e ended, want bool) {
		t.Helper()
		e.succeeds(t)
		got, sampled := strings.Contains(e.stderr, "eval.score label=test start"), strings.Contains(e.stderr, "eval.gen label=test start")
		if got != want || sampled {
			t.Errorf("scores: %t, want %t:\n%s", got, want, e.stderr)
		}
	}

	script := write("score.sed", `s/^\{"id":"([0-9]+)".*"response":"[^"]*\+[^"]*".*$/{"id":"\1","score":0.75}/;t
s/^\{"id":"([0-9]+)".*$/{"id":"\1","score":0.25}/
`)
	program := "[sed, -u, -E, -f, " + script + "]"
	executed(eval("--score-by", program), true)
	if got := scores(); len(got) != 2 || got[0.75] == 0 || got[0.25] == 0 {
		t.Errorf("the program's scores are %v", got)
	}
	executed(eval("--score-by", program, "--score-with", "workers=2", "--score-with", "batch=1"), false)

	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		fmt.Fprintf(w, `{"choices": [{"message": {"content": "I say %d of 10"}, "finish_reason": "stop"}]}`, strings.Count(string(body), "+"))
	}))
	defer server.Close()
	template := write("judge.txt", "Rate {response} for {prompt}.")
	judge := []string{"--score-by", server.URL + "/v1", "--score-with", "judge.template=" + template, "--score-with", "judge.model=toy",
		"--score-with", `judge.pattern=([0-9]+) of 10`}
	executed(eval(judge...), true)
	first := asked.Load()
	if got := scores(); len(got) < 2 || first == 0 {
		t.Errorf("the judge's scores are %v, of %d requests", got, first)
	}
	if err := os.Rename(template, filepath.Join(dir, "moved.txt")); err != nil {
		t.Fatal(err)
	}
	judge[3] = "judge.template=" + filepath.Join(dir, "moved.txt")
	executed(eval(judge...), false)
	judge[3] = "judge.template=" + write("other.txt", "How good is {response} for {prompt}?")
	executed(eval(judge...), true)
	second := asked.Load()

	// The run's own weights write numbers, which are scores.
	own, err := filepath.Glob(filepath.Join(db, "runs", "*", "model"))
	if err != nil || len(own) == 0 {
		t.Fatal(own, err)
	}
	genrm := []string{"--score-by", own[0], "--score-with", "kind=genrm", "--score-with", "judge.template=" + write("genrm.txt", "{prompt}"),
		"--score-with", `judge.pattern=([0-9])`, "--score-with", "judge.context=48", "--score-with", "judge.max_tokens=16",
		"--max-not-graded", "1"}
	executed(eval(genrm...), true)

	verify := func(want string) {
		t.Helper()
		e := call{}.run("verify", "smoke#0", "--level", "score", "--store", db)
		if e.code != 0 || asked.Load() != second || !strings.Contains(e.stdout, want) {
			t.Errorf("%d requests more, want %s:\n%s%s", asked.Load()-second, want, e.stdout, e.stderr)
		}
	}
	verify("8 stages repeated; NOT checked: the scores on") // the judge's template has moved
	write("judge.txt", "Rate {response} for {prompt}.")
	verify("10 stages repeated")

	// --score-by none drops the scorer of a run's configuration.
	call{}.run("run", "../../configs/smoke_cpu.yaml", "--set", "name=scored", "--set", "eval.final.scorer={kind: command, command: "+
		program+"}", "--store", db).succeeds(t)
	without := call{}.run("eval", "scored", "--suite", "test", "--score-by", "none", "--json", "--store", db)
	if without.succeeds(t); strings.Contains(without.stdout, "best@") {
		t.Errorf("a scorer chose:\n%s", without.stdout)
	}

	eval("--score-by", "[]").refuses(t, 2, "eval.final.scorer.command names no program")
	eval("--score-by", "[sed").refuses(t, 2, "--score-by", "sequence end token")
	eval("--score-by", "[./nobody]").refuses(t, 2, "nobody")
	eval(judge[:2]...).refuses(t, 2, "eval.final.scorer.judge.model", "eval.final.scorer.judge.template")
	eval("--score-by", server.URL+"/v1/chat/completions", judge[2], judge[3], judge[4], judge[5]).refuses(t, 2,
		"eval.final.scorer.judge.url ends in /chat/completions")
	eval(append(judge, "--score-with", "judge.key_env=EXP_NO_SUCH_KEY", "--score-with", "judge.high=9")...).refuses(t, 7,
		"eval.final.scorer.judge.key_env names EXP_NO_SUCH_KEY")
	eval("--score-by", program, "--score-with", "label=1").refuses(t, 2, "eval.final.scorer.label has no effect")
}

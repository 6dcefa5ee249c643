package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exp/harness/rescore"
)

// Two problems, two responses each. a: 1/2 as a fraction and as a decimal; b: a box and
// nothing.
const evalResponses = `{"id":"a","problem":"Half?","gold":"\\frac{1}{2}","response":"Answer: \\frac12","source":"math_dapo"}
{"id":"a","problem":"Half?","gold":"\\frac{1}{2}","response":"So \\boxed{0.5}.","source":"math_dapo"}
{"id":"b","problem":"Six?","gold":"6","response":"So \\boxed{6}.","source":"math_dapo"}
{"id":"b","problem":"Six?","gold":"6","response":"I do not know","finish":"length","source":"math_dapo"}
`

// inFolder writes files and changes to their folder, so that messages name them
// without the folder.
func inFolder(t *testing.T, contents map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range contents {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	return dir
}

func TestEval(t *testing.T) {
	var shown string
	t.Run("report", func(t *testing.T) {
		inFolder(t, map[string]string{"responses.jsonl": evalResponses, "results.json": `{"results":{"house":{"exact_match,none":0.25,"exact_match_stderr,none":0.1}}}`})
		plain := map[string]string{"NO_COLOR": "1"}
		e := call{env: plain}.run("eval", "--responses", "responses.jsonl", "--out", "verdicts.jsonl", "--published", "results.json", "--protocol", "flowrl-math", "--partial")
		e.succeeds(t)
		verdicts, err := os.ReadFile("verdicts.jsonl")
		if err != nil {
			t.Fatal(err)
		}
		shown = e.stdout + "--\n" + string(verdicts)
	})
	golden(t, "eval", shown)
}

func TestEvalForPrograms(t *testing.T) {
	inFolder(t, map[string]string{"responses.jsonl": evalResponses})

	// exp accepts all answers, math_dapo the equal texts, math_reward the boxes whose
	// decimal it normalises.
	e := call{}.run("eval", "--responses", "responses.jsonl", "--grader", "exp", "--grader", "math_dapo", "--json")
	e.succeeds(t)
	var got struct {
		Schema string
		Data   rescore.Report
	}
	if err := json.Unmarshal([]byte(e.stdout), &got); err != nil || got.Schema != "exp.eval/1" {
		t.Fatalf("%v\n%s", err, e.stdout)
	}
	want := map[string]float64{"exp": 0.75, "math_dapo": 0.5, "union": 0.75}
	for _, g := range got.Data.Graders {
		if g.Metrics[0].Name != "pass@1" || g.Metrics[0].Value != want[g.Name] {
			t.Errorf("%s: %+v, want %v", g.Name, g.Metrics[0], want[g.Name])
		}
		delete(want, g.Name)
	}
	if len(want) > 0 || got.Data.Disagreements != 1 {
		t.Errorf("not there: %v; %d disagreements", want, got.Data.Disagreements)
	}
}

// The same responses in another program's form, with our verdicts, score the same; its
// own verdicts are shown next to ours.
func TestEvalExchange(t *testing.T) {
	inFolder(t, map[string]string{"responses.jsonl": evalResponses})
	e := call{}.run("eval", "--responses", "responses.jsonl", "--grader", "exp", "--write", "verl-dump=5.jsonl", "--write", "lm-eval-results=results.json")
	e.succeeds(t)
	e = call{}.run("eval", "--responses", "5.jsonl", "--grader", "exp", "--published", "results.json", "--json")
	e.succeeds(t)
	var got struct{ Data rescore.Report }
	if err := json.Unmarshal([]byte(e.stdout), &got); err != nil {
		t.Fatal(err)
	}
	d := got.Data
	if d.Format != "verl-dump" || len(d.Graders) != 2 || d.Graders[1].Name != "file:acc" {
		t.Fatalf("%+v", d)
	}
	for _, g := range d.Graders {
		if g.Metrics[0].Value != 0.75 {
			t.Errorf("%s: %v, want 0.75", g.Name, g.Metrics[0].Value)
		}
	}
	if len(d.Published) == 0 || d.Published[0].Metric != "maj@2,exp" && d.Published[0].Metric != "pass@1,exp" || d.Published[0].Task != "responses" {
		t.Errorf("published: %+v", d.Published)
	}
}

func TestEvalRefuses(t *testing.T) {
	one := `{"id":"a","gold":"1","response":"x"}` + "\n"
	inFolder(t, map[string]string{
		"good.jsonl": one, "uneven.jsonl": one + one + `{"id":"b","gold":"1","response":"x"}`, "bare.jsonl": `{"id":"a","response":"x"}`, "broken.jsonl": one + "{oops",
		"suite.jsonl": `{"id":"a","problem":"P","answer":"1"}` + "\n" + `{"id":"b","problem":"Q","answer":"1"}`, "results.json": `{"results":{}}`,
	})
	for _, tt := range []struct {
		name string
		args []string
		code int
		want []string
	}{
		{"no file", nil, 2, []string{"RUN, FOLDER or --responses FILE"}},
		{"file not there", []string{"--responses", "none"}, 3, []string{"none"}},
		{"broken line", []string{"--responses", "broken.jsonl"}, 2, []string{"broken.jsonl:2: not JSON"}},
		{"scores", []string{"--responses", "results.json"}, 2, []string{"scores but no responses"}},
		{"no gold answers", []string{"--responses", "bare.jsonl"}, 2, []string{"bare.jsonl:1: no gold answer", "--suite"}},
		{"missing responses", []string{"--responses", "good.jsonl", "--suite", "suite.jsonl"}, 2, []string{"1 of 2 problems of suite have no response", "--partial"}},
		{"uneven", []string{"--responses", "uneven.jsonl"}, 2, []string{"some problems have 1 responses and others 2"}},
		{"protocol", []string{"--responses", "good.jsonl", "--protocol", "flowrl-math"}, 2, []string{"16 samples per problem; the file has 1"}},
		{"k above n", []string{"--responses", "good.jsonl", "--k", "1,2"}, 2, []string{"not extrapolated"}},
		{"another grader", []string{"--responses", "good.jsonl", "--grader", "sympy"}, 2, []string{`unknown grader "sympy"`}},
		{"no route", []string{"--responses", "good.jsonl", "--grader", "verl"}, 2, []string{"no grader for this data source"}},
		{"another suite", []string{"--responses", "good.jsonl", "--suite", "results.json"}, 2, []string{"results.json"}},
		{"form to write", []string{"--responses", "good.jsonl", "--write", "csv=x"}, 2, []string{`unknown format "csv"`, "lm-eval"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			call{}.run(append([]string{"eval"}, tt.args...)...).refuses(t, tt.code, tt.want...)
		})
	}
	e := call{}.run("eval", "--responses", "good.jsonl", "--suite", "suite.jsonl", "--partial")
	e.succeeds(t)
	if !strings.Contains(e.stdout, "partial: 1 of 2 problems have no response and are not counted") {
		t.Error(e.stdout)
	}
}

func TestSuite(t *testing.T) {
	var shown strings.Builder
	t.Run("session", func(t *testing.T) { suiteSession(t, &shown) })
	golden(t, "suite", shown.String())
}

func suiteSession(t *testing.T, shown *strings.Builder) {
	dir := inFolder(t, map[string]string{
		"house.jsonl":  `{"id":"a","problem":"Half?","answer":"\\frac{1}{2}","level":"Level 2"}` + "\n" + `{"id":"b","problem":"Six?","answer":6.0,"level":"Level 3"}`,
		"answers.json": `[{"id":"a","response":"Answer: 0.5"},{"id":"b","response":"Answer: 6"}]`,
	})
	env := map[string]string{"NO_COLOR": "1", "EXP_STORE": filepath.Join(dir, "st")}
	run := func(args ...string) ended { return call{env: env}.run(args...) }
	for _, args := range [][]string{
		{"suite", "add", "house", "house.jsonl"}, {"suite", "ls"}, {"suite", "show", "house", "--items"}, {"suite", "verify"}, {"eval", "--responses", "answers.json", "--suite", "house"},
	} {
		e := run(args...)
		e.succeeds(t)
		shown.WriteString("$ exp " + strings.Join(args, " ") + "\n" + e.stdout)
	}

	run("suite", "add", "amc23", "house.jsonl").refuses(t, 4, "has 2 different problems; amc23 has 40")
	run("suite", "add", "house", "house.jsonl", "--expect", "abcd").refuses(t, 4, "not abcd")
	run("suite", "add", "x", "none.jsonl").refuses(t, 3, "none.jsonl")
	run("suite", "add", "again", "house.jsonl").refuses(t, 2, "already, as house")
	run("suite", "show", "hose").refuses(t, 3, `no suite "hose"`, "did you mean house?")

	// A blob that was changed behind the store's back.
	paths, err := filepath.Glob(filepath.Join(dir, "st", "blobs", "sha256", "*", "*"))
	if err != nil || len(paths) != 1 {
		t.Fatal(paths, err)
	}
	if err := os.Chmod(paths[0], 0o644); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	if err := os.WriteFile(paths[0], data, 0o644); err != nil {
		t.Fatal(err)
	}
	if e := run("suite", "verify"); e.code != 4 || !strings.Contains(e.stdout, "corrupt blob") || !strings.Contains(e.stderr, "1 of 1 suites are damaged") {
		t.Errorf("%+v", e)
	}
	run("eval", "--responses", "answers.json", "--suite", "house").refuses(t, 4, "house")
	run("suite", "rm", "house").succeeds(t)
	run("suite", "show", "house").refuses(t, 3, "no suite")
}

// A paper's scores on the suite are shown next to ours.
func TestEvalPublishedPaper(t *testing.T) {
	var problems, responses strings.Builder
	for i := range 30 { // as many as AIME has
		fmt.Fprintf(&problems, `{"id":"%d","problem":"%d + 1?","answer":"%d"}`+"\n", i, i, i+1)
		fmt.Fprintf(&responses, `{"id":"%d","response":"\\boxed{%d}"}`+"\n", i, i+1)
	}
	inFolder(t, map[string]string{"aime24.jsonl": problems.String(), "r.jsonl": responses.String(), "other.jsonl": problems.String()})
	e := call{}.run("eval", "--responses", "r.jsonl", "--suite", "aime24.jsonl", "--grader", "exp", "--published", "flowrl_v3")
	e.succeeds(t)
	for _, want := range []string{"table 1-7b: FlowRL", "avg@16 by flowrl-math-paper", "0.1541", "table 7: FlowRL, β = 5"} {
		if !strings.Contains(e.stdout, want) {
			t.Errorf("no %q in\n%s", want, e.stdout)
		}
	}
	for want, args := range map[string][]string{
		"needs --suite": {"--responses", "r.jsonl", "--published", "flowrl_v3"},
		"it has aime24": {"--responses", "r.jsonl", "--suite", "other.jsonl", "--published", "flowrl_v3"},
		"no such file":  {"--responses", "r.jsonl", "--published", "flowrl_v9"},
	} {
		e := call{}.run(append([]string{"eval"}, args...)...)
		if e.code == 0 || !strings.Contains(e.stderr, want) {
			t.Errorf("%v: code %d, %s", args, e.code, e.stderr)
		}
	}
}

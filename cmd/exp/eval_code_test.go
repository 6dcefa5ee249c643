package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/cmd/exp/cli"
	"exp/harness/rescore"
)

// Two problems in HumanEval's layout, and one in LiveCodeBench's.
const (
	codeSuite = `{"task_id":"t/0","prompt":"def double(x):\n    \"\"\"Twice x.\"\"\"\n","entry_point":"double","canonical_solution":"    return 2*x\n","test":"def check(f):\n    assert f(2) == 4\n    assert f(3) == 6\n"}
{"task_id":"t/1","prompt":"def same(x):\n    \"\"\"x itself.\"\"\"\n","entry_point":"same","canonical_solution":"    return x\n","test":"def check(f):\n    assert f(1) == 1\n"}
`
	codeSamples = `{"task_id":"t/0","completion":"    return x + x\n"}
{"task_id":"t/0","completion":"    return 4\n"}
{"task_id":"t/1","solution":"def same(x):\n    return x\n"}
{"task_id":"t/1","completion":"    return (\n"}
`
	contestSuite = `{"question_title":"Yes","question_content":"Say yes twice.","question_id":"q1","contest_id":"c","contest_date":"2024-09-01","starter_code":"","public_test_cases":"[{\"input\":\"1\\n\",\"output\":\"1\\n2\\n\",\"testtype\":\"stdin\"},{\"input\":\"5\\n\",\"output\":\"5\\n6\\n\",\"testtype\":\"stdin\"}]"}
`
	contestSamples = "[{\"question_id\":\"q1\",\"question_content\":\"Say yes twice.\",\"output_list\":[\"```python\\nn=int(input())\\nprint(n)\\nprint(n+1)\\n```\",\"```python\\nprint(1)\\nprint(2)\\n```\"]}]"
)

// usable skips where this machine cannot run programs.
func usable(t *testing.T) {
	t.Helper()
	if e := (call{}.run("sandbox", "check")); e.code != int(cli.ExitOK) {
		t.Skipf("no sandbox: %s", e.stderr)
	}
}

func evalJSON(t *testing.T, args ...string) (d rescore.Report, shown string) {
	t.Helper()
	e := call{}.run(append([]string{"eval", "--json"}, args...)...)
	e.succeeds(t)
	var got struct{ Data rescore.Report }
	if err := json.Unmarshal([]byte(e.stdout), &got); err != nil {
		t.Fatalf("%v\n%s", err, e.stdout)
	}
	return got.Data, e.stderr
}

// metricsOf are the metrics of a grader.
func metricsOf(t *testing.T, d rescore.Report, grader string) map[string]float64 {
	t.Helper()
	for _, g := range d.Graders {
		if g.Name != grader {
			continue
		}
		m := map[string]float64{}
		for _, x := range g.Metrics {
			m[x.Name] = x.Value
		}
		return m
	}
	t.Fatalf("no grader %s in %+v", grader, d.Graders)
	return nil
}

// Samples of HumanEval and of LiveCodeBench are run, and graded by all rules at once.
func TestEvalPrograms(t *testing.T) {
	usable(t)
	inFolder(t, map[string]string{"house.jsonl": codeSuite, "samples.jsonl": codeSamples, "contest.jsonl": contestSuite, "out.json": contestSamples})
	d, _ := evalJSON(t, "--responses", "samples.jsonl", "--suite", "house.jsonl")
	want := map[string]float64{"pass@1": 0.5, "pass@2": 1, "tests_passed": 0.5}
	if diff := cmp.Diff(want, metricsOf(t, d, "code_partial")); diff != "" {
		t.Error(diff)
	}
	ends := map[string]int{}
	for _, e := range d.Ends {
		ends[string(e.Verdict)] = e.Samples["code"]
	}
	if diff := cmp.Diff(map[string]int{"ok": 2, "wrong_answer": 1, "compile_error": 1}, ends); diff != "" {
		t.Error(diff)
	}

	// The second program is right on the first of two tests.
	d, stderr := evalJSON(t, "--responses", "out.json", "--suite", "contest.jsonl", "--grader", "code", "--grader", "code_partial", "--out", "verdicts.jsonl")
	if got := metricsOf(t, d, "code")["pass@1"]; got != 0.5 {
		t.Errorf("pass@1 %v", got)
	}
	if got := metricsOf(t, d, "code_partial")["tests_passed"]; got != 0.75 {
		t.Errorf("tests_passed %v", got)
	}
	if strings.Contains(stderr, "right suite") {
		t.Errorf("the question is part of the prompt: %s", stderr)
	}
}

// A suite of programs is kept with its graders, and graded from the store.
func TestSuiteOfPrograms(t *testing.T) {
	usable(t)
	inFolder(t, map[string]string{"house.jsonl": codeSuite, "samples.jsonl": codeSamples})
	for _, args := range [][]string{
		{"--store", "st", "suite", "add", "house.jsonl"},
		{"--store", "st", "suite", "verify"},
		{"--store", "st", "eval", "--responses", "samples.jsonl", "--suite", "house", "--write", "humaneval=results.jsonl"},
	} {
		e := call{}.run(args...)
		e.succeeds(t)
		if args[2] == "eval" && (!strings.Contains(e.stdout, "code_upstream") || !strings.Contains(e.stdout, "compile_error")) {
			t.Error(e.stdout)
		}
	}
}

// Graders of programs want tests and a sandbox, and go with no others.
func TestEvalProgramsRefuses(t *testing.T) {
	inFolder(t, map[string]string{"house.jsonl": codeSuite, "samples.jsonl": codeSamples, "responses.jsonl": evalResponses})
	for _, tt := range []struct {
		args []string
		code cli.ExitCode
		says string
	}{
		{[]string{"--responses", "responses.jsonl", "--grader", "code"}, cli.ExitUsage, "have no tests"},
		{[]string{"--responses", "samples.jsonl", "--suite", "house.jsonl", "--grader", "code", "--grader", "exp"}, cli.ExitUsage, "so they share no problem"},
	} {
		e := call{}.run(append([]string{"eval"}, tt.args...)...)
		if e.code != int(tt.code) || !strings.Contains(e.stderr, tt.says) {
			t.Errorf("%v: code %d, %s", tt.args, e.code, e.stderr)
		}
	}
	t.Setenv("PATH", t.TempDir())
	e := call{}.run("eval", "--responses", "samples.jsonl", "--suite", "house.jsonl")
	if e.code != int(cli.ExitEvaluation) || !strings.Contains(e.stderr, "python") {
		t.Errorf("without an interpreter: code %d, %s", e.code, e.stderr)
	}
}

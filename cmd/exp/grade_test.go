package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const gradeInput = `{"id": "a", "gold": "\\frac{1}{2}", "prediction": "0.5", "expected": true, "tags": ["core", "decimal"]}
{"id": 2, "gold": 42, "response": "So \\boxed{41}.", "expected": false, "tags": ["core"]}

{"id": "c", "gold": ["7", "8"], "prediction": "so \\boxed{8}", "kind": "response"}
{"gold": "5 \\text{ points}", "prediction": "5 \\text{ widgets}", "expected": true}
`

func TestGrade(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.jsonl"), filepath.Join(dir, "out.jsonl")
	if err := os.WriteFile(in, []byte(gradeInput), 0o644); err != nil {
		t.Fatal(err)
	}
	e := call{env: map[string]string{"NO_COLOR": "1"}}.run("grade", "--in", in, "--out", out)
	e.succeeds(t)
	rows, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "grade", string(rows)+"--\n"+e.stdout)

	// Without --out the same rows go to the output, and the agreement to stderr.
	plain := call{env: map[string]string{"NO_COLOR": "1"}, stdin: gradeInput}.run("grade", "--in", "-")
	plain.succeeds(t)
	if plain.stdout != string(rows) || plain.stderr != e.stdout {
		t.Errorf("stdout\n%sstderr\n%s", plain.stdout, plain.stderr)
	}
}

func TestGradeForPrograms(t *testing.T) {
	e := call{stdin: gradeInput}.run("grade", "--grader", "math_dapo", "--in", "-", "--out", os.DevNull, "--json")
	e.succeeds(t)
	var got struct {
		Schema string
		Data   []struct {
			Tag            string
			Rows, Agree    int
			Agreement      float64
			FalseNegatives int `json:"false_negatives"`
		}
	}
	if err := json.Unmarshal([]byte(e.stdout), &got); err != nil || got.Schema != "exp.grade/1" || len(got.Data) != 3 {
		t.Fatalf("%v\n%s", err, e.stdout)
	}
	// DAPO's text comparison knows neither 0.5 = 1/2 nor widgets; 41 is not 42 to it.
	if all := got.Data[0]; all.Tag != "all" || all.Rows != 4 || all.Agree != 1 || all.FalseNegatives != 2 {
		t.Errorf("%+v", all)
	}
}

// A grader of shares takes all gold answers together, and gives scores and their means.
func TestGradeShares(t *testing.T) {
	rows := `{"id": 1, "gold": ["nokia", "nokia", "nok"], "prediction": "nok", "tags": ["phones"]}
{"id": 2, "gold": ["nokia", "nokia", "nok"], "response": "\boxed{nokia}"}`
	e := call{stdin: rows}.run("grade", "--in", "-", "--grader", "vqav2", "--out", os.DevNull, "--json")
	e.succeeds(t)
	var got struct {
		Data []struct {
			Tag           string
			Rows, Correct int
			Score         float64
		}
	}
	if err := json.Unmarshal([]byte(e.stdout), &got); err != nil || len(got.Data) != 2 {
		t.Fatalf("%v\n%s", err, e.stdout)
	}
	nok, nokia := 2.0/9, 4.0/9 // of three people: one by two others, then two by one other and one by two
	if all, one := got.Data[0], got.Data[1]; math.Abs(all.Score-(nok+nokia)/2) > 1e-12 || math.Abs(one.Score-nok) > 1e-12 ||
		all.Correct != 0 || one.Tag != "phones" {
		t.Errorf("%+v", got.Data)
	}
	e = call{stdin: rows}.run("grade", "--in", "-", "--grader", "vqav2")
	if e.succeeds(t); !strings.Contains(e.stdout, `"score":0.2222222222222222}`) {
		t.Errorf("rows\n%s", e.stdout)
	}
}

// TestGradeGolds: gold answers that our grader does not understand are counted and listed; a peer's grader does
// not ask.
func TestGradeGolds(t *testing.T) {
	rows := `{"id": "a", "gold": "12", "prediction": "12"}
{"id": "b", "gold": "12 squared", "prediction": "144"}
{"id": "c", "gold": ["\\frac{1}{", "7"], "prediction": "7"}`
	for _, tt := range []struct {
		grader string
		warns  bool
	}{{"exp", true}, {"math_dapo", false}} {
		e := call{stdin: rows}.run("grade", "--in", "-", "--grader", tt.grader)
		e.succeeds(t)
		for _, want := range []string{"does not understand 1 gold answer,", `row "b": gold "12 squared"`} {
			if strings.Contains(e.stderr, want) != tt.warns {
				t.Errorf("%s: %q: %s", tt.grader, want, e.stderr)
			}
		}
	}
}

// TestSuiteGolds: exp suite add counts and lists the gold answers that our grader does not understand.
func TestSuiteGolds(t *testing.T) {
	dir := t.TempDir()
	rows := `{"id": "a", "problem": "How many?", "answer": "12"}
{"id": "b", "problem": "How many now?", "answer": "12 squared"}
`
	if err := os.WriteFile(filepath.Join(dir, "rows.jsonl"), []byte(rows), 0o644); err != nil {
		t.Fatal(err)
	}
	e := call{}.run("--store", filepath.Join(dir, "st"), "suite", "add", "counts", filepath.Join(dir, "rows.jsonl"))
	e.succeeds(t)
	for _, want := range []string{"does not understand 1 of 2 gold answers", `problem b: gold "12 squared"`, "is not a unit"} {
		if !strings.Contains(e.stderr, want) {
			t.Errorf("no %q: %s", want, e.stderr)
		}
	}
}

// TestGradeTokenizer: an answer ends at a special token of the given tokenizer.
func TestGradeTokenizer(t *testing.T) {
	dir := t.TempDir()
	texts := filepath.Join(dir, "texts.txt")
	if err := os.WriteFile(texts, []byte("one two three\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(dir, "tokenizer")
	call{}.run("tokenizer", "train", texts, "--vocab-size", "300", "--special", "[STOP]", "--out", folder).succeeds(t)
	row := `{"id": 1, "gold": "7", "response": "So \\boxed{7}.[STOP] And \\boxed{8}."}`
	for _, tt := range []struct {
		args []string
		want string
	}{{nil, `"correct":false`}, {[]string{"--tokenizer", folder}, `"correct":true`}} {
		e := call{stdin: row}.run(append([]string{"grade", "--in", "-"}, tt.args...)...)
		e.succeeds(t)
		if !strings.Contains(e.stdout, tt.want) {
			t.Errorf("%v: %s", tt.args, e.stdout)
		}
	}
	call{stdin: row}.run("grade", "--in", "-", "--tokenizer", folder, "--grader", "prime").refuses(t, 2, "reads whole texts")
	call{stdin: row}.run("grade", "--in", "-", "--tokenizer", dir).refuses(t, 3, "--tokenizer")
}

func TestGradeStrict(t *testing.T) {
	row := `{"id": 1, "gold": "(1,2,3)", "prediction": "[1,2,3]"}`
	for _, tt := range []struct{ flag, want string }{{"--strict=false", `"correct":true,"sure":false`}, {"--strict", `"correct":false,"sure":false`}} {
		e := call{stdin: row}.run("grade", "--in", "-", tt.flag)
		e.succeeds(t)
		if !strings.Contains(e.stdout, tt.want) {
			t.Errorf("%s: %s", tt.flag, e.stdout)
		}
	}
}

func TestGradeRefuses(t *testing.T) {
	dir := t.TempDir()
	kept := filepath.Join(dir, "kept.jsonl")
	if err := os.WriteFile(kept, []byte("old\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, stdin string
		args        []string
		code        int
		want        []string
	}{
		{"no file", "", nil, 2, []string{"--in FILE is missing"}},
		{"another grader", "", []string{"--in", "-", "--grader", "sympy"}, 2, []string{`unknown grader "sympy"`, "math_dapo"}},
		{"file not there", "", []string{"--in", filepath.Join(dir, "none")}, 3, []string{"none"}},
		{"no JSON", "{\"gold\": 1, \"prediction\": \"1\"}\n{oops", []string{"--in", "-", "--out", kept}, 2, []string{"line 2", "a row is"}},
		{"a label of a wrong kind", `{"gold": "1", "prediction": "1", "expected": "yes"}`, []string{"--in", "-", "--out", kept}, 2,
			[]string{`line 1: "expected" is a JSON string, not a bool`}},
		{"an array", `[{"gold": "1"}]`, []string{"--in", "-", "--out", kept}, 2, []string{"line 1: a JSON array, not an object"}},
		{"no gold", `{"prediction": "1"}`, []string{"--in", "-", "--out", kept}, 2, []string{"line 1: no gold"}},
		{"no answer", `{"gold": "1"}`, []string{"--in", "-", "--out", kept}, 2, []string{"neither prediction nor response"}},
		{"gold of a wrong kind", `{"gold": true, "prediction": "1"}`, []string{"--in", "-", "--out", kept}, 2, []string{"line 1", "gold is not a text"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			call{stdin: tt.stdin}.run(append([]string{"grade"}, tt.args...)...).refuses(t, tt.code, tt.want...)
		})
	}
	if data, err := os.ReadFile(kept); err != nil || string(data) != "old\n" {
		t.Errorf("what was there is gone: %q, %v", data, err)
	}
}

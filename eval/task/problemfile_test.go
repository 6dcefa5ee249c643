package task

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/train/rollout"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares problems, as Write writes them, with testdata/name.golden.
func golden(t *testing.T, name string, problems []rollout.Problem) {
	t.Helper()
	var got bytes.Buffer
	if err := Write(&got, problems); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// The generated problems; a change here changes every data set.
func TestCountdownGolden(t *testing.T) {
	golden(t, "countdown", generate(t, newTestCountdown(t, nil), Test, 10, 1))
}

func outcomesProblem(t *testing.T, task Task) rollout.Problem {
	t.Helper()
	return generate(t, task, Train, 1, 0)[0]
}

// Read reads back what Write wrote, and writing again gives the same bytes.
func TestProblemFileRoundTrip(t *testing.T) {
	tasks := generating(t)
	tasks["outcomes"] = newTestOutcomes(t)
	for name, task := range tasks {
		t.Run(name, func(t *testing.T) {
			want := generate(t, task, Train, 50, 3)
			path := filepath.Join(t.TempDir(), "problems.jsonl")
			var file bytes.Buffer
			if err := Write(&file, want); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, file.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
			got, err := ReadFile(task, path)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("read %+v, want %+v", got[0], want[0])
			}
			var again bytes.Buffer
			if err := Write(&again, got); err != nil || !bytes.Equal(again.Bytes(), file.Bytes()) {
				t.Errorf("written again it differs (error %v)", err)
			}
		})
	}
}

func TestReadCountdownLayout(t *testing.T) {
	task := newTestCountdown(t, nil)
	file := `{"id": 0, "nums": [39, 26, 93], "target": 62, "solution": "93 / (39 / 26)"}

{"nums": [5, 3], "target": 8}
{"nums": [3, 5], "target": 8, "solution": "3+5", "comment": "again"}
{"nums": [1, 2, 3, 4, 5, 6], "target": 21}
`
	got, err := Read(task, strings.NewReader(file), "f")
	if err != nil {
		t.Fatal(err)
	}
	type row struct{ ID, Prompt, Target, Data string }
	want := []row{
		{"26,39,93=62", "26,39,93=62:", "93*26/39", `{"numbers":[26,39,93],"target":62,"solutions":1}`},
		{"3,5=8", "3,5=8:", "", `{"numbers":[3,5],"target":8,"solutions":1}`},
		{"3,5=8#2", "3,5=8:", "5+3", `{"numbers":[3,5],"target":8,"solutions":1}`},
		{"1,2,3,4,5,6=21", "1,2,3,4,5,6=21:", "", `{"numbers":[1,2,3,4,5,6],"target":21,"solutions":0}`},
	}
	var rows []row
	for _, p := range got {
		rows = append(rows, row{p.ID, p.Prompt, p.Target, string(p.Data)})
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReadBrokenLine(t *testing.T) {
	const good = `{"nums": [3, 5], "target": 8}` + "\n"
	const stored = `{"id":"a","prompt":"3,5=8:","data":{"numbers":[3,5],"target":8,"solutions":1}}` + "\n"
	tests := []struct {
		name, file string
		want       string
	}{
		{"cut off", good + `{"nums": [3, 5], "tar`, "f.jsonl:2: not JSON at byte 21: unexpected end of JSON input"},
		{"two on a line", good + "\n" + `{"nums":[1]} {}`, "f.jsonl:3: not JSON at byte 14: invalid character '{' after top-level value"},
		{"no object", "[1]", "f.jsonl:1: a JSON array, not an object"},
		{"not UTF-8", good + "{\"nums\": \"\xff\"}", "f.jsonl:2: not UTF-8"},
		{"wrong type", `{"nums": "3", "target": 8}`, `f.jsonl:1: "nums" is a JSON string, not []int64`},
		{"a decimal", `{"nums": [3.5], "target": 8}`, `f.jsonl:1: "nums" is a JSON number 3.5, not int64`},
		{"no target", `{"nums": [3, 5]}`, `f.jsonl:1: no "target"`},
		{"no numbers", `{"target": 8}`, "f.jsonl:1: no numbers"},
		{"zero", `{"nums": [0, 8], "target": 8}`, "f.jsonl:1: number 0 is not positive"},
		{"negative target", `{"nums": [3, 8], "target": -5}`, "f.jsonl:1: target -5 is not positive"},
		{"too large", `{"nums": [5000000000, 5000000000], "target": 8}`, "f.jsonl:1: the numbers [5000000000 5000000000] are too large for exact arithmetic"},
		{"wrong solution", `{"nums": [3, 5], "target": 8, "solution": "5-3"}`, `f.jsonl:1: wrong solution "5-3": is 2, not 8`},
		{"stored without id", `{"prompt":"3,5=8:"}`, `f.jsonl:1: no "id"`},
		{"stored without prompt", `{"id":"a","prompt":""}`, `f.jsonl:1: empty "prompt"`},
		{"stored without data", `{"id":"a","prompt":"3,5=8:"}`, "f.jsonl:1: data of a countdown problem: unexpected end of JSON input"},
		{"stored twice", stored + stored, `f.jsonl:2: second problem with id "a"`},
		{"long", good + `{"nums": "` + strings.Repeat("x", maxLine) + `"}`, "f.jsonl:2: longer than 16777216 bytes"},
	}
	task := newTestCountdown(t, nil)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Read(task, strings.NewReader(tt.file), "f.jsonl")
			var line *LineError
			if !errors.As(err, &line) || err.Error() != tt.want {
				t.Errorf("error %q\nwant  %q", err, tt.want)
			}
		})
	}
}

func TestReadOtherTasks(t *testing.T) {
	tests := []struct {
		task       Task
		line, want string
	}{
		{newTestWords(t, 2), `{"question": "1+1?", "answer": "2"}`, `f:1: no "prompt"`},
		{newTestWords(t, 2), `{"id": "a", "prompt": "1+1?", "answer": "two"}`, `f:1: the answer "two" is not an integer`},
		{newTestOutcomes(t), `{"id": "a", "prompt": "!"}`, `f:1: the prompt is "!"; the task has only "?"`},
	}
	for _, tt := range tests {
		if _, err := Read(tt.task, strings.NewReader(tt.line), "f"); err == nil || err.Error() != tt.want {
			t.Errorf("%s: error %v, want %s", tt.line, err, tt.want)
		}
	}
}

func TestReadFileMissing(t *testing.T) {
	_, err := ReadFile(newTestCountdown(t, nil), filepath.Join(t.TempDir(), "none.jsonl"))
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "none.jsonl") {
		t.Errorf("error %v, want one that says that none.jsonl is missing", err)
	}
}

// Any file is read or rejected with its line; what was read can be written and read again.
func FuzzRead(f *testing.F) {
	task := newTestCountdown(f, nil)
	f.Add(`{"nums": [3, 5], "target": 8}` + "\n" + `{"nums": [5, 3], "target": 8, "solution": "3+5"}`)
	f.Add(`{"id":"a","prompt":"3,5=8:","data":{"numbers":[3,5],"target":8,"solutions":1}}`)
	f.Add(`{"nums": [3, 5], "tar`)
	f.Add("null")
	f.Fuzz(func(t *testing.T, file string) {
		problems, err := Read(task, strings.NewReader(file), "f")
		if err != nil {
			var line *LineError
			if !errors.As(err, &line) || line.Line < 1 {
				t.Fatalf("%q: error %v has no line", clip(file), err)
			}
			return
		}
		var first, second bytes.Buffer
		if err := Write(&first, problems); err != nil {
			t.Fatal(err)
		}
		again, err := Read(task, bytes.NewReader(first.Bytes()), "f")
		if err != nil {
			t.Fatalf("%q: written as %q: %v", clip(file), first.String(), err)
		}
		if err := Write(&second, again); err != nil || first.String() != second.String() {
			t.Fatalf("%q: written as %q, then %q (%v)", clip(file), first.String(), second.String(), err)
		}
	})
}

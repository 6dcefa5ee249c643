package layout

import (
	"testing"

	"exp/eval/rows"
)

// A row's tools are a list of objects, or a text with one; any other value in that field does not define
// tools. Rows that differ only in tools are two problems.
func TestTools(t *testing.T) {
	for _, tt := range []struct{ row, want string }{
		{`{"id": "1", "question": "q", "answer": "1", "tools": [{"b": 1.0,  "a": "<x>"}]}`, `[{"b":1.0,"a":"<x>"}]`},
		{`{"id": "1", "question": "q", "answer": "1", "tools": "[{\"b\": 1, \"a\": 2}]"}`, `[{"b":1,"a":2}]`},
		{`{"id": "1", "question": "q", "answer": "1", "tools": []}`, ""},
		{`{"id": "1", "question": "q", "answer": "1", "tools": null}`, ""},
		{`{"id": "1", "question": "q", "answer": "1", "tools": "calculator"}`, ""},
		{`{"id": "1", "question": "q", "answer": "1", "tools": ["calculator"]}`, ""},
		{`{"id": "1", "question": "q", "answer": "1", "tools": [null]}`, ""},
		{`{"id": "1", "question": "q", "answer": "1", "tools_kwargs": [{"a": 1}]}`, ""},
	} {
		problems, _, err := Problems(rows.Read(file(t, tt.row)), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(problems[0].Tools); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.row, got, tt.want)
		}
	}
	two := `{"id": "1", "question": "q", "answer": "1"}` + "\n" + `{"id": "2", "question": "q", "answer": "1", "tools": [{"a": 1}]}` + "\n" + `{"id": "3", "question": "q", "answer": "1"}` + "\n"
	if problems, _, err := Problems(rows.Read(file(t, two)), nil, nil); err != nil || len(problems) != 2 {
		t.Errorf("%d problems, %v; want 2", len(problems), err)
	}
}

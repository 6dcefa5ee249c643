package layout

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exp/eval/rows"
)

func readLabelled(t *testing.T, name string, lines ...string) ([]Labelled, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	return LabelledAnswers(rows.Read(path), pictured("images"))
}

// Rows give an answer with its label, or the two of a pair; ids stay apart.
func TestLabelledAnswers(t *testing.T) {
	const ask, good, bad = `[{"role":"user","content":"?"}]`, `[{"role":"assistant","content":"ok"}]`, `[{"role":"assistant","content":"no"}]`
	got, err := readLabelled(t, "answers.jsonl",
		`{"prompt": "6*7=", "completion": "42", "label": true}`,
		`{"prompt": "6*7=", "completion": "43", "label": 0}`,
		`{"id": "x", "prompt": `+ask+`, "completion": `+good+`, "label": "True"}`,
		`{"id": "x", "prompt": `+ask+`, "completion": `+bad+`, "label": "0"}`,
		`{"prompt": `+ask+`, "chosen": `+good+`, "rejected": `+bad+`}`,
		`{"prompt": "a", "chosen": "b", "rejected": "b"}`)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, x := range got {
		text := x.Answer.Prompt + "|" + x.Answer.Target
		for _, m := range x.Answer.Messages {
			text += m.Role[:1] + m.Content
		}
		all = append(all, fmt.Sprint(x.Answer.ID, " ", text, " ", x.Answer.Asked, x.Good, x.Same))
	}
	want := []string{"0 6*7=|42 0 true false", "1 6*7=|43 0 false false", "x ?|u?aok 1 true false", "x#2 ?|u?ano 1 false false",
		"4/chosen ?|u?aok 1 true false", "4/rejected ?|u?ano 1 false false", "5/chosen a|b 0 true true", "5/rejected a|b 0 false true"}
	if a, b := strings.Join(all, "\n"), strings.Join(want, "\n"); a != b {
		t.Errorf("got\n%s\nwant\n%s", a, b)
	}
	got, err = readLabelled(t, "answers.csv", "prompt,completion,label", "6*7=,42,TRUE", "6*7=,43,false")
	if err != nil || len(got) != 2 || !got[0].Good || got[1].Good {
		t.Errorf("a table: %+v, %v", got, err)
	}
}

// An error names the row and the column.
func TestLabelledErrors(t *testing.T) {
	const good = `{"prompt": "?", "completion": "a", "label": true}`
	for row, want := range map[string]string{
		`{"prompt": "?", "completion": "a"}`: "no labelled answer: looked for the columns prompt, completion and label, " +
			"or chosen and rejected; label is missing",
		`{"prompt": "?", "completion": "a", "label": null}`:           "label is missing",
		`{"completion": "a", "label": true}`:                          "prompt is missing",
		`{"prompt": "?", "label": true}`:                              "completion is missing",
		`{"prompt": "?", "completion": "a", "label": "good"}`:         `field "label": "good" is neither true nor false`,
		`{"prompt": "?", "completion": "a", "label": 0.5}`:            `field "label": 0.5 is neither true nor false`,
		`{"prompt": "?", "completion": "a", "label": [true]}`:         `field "label": [true] is neither true nor false`,
		`{"prompt": "?", "completion": "", "label": true}`:            `field "completion": empty text`,
		`{"prompt": "?", "chosen": "a", "label": true}`:               "rejected is missing",
		`{"prompt": "?", "completion": [], "label": true}`:            "one of prompt and completion is a list",
		`{"prompt": [], "completion": [], "label": true}`:             `field "prompt"`,
		`{"id": [], "prompt": "?", "completion": "a", "label": true}`: `field "id"`,
	} {
		_, err := readLabelled(t, "answers.jsonl", good, row)
		if err == nil || !strings.Contains(err.Error(), "answers.jsonl:2") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want line 2 and %q", row, err, want)
		}
	}
}

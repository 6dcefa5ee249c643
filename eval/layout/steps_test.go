package layout

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/eval/rows"
)

func readSteps(t *testing.T, lines ...string) ([]Stepwise, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "steps.jsonl")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	return LabelledSteps(rows.Read(path))
}

func TestLabelledSteps(t *testing.T) {
	list, err := readSteps(t, `{"prompt": "6*7+1=", "completions": ["6*7=42", "42+1=44"], "labels": [true, false]}`,
		`{"id": "x", "prompt": [{"role": "user", "content": "1+1?"}], "system": "Add.", "completions": ["2", "So 2"], "labels": [null, 1]}`,
		`{"prompt": "p", "completions": ["a", "b", "c"], "labels": [1, 0, -1]}`)
	if err != nil {
		t.Fatal(err)
	}
	labels := func(list []*bool) string {
		var b strings.Builder
		for _, right := range list {
			b.WriteString(map[bool]string{true: "?"}[right == nil])
			if right != nil {
				b.WriteString(map[bool]string{true: "+", false: "-"}[*right])
			}
		}
		return b.String()
	}
	var got []string
	for _, x := range list {
		got = append(got, x.Asked.ID+" "+x.Asked.Prompt+" "+strings.Join(x.Steps, "|")+" "+labels(x.Labels))
	}
	want := []string{"0 6*7+1= 6*7=42|42+1=44 +-", "x 1+1? 2|So 2 ?+", "2 p a|b|c +--"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if m := list[1].Asked.Messages; len(m) != 2 || m[0].Role != "system" || list[1].Asked.Asked != 2 {
		t.Errorf("messages %+v", m)
	}
	for row, want := range map[string]string{
		`{"prompt": "p", "completions": ["a"]}`:                                                       "labels is missing",
		`{"prompt": "p", "completions": ["a", "b"], "labels": [true]}`:                                "1 labels for 2 steps",
		`{"prompt": "p", "completions": [], "labels": []}`:                                            "0 labels for 0 steps",
		`{"prompt": "p", "completions": ["a"], "labels": [2]}`:                                        "label 1 is 2",
		`{"prompt": "p", "completions": ["a"], "labels": true}`:                                       "not a list of labels",
		`{"prompt": "p", "completions": [{"a": 1}], "labels": [true]}`:                                "not a list of texts",
		`{"prompt": "p", "completions": ["a", ""], "labels": [true, true]}`:                           "step 2 is empty",
		`{"prompt": "", "completions": ["a"], "labels": [true]}`:                                      "it is empty",
		`{"prompt": [{"role": "assistant", "content": "x"}], "completions": ["a"], "labels": [true]}`: "is the assistant's",
	} {
		if _, err := readSteps(t, row); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", row, err, want)
		}
	}
}

package task

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/eval/rows"
	"exp/train/rollout"
)

// mixedFiles are rows of several kinds. Ids meet: the first row of each kind is 0.
func mixedFiles(t *testing.T) (all, chats string) {
	t.Helper()
	dir := t.TempDir()
	all, chats = filepath.Join(dir, "all.jsonl"), filepath.Join(dir, "chats.jsonl")
	for name, text := range map[string]string{
		all: `{"data_source": "openai/gsm8k", "prompt": [{"role": "user", "content": "6*7?"}], ` +
			`"reward_model": {"ground_truth": "42"}, "extra_info": {"index": 0}}
{"data_source": "if_words", "id": "0", "prompt": "Write.", "instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]}
{"data_source": "codecontests", "prompt": [{"role": "user", "content": "Echo."}], "ability": "code", ` +
			`"reward_model": {"ground_truth": "{\"inputs\": [\"1\"], \"outputs\": [\"1\"]}"}, "extra_info": {"index": 0}}
{"data_source": "openai/gsm8k", "prompt": [{"role": "user", "content": "6*7?"}], ` +
			`"reward_model": {"ground_truth": "42"}, "extra_info": {"index": 5}}
{"data_source": "openai/gsm8k", "prompt": [{"role": "user", "content": "1+1?"}], ` +
			`"reward_model": {"ground_truth": "2"}, "extra_info": {"index": 1}, "style": "dry"}
`,
		chats: `{"prompt": "Hello"}` + "\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return all, chats
}

func newMixedTask(t *testing.T, kinds map[string]string) Task {
	t.Helper()
	x, err := New(Config{Kind: "mixed", Mixed: Mixed{Kinds: kinds, Column: "data_source"}, Math: Math{Grader: "math_dapo"},
		Reward: Reward{Correct: 2, Wrong: -1}})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// usual gives the files' rows their kinds.
func usual() map[string]string {
	return map[string]string{"openai/gsm8k": "math", "if_*": "instructions", "code*": "code", "chats.jsonl": "prompts"}
}

// Problems of all kinds come in the order of rows, each with its kind and an id of its own, and are read back.
func TestMixedRows(t *testing.T) {
	x := newMixedTask(t, usual())
	all, chats := mixedFiles(t)
	from := Source{Path: all, More: []string{chats}, Keep: []string{"style"}}
	problems, counts, err := from.Read(x)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range problems {
		got = append(got, p.Kind+" "+p.ID+" "+p.Prompt)
	}
	want := []string{"math 0 6*7?", "instructions instructions/0 Write.", "code codecontests/0 Echo.", "math 1 1+1?",
		"prompts 5 Hello"}
	if d := cmp.Diff(want, got); d != "" || counts.Repeated != 1 || counts.Rows != 6 {
		t.Errorf("%s%+v", d, counts)
	}
	if problems[3].Field("style") != "dry" {
		t.Errorf("kept columns: %s", problems[3].Data)
	}
	var b strings.Builder
	if err := Write(&b, problems); err != nil {
		t.Fatal(err)
	}
	back, err := Read(x, strings.NewReader(b.String()), "stored")
	if d := cmp.Diff(problems, back); d != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, d)
	}
	if _, err := Read(newMixedTask(t, map[string]string{"*": "math"}), strings.NewReader(b.String()), "stored"); err == nil ||
		!strings.Contains(err.Error(), `kind "instructions", and task.mixed has math`) {
		t.Errorf("a kind that the task does not have: %v", err)
	}
	from.Keep, from.KeepOf = []string{"rubric"}, ""
	if _, _, err := from.Read(x); err == nil || err.Error() != "data.keep names what no row has: rubric" {
		t.Errorf("a column that no row has: %v", err)
	}
	from.More, from.KeepOf = nil, "prompts" // whose rows this file has none of
	if _, _, err := from.Read(x); err != nil {
		t.Errorf("columns of another kind: %v", err)
	}
}

func TestMixedKindOfRow(t *testing.T) {
	all, chats := mixedFiles(t)
	for _, tt := range []struct {
		kinds map[string]string
		path  string
		want  string // in the error
	}{
		{map[string]string{"openai/*": "math"}, all, `all.jsonl:2: field "data_source": "if_words" matches no name in ` +
			`task.mixed.kinds: add it with its kind, or "all.jsonl" for its whole file, or "*" for all others`},
		{map[string]string{"openai/*": "math", "*gsm8k": "math", "*": "instructions"}, all,
			`all.jsonl:1: field "data_source": "openai/gsm8k" matches "*gsm8k" and "openai/*" in task.mixed.kinds: add it ` +
				`there in full, with its kind`},
		{map[string]string{"openai/*": "math"}, chats, `chats.jsonl:1: field "data_source": the row has none, and ` +
			`task.mixed.kinds no name for its file: add "chats.jsonl" with its kind`},
		{map[string]string{"other/chats.jsonl": "prompts", "x": "math"}, chats, "the row has none"},
		{map[string]string{"*": "math"}, chats, "chats.jsonl:1"}, // its layout reader says why
		{map[string]string{"*": "instructions"}, all, "all.jsonl:1"},
		{map[string]string{"*": "prompts"}, chats, ""},
		{map[string]string{"ch*.jsonl": "prompts", "*": "math"}, chats, ""},
	} {
		_, _, err := Source{Path: tt.path}.Read(newMixedTask(t, tt.kinds))
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%v: %v, want %q", tt.kinds, err, tt.want)
		}
	}
	for _, kinds := range []map[string]string{{}, {"a": "words"}, {"a": "mixed"}} {
		var bad *ConfigError
		if _, err := New(Config{Kind: "mixed", Mixed: Mixed{Kinds: kinds}}); !errors.As(err, &bad) ||
			bad.Key != "task.mixed.kinds" {
			t.Errorf("%v: %v", kinds, err)
		}
	}
}

// Ids stay different, and rows without an answer or tests count, whatever kind they are of.
func TestMixedIDs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows.jsonl")
	if err := os.WriteFile(path, []byte(`{"data_source": "gsm", "id": "if/0", "prompt": "1?", "answer": "1"}
{"data_source": "gsm", "id": "instructions/0", "prompt": "2?", "answer": "2"}
{"data_source": "gsm", "id": "0", "prompt": "3?", "answer": "3"}
{"data_source": "gsm", "id": "8", "prompt": "4?", "answer": ""}
{"data_source": "if", "id": "0", "prompt": "Write.", "instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]}
{"data_source": "codecontests", "prompt": [{"role": "user", "content": "Echo."}], "ability": "code", `+
		`"reward_model": {"ground_truth": "{\"inputs\": [], \"outputs\": []}"}, "extra_info": {"index": 7}}
{"data_source": "codecontests", "prompt": [{"role": "user", "content": "Echo."}], "ability": "code", `+
		`"reward_model": {"ground_truth": "{\"inputs\": [\"1\"], \"outputs\": [\"1\"]}"}, "extra_info": {"index": 8}}
`), 0o666); err != nil {
		t.Fatal(err)
	}
	x := newMixedTask(t, map[string]string{"gsm": "math", "if": "instructions", "codecontests": "code"})
	problems, counts, err := Source{Path: path}.Read(x)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, p := range problems {
		ids = append(ids, p.ID)
	}
	if d := cmp.Diff([]string{"if/0", "instructions/0", "0", "instructions/0#2", "codecontests/8"}, ids); d != "" ||
		counts.Unanswered != 2 || counts.Rows != 7 {
		t.Errorf("%s%+v", d, counts)
	}
}

// The name itself comes before a pattern, a data source before a file, and the last folders of a file count.
func TestMixedNames(t *testing.T) {
	for _, tt := range []struct {
		kinds              map[string]string
		source, path, want string
	}{
		{map[string]string{"a/b": "math", "a/*": "code", "*/b": "prompts"}, "a/b", "x.jsonl", "math"},
		{map[string]string{"a/*": "code", "a": "math"}, "a/b", "x.jsonl", "code"},
		{map[string]string{"a.c*": "math", "*": "prompts"}, "abc", "x.jsonl", "prompts"},
		{map[string]string{"b*": "math", "*": "prompts"}, "ab", "x.jsonl", "prompts"},
		{map[string]string{"*b": "math", "*": "prompts"}, "bc", "x.jsonl", "prompts"},
		{map[string]string{"a": "math", "x.jsonl": "prompts"}, "a", "dir/x.jsonl", "math"},
		{map[string]string{"a": "math", "x.jsonl": "prompts"}, "b", "dir/x.jsonl", "prompts"},
		{map[string]string{"x.jsonl": "math", "x*.jsonl": "code"}, "", "dir/x.jsonl", "math"},
		{map[string]string{"one/x.jsonl": "math", "two/x.jsonl": "code"}, "", "dir/two/x.jsonl", "code"},
		{map[string]string{"one/x.jsonl": "math", "x.jsonl": "code"}, "", "one/x.jsonl", "math"},
		{map[string]string{"x.jsonl": "code", "z/x.jsonl": "math"}, "", "z/x.jsonl", "math"},
		{map[string]string{"a": "math", "*": "code"}, "", "x.jsonl", "code"},
	} {
		x := newMixedTask(t, tt.kinds).(*mixedTask)
		if got, err := x.find(tt.source, tt.path); got != tt.want || err != nil {
			t.Errorf("%v: %q of %s is %s, %v; want %s", tt.kinds, tt.source, tt.path, got, err, tt.want)
		}
	}
	x := newMixedTask(t, map[string]string{"x.jsonl": "math", "y.jsonl": "code", "a": "prompts"}).(*mixedTask)
	known := map[[2]string]string{}
	for _, tt := range [][3]string{{"", "x.jsonl", "math"}, {"", "y.jsonl", "code"}, {"a", "y.jsonl", "prompts"},
		{"", "x.jsonl", "math"}} {
		row := rows.Row{Path: tt[1], Fields: map[string]any{"data_source": tt[0]}}
		if got, err := x.kindOf(row, known); got != tt[2] || err != nil {
			t.Errorf("%q: %s, %v", tt, got, err)
		}
	}
}

// atOnce counts the calls of a grader of batches.
type atOnce struct {
	rollout.Grader
	calls []int
}

func (g *atOnce) GradeAll(_ context.Context, items []rollout.Item) ([]rollout.Verdict, error) {
	g.calls = append(g.calls, len(items))
	list := make([]rollout.Verdict, len(items))
	for i := range items {
		list[i].Answer = items[i].Completion.Text
	}
	return list, nil
}

// Each problem has the verdict of its kind, and a grader of batches is called once.
func TestMixedGrades(t *testing.T) {
	x := newMixedTask(t, usual())
	all, chats := mixedFiles(t)
	problems, _, err := Source{Path: all, More: []string{chats}}.Read(x)
	if err != nil {
		t.Fatal(err)
	}
	for i, tt := range []struct {
		text   string
		reward float64
		err    error
	}{{"Answer: 42", 2, nil}, {"no comma", 2, nil}, {"print(1)", 0, ErrNoSandbox}, {"a, b", -1, nil}, {"Hi", 0, errNoGrader}} {
		v, err := x.Grade(t.Context(), &problems[i], &rollout.Completion{Text: tt.text})
		if !errors.Is(err, tt.err) || v.Reward != tt.reward {
			t.Errorf("%s: %+v %v", problems[i].Kind, v, err)
		}
	}
	batch := &atOnce{}
	g := ByKind(map[string]rollout.Grader{"math": x.(*mixedTask).parts["math"], "code": batch}).(rollout.BatchGrader)
	var items []rollout.Item
	for _, i := range []int{2, 0, 2, 3} {
		items = append(items, rollout.Item{Problem: &problems[i], Completion: &rollout.Completion{Text: "Answer: 2"}})
	}
	verdicts, err := g.GradeAll(t.Context(), items)
	if err != nil || len(batch.calls) != 1 || batch.calls[0] != 2 || verdicts[0].Answer != "Answer: 2" ||
		verdicts[1].Correct || verdicts[2].Answer != "Answer: 2" || !verdicts[3].Correct {
		t.Errorf("%+v %v %v", verdicts, batch.calls, err)
	}
	if _, ok := ByKind(map[string]rollout.Grader{"math": x.(*mixedTask).parts["math"]}).(rollout.BatchGrader); ok {
		t.Error("without a grader of batches, ranks cannot share the work")
	}
}

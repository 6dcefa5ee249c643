package task

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/train/rollout"
)

// The rows of three sources: DeepCoder's with a copy, verl's, LiveCodeBench's.
const codeRows = `{"id":"sum","problem":"Add two numbers.","tests":"[{\"input\":\"1 2\\n\",\"output\":\"3\\n\",\"testtype\":\"stdin\"},{\"input\":\"5 6\\n\",\"output\":\"11\\n\",\"testtype\":\"stdin\"}]"}
{"id":"sum","problem":"Add two numbers.","tests":"[{\"input\":\"1 2\\n\",\"output\":\"3\\n\",\"testtype\":\"stdin\"},{\"input\":\"5 6\\n\",\"output\":\"11\\n\",\"testtype\":\"stdin\"}]"}
{"id":"sum","problem":"Add one.","tests":"[{\"input\":\"1\\n\",\"output\":\"2\\n\",\"testtype\":\"stdin\"}]"}
{"data_source":"taco","prompt":[{"role":"system","content":"Python only."},{"role":"user","content":"Twice."}],"reward_model":{"ground_truth":"{\"inputs\":[[2],[3]],\"outputs\":[[4],[6]],\"fn_name\":\"twice\"}"},"extra_info":{"index":7,"split":"train"}}
`

func codeFile(t *testing.T) (Task, []rollout.Problem) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "train.jsonl")
	if err := os.WriteFile(path, []byte(codeRows), 0o600); err != nil {
		t.Fatal(err)
	}
	task, err := New(Config{Kind: "code", Code: Code{Run: openPool(t), CPUMS: 2000, MemoryMB: 512, Partial: true}, Reward: Reward{Correct: 1, Wrong: -1, Format: -1}})
	if err != nil {
		t.Fatal(err)
	}
	problems, err := ReadFile(task, path)
	if err != nil {
		t.Fatal(err)
	}
	return task, problems
}

// Rows of any layout become problems, once each, and survive storing.
func TestCodeFile(t *testing.T) {
	task, problems := codeFile(t)
	var ids []string
	for _, p := range problems {
		ids = append(ids, p.ID)
	}
	if diff := cmp.Diff([]string{"sum", "sum#2", "taco/train/7"}, ids); diff != "" {
		t.Fatal(diff)
	}
	if diff := cmp.Diff([]rollout.Message{{Role: "system", Content: "Python only."}, {Role: "user", Content: "Twice."}}, problems[2].Messages); diff != "" {
		t.Errorf("messages (-want +got)\n%s", diff)
	}
	path := filepath.Join(t.TempDir(), "stored.jsonl")
	f, err := os.Create(path)
	if err == nil {
		err = Write(f, problems)
	}
	if err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	again, err := ReadFile(task, path)
	if diff := cmp.Diff(problems, again); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	f, err = os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if again, err = Read(task, f, path); err != nil || cmp.Diff(problems, again) != "" {
		t.Errorf("read as stored: %v", err)
	}
}

// Half of the tests passed earns half way from wrong to correct.
func TestCodeReward(t *testing.T) {
	task, problems := codeFile(t)
	for _, tt := range []struct {
		problem int
		text    string
		reward  float64
	}{
		{0, "```python\nprint(sum(map(int, input().split())))\n```", 1},
		{0, "```python\nprint(3)\n```", 0},
		{0, "```python\nprint(4)\n```", -1},
		{0, "I do not know.", -1},
		{2, "```python\ndef twice(x):\n    return 2 * x\n```", 1},
		{2, "```python\ndef twice(x):\n    return 4\n```", 0},
	} {
		v, err := task.Grade(context.Background(), &problems[tt.problem], &rollout.Completion{Text: tt.text})
		if err != nil || v.Reward != tt.reward || v.Correct != (tt.reward == 1) {
			t.Errorf("%s, %q: %+v %v, want %v", problems[tt.problem].ID, tt.text, v, err, tt.reward)
		}
	}
}

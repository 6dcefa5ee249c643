package task

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/train/rollout"
)

// sourceFile has 12 rows in verl's layout: the problems 0 to 4 twice, the problem 0 in a row written in
// another order and with another chat, and a problem 9.
func sourceFile(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for i := range 10 {
		fmt.Fprintf(&b, `{"data_source":"s","prompt":"P%d","chat":[{"role":"system","content":"S"},{"role":"user","content":"C%d"}],"reward_model":{"ground_truth":"%d"},"extra_info":{"index":%d}}`+"\n", i%5, i%5, i%5, i%5)
	}
	b.WriteString(`{"data_source":"s","extra_info":{"index":0},"reward_model":{"ground_truth":"0"},"prompt":"P0","chat":[{"role":"user","content":"C0"}]}` + "\n")
	b.WriteString(`{"data_source":"s","extra_info":{"index":9},"reward_model":{"ground_truth":"9"},"prompt":"P9","chat":[{"role":"user","content":"C9"}]}` + "\n")
	path := filepath.Join(t.TempDir(), "rows.jsonl")
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func promptsOf(problems []rollout.Problem) (list []string) {
	for _, p := range problems {
		list = append(list, p.Prompt)
	}
	return list
}

// numpy.random.default_rng(5).choice(12, size=5, replace=False) is [8 7 5 11 0]: the rows P3 P2 P0 P9 P0.
func TestSource(t *testing.T) {
	m := mathOf(t, "math_dapo")
	path := sourceFile(t)
	for _, tt := range []struct {
		name string
		s    Source
		want string
		c    Counts
	}{
		{"all", Source{}, "P0 P1 P2 P3 P4 P9", Counts{Rows: 12, Repeated: 6}},
		{"the column", Source{PromptKey: "chat"}, "C0 C1 C2 C3 C4 C0 C9", Counts{Rows: 12, Repeated: 5}},
		{"the first", Source{MaxRows: 7}, "P0 P1 P2 P3 P4", Counts{Rows: 12, Unselected: 5, Repeated: 2}},
		{"drawn", Source{MaxRows: 5, Drawn: true, Seed: 5}, "P3 P2 P0 P9", Counts{Rows: 12, Unselected: 7, Repeated: 1}},
		{"more than there are", Source{MaxRows: 12, Drawn: true, Seed: 5}, "P0 P1 P2 P3 P4 P9", Counts{Rows: 12, Repeated: 6}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.s.Path = path
			got, counts, err := tt.s.Read(m)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, strings.Join(promptsOf(got), " ")); d != "" || counts != tt.c {
				t.Errorf("%+v, want %+v; (-want +got)\n%s", counts, tt.c, d)
			}
			if sum := counts.Unselected + counts.Unanswered + counts.Repeated + len(got); sum != counts.Rows {
				t.Errorf("%+v and %d problems are %d rows", counts, len(got), sum)
			}
		})
	}
	got, _, err := Source{Path: path, PromptKey: "chat"}.Read(m)
	if err != nil || len(got[0].Messages) != 2 || got[0].Messages[0].Content != "S" || got[6].Messages != nil {
		t.Errorf("%v, messages %+v", err, got)
	}
}

// Stored problems are drawn in the same way.
func TestSourceOfStored(t *testing.T) {
	task := newTestCountdown(t, nil)
	problems, err := task.Generate(Train, 12, 0)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "stored.jsonl")
	f, err := os.Create(path)
	if err == nil {
		err = Write(f, problems)
	}
	if err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	got, counts, err := Source{Path: path, MaxRows: 5, Drawn: true, Seed: 5}.Read(task)
	want := []rollout.Problem{problems[8], problems[7], problems[5], problems[11], problems[0]}
	if d := cmp.Diff(want, got); err != nil || d != "" || counts != (Counts{Rows: 12, Unselected: 7}) {
		t.Errorf("%v, %+v\n%s", err, counts, d)
	}
}

// A code problem in verl's layout may have its prompt in another column.
func TestCodePromptKey(t *testing.T) {
	code, err := New(Config{Kind: "code"})
	if err != nil {
		t.Fatal(err)
	}
	tests := `"reward_model":{"ground_truth":"[{\"input\":\"1\",\"output\":\"1\",\"testtype\":\"stdin\"}]"}`
	chat := `"chat":[{"role":"system","content":"S"},{"role":"user","content":"C"}]`
	path := filepath.Join(t.TempDir(), "rows.jsonl")
	for _, tt := range []struct{ row, key, want string }{
		{`{"data_source":"livecodebench","prompt":[{"role":"user","content":"P"}],` + chat + `,` + tests + `}`, "chat", "C, 2 messages"},
		{`{"data_source":"livecodebench",` + chat + `,` + tests + `}`, "chat", "C, 2 messages"},
		{`{"data_source":"livecodebench","prompt":[{"role":"user","content":"P"}],` + tests + `}`, "chat", `field "chat": missing`},
		{`{"chat":"C"}`, "chat", "must have its tests in reward_model.ground_truth"},
	} {
		if err := os.WriteFile(path, []byte(tt.row), 0o644); err != nil {
			t.Fatal(err)
		}
		problems, _, err := Source{Path: path, PromptKey: tt.key}.Read(code)
		got := fmt.Sprint(err)
		if err == nil {
			got = fmt.Sprintf("%s, %d messages", problems[0].Prompt, len(problems[0].Messages))
		}
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s, want %s", tt.row, got, tt.want)
		}
	}
}

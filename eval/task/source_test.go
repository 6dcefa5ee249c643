package task

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/eval/rows"
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

// Rows count through all files. Each file has its own columns; a later problem gets another id.
func TestSourceOfFiles(t *testing.T) {
	file := func(name string, rows ...string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(strings.Join(rows, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	verl := func(source, prompt string, index int) string {
		return fmt.Sprintf(`{"data_source":"%s","prompt":"%s","reward_model":{"ground_truth":"1"},"extra_info":{"index":%d}}`,
			source, prompt, index)
	}
	s := Source{Path: file("a.jsonl", verl("openai/gsm8k", "A0", 0), verl("openai/gsm8k", "A1", 1)), More: []string{
		file("b.jsonl", `{"question":"Q0","answer":"so\n#### 5"}`, `{"question":"Q1","answer":"#### 6"}`),
		file("c.jsonl", verl("lighteval/MATH", "C0", 0), verl("openai/gsm8k", "A1", 1))}}
	m := mathOf(t, "exp")
	got, counts, err := s.Read(m)
	if err != nil || counts != (Counts{Rows: 6, Repeated: 1}) {
		t.Fatalf("%+v, %v", counts, err)
	}
	if d := cmp.Diff([]string{"A0", "A1", "Q0", "Q1", "C0"}, promptsOf(got)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if got[4].ID != "lighteval/MATH/0" || got[2].Answer != "5" {
		t.Errorf("%+v", got)
	}
	s.MaxRows = 3
	if got, counts, err = s.Read(m); err != nil || counts.Unselected != 3 || got[2].Prompt != "Q0" {
		t.Errorf("the first three: %+v, %v, %v", counts, promptsOf(got), err)
	}
	s.More = append(s.More, "none.jsonl")
	if _, _, err = s.Read(m); err == nil || !strings.Contains(err.Error(), "none.jsonl") {
		t.Errorf("a missing file: %v", err)
	}
	problem := `{"nums":[1,2],"target":3}`
	stored := Source{Path: file("d.jsonl", problem), More: []string{file("e.jsonl", problem)}}
	list, counts, err := stored.Read(newTestCountdown(t, nil))
	if err != nil || counts.Rows != 2 || list[0].ID == list[1].ID {
		t.Errorf("of two files: %+v, %+v, %v", list, counts, err)
	}
}

// Files of a task that reads its problems from rows may have every form that mathematics has, and verl's rows.
func TestSourceForms(t *testing.T) {
	type countdownRow struct {
		Nums   []int64 `parquet:"nums,list"`
		Target int64   `parquet:"target"`
	}
	const line, other = `{"nums":[3,5],"target":8}`, `{"nums":[2,7],"target":9}`
	const verl = `{"prompt":[{"role":"user","content":"?"}],"reward_model":{"ground_truth":{"numbers":[3,5],"target":8}}}`
	var columns, zipped bytes.Buffer
	if err := rows.WriteParquet(&columns, []countdownRow{{[]int64{3, 5}, 8}, {[]int64{2, 7}, 9}}); err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(&zipped)
	fmt.Fprintln(z, line+"\n"+other)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"lines.jsonl": line + "\n" + other, "mark.jsonl": "\ufeff" + line + "\r\n" + other + "\r\n", "verl.jsonl": verl + "\n" + other,
		"array.json": "[" + line + ",\n" + other + "]", "rows.parquet": columns.String(), "lines.jsonl.gz": zipped.String(),
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		got, counts, err := Source{Path: path}.Read(newTestCountdown(t, nil))
		if want := "3,5=8: 2,7=9:"; err != nil || strings.Join(promptsOf(got), " ") != want || counts.Rows != 2 {
			t.Errorf("%s: %v, %+v, %v", name, promptsOf(got), counts, err)
		}
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

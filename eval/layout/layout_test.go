package layout

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/eval/rows"
	"exp/train/rollout"
)

// file writes a file of rows.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rows.jsonl")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// parsed returns the problem of a row, whose layout must be detected.
func parsed(t *testing.T, layout, row string) rollout.Problem {
	t.Helper()
	all, err := rows.All(file(t, row))
	if err != nil {
		t.Fatal(err)
	}
	l, err := Detect(all[0])
	if err != nil || l.Name != layout {
		t.Fatalf("layout %q, %v", l.Name, err)
	}
	p, err := l.Parse(all[0])
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestLayouts(t *testing.T) {
	for _, tt := range []struct {
		name, row string
		want      rollout.Problem
	}{
		{"verl", `{"data_source":"math_dapo","prompt":[{"role":"user","content":"1+1?"}],"reward_model":{"style":"rule","ground_truth":"2"},"extra_info":{"index":7}}`,
			rollout.Problem{ID: "7", Prompt: "1+1?", Answer: "2", Data: []byte(`{"source":"math_dapo"}`)}},
		{"verl", `{"data_source":"a","prompt":[{"role":"system","content":"be short"},{"role":"user","content":"1+1?"}],"reward_model":{"ground_truth":"2"}}`,
			rollout.Problem{ID: "0", Prompt: "1+1?", Answer: "2", Data: []byte(`{"source":"a"}`),
				Messages: []rollout.Message{{Role: "system", Content: "be short"}, {Role: "user", Content: "1+1?"}}}},
		{"verl-messages", `{"messages":[{"role":"user","content":"1+1?","name":"n"}],"reward_model":{"ground_truth":"2"}}`,
			rollout.Problem{ID: "0", Prompt: "1+1?", Answer: "2",
				Messages: []rollout.Message{{Role: "user", Content: "1+1?", More: []rollout.Field{{Name: "name", Value: []byte(`"n"`)}}}}}},
		{"prompt", `{"id":"a","prompt":"1+1?","messages":[{"role":"system","content":"s"},{"role":"user","content":"1+1?"}],"answer":"2"}`,
			rollout.Problem{ID: "a", Prompt: "1+1?", Answer: "2", Messages: []rollout.Message{{Role: "system", Content: "s"}, {Role: "user", Content: "1+1?"}}}},
		{"messages", `{"messages":[{"role":"user","content":"1+1?"},{"role":"assistant","content":"It is 2."}],"answer":2}`,
			rollout.Problem{ID: "0", Prompt: "1+1?", Answer: "2", Target: "It is 2."}},
		{"prompt", `{"prompt":[{"role":"user","content":[{"type":"text","text":"1+"},{"type":"text","text":"1?"}]}],"answer":"2","target":"2."}`,
			rollout.Problem{ID: "0", Prompt: "1+1?", Answer: "2", Target: "2.",
				Messages: []rollout.Message{{Role: "user", Parts: []byte(`[{"type":"text","text":"1+"},{"type":"text","text":"1?"}]`)}}}},
		{"svamp", `{"Answer":145.0,"Question":"How big?","Body":"There are 87 ","ID":"chal-777","idx":0}`,
			rollout.Problem{ID: "chal-777", Prompt: "There are 87 How big?", Answer: "145"}},
		{"olympiadbench", `{"id":1606,"question":"Moves?","final_answer":["2"],"answer_type":"Numerical"}`,
			rollout.Problem{ID: "1606", Prompt: "Moves?", Answer: "2"}},
		{"nemo-skills", `{"id":"aime25-0","problem":"Sum?","expected_answer":"70","reference_solution":"…"}`,
			rollout.Problem{ID: "aime25-0", Prompt: "Sum?", Answer: "70"}},
		{"math-500", `{"problem":"P","solution":"\\boxed{x}","answer":"x","level":2,"unique_id":"test/a/1.json"}`,
			rollout.Problem{ID: "test/a/1.json", Prompt: "P", Answer: "x", Target: "\\boxed{x}", Data: []byte(`{"difficulty":2}`)}},
		{"math", `{"problem":"P","level":"Level 3","solution":"so $\\boxed{\\frac{1}{2}}$.","idx":4}`,
			rollout.Problem{ID: "4", Prompt: "P", Answer: "\\frac{1}{2}", Target: "so $\\boxed{\\frac{1}{2}}$.", Data: []byte(`{"difficulty":3}`)}},
		{"gsm8k", `{"question":"Q","answer":"16 - 3 = 13\n#### 1,018"}`, rollout.Problem{ID: "0", Prompt: "Q", Answer: "1,018", Target: "16 - 3 = 13\n#### 1,018"}},
		{"problem", `{"id":0,"problem":"P","answer":27.0}`, rollout.Problem{ID: "0", Prompt: "P", Answer: "27"}},
		{"problem-boxed", `{"source":"numina","problem":"P","solution":"So \\boxed{4}."}`,
			rollout.Problem{ID: "0", Prompt: "P", Answer: "4", Target: "So \\boxed{4}."}},
		{"prompt-boxed", `{"prompt":[{"role":"user","content":"P"}],"solution":"$\\boxed{4}$"}`,
			rollout.Problem{ID: "0", Prompt: "P", Answer: "4", Target: "$\\boxed{4}$"}},
		{"prompt-solution", `{"prompt":"P","solution":4.5}`, rollout.Problem{ID: "0", Prompt: "P", Answer: "4.5"}},
		{"hub-aime", `{"ID":"2024-II-4","Problem":"P","Answer":33}`, rollout.Problem{ID: "2024-II-4", Prompt: "P", Answer: "33"}},
		{"prompt-gold", `{"id":"a","prompt":"1+1?","gold":2}`, rollout.Problem{ID: "a", Prompt: "1+1?", Answer: "2"}},
		{"question-gold", `{"question":"Q","gold":"4"}`, rollout.Problem{ID: "0", Prompt: "Q", Answer: "4"}},
		{"question", `{"question":"Q","answer":["4","four"]}`, rollout.Problem{ID: "0", Prompt: "Q", Answer: "4", Data: []byte(`{"answers":["four"]}`)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, parsed(t, tt.name, tt.row)); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

// Rewards read the other right answers and the kept columns, so rows that differ in them are different problems.
func TestDifferentFactsAreNoCopies(t *testing.T) {
	const text = `{"prompt":"P","answer":["1","2"],"rubric":"cats"}
{"prompt":"P","answer":["1","2"],"rubric":"dogs"}
{"prompt":"P","answer":["1","3"],"rubric":"cats"}
{"prompt":"P","answer":["1","2"],"rubric":"cats","seen":true}
`
	for _, tt := range []struct {
		keep   []string
		unique int
	}{{nil, 2}, {[]string{"rubric"}, 3}} {
		problems, copies, err := ProblemsAt(rows.Read(file(t, text)), Columns{Keep: tt.keep})
		if err != nil || len(problems) != tt.unique || copies != (Copies{Rows: 4, Unique: tt.unique}) {
			t.Errorf("keeping %v: %d problems, %+v, %v", tt.keep, len(problems), copies, err)
		}
	}
}

// A hundred copies of two problems are two problems.
func TestCopies(t *testing.T) {
	var b strings.Builder
	for range 100 {
		b.WriteString(`{"id":"a","problem":"P","answer":"1"}` + "\n" + `{"id":"b","problem":"Q","answer":"1"}` + "\n")
	}
	problems, copies, err := Problems(rows.Read(file(t, b.String())), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(problems) != 2 || copies != (Copies{Rows: 200, Unique: 2}) || copies.Factor() != 100 {
		t.Errorf("%d problems, %+v", len(problems), copies)
	}
}

// verl's rows count their indices in each source, so FlowRL's validation file, AIME 2024 and 2025 one after
// the other, has each id twice.
func TestSameIDInEachSource(t *testing.T) {
	row := func(source, problem string) string {
		return `{"data_source":"` + source + `","prompt":[{"role":"user","content":"` + problem +
			`"}],"reward_model":{"ground_truth":"1"},"extra_info":{"index":0}}` + "\n"
	}
	text := row("aime2024", "P") + row("aime2025", "Q") + row("aime2024", "P") + row("aime2025", "R") + row("aime2025", "S")
	problems, copies, err := Problems(rows.Read(file(t, text)), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, p := range problems {
		ids = append(ids, p.ID+" "+p.Prompt)
	}
	want := []string{"0 P", "aime2025/0 Q", "aime2025/0#2 R", "aime2025/0#3 S"}
	if d := cmp.Diff(want, ids); d != "" || copies != (Copies{Rows: 5, Unique: 4}) {
		t.Errorf("%+v (-want +got)\n%s", copies, d)
	}
}

// The column of the problem may be named; the answer is found as without it.
func TestProblemsAt(t *testing.T) {
	chat := `[{"role":"system","content":"S"},{"role":"user","content":"C"}]`
	for _, tt := range []struct{ name, row, column, want string }{
		{"as detected", `{"prompt":"P","question":"Q","answer":"1"}`, "", "Q = 1"},
		{"as named", `{"prompt":"P","question":"Q","answer":"1"}`, "prompt", "P = 1"},
		{"an unknown name", `{"problem":"P","puzzle":"Z","answer":"1"}`, "puzzle", "Z = 1"},
		{"marked answers", `{"puzzle":"Z","answer":"so #### 7"}`, "puzzle", "Z = 7"},
		{"boxed answers", `{"puzzle":"Z","solution":"so \\boxed{8}","level":1}`, "puzzle", "Z = 8"},
		{"verl", `{"prompt":"P","chat":` + chat + `,"reward_model":{"ground_truth":"2"}}`, "chat", "C = 2"},
		{"nested", `{"in":{"chat":` + chat + `},"answer":"2"}`, "in.chat", "C = 2"},
		{"no such column", `{"prompt":"P","answer":"1"}`, "question", `rows.jsonl:1: field "question": missing: the column with the prompt`},
		{"no answer", `{"prompt":"P","right":"1"}`, "prompt", "rows.jsonl:1: no field with the answer: the row has prompt, right. It is read from answer, gold, ground_truth, reward_model.ground_truth, "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			problems, _, err := ProblemsAt(rows.Read(file(t, tt.row)), Columns{Prompt: tt.column})
			got := ""
			if err != nil {
				got = err.Error()
			} else {
				got = problems[0].Prompt + " = " + problems[0].Answer
			}
			if !strings.Contains(got, tt.want) {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

// Columns are kept as they are; one that no row has is an error.
func TestKeptColumns(t *testing.T) {
	text := `{"prompt":"P","data_source":"s","reward_model":{"ground_truth":"1"},"extra_info":{"index":4,"hints":["a",2.5]},"topic":"t"}` + "\n" +
		`{"prompt":"Q","data_source":"s","reward_model":{"ground_truth":"2"},"extra_info":{"index":5}}`
	problems, _, err := ProblemsAt(rows.Read(file(t, text)), Columns{Keep: []string{"extra_info", "topic", "extra_info.index"}})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{
		`{"source":"s","columns":{"extra_info":{"hints":["a",2.5],"index":4},"extra_info.index":4,"topic":"t"}}`,
		`{"source":"s","columns":{"extra_info":{"index":5},"extra_info.index":5}}`,
	} {
		if d := cmp.Diff(want, string(problems[i].Data)); d != "" {
			t.Errorf("problem %d (-want +got)\n%s", i, d)
		}
	}
	_, _, err = ProblemsAt(rows.Read(file(t, text)), Columns{Keep: []string{"topic", "tpic", "extra"}})
	if err == nil || err.Error() != "data.keep names what no row has: extra, tpic" {
		t.Errorf("columns that are not there: %v", err)
	}
}

// A reward of the user's that keeps the column of the gold answers knows what to make of any value.
func TestKeptAnswers(t *testing.T) {
	const text = `{"data_source":"s","prompt":[{"role":"user","content":"P"}],"reward_model":{"style":"rule","ground_truth":{"target":["a","b"],"n":1.50}}}` + "\n" +
		`{"data_source":"s","prompt":[{"role":"user","content":"Q"}],"reward_model":{"style":"rule","ground_truth":true}}` + "\n" +
		`{"data_source":"s","prompt":[{"role":"user","content":"R"}],"reward_model":{"style":"rule","ground_truth":["7","8"]}}` + "\n"
	problems, _, err := ProblemsAt(rows.Read(file(t, text)), Columns{Keep: []string{"reward_model"}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range problems {
		got = append(got, problems[i].Answer)
	}
	if want := []string{`{"target":["a","b"],"n":1.50}`, "true", "7"}; !slices.Equal(got, want) {
		t.Errorf("gold answers %q, want %q", got, want)
	}
	if _, _, err := ProblemsAt(rows.Read(file(t, text)), Columns{}); err == nil || !strings.Contains(err.Error(), "data.keep") {
		t.Errorf("without keeping it: %v", err)
	}
}

// Problems and answers in columns of different layouts are found, and a ground_truth; but not by task prompts, whose
// programs get the answer from data.keep.
func TestColumnsOfDifferentLayouts(t *testing.T) {
	for _, text := range []string{`{"question":"P","expected_answer":"1"}`, `{"messages":[{"role":"user","content":"P"}],"ground_truth":"1"}`,
		`{"prompt":"P","ground_truth":1,"x":"y"}`, `{"question":"P","solution":"so \\boxed{1}"}`, `{"messages":[{"role":"user","content":"P"}],"gold":["1"]}`} {
		problems, _, err := Problems(rows.Read(file(t, text)), nil, nil)
		if err != nil || problems[0].Prompt != "P" || problems[0].Answer != "1" {
			t.Errorf("%s: %+v, %v", text, problems, err)
		}
	}
	problems, _, err := PromptsAt(rows.Read(file(t, `{"prompt":"P","ground_truth":"1"}`)), Columns{})
	if err != nil || problems[0].Answer != "" {
		t.Errorf("a task prompt: %+v, %v", problems, err)
	}
}

func TestRefuses(t *testing.T) {
	good := `{"id":1,"problem":"P","answer":"1"}` + "\n"
	for _, tt := range []struct{ name, text, want string }{
		{"unknown fields", `{"x":1}`, "rows.jsonl:1: no known layout"},
		{"names spelled otherwise", `{"Question":"P","Ground Truth":"1","Answer":"","notes":"x"}`,
			"the row has Answer (empty), Ground Truth (known as ground_truth), Question (known as question), notes. The"},
		{"another separator", `{"question;answer":"P;1"}`, "the row has question;answer (one column: a .csv separates columns by commas"},
		{"no answer", good + `{"id":2,"problem":"Q"}`, `rows.jsonl:2: field "answer": missing`},
		{"no answer at all", `{"problem":"Q","answer":null}`, "no known layout"},
		{"empty answer", good + `{"id":2,"problem":"Q","answer":" "}`, `field "answer": empty answer`},
		{"answer of a wrong type", good + `{"id":2,"problem":"Q","answer":{"a":1}}`, `an object, not a text`},
		{"no box", `{"problem":"P","level":1,"solution":"so 3"}`, `rows.jsonl:1: field "solution": no \boxed`},
		{"two of one id beside verl's columns", `{"id":"same","prompt":"P","reward_model":{"ground_truth":"1"}}` + "\n" +
			`{"id":"same","prompt":"Q","reward_model":{"ground_truth":"1"}}`,
			`rows.jsonl:2: field "id": id "same" already belongs to another problem`},
		{"no id after the same id", good + `{"problem":"Q","answer":"1"}`,
			"rows.jsonl:2: the row has no id, and its number, 1, already belongs to another problem"},
		{"an id after the same number", `{"problem":"P","answer":"1"}` + "\n" + `{"id":"0","problem":"Q","answer":"1"}`,
			"rows.jsonl:1, which has no id and takes its number"},
		{"empty id beside verl's columns", `{"id":"","prompt":"P","reward_model":{"ground_truth":"1"}}`,
			`rows.jsonl:1: field "id": empty id`},
		{"two of one id", good + "\n" + `{"id":1,"problem":"Q","answer":"1"}`, `rows.jsonl:3: field "id": id "1" already belongs to another problem`},
		{"empty problem", `{"problem":"","answer":"1"}`, "empty problem"},
		{"an image in a message", `{"prompt":[{"role":"user","content":[{"type":"text","text":"P"},{"type":"image"}]}],"answer":"1"}`,
			`message 1 has a part of type "image"`},
		{"images", `{"prompt":"<image>P","answer":"1","images":[]}` + "\n" + `{"prompt":"<image>Q","answer":"1","images":[{"path":"a.png"}]}`,
			`rows.jsonl:2: field "images": the problem has images`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := Problems(rows.Read(file(t, tt.text)), nil, nil)
			var e *rows.Error
			if !errors.As(err, &e) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
}

// A row whose answer is null or empty is counted, not graded; one without the field is broken.
func TestUnanswered(t *testing.T) {
	for _, text := range []string{
		`{"problem":"P","answer":"1"}` + "\n" + `{"problem":"Q","answer":null}` + "\n" + `{"problem":"R","answer":""}`,
		`{"prompt":"P","reward_model":{"ground_truth":"1"}}` + "\n" + `{"prompt":"Q","reward_model":{"ground_truth":null}}` + "\n" +
			`{"prompt":"R","reward_model":{"ground_truth":""}}`,
		// The first row does not tell the layout: GSM8K's answer stands after ####.
		`{"question":"Q","answer":null}` + "\n" + `{"question":"R","answer":null}` + "\n" + `{"question":"P","answer":"So #### 1"}`,
	} {
		problems, copies, err := Problems(rows.Read(file(t, text)), nil, nil)
		if err != nil || len(problems) != 1 || copies != (Copies{Rows: 1, Unique: 1, Unanswered: 2}) {
			t.Errorf("%s: %d problems, %+v, %v", text, len(problems), copies, err)
		}
		if len(problems) == 1 && problems[0].Answer != "1" {
			t.Errorf("%s: answer %q", text, problems[0].Answer)
		}
	}
	_, _, err := Problems(rows.Read(file(t, `{"question":"Q","answer":null}`)), nil, nil)
	if err == nil || !strings.Contains(err.Error(), "no known layout") {
		t.Fatalf("no row has an answer: %v", err)
	}
	if text := err.Error(); !strings.Contains(text, "the row has answer (empty), question. The problem is read from question, problem, prompt or messages") ||
		strings.Count(text, " final_answer") != 1 || strings.Count(text, ", gold,") != 1 {
		t.Errorf("a column is missing or stands twice: %v", err)
	}
}

package task

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/eval/rows"
	"exp/train/rollout"
)

func mathOf(t *testing.T, grader string) Task {
	t.Helper()
	m, err := New(Config{Kind: "math", Math: Math{Grader: grader}, Reward: Reward{Correct: 1, Wrong: -1, Format: -0.5}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMathGrade(t *testing.T) {
	half := rollout.Problem{ID: "a", Prompt: "?", Answer: "\\frac{1}{2}", Data: []byte(`{"source":"math_dapo","answers":["2"]}`)}
	tuple := rollout.Problem{ID: "b", Prompt: "?", Answer: "(1,2,3)", Data: []byte(`{"source":"nowhere"}`)}
	word := rollout.Problem{ID: "c", Prompt: "?", Answer: "tides", Data: []byte(`{"answers":["tides","tide"]}`)}
	for _, tt := range []struct {
		grader  string
		problem rollout.Problem
		text    string
		correct bool
		reward  float64
		answer  string
	}{
		{"exp", half, "So \\boxed{0.5}.", true, 1, "\\frac{1}{2}"},
		{"exp", half, "So \\boxed{2}.", true, 1, "\\frac{1}{2}"}, // the second gold answer
		{"exp", half, "So \\boxed{3}.", false, -0.5, "3"},
		{"math_dapo", half, "Answer: 0.5", false, -0.5, "0.5"}, // texts differ
		{"math_dapo", half, "Answer: \\frac12", true, 1, "\\frac{1}{2}"},
		{"verl", half, "Answer: \\frac12", true, 1, "\\frac{1}{2}"}, // routed to math_dapo
		{"exp", tuple, "\\boxed{[1,2,3]}", true, 1, "(1,2,3)"},      // the better guess, not sure
		{"exp_strict", tuple, "\\boxed{[1,2,3]}", false, -0.5, "[1,2,3]"},
		{"geo3k", half, "<think>So</think> \\boxed{1/2}", true, 1, "\\frac{1}{2}"},
		{"geo3k", half, "\\boxed{1/2}", true, 0.5, "\\frac{1}{2}"}, // less by what the form gives, -0.5 - -1
		{"geo3k", half, "<think>So</think> \\boxed{3}", false, -0.5, "3"},
		{"geo3k", half, "\\boxed{3}", false, -1, "3"},
		{"geo3k", half, "<think>So</think> 2", false, -1, ""},
		{"anls", word, "\\boxed{tidal}", true, -0.5 + 1.5*0.6, "tides"}, // between the rewards of a wrong and a right answer
		{"anls", word, "\\boxed{wind}", false, -0.5, "wind"},
		{"anls", word, "", false, -1, ""},
		{"vqav2", word, "tide", false, -0.5 + 1.5*2*(1.0/3)/3, "tide"}, // two of three say something else
		{"vqav2", word, "Tides.", false, -0.5 + 1.5*(2*(1.0/3)+2.0/3)/3, "Tides"},
		{"exp", half, "", false, -1, ""},
		{"math_dapo", half, "no idea", false, -1, ""},
	} {
		v, err := mathOf(t, tt.grader).Grade(t.Context(), &tt.problem, &rollout.Completion{Text: tt.text})
		if err != nil || v.Status != rollout.Graded || v.Correct != tt.correct || math.Abs(v.Reward-tt.reward) > 1e-12 || v.Answer != tt.answer {
			t.Errorf("%s of %q: %+v, %v", tt.grader, tt.text, v, err)
		}
	}
	if _, err := mathOf(t, "verl").Grade(t.Context(), &tuple, &rollout.Completion{}); err == nil || !strings.Contains(err.Error(), `"nowhere"`) {
		t.Errorf("a source that verl does not know: %v", err)
	}
	none := rollout.Problem{ID: "c", Prompt: "?"}
	if _, err := mathOf(t, "exp").Grade(t.Context(), &none, &rollout.Completion{}); !errors.Is(err, errNoGold) ||
		!strings.Contains(err.Error(), "problem c") {
		t.Errorf("a problem without a gold answer: %v", err)
	}
}

// verl's parquet files: a chat, a nested gold answer, a hundred copies of each row.
// What prepare writes reads back the same.
func TestMathFile(t *testing.T) {
	type message struct {
		Role    string `parquet:"role"`
		Content string `parquet:"content"`
	}
	type model struct {
		GroundTruth string `parquet:"ground_truth"`
		Style       string `parquet:"style"`
	}
	type extra struct {
		Index string `parquet:"index"`
	}
	type row struct {
		Source string    `parquet:"data_source"`
		Prompt []message `parquet:"prompt,list"`
		Model  model     `parquet:"reward_model"`
		Extra  extra     `parquet:"extra_info"`
	}
	var list []row
	for range 100 {
		list = append(list, row{"math_dapo", []message{{"user", "1+1?"}}, model{"2", "rule"}, extra{"p1"}}, row{"math_dapo", []message{{"user", "2+2?"}}, model{"4", "rule"}, extra{"p2"}})
	}
	path := filepath.Join(t.TempDir(), "dapo.parquet")
	var file bytes.Buffer
	if err := rows.WriteParquet(&file, list); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, file.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	m := mathOf(t, "math_dapo")
	got, err := ReadFile(m, path)
	if err != nil {
		t.Fatal(err)
	}
	want := []rollout.Problem{
		{ID: "p1", Prompt: "1+1?", Answer: "2", Data: []byte(`{"source":"math_dapo"}`)},
		{ID: "p2", Prompt: "2+2?", Answer: "4", Data: []byte(`{"source":"math_dapo"}`)},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("(-want +got)\n%s", d)
	}
	var b bytes.Buffer
	if err := Write(&b, got); err != nil {
		t.Fatal(err)
	}
	back, err := Read(m, &b, "problems")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, back); d != "" {
		t.Errorf("written and read (-want +got)\n%s", d)
	}
}

// A row that no grader of verl can grade is refused when it is read, not in the step that meets it.
func TestMathRefusesSources(t *testing.T) {
	const row = `{"data_source":"%s","prompt":"%d?","reward_model":{"ground_truth":"1"},"extra_info":{"index":%[2]d}}` + "\n"
	for source, want := range map[string]string{"math_dapo": "", "aime24": "", "my/set": `problem my/set/1: verl's default_compute_score knows no ` +
		`grader for this data source: "my/set"; choose another task.math.grader, such as exp; verl's grades openai/gsm8k, `, "": "it names no data_source"} {
		path := filepath.Join(t.TempDir(), "x.jsonl")
		if err := os.WriteFile(path, fmt.Appendf(nil, row+row, "math", 1, source, 2), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadFile(mathOf(t, "verl"), path); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", source, err, want)
		}
		if _, err := ReadFile(mathOf(t, "math_dapo"), path); err != nil {
			t.Errorf("%q with another grader: %v", source, err)
		}
	}
}

func TestMathRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.jsonl")
	if err := os.WriteFile(path, []byte(`{"problem":"P","answer":"[INVALID]"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(mathOf(t, "math_dapo"), path); err == nil || !strings.Contains(err.Error(), "[INVALID]") {
		t.Errorf("a gold answer that means none: %v", err)
	}
	var e *ConfigError
	if _, err := New(Config{Kind: "math", Math: Math{Grader: "sympy"}}); !errors.As(err, &e) || e.Key != "task.math.grader" {
		t.Errorf("an unknown grader: %v", err)
	}
	if _, err := mathOf(t, "exp").Generate(Train, 1, 0); !errors.Is(err, ErrNotGenerated) {
		t.Errorf("generated: %v", err)
	}
}

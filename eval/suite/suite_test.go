package suite

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/eval"
	"exp/eval/layout"
	"exp/train/rollout"
)

// benchmark is a file of the shared data, in EXP_DATA or next to the repository.
func benchmark(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv("EXP_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "data")
	}
	path := filepath.Join(dir, "benchmarks", name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no benchmarks: %v", err)
	}
	return path
}

// Each published file of the shared data is the copy that the catalog names, problem by
// problem.
func TestCatalog(t *testing.T) {
	for _, tt := range []struct{ name, file string }{
		{"gsm8k", "gsm8k_test"}, {"gsm8k-train", "gsm8k_train"}, {"math500", "math500"}, {"math", "math_test"}, {"math-train", "math_train"},
		{"aime24", "aime24"}, {"aime25", "aime25"}, {"amc23", "amc23"}, {"olympiad", "olympiadbench"}, {"svamp", "svamp"},
		{"humaneval", "humaneval"}, {"mbpp", "mbpp"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := Read(tt.name, benchmark(t, tt.file+".jsonl"), Options{})
			if err != nil {
				t.Fatal(err)
			}
			data, err := s.Encode()
			if err != nil {
				t.Fatal(err)
			}
			k, _ := ByName(tt.name)
			digest := fmt.Sprintf("%x", sha256.Sum256(data))
			if by, ok := ByDigest(digest); !ok || by.Name != tt.name {
				t.Errorf("its digest names %q", by.Name)
			}
			if k.Version(digest) == "" {
				t.Errorf("digest %s of %d rows, %d problems: not a known version", digest, s.Copies.Rows, len(s.Problems))
			}
		})
	}
}

func files(t *testing.T, contents map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range contents {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const house = `{"uid":"a","story":"Two.","question":"Double?","gold":"so \\boxed{4}","contest":"c1","level":"Level 2"}
{"uid":"b","story":"Three.","question":"Double?","gold":"so \\boxed{6}","contest":"c1","level":"Level 3"}
`

func TestDefinition(t *testing.T) {
	dir := files(t, map[string]string{"house.jsonl": house, "house.yaml": `
name: house
version: "2026"
license: CC0
file: house.jsonl
items: 2
graders: [exp, math_reward]
layout: {id: uid, problem: [story, question], answer: gold, within: box, cluster: contest, difficulty: level}
`})
	s, err := Read("", filepath.Join(dir, "house.yaml"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := &Suite{Name: "house", Version: "2026", License: "CC0", Graders: []string{"exp", "math_reward"}, Copies: layout.Copies{Rows: 2, Unique: 2},
		Problems: []rollout.Problem{
			{ID: "a", Prompt: "Two. Double?", Answer: "4", Cluster: "c1", Data: []byte(`{"difficulty":2}`)},
			{ID: "b", Prompt: "Three. Double?", Answer: "6", Cluster: "c1", Data: []byte(`{"difficulty":3}`)},
		}}
	if d := cmp.Diff(want, s); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	data, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	back := *s
	back.Problems = nil
	if err := back.Decode(data); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(s, &back); d != "" {
		t.Errorf("encoded and decoded (-want +got)\n%s", d)
	}
}

// A definition says how its suite is asked, and keeps worked solutions if it says so.
func TestAskingOfDefinition(t *testing.T) {
	dir := files(t, map[string]string{"house.jsonl": `{"question":"Two and two?","answer":"2+2 is 4\n#### 4"}` + "\n",
		"house.yaml": "name: house\nfile: house.jsonl\nlikelihood: option\nshots: 3\nshots_suite: other\n" +
			"description: About {source}.\nprompt: \"Q: {problem}\\nA:\"\nsolutions: true\n"})
	s, err := Read("", filepath.Join(dir, "house.yaml"), Options{})
	want := Asking{Likelihood: eval.ByOption, Shots: 3, ShotsSuite: "other", Description: "About {source}.", Prompt: "Q: {problem}\nA:"}
	if err != nil || s.Asking != want || s.Problems[0].Target != "2+2 is 4\n#### 4" || s.Solved() != 1 {
		t.Fatalf("%+v, %v", s, err)
	}
	if bare := s.WithoutSolutions(); bare[0].Target != "" || s.Solved() != 1 {
		t.Errorf("%+v", bare)
	}
	if back, err := ParseAsking(want.String()); err != nil || back != want {
		t.Errorf("%+v, %v", back, err)
	}
	if text := (Asking{}).String(); text != "" {
		t.Errorf("nothing said: %s", text)
	}
}

func TestRefuses(t *testing.T) {
	start := "name: house\nfile: house.jsonl\n"
	for _, tt := range []struct{ name, yaml, want string }{
		{"unknown key", start + "licence: MIT\n", `[3:1] unknown field "licence"`},
		{"no file", "name: x\n", "at least name and file"},
		{"empty", "", "empty"},
		{"wrong number", start + "items: 3\nlayout: {problem: story, answer: gold}\n", "house.yaml has 2 different problems; house has 3"},
		{"unknown likelihood", start + "likelihood: options\n", `"options" is none of letter, option, blank`},
		{"text behind a blank's problem", start + "likelihood: blank\nprompt: \"{problem} A:\"\n", "prompt: it needs {problem} at its end"},
		{"shots of nothing", start + "shots: 3\n", "name the suite that the 3 examples come from: shots_suite"},
		{"no shots", start + "shots_suite: other\n", "Say it: shots"},
		{"fewer than no shots", start + "shots: -1\n", "-1 examples"},
		{"prompt without the problem", start + "prompt: Q\n", "{problem} once"},
		{"grader of likelihoods", start + "graders: [likelihood]\n", "likelihood: option, letter or blank asks for"},
		{"unknown grader", start + "graders: [sympy]\n", `unknown grader "sympy"`},
		{"choices within", start + "layout: {problem: story, answer: gold, choices: o, within: box}\n", "with choices the answer is a field of its own"},
		{"nothing to shuffle", start + "layout: {problem: story, answer: gold, shuffle: true}\n", "no choices to shuffle"},
		{"another within", start + "layout: {problem: story, answer: gold, within: bix}\n", `"bix" is not box`},
		{"another field", start + "layout: {problem: tale, answer: gold}\n", `house.jsonl:1: field "tale": missing`},
		{"no layout", start, "house.jsonl:1: no known layout"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rows := house
			if tt.name == "no layout" {
				rows = strings.ReplaceAll(house, `"gold"`, `"right"`)
			}
			dir := files(t, map[string]string{"house.jsonl": rows, "house.yaml": tt.yaml})
			_, err := Read("", filepath.Join(dir, "house.yaml"), Options{})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
	dir := files(t, map[string]string{"amc.jsonl": `{"problem":"P","answer":1}`, "empty.jsonl": ""})
	var count *CountError
	if _, err := Read("amc23", filepath.Join(dir, "amc.jsonl"), Options{}); !errors.As(err, &count) || count.Got != 1 {
		t.Errorf("one problem for AMC: %v", err)
	}
	if _, err := Read("x", filepath.Join(dir, "empty.jsonl"), Options{}); err == nil || !strings.Contains(err.Error(), "no rows") {
		t.Errorf("an empty file: %v", err)
	}
}

// A Countdown suite is graded by its numbers, in the answer format of language models.
func TestCountdown(t *testing.T) {
	dir := files(t, map[string]string{"c.jsonl": `{"id":0,"nums":[39,26,93],"target":62,"solution":"93 / (39 / 26)"}`})
	s, err := Read("countdown", filepath.Join(dir, "c.jsonl"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	g, err := Grader(s.Graders[0])
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		"<think>hm</think> <answer>93 / (39 / 26)</answer>":      true,
		"so <answer> (26 / 39) * 93 = 62 </answer> that is all.": true,
		"the last line\n93*26/39":                                true,
		"<answer>93 - 26 - 5</answer>":                           false, // 5 is not given
		"<answer>62</answer>":                                    false,
		"":                                                       false,
	} {
		v, err := g.Grade(t.Context(), &s.Problems[0], &rollout.Completion{Text: text})
		if err != nil || v.Correct != want {
			t.Errorf("%q: %+v, %v", text, v, err)
		}
	}
}

// A file of programming problems is recognised by its columns, keeps its tests through the store, and has
// graders that run programs; a mathematics file in verl's layout does not.
func TestPrograms(t *testing.T) {
	dir := files(t, map[string]string{
		"house.jsonl": `{"task_id":"t/1","prompt":"def f(x):\n","entry_point":"f","canonical_solution":"    return x\n","test":"def check(c):\n    assert c(1) == 1\n"}`,
		"sums.jsonl":  `{"data_source":"math_dapo","prompt":[{"role":"user","content":"One?"}],"reward_model":{"ground_truth":"1"},"extra_info":{"index":"a"}}`,
		"code.jsonl":  `{"data_source":"taco","prompt":[{"role":"user","content":"One."}],"reward_model":{"ground_truth":"{\"inputs\":[\"1\"],\"outputs\":[\"1\"]}"}}`,
	})
	for name, want := range map[string]bool{"house": true, "sums": false, "code": true} {
		s, err := Read("", filepath.Join(dir, name+".jsonl"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := ForPrograms(s.Graders); got != want || len(s.Problems) != 1 {
			t.Fatalf("%s: graders %v, %d problems", name, s.Graders, len(s.Problems))
		}
		data, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		back := &Suite{Name: s.Name, Graders: s.Graders}
		if err := back.Decode(data); err != nil || cmp.Diff(s.Problems, back.Problems) != "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range CodeGraders() {
		if _, err := Grader(name); err == nil {
			t.Errorf("%s grades without a sandbox", name)
		}
	}
}

// Every grader of the catalog exists.
func TestCatalogGraders(t *testing.T) {
	for _, k := range Catalog() {
		for _, name := range k.Graders {
			if _, ok := CodeOptions(name); ok && ForPrograms(k.Graders) {
				continue
			}
			if _, err := Grader(name); err != nil {
				t.Errorf("%s: %v", k.Name, err)
			}
		}
	}
}

// Multiple-choice questions are graded by their letters, and a definition may name the options of any file.
func TestMultipleChoice(t *testing.T) {
	four := `{"question":"Q","choices":["w","x","y","z"],"answer":1}` + "\n"
	dir := files(t, map[string]string{"four.jsonl": four, "commonsenseqa.jsonl": four,
		"five.jsonl": `{"question":"Q","options":["v","w","x","y","z"],"answer":"E"}` + "\n",
		"own.jsonl":  `{"puzzle":"Q","best":"w","worse":"x","worst":"y"}` + "\n",
		"own.yaml": "name: own\nfile: own.jsonl\n" +
			"layout: {problem: puzzle, answer: best, choices: [best, worse, worst], shuffle: true}\n"})
	for _, tt := range []struct{ file, graders, prompt, answer string }{
		{"four.jsonl", "exp gpqa mmlu_pro", "Q\n\nA) w\nB) x\nC) y\nD) z", "B"},
		{"five.jsonl", "exp mmlu_pro", "Q\n\nA) v\nB) w\nC) x\nD) y\nE) z", "E"},
		{"own.yaml", "exp gpqa mmlu_pro", "Q\n\nA) w\nB) y\nC) x", "A"},
	} {
		s, err := Read("", filepath.Join(dir, tt.file), Options{})
		if err != nil {
			t.Fatal(err)
		}
		p := s.Problems[0]
		if got := strings.Join(s.Graders, " "); got != tt.graders || p.Prompt != tt.prompt || p.Answer != tt.answer {
			t.Errorf("%s: graders %s, %q, answer %s", tt.file, got, p.Prompt, p.Answer)
		}
		for _, name := range s.Graders {
			g, err := Grader(name)
			if err != nil {
				t.Fatal(err)
			}
			for answer, want := range map[string]bool{p.Answer: true, "D": false} {
				v, err := g.Grade(t.Context(), &p, &rollout.Completion{Text: "So.\nAnswer: " + answer})
				if err != nil || v.Correct != want {
					t.Errorf("%s, grader %s, answer %s: %+v, %v", tt.file, name, answer, v, err)
				}
			}
		}
	}
}

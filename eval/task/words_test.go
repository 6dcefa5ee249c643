package task

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"exp/train/rollout"
)

func newTestWords(t *testing.T, steps int) *words {
	t.Helper()
	w, err := newWords(Words{LargestNumber: 20, Steps: steps}, testReward)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestWordsGrade(t *testing.T) {
	problem := rollout.Problem{ID: "w", Answer: "12"}
	tests := []struct {
		name, text string
		correct    bool
		reward     float64
		answer     string
		reason     string
	}{
		{"with steps", "5+3=8\n8+4=12\n#### 12", true, 1, "12", "correct"},
		{"only the answer", "####12", true, 1, "12", "correct"},
		{"leading zeros", "#### 0012", true, 1, "12", "correct"},
		{"the last one counts", "#### 7\n#### 12", true, 1, "12", "correct"},
		{"text after its line", "#### 12\nok", true, 1, "12", "correct"},
		{"wrong", "#### 13", false, 0.25, "13", "13, not 12"},
		{"last one wrong", "#### 12\n#### 7", false, 0.25, "7", "7, not 12"},
		{"negative", "#### -12", false, 0.25, "-12", "-12, not 12"},
		{"no mark", "12", false, 0, "", "no line with ####"},
		{"mark within a line", "5+7=12 #### 12", false, 0, "", "no line with ####"},
		{"no number", "#### ", false, 0, "", "no integer after ####"},
		{"more than a number", "#### 12 pens", false, 0, "", "no integer after ####"},
		{"decimal", "#### 12.0", false, 0, "", "no integer after ####"},
		{"plus", "#### +12", false, 0, "", "no integer after ####"},
		{"huge", "#### " + strings.Repeat("1", 100), false, 0, "", "no integer after ####"},
		{"five marks", "##### 12", false, 0, "", "no integer after ####"},
		{"empty", "", false, 0, "", "no line with ####"},
	}
	task := newTestWords(t, 2)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := gradeText(t, task, problem, tt.text)
			if v.Correct != tt.correct || v.Reward != tt.reward || v.Answer != tt.answer || v.Reason != tt.reason {
				t.Errorf("got %+v, want %+v", v, tt)
			}
		})
	}
}

// The steps of a target are right, follow from one another and end in the answer;
// values stay integers from 0 to the largest.
func TestWordsGenerate(t *testing.T) {
	for steps := 1; steps <= 4; steps++ {
		t.Run(strconv.Itoa(steps), func(t *testing.T) {
			task := newTestWords(t, steps)
			problems, err := task.Generate(Train, 500, 3)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range problems {
				if v := gradeText(t, task, p, p.Target); !v.Correct || v.Answer != p.Answer {
					t.Fatalf("%s: target %q gets %+v", p.ID, p.Target, v)
				}
				checkAlphabet(t, task, p)
				checkSteps(t, p, steps)
			}
		})
	}
}

func checkSteps(t *testing.T, p rollout.Problem, steps int) {
	t.Helper()
	lines := strings.Split(p.Target, "\n")
	if len(lines) != steps+1 {
		t.Fatalf("%s: %d steps in %q, want %d", p.ID, len(lines)-1, p.Target, steps)
	}
	value := ""
	for _, line := range lines[:steps] {
		left, right, _ := strings.Cut(line, "=")
		e, err := parse(left)
		if err != nil {
			t.Fatalf("%s: %q: %v", p.ID, line, err)
		}
		n, ok := e.evaluate().integer()
		if !ok || itoa(n) != right || n < 0 || n > largestWordsValue {
			t.Fatalf("%s: the step %q is wrong", p.ID, line)
		}
		if first := e.numbers(nil)[0]; value != "" && itoa(first) != value {
			t.Fatalf("%s: the step %q does not begin with %s", p.ID, line, value)
		}
		value = right
	}
	if value != p.Answer {
		t.Fatalf("%s: the steps end in %s, the answer is %s", p.ID, value, p.Answer)
	}
}

// Every number of the chain stands in the prompt, in its order.
func TestWordsPromptTellsTheChain(t *testing.T) {
	const seed = 2
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		c := drawChain(rng, Words{LargestNumber: 20, Steps: 3})
		p := c.problem(rng)
		got := strings.FieldsFunc(p.Prompt, func(r rune) bool { return r < '0' || r > '9' })
		want := strings.FieldsFunc(c.key(), func(r rune) bool { return r < '0' || r > '9' })
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Fatalf("seed %d: %q has the numbers %v, the chain is %s", seed, p.Prompt, got, c.key())
		}
		if strings.ContainsAny(p.Prompt, "{}") || !strings.HasSuffix(p.Prompt, "?\n") {
			t.Fatalf("seed %d: prompt %q", seed, p.Prompt)
		}
	}
}

// The sentences as they read; a change here changes every data set.
func TestWordsGolden(t *testing.T) {
	problems, err := newTestWords(t, 2).Generate(Test, 6, 1)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "words", problems)
}

func TestWordsConfig(t *testing.T) {
	for _, cfg := range []Words{{20, 0}, {20, 5}, {4, 2}, {1000, 2}} {
		if _, err := newWords(cfg, testReward); err == nil {
			t.Errorf("%+v: no error", cfg)
		}
	}
}

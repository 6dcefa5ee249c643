package task

import (
	"context"
	"encoding/json"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"exp/train/rollout"
)

var testReward = Reward{Correct: 1, Wrong: 0, Format: 0.25}

func defaultCountdown() Countdown {
	return Countdown{
		MinNumbers: 3, MaxNumbers: 4, LargestNumber: 20, LargestTarget: 60,
		Operators: "+-*/", Use: useAny, MinSolutions: 1,
	}
}

func newTestCountdown(t testing.TB, change func(*Countdown)) *countdown {
	t.Helper()
	cfg := defaultCountdown()
	if change != nil {
		change(&cfg)
	}
	c, err := newCountdown(cfg, testReward)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func gradeText(t testing.TB, g rollout.Grader, p rollout.Problem, text string) rollout.Verdict {
	t.Helper()
	v, err := g.Grade(context.Background(), &p, &rollout.Completion{Text: text})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestCountdownGrade(t *testing.T) {
	problem := countdownProblem("3,3,5,7,12=22", countdownData{[]int64{3, 3, 5, 7, 12}, 22, 0})
	type want struct {
		correct bool
		reward  float64
		answer  string
		reason  string
	}
	tests := []struct {
		name, text string
		use        string
		want       want
	}{
		{"right", "(12-7)*5-3", useAny, want{true, 1, "(12-7)*5-3", "correct"}},
		{"another way to write it", " 5 × (12 − 7) − 3 ", useAny, want{true, 1, "(12-7)*5-3", "correct"}},
		{"another solution", "7+3+12", useAny, want{true, 1, "12+7+3", "correct"}},
		{"only the last line counts", "3*7=21\nso\n12+7+3\n\n", useAny, want{true, 1, "12+7+3", "correct"}},
		{"carriage returns", "12+7+3\r\n", useAny, want{true, 1, "12+7+3", "correct"}},
		{"another value", "12+7-3", useAny, want{false, 0.25, "12+7-3", "is 16, not 22"}},
		{"a fraction", "12/7", useAny, want{false, 0.25, "12/7", "is 12/7, not 22"}},
		{"below zero", "3-5", useAny, want{false, 0.25, "-(5-3)", "is -2, not 22"}},
		{"both threes", "12+7+3-3+3", useAny, want{false, 0.25, "12+7+3-3+3", "uses 3 more often than given"}},
		{"an invented number", "12 + 10", useAny, want{false, 0.25, "12+10", "uses 10, which is not given"}},
		{"the target itself", "22", useAny, want{false, 0.25, "22", "uses 22, which is not given"}},
		{"divides by zero", "12/(3-3)", useAny, want{false, 0.25, "12/(3-3)", "divides by zero"}},
		{"an equation", "12+7+3=22", useAny, want{false, 0, "", "unexpected '='"}},
		{"cut off", "12+7+", useAny, want{false, 0, "", "ends in the middle of an expression"}},
		{"nothing", "", useAny, want{false, 0, "", "no expression"}},
		{"words", "no idea", useAny, want{false, 0, "", "unexpected 'n'"}},
		{"not all of them", "12+7+3", useAll, want{false, 0.25, "12+7+3", "does not use 3"}},
		{"all of them", "7*5-12-3/3", useAll, want{true, 1, "7*5-12-3/3", "correct"}},
		{"all of them, in another order", "-(3/3+12)+5*7", useAll, want{true, 1, "7*5-12-3/3", "correct"}},
		{"all of them, where any would do", "7*5-12-3/3", useAny, want{true, 1, "7*5-12-3/3", "correct"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			task := newTestCountdown(t, func(c *Countdown) { c.Use = tt.use })
			v := gradeText(t, task, problem, tt.text)
			got := want{v.Correct, v.Reward, v.Answer, v.Reason}
			if got != tt.want || v.Status != rollout.Graded {
				t.Errorf("got %+v (%v), want %+v", got, v.Status, tt.want)
			}
		})
	}
}

func TestCountdownOperators(t *testing.T) {
	task := newTestCountdown(t, func(c *Countdown) { c.Operators = "+*" })
	problem := countdownProblem("", countdownData{[]int64{3, 5, 7}, 9, 0})
	for _, tt := range []struct{ text, reason string }{
		{"7+5-3", "uses -"},
		{"7*5/3", "uses /"},
		{"-3+7", "uses -"},
		{"7+3", "is 10, not 9"},
	} {
		if v := gradeText(t, task, problem, tt.text); v.Correct || v.Reason != tt.reason {
			t.Errorf("%q: %+v, want reason %q", tt.text, v, tt.reason)
		}
	}
	if got, want := task.Alphabet(), "0123456789,=:()+*"; got != want {
		t.Errorf("alphabet %q, want %q", got, want)
	}
}

func TestCountdownGradeWithoutData(t *testing.T) {
	task := newTestCountdown(t, nil)
	p := rollout.Problem{ID: "p7", Prompt: "3,5=8:"}
	if _, err := task.Grade(context.Background(), &p, &rollout.Completion{Text: "3+5"}); err == nil || !strings.Contains(err.Error(), "p7") {
		t.Errorf("error %v, want one that names the problem", err)
	}
}

// What Generate promises: numbers and targets in range, a correct target text, the stated number of
// solutions, and only characters of the alphabet.
func TestCountdownGenerate(t *testing.T) {
	for _, use := range []string{useAny, useAll} {
		t.Run(use, func(t *testing.T) {
			const minSolutions = 3
			task := newTestCountdown(t, func(c *Countdown) { c.Use, c.MinSolutions = use, minSolutions })
			problems, err := task.Generate(Test, 200, 42)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range problems {
				data, err := countdownDataOf(&p)
				if err != nil {
					t.Fatalf("%s: %v", p.ID, err)
				}
				if n := len(data.Numbers); n < 3 || n > 4 || data.Target < 1 || data.Target > 60 {
					t.Fatalf("%s: %+v out of range", p.ID, data)
				}
				if v := gradeText(t, task, p, p.Target); !v.Correct || v.Answer != p.Target || v.Reward != 1 {
					t.Fatalf("%s: target %q gets %+v", p.ID, p.Target, v)
				}
				distinct := make(map[string]bool)
				for _, e := range everySubset(data.Numbers, use) {
					if e.evaluate().is(data.Target) {
						distinct[e.canonical()] = true
					}
				}
				if len(distinct) != data.Solutions || len(distinct) < minSolutions {
					t.Fatalf("%s: %d solutions, want %d", p.ID, data.Solutions, len(distinct))
				}
				checkAlphabet(t, task, p)
			}
		})
	}
}

// everySubset is every tree over numbers, or over any of them.
func everySubset(numbers []int64, use string) []*expr {
	if use == useAll {
		return everyTree(numbers)
	}
	var list []*expr
	for mask := 1; mask < 1<<len(numbers); mask++ {
		var some []int64
		for i, n := range numbers {
			if mask>>i&1 == 1 {
				some = append(some, n)
			}
		}
		list = append(list, everyTree(some)...)
	}
	return list
}

func checkAlphabet(t *testing.T, task Task, p rollout.Problem) {
	t.Helper()
	alphabet := task.Alphabet()
	if i := strings.IndexFunc(p.Prompt+p.Target, func(r rune) bool { return !strings.ContainsRune(alphabet, r) }); i >= 0 {
		t.Fatalf("%s: character %q is not in the alphabet", p.ID, (p.Prompt + p.Target)[i:i+1])
	}
}

func TestCountdownConfig(t *testing.T) {
	tests := []struct {
		key    string
		change func(*Countdown)
	}{
		{"min_numbers", func(c *Countdown) { c.MinNumbers = 1 }},
		{"max_numbers", func(c *Countdown) { c.MaxNumbers = 2 }},
		{"max_numbers", func(c *Countdown) { c.MaxNumbers = 6 }},
		{"largest_number", func(c *Countdown) { c.LargestNumber = 1 }},
		{"largest_number", func(c *Countdown) { c.LargestNumber = 1001 }},
		{"largest_target", func(c *Countdown) { c.LargestTarget = 0 }},
		{"operators", func(c *Countdown) { c.Operators = "" }},
		{"operators", func(c *Countdown) { c.Operators = "+^" }},
		{"operators", func(c *Countdown) { c.Operators = "-*" }},
		{"operators", func(c *Countdown) { c.Operators = "+/" }},
		{"operators", func(c *Countdown) { c.Operators = "++" }},
		{"use", func(c *Countdown) { c.Use = "some" }},
		{"min_solutions", func(c *Countdown) { c.MinSolutions = 0 }},
	}
	for _, tt := range tests {
		cfg := Config{Kind: "countdown", Countdown: defaultCountdown()}
		tt.change(&cfg.Countdown)
		_, err := New(cfg)
		var bad *ConfigError
		if !errors.As(err, &bad) || bad.Key != "task.countdown."+tt.key {
			t.Errorf("%+v: error %v, want one of task.countdown.%s", cfg.Countdown, err, tt.key)
		}
	}
}

// Every solution of the shared puzzles is right, and known to the solver.
func TestCountdownSharedData(t *testing.T) {
	dir := os.Getenv("EXP_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "data")
	}
	path := filepath.Join(dir, "benchmarks", "countdown.jsonl")
	if _, err := os.Stat(path); err != nil {
		t.Skipf("the shared data is not here: %v", err)
	}
	task := newTestCountdown(t, func(c *Countdown) { c.Use = useAll })
	problems, err := ReadFile(task, path)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := len(problems), 1000; got != want {
		t.Errorf("%d problems, want %d", got, want)
	}
	for _, p := range problems {
		data, err := countdownDataOf(&p)
		if err != nil {
			t.Fatal(err)
		}
		if v := gradeText(t, task, p, p.Target); !v.Correct {
			t.Errorf("%s: %q is not right: %s", p.ID, p.Target, v.Reason)
		}
		values, from := task.solver().values(nil, data.Numbers)
		known := task.solver().solutions(values, from, data.Numbers, data.Target)
		if data.Solutions != len(known) || !slices.Contains(known, p.Target) {
			t.Errorf("%s: %q is not among the %d solutions %q", p.ID, p.Target, data.Solutions, known)
		}
		checkAlphabet(t, task, p)
	}
}

// Any text quickly gets a verdict; it is correct exactly if independent exact arithmetic says so.
func FuzzCountdownGrade(f *testing.F) {
	task := newTestCountdown(f, nil)
	numbers := []int64{3, 3, 5, 7, 12}
	const target = 22
	problem := countdownProblem("", countdownData{numbers, target, 0})
	for _, text := range []string{
		"(12-7)*5-3", "12+7+3", "12/(3-3)", "-3*-(7)", "5 × (12 − 7) − 3", "1\n12+10", "((((", "12++7",
		strings.Repeat("(", 100_000), strings.Repeat("(", 500) + "3" + strings.Repeat(")", 500),
		strings.Repeat("-(", 500) + "3" + strings.Repeat(")", 500), strings.Repeat("3+", 400) + "3",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		start := time.Now()
		v := gradeText(t, task, problem, text)
		if d := time.Since(start); d > time.Second {
			t.Fatalf("%q: took %v", clip(text), d)
		}
		if v.Correct != (v.Reason == "correct") || v.Correct && v.Answer == "" {
			t.Fatalf("%q: verdict %+v", clip(text), v)
		}
		e, err := parse(lastLine(text))
		if err != nil {
			if v.Answer != "" || v.Reward != testReward.Wrong {
				t.Fatalf("%q does not parse: verdict %+v", clip(text), v)
			}
			return
		}
		value, ok := exactValue(e)
		want := ok && value.Cmp(big.NewRat(target, 1)) == 0 && within(e.numbers(nil), numbers)
		if v.Correct != want {
			t.Fatalf("%q is %v: verdict %+v", clip(text), value, v)
		}
	})
}

// exactValue evaluates e with math/big.
func exactValue(e *expr) (value *big.Rat, ok bool) {
	if e.op == opNumber {
		return new(big.Rat).SetInt64(e.number), true
	}
	a, ok := exactValue(e.left)
	if !ok {
		return nil, false
	}
	if e.op == opMinus {
		return a.Neg(a), true
	}
	b, ok := exactValue(e.right)
	switch {
	case !ok || e.op == '/' && b.Sign() == 0:
		return nil, false
	case e.op == '+':
		return a.Add(a, b), true
	case e.op == '-':
		return a.Sub(a, b), true
	case e.op == '*':
		return a.Mul(a, b), true
	}
	return a.Quo(a, b), true
}

// within reports whether given has every number of used, as often.
func within(used, given []int64) bool {
	count := make(map[int64]int)
	for _, n := range given {
		count[n]++
	}
	for _, n := range used {
		count[n]--
		if count[n] < 0 {
			return false
		}
	}
	return true
}

func TestCountdownProblemJSON(t *testing.T) {
	p := countdownProblem("3,5=8", countdownData{[]int64{3, 5}, 8, 1})
	p.Target = "5+3"
	got, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"id":"3,5=8","prompt":"3,5=8:","target":"5+3","data":{"numbers":[3,5],"target":8,"solutions":1}}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	var back rollout.Problem
	if err := json.Unmarshal(got, &back); err != nil || !reflect.DeepEqual(back, p) {
		t.Errorf("read back: %+v, %v", back, err)
	}
}

func BenchmarkCountdownGrade(b *testing.B) {
	task := newTestCountdown(b, nil)
	problem := countdownProblem("", countdownData{[]int64{3, 5, 7, 12}, 22, 0})
	for b.Loop() {
		gradeText(b, task, problem, "(12-7)*5-3")
	}
}

func BenchmarkCountdownGenerate(b *testing.B) {
	task := newTestCountdown(b, nil)
	for b.Loop() {
		if _, err := task.Generate(Train, 100, 1); err != nil {
			b.Fatal(err)
		}
	}
}

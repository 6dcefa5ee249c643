package task

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"exp/eval/grade/code"
	"exp/sandbox"
	"exp/train/rollout"
)

func defaultFunctions() Functions {
	return Functions{Arguments: 2, LargestNumber: 9, HiddenTests: 6}
}

func functionsTask(t *testing.T, cfg Functions, run code.Runner) Task {
	t.Helper()
	task, err := New(Config{Kind: "functions", Functions: cfg, Code: Code{Run: run}, Reward: Reward{Correct: 1, Format: 0.25}})
	if err != nil {
		t.Fatal(err)
	}
	return task
}

func TestFunctionsGolden(t *testing.T) {
	golden(t, "functions", generate(t, functionsTask(t, defaultFunctions(), nil), Test, 6, 1))
}

// byHand is f(a, b) = a+2*b, three of whose values the prompt shows.
func byHand() *rollout.Problem {
	return &rollout.Problem{ID: "a+2*b", Prompt: "0,0=0 1,0=1 0,1=2\n",
		Data: []byte(`{"inputs":[[0,0],[1,0],[0,1],[7,7]],"outputs":[0,1,2,21]}`)}
}

func TestFunctionsGrade(t *testing.T) {
	task := functionsTask(t, defaultFunctions(), openPool(t))
	for _, tt := range []struct {
		name, text string
		correct    bool
		reward     float64
		answer     string
	}{
		{"an expression", "return a+2*b", true, 1, "2*b+a"},
		{"two statements", "x=2*b\nreturn x+a", true, 1, "2*b+a"},
		{"another way", "return a+b+b", true, 1, "a+b+b"},
		{"indented", "  return a+2*b", true, 1, "2*b+a"},
		{"another function", "return a+3*b", false, 0.25, "3*b+a"},
		{"right on the examples shown alone", "return{0:2*b,1:1}[a]", false, 0.25, "return{0:2*b,1:1}[a]"},
		{"no program", "return a+*b", false, 0, ""},
		{"nothing", " \n", false, 0, ""},
		{"no value", "x=a", false, 0.25, "x=a"},
		{"an error", "return a//0+c", false, 0.25, "(a//0)+c"},
		{"another entry", "return 0\ndef outputs(inputs): return [0,1,2,21]", false, 0, ""},
		{"without an end", "while 1: pass", false, 0.25, "while 1: pass"},
	} {
		v, err := task.Grade(context.Background(), byHand(), &rollout.Completion{Text: tt.text})
		if err != nil || v.Status != rollout.Graded || v.Correct != tt.correct || v.Reward != tt.reward || v.Answer != tt.answer {
			t.Errorf("%s: %+v %v, want correct %v, reward %v, answer %q", tt.name, v, err, tt.correct, tt.reward, tt.answer)
		}
	}
}

// Every target is right, and wrong once another constant is added.
func TestFunctionsTargets(t *testing.T) {
	cfg := defaultFunctions()
	cfg.Arguments = 3
	task := functionsTask(t, cfg, openPool(t))
	problems := generate(t, task, Train, 40, 3)
	var items []rollout.Item
	for i := range problems {
		p := &problems[i]
		items = append(items, rollout.Item{Problem: p, Completion: &rollout.Completion{Text: p.Target}},
			rollout.Item{Problem: p, Completion: &rollout.Completion{Text: p.Target + "+1000"}})
	}
	verdicts, err := task.(rollout.BatchGrader).GradeAll(context.Background(), items)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range verdicts {
		p := items[i].Problem
		if v.Correct != (i%2 == 0) {
			t.Errorf("%s: %q is correct %v: %s", p.ID, items[i].Completion.Text, v.Correct, v.Reason)
		}
		if bad := strings.Trim(p.Prompt+p.Target, task.Alphabet()); bad != "" {
			t.Errorf("%s: %q is not of the alphabet", p.ID, bad)
		}
	}
}

// The programs of a function are of every kind that Functions names, and are many.
func TestFunctionsPrograms(t *testing.T) {
	f := linear{factors: []int{3, -2}, constant: 5}
	rng := rand.New(rand.NewPCG(1, 0))
	texts, forms := map[string]bool{}, map[string]bool{}
	for range 3000 {
		text := f.program(rng)
		texts[text], forms[programForm(text)] = true, true
	}
	for _, want := range []string{
		"return 3*a-2*b+5",
		"x=3*a-2*b\nreturn x+5", // a part of the sum
		"return 2*(a-b)+a+5",    // 3*a-2*b = 2*(a-b)+a
		"x=a-b\nreturn 2*x+a+5", // the same on two lines
		"return 2*a+a-2*b+5",    // 3*a in two terms
		"return 3*a-2*b+1+4",    // 5 in two terms
		"x=3*a-b-b\nreturn x+5", // -2*b in two terms
		"x=a-b\nreturn x+x+a+5", // 2*x in two terms
	} {
		if !texts[want] {
			t.Errorf("never written: %q", want)
		}
	}
	if got, want := sum(f.terms()), "3*a-2*b+5"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if len(forms) < 8 {
		t.Errorf("%d different programs: %v", len(forms), forms)
	}
}

// No function is in two splits, or twice in one; its hidden inputs depend only on the function, not the
// seed.
func TestFunctionsSplits(t *testing.T) {
	task := functionsTask(t, defaultFunctions(), nil)
	data := map[string]string{}
	for _, split := range []Split{Train, Val, Test} {
		for _, p := range generate(t, task, split, 200, 4) {
			if _, ok := data[p.ID]; ok {
				t.Errorf("%s: twice", p.ID)
			}
			data[p.ID] = string(p.Data)
		}
	}
	again := 0
	for _, p := range generate(t, task, Test, 200, 5) {
		if first, ok := data[p.ID]; ok {
			again++
			if string(p.Data) != first {
				t.Errorf("%s: %s, and with another seed %s", p.ID, first, p.Data)
			}
		}
	}
	if again == 0 {
		t.Error("two seeds have no function in common")
	}
}

// countingRunner counts requests.
type countingRunner struct {
	run func(sandbox.Request) sandbox.Result
	n   atomic.Int64
}

func (r *countingRunner) Run(_ context.Context, q sandbox.Request) sandbox.Result {
	r.n.Add(1)
	return r.run(q)
}

// Equal programs for a problem run once, those for different problems separately; each item gets the
// verdict that it would get alone.
func TestGradeAllOnce(t *testing.T) {
	runner := &countingRunner{run: func(q sandbox.Request) sandbox.Result {
		status := sandbox.WrongAnswer
		if strings.Contains(q.Source, "a+2*b") {
			status = sandbox.OK
		}
		return sandbox.Result{Verdict: status, Passed: map[sandbox.Verdict]int{sandbox.OK: 1}[status], Runs: []sandbox.Run{{Status: status}}}
	}}
	one, two := byHand(), byHand()
	two.ID = "another"
	var items []rollout.Item
	for _, text := range []string{"return a+2*b", "return 1", "return a+2*b", "return 1", "return 1"} {
		items = append(items, rollout.Item{Problem: one, Completion: &rollout.Completion{Text: text}})
	}
	items = append(items, rollout.Item{Problem: two, Completion: &rollout.Completion{Text: "return 1"}})
	verdicts, err := functionsTask(t, defaultFunctions(), runner).(rollout.BatchGrader).GradeAll(context.Background(), items)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, false, true, false, false, false} {
		if verdicts[i].Correct != want {
			t.Errorf("item %d: %+v", i, verdicts[i])
		}
	}
	if n := runner.n.Load(); n != 3 {
		t.Errorf("%d programs were run, want 3", n)
	}
}

// A sandbox failure is not a wrong answer; without a sandbox grading is an error.
func TestBrokenSandbox(t *testing.T) {
	broken := &countingRunner{run: func(sandbox.Request) sandbox.Result {
		return sandbox.Result{Verdict: sandbox.InfraError, Runs: []sandbox.Run{{Status: sandbox.InfraError, Detail: "no slot"}}}
	}}
	v, err := functionsTask(t, defaultFunctions(), broken).Grade(context.Background(), byHand(), &rollout.Completion{Text: "return 1"})
	if err != nil || v.Status != rollout.NotGraded || !strings.Contains(v.Reason, "no slot") {
		t.Errorf("%+v %v", v, err)
	}
	_, err = functionsTask(t, defaultFunctions(), nil).Grade(context.Background(), byHand(), &rollout.Completion{Text: "return 1"})
	if !errors.Is(err, ErrNoSandbox) {
		t.Errorf("%v", err)
	}
}

func TestFunctionsConfig(t *testing.T) {
	for key, change := range map[string]func(*Functions){
		"task.functions.arguments":      func(c *Functions) { c.Arguments = 4 },
		"task.functions.largest_number": func(c *Functions) { c.LargestNumber = 1 },
		"task.functions.hidden_tests":   func(c *Functions) { c.Arguments, c.HiddenTests = 1, 6 }, // of 10 inputs
	} {
		cfg := defaultFunctions()
		change(&cfg)
		_, err := New(Config{Kind: "functions", Functions: cfg})
		var bad *ConfigError
		if !errors.As(err, &bad) || bad.Key != key {
			t.Errorf("%v, want an error at %s", err, key)
		}
	}
}

package task

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"exp/eval/grade/code"
	"exp/sandbox"
	"exp/train/rollout"
)

func defaultFunctions() Functions {
	return Functions{Arguments: 2, Operations: 2, LargestNumber: 9, Operators: "+-*", Examples: 4, HiddenTests: 6}
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
	return &rollout.Problem{ID: "a+2*b", Prompt: "2,3=8 1,4=9 5,0=5\n",
		Data: []byte(`{"inputs":[[2,3],[1,4],[5,0],[7,7]],"outputs":[8,9,5,21]}`)}
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
		{"right on what is shown alone", "return{2:8,1:9,5:5}[a]", false, 0.25, "return{2:8,1:9,5:5}[a]"},
		{"no program", "return a+*b", false, 0, ""},
		{"nothing", " \n", false, 0, ""},
		{"no value", "x=a", false, 0.25, "x=a"},
		{"an error", "return a//0+c", false, 0.25, "(a//0)+c"},
		{"another entry", "return 0\ndef outputs(inputs): return [8,9,5,21]", false, 0, ""},
		{"without an end", "while 1: pass", false, 0.25, "while 1: pass"},
	} {
		v, err := task.Grade(context.Background(), byHand(), &rollout.Completion{Text: tt.text})
		if err != nil || v.Status != rollout.Graded || v.Correct != tt.correct || v.Reward != tt.reward || v.Answer != tt.answer {
			t.Errorf("%s: %+v %v, want correct %v, reward %v, answer %q", tt.name, v, err, tt.correct, tt.reward, tt.answer)
		}
	}
}

// Every target is right, and none is with another constant added.
func TestFunctionsTargets(t *testing.T) {
	cfg := defaultFunctions()
	cfg.Operations, cfg.Operators, cfg.Arguments = 3, "+-*/%", 3
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
	statements := 0
	for i, v := range verdicts {
		p := items[i].Problem
		if v.Correct != (i%2 == 0) {
			t.Errorf("%s: %q is correct %v: %s", p.ID, items[i].Completion.Text, v.Correct, v.Reason)
		}
		if form, _, _ := strings.Cut(p.ID, "#"); i%2 == 0 && v.Answer != form {
			t.Errorf("%q has the form %q, and the problem is %s", p.Target, v.Answer, p.ID)
		}
		statements += strings.Count(p.Target, "\n")
		if bad := strings.Trim(p.Prompt+p.Target, task.Alphabet()); bad != "" {
			t.Errorf("%s: %q is not of the alphabet", p.ID, bad)
		}
	}
	if statements == 0 {
		t.Error("no target has two statements")
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

// Equal programs of a problem are run once, those of different problems not; each item
// has the verdict that it would have alone.
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

// A sandbox that broke is no wrong answer, and none at all is an error.
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
		"task.functions.operations":     func(c *Functions) { c.Operations = 0 },
		"task.functions.largest_number": func(c *Functions) { c.LargestNumber = 1 },
		"task.functions.operators":      func(c *Functions) { c.Operators = "+^" },
		"task.functions.examples":       func(c *Functions) { c.Arguments, c.Examples = 1, 5 }, // 11 tests of 10 inputs
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

package interpreter

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"exp/sandbox"
	"exp/train/rollout"
)

func TestMain(m *testing.M) {
	if code, ok := sandbox.Enter(); ok {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// What programs print and how they fail, as the policy reads it; everything twice, with the same text.
func TestPython(t *testing.T) {
	pool, err := sandbox.Open(context.Background(), sandbox.Config{})
	if err != nil {
		t.Skip(err)
	}
	defer func() { _ = pool.Close() }()
	p := &Python{Run: pool, Limits: sandbox.Limits{CPUMS: 300, WallMS: 2000, StdoutKB: 4}}
	for _, tt := range []struct{ code, want string }{
		{"print(6*7)", "42"},
		{"```python\nprint(6*7)\n```", "42"},
		{"x = 1", ""},
		{"6*7", "42"},
		{"x = 'a'\nx * 2 # twice", "'aa'"},
		{"None", ""},
		{"print(1); 2", "1\n2"},
		{"from __future__ import annotations\ndef f() -> g: return 3\nf()", "3"},
		{"1 +", "  File \"/box/main.py\", line 1\n    1 +\n       ^\nSyntaxError: invalid syntax"},
		{"2\n1/0", "Traceback (most recent call last):\n  File \"/box/main.py\", line 2, in <module>\n    1/0\n    ~^~\nZeroDivisionError: division by zero"},
		{"print('a')\n1/0", "a\nTraceback (most recent call last):\n  File \"/box/main.py\", line 2, in <module>\n    1/0\n    ~^~\nZeroDivisionError: division by zero"},
		{"import sys; print('a', end=''); print('b', file=sys.stderr)", "a\nb"},
		{"import sys; sys.exit(3)", "Error: the program ended with status 3."},
		{"while True: pass", "TimeoutError: the program ran too long and was ended."},
		{"print(1)\nwhile True: print('x' * 100)", "*Error: the program wrote too much and was ended."},
		{"import os; _ = os.write(1, b'\\xff')", "\uFFFD"},
		{"import random; random.seed(1); print(random.random())", "0.13436424411240122"},
	} {
		for range 2 {
			a, err := p.Answer(context.Background(), rollout.ToolCall{Input: tt.code})
			want, suffix := strings.CutPrefix(tt.want, "*")
			if err != nil || a.End || a.Text != want && !(suffix && strings.HasSuffix(a.Text, want)) {
				t.Errorf("%q: %q, %v, want %q", tt.code, a.Text, err, tt.want)
			}
		}
	}
	// Nothing differs from run to run but the clock.
	draw := rollout.ToolCall{Input: "import random; print(random.random(), hash('a'), id(random), object(), {'b', 'a', 'c'})"}
	first, _ := p.Answer(context.Background(), draw)
	for range 4 {
		if again, err := p.Answer(context.Background(), draw); err != nil || again.Text != first.Text {
			t.Errorf("%q, then %q; %v", first.Text, again.Text, err)
		}
	}
	for _, tt := range []struct{ name, args, want string }{
		{Name, `{"code": "print(1)"}`, "1"},
		{Name, `{"program": "print(1)"}`, `Error: the argument "code", a text, is missing.`},
		{Name, `[1]`, "Error: the arguments are no JSON object."},
		{"search", `{"code": "print(1)"}`, `Error: there is no tool "search"; the only one is code_interpreter.`},
	} {
		if a, err := p.Answer(context.Background(), rollout.ToolCall{Name: tt.name, Arguments: json.RawMessage(tt.args)}); err != nil || a.Text != tt.want {
			t.Errorf("%s %s: %q, %v, want %q", tt.name, tt.args, a.Text, err, tt.want)
		}
	}
	var list []any
	if err := json.Unmarshal([]byte(Definition), &list); err != nil || len(list) != 1 {
		t.Errorf("definition: %v", err)
	}
}

type brokenRunner struct{}

func (brokenRunner) Run(context.Context, sandbox.Request) sandbox.Result {
	return sandbox.Result{Verdict: sandbox.InfraError, Runs: []sandbox.Run{{Status: sandbox.InfraError, Detail: "no fork"}}}
}

// A failing sandbox is an error; the policy reads nothing of it.
func TestBrokenSandbox(t *testing.T) {
	_, err := (&Python{Run: brokenRunner{}}).Answer(context.Background(), rollout.ToolCall{Input: "print(1)"})
	var broken *BrokenError
	if !errors.As(err, &broken) || broken.ExitCode() != 8 || !strings.Contains(err.Error(), "no fork") {
		t.Error(err)
	}
}

package code

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"exp/sandbox"
	"exp/train/rollout"
)

func openPool(t testing.TB) *sandbox.Pool {
	t.Helper()
	p, err := sandbox.Open(context.Background(), sandbox.Config{Slots: 2})
	if bad := new(sandbox.LevelError); errors.As(err, &bad) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func grader(t testing.TB, run Runner, opts Options) *Grader {
	t.Helper()
	g, err := NewGrader(run, opts)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// The same task, the square of a number, with each kind of test.
func squareStdio() *Problem {
	return &Problem{ID: "square/stdio", Family: LiveCodeBench, Prelude: true, Tests: []Test{{Stdin: "3\n", Stdout: "9\n"}, {Stdin: "-4\n", Stdout: "16"}, {Stdin: "0\n", Stdout: "0\n"}}}
}

func squareCall() *Problem {
	test := func(x int) Test {
		return Test{Args: json.RawMessage(fmt.Sprintf("[%d]", x)), Expect: json.RawMessage(fmt.Sprint(x * x))}
	}
	return &Problem{ID: "square/call", Family: LiveCodeBench, Prelude: true, Entry: "square", Tests: []Test{test(3), test(-4), test(0)}}
}

func squareAsserts() *Problem {
	return &Problem{ID: "square/asserts", Family: HumanEval, Entry: "square", Starter: "from math import isqrt\n\ndef square(x):\n    \"\"\"The square of x.\"\"\"\n",
		Asserts: []string{"assert square(3) == 9", "assert square(-4) == 16", "assert square(0) == 0"}}
}

func TestGrade(t *testing.T) {
	g := grader(t, openPool(t), Options{})
	for _, tt := range []struct {
		name, program string
		problem       *Problem
		want          sandbox.Verdict
	}{
		{"stdio", "print(int(input()) ** 2)", squareStdio(), sandbox.OK},
		{"stdio, the block of __main__ runs", "if __name__ == '__main__':\n    print(int(input()) ** 2)", squareStdio(), sandbox.OK},
		{"stdio, names of the prelude", "print(floor(pow(int(sys.stdin.readline()), 2)))", squareStdio(), sandbox.OK},
		{"stdio, from __future__", "from __future__ import annotations\nprint(int(input()) ** 2)", squareStdio(), sandbox.OK},
		{"stdio, names of the prelude and __future__", "\"\"\"The square.\"\"\"\nfrom __future__ import annotations\nprint(floor(int(input()) ** 2))", squareStdio(), sandbox.OK},
		{"stdio, __future__ in brackets", "from __future__ import (\n    annotations)\nprint(int(input()) ** 2)", squareStdio(), sandbox.OK},
		{"stdio, __future__ after a text", "\"The square.\"; from __future__ import annotations\nprint(int(input()) ** 2)", squareStdio(), sandbox.OK},
		{"stdio, __future__ in a comment", "# without from __future__ import annotations\nprint(floor(int(input()) ** 2))", squareStdio(), sandbox.OK},
		{"stdio, a byte order mark", "\ufeffprint(int(input()) ** 2)", squareStdio(), sandbox.OK},
		{"stdio, wrong", "print(abs(int(input())) * 3)", squareStdio(), sandbox.WrongAnswer},
		{"stdio, raises after its output", "print(int(input()) ** 2); 1/0", squareStdio(), sandbox.RuntimeError},
		{"stdio, no program", "print(", squareStdio(), sandbox.CompileError},
		{"function", "def square(x): return x * x", squareCall(), sandbox.OK},
		{"method", "class Solution:\n    def square(self, x: Optional[int]) -> int:\n        return x * x", squareCall(), sandbox.OK},
		{"function, the block of __main__ does not run", "def square(x): return x * x\nif __name__ == '__main__':\n    print(square(int(input())))", squareCall(), sandbox.OK},
		{"function also prints", "def square(x):\n    print('9')\n    return x * x", squareCall(), sandbox.OK},
		{"function, wrong", "def square(x): return x + 6", squareCall(), sandbox.WrongAnswer},
		{"function of another name", "def sqr(x): return x * x", squareCall(), sandbox.RuntimeError},
		{"asserts, the whole function", "def square(x):\n    return x * x", squareAsserts(), sandbox.OK},
		{"asserts, the body", "    return x * x\n", squareAsserts(), sandbox.OK},
		{"asserts, the body without indentation", "y = x\nreturn x * y\n", squareAsserts(), sandbox.OK},
		{"asserts, __future__ and the head's import", "from __future__ import annotations\ndef square(x: Thing): return isqrt(x ** 4)", squareAsserts(), sandbox.OK},
		{"asserts, a name", "square = lambda x: x * x", squareAsserts(), sandbox.OK},
		{"asserts, wrong", "def square(x): return 9", squareAsserts(), sandbox.WrongAnswer},
		{"asserts, only the head", "x = 1", squareAsserts(), sandbox.WrongAnswer},
	} {
		got, err := g.Response(context.Background(), tt.problem, "```python\n"+tt.program+"\n```")
		if err != nil || got.Status != tt.want || got.Correct != (tt.want == sandbox.OK) || (got.Score == 1) != got.Correct {
			t.Errorf("%s: %+v %v, want %s", tt.name, got, err, tt.want)
		}
	}
}

// LiveCodeBench's own grader catches SystemExit, whatever the status, and compares the output.
func TestExitStatus(t *testing.T) {
	pool := openPool(t)
	for program, want := range map[string]bool{
		"import sys\nprint(int(input()) ** 2)\nsys.exit(1)": true, "import sys\nsys.exit(1)": false,
		"print(int(input()) ** 2)\n1/0": false, "import sys\nprint(int(input()) ** 2)\nsys.exit('bye')": true,
	} {
		for rules, right := range map[Rules]bool{Upstream: want, Strict: false} {
			g := grader(t, pool, Options{Rules: rules})
			got, err := g.Response(context.Background(), squareStdio(), "```python\n"+program+"\n```")
			if err != nil || got.Correct != right {
				t.Errorf("%s: %q: %+v, %v; want %v", rules, program, got, err, right)
			}
		}
	}
}

// cheats are programs that solve nothing. None may pass.
var cheats = map[string]string{
	"exit at once":           "import sys\nsys.exit(0)",
	"exit in the function":   "import os\ndef square(x): os._exit(0)",
	"exit in a handler":      "import atexit, os\natexit.register(os._exit, 0)\ndef square(x): raise SystemExit(0)",
	"equal to everything":    "class A(int):\n    def __eq__(self, o): return True\n    def __ne__(self, o): return False\n    __hash__ = int.__hash__\n    def __bool__(self): return True\ndef square(x): return A(-1)\nif __name__ == '__main__': print(A(-1))",
	"not an int":             "class A:\n    def __eq__(self, o): return True\n    def __repr__(self): return '9'\ndef square(x): return A()",
	"patched equality":       "import builtins, operator, unittest\nbuiltins.all = builtins.any = lambda *a: True\noperator.eq = lambda a, b: True\nunittest.TestCase.assertEqual = lambda *a: None\ndef square(x): return -1",
	"patched AssertionError": "import builtins\nclass E(Exception): pass\nbuiltins.AssertionError = E\ndef square(x): return -1",
	"its own trace":          "import sys\nsys.settrace(lambda *a: None)\ndef square(x): return -1",
	"the frame of the caller": `import sys
def square(x):
    f = sys._getframe()
    while f:
        for v in list(f.f_locals.values()) + list(f.f_globals.values()):
            if isinstance(v, dict) and ('gt_out' in v or 'expect' in v): return v.get('gt_out', v.get('expect'))
        f = f.f_back
    return -1`,
	"constants and collector": `import gc, sys
def square(x):
    for o in gc.get_objects():
        if hasattr(o, 'co_consts') and 16 in o.co_consts: return 16
    f = sys._getframe()
    while f:
        for c in f.f_code.co_consts:
            if c == 16: return 16
        f = f.f_back
    return -1`,
	"its own memory": `import re
def square(x):
    text = b''
    for line in open('/proc/self/maps'):
        a, b = (int(v, 16) for v in line.split()[0].split('-'))
        if 'rw' in line and b - a < 1 << 24:
            try:
                m = open('/proc/self/mem', 'rb'); m.seek(a); text += m.read(b - a)
            except OSError: pass
    found = re.search(rb'"(?:expect|stdout)": *"?(-?[0-9]+)', text)
    return int(found.group(1)) if found else -1`,
	"forged results": `import os
def square(x):
    for fd in range(3, 16):
        for s in (b'pass', b'{"value":{"i":"9"}}\n', b'9', b'{"passed":true}'):
            try: os.write(fd, s)
            except OSError: pass
    os._exit(0)`,
	"forged at import": `import os
for fd in range(3, 16):
    for s in (b'pass', b'"ready"\n' + b'{"value":true}\n' * 9):
        try: os.write(fd, s)
        except OSError: pass
os._exit(0)`,
	"files of the tests": `import glob, re
text = ''
for f in glob.glob('/box/*') + glob.glob('/tmp/*') + glob.glob('/*') + glob.glob('/proc/self/*') + glob.glob('/proc/1/*'):
    try: text += open(f, errors='replace').read(1 << 20) if not f.endswith(('main.py', 'mem', 'maps', 'kmsg')) else ''
    except OSError: pass
found = re.search('"(?:expect|stdout|value)": *"?(-?[0-9]+)', text)
def square(x): return int(found.group(1)) if found else -1`,
	"the driver's process": "import os, signal\ndef square(x):\n    for pid in range(1, 50):\n        if pid != os.getpid():\n            try: os.kill(pid, signal.SIGKILL)\n            except OSError: pass\n    return -1",
	"a forked answer":      "import os\ndef square(x):\n    if os.fork() == 0: os._exit(0)\n    return -1",
	"patched codec":        "import json\njson.dumps = lambda *a, **k: '16'\ndef square(x): return 16 if x == 3 else -1",
	"raises a pass":        "class SkipTest(Exception): pass\ndef square(x): raise SkipTest",
	"swallowed":            "def square(x): raise KeyboardInterrupt",
}

// A right answer may be longer than the sandbox keeps by default, and an integer as long as LiveCodeBench prints.
func TestLongOutput(t *testing.T) {
	g := grader(t, openPool(t), Options{})
	long := strings.Repeat("1234567\n", 200_000)
	lines := &Problem{ID: "lines", Family: LiveCodeBench, Prelude: true, Tests: []Test{{Stdin: "200000", Stdout: long}}}
	digits := &Problem{ID: "digits", Family: LiveCodeBench, Prelude: true,
		Tests: []Test{{Stdin: "5000", Stdout: "1" + strings.Repeat("0", 5000)}}}
	for program, p := range map[string]*Problem{"for _ in range(int(input())): print(1234567)": lines,
		"print(10**int(input()))": digits} {
		if v, err := g.Program(t.Context(), p, Program{Text: program}); err != nil || !v.Correct {
			t.Errorf("%s: %s, %v", p.ID, v.Reason, err)
		}
	}
	endless := Program{Text: "while True: print(1234567)"}
	if v, err := g.Program(t.Context(), lines, endless); err != nil || v.Status != sandbox.OutputLimit {
		t.Errorf("endless output: %s, %v", v.Status, err)
	}
}

func TestCheatsDoNotPass(t *testing.T) {
	p := openPool(t)
	strict, upstream := grader(t, p, Options{}), grader(t, p, Options{Rules: Upstream})
	for name, program := range cheats {
		for _, problem := range []*Problem{squareStdio(), squareCall(), squareAsserts()} {
			source := program
			if problem.Entry == "" {
				source += "\ntry: print(square(0))\nexcept NameError: pass\n"
			}
			graders := []*Grader{strict, upstream}
			if len(problem.Asserts) > 0 {
				graders = graders[:1] // one way to run them
			}
			for _, g := range graders {
				v, err := g.Program(context.Background(), problem, Program{Text: source})
				if err != nil || v.Correct || v.Score != 0 {
					t.Errorf("%s passes %s by %s rules: %+v %v", name, problem.ID, g.opts.Rules, v, err)
				}
			}
		}
	}
}

// TestNothingExpectedIsSent looks at what goes into the sandbox.
func TestNothingExpectedIsSent(t *testing.T) {
	const secret = "7391846"
	stdio, call := squareStdio(), squareCall()
	stdio.Tests[0].Stdout, call.Tests[0].Expect = secret, json.RawMessage(secret)
	for _, p := range []*Problem{stdio, call} {
		sent := ""
		g := grader(t, runFunc(func(r sandbox.Request) sandbox.Result {
			text, err := json.Marshal(r)
			if err != nil {
				t.Error(err)
			}
			sent = string(text)
			return sandbox.Result{Verdict: sandbox.OK, Passed: len(r.Tests)}
		}), Options{})
		if _, err := g.Program(context.Background(), p, Program{Text: "pass"}); err != nil {
			t.Fatal(err)
		}
		if sent == "" || strings.Contains(sent, secret) {
			t.Errorf("%s: an expected output was sent: %s", p.ID, sent)
		}
	}
}

type runFunc func(r sandbox.Request) sandbox.Result

func (f runFunc) Run(_ context.Context, r sandbox.Request) sandbox.Result { return f(r) }

func TestPartialCredit(t *testing.T) {
	p := openPool(t)
	const right = "def square(x): return x * x if x else 1\nif __name__ == '__main__': print(square(int(input())))"
	for _, problem := range []*Problem{squareStdio(), squareCall(), squareAsserts()} {
		for _, tt := range []struct {
			opts  Options
			score float64
		}{{Options{}, 0}, {Options{Partial: true}, 2. / 3}} {
			v, err := grader(t, p, tt.opts).Program(context.Background(), problem, Program{Text: right})
			if err != nil || v.Score != tt.score || v.Correct || v.Total != 3 {
				t.Errorf("%s partial %v: %+v %v, want %g", problem.ID, tt.opts.Partial, v, err, tt.score)
			}
		}
	}
}

// TestBothRules: run once, compared twice.
func TestBothRules(t *testing.T) {
	p := openPool(t)
	problem := &Problem{ID: "yes", Family: TACO, Tests: []Test{{Stdin: "1", Stdout: "YES"}, {Stdin: "2", Stdout: "NO"}}}
	v, err := grader(t, p, Options{Both: true}).Program(context.Background(), problem, Program{Text: "print('NO')"})
	if err != nil || v.Correct || v.Passed != 1 || v.Other != 2 {
		t.Errorf("strict with upstream: %+v %v, want 1 and 2 passed", v, err)
	}
	v, err = grader(t, p, Options{Rules: Upstream, Both: true}).Program(context.Background(), problem, Program{Text: "print('NO'); 1/0"})
	if err != nil || !v.Correct || v.Passed != 2 || v.Other != 0 {
		t.Errorf("upstream with strict: %+v %v, want 2 and 0 passed", v, err)
	}
}

func TestUpstreamForgetsTheFunction(t *testing.T) {
	problem := squareCall()
	problem.Family = TACO
	for len(problem.Tests) <= mostUpstreamTests {
		problem.Tests = append(problem.Tests, problem.Tests[0])
	}
	p := openPool(t)
	right := Program{Text: "def square(x): return x * x"}
	for rules, want := range map[Rules]bool{Strict: true, Upstream: false} {
		v, err := grader(t, p, Options{Rules: rules}).Program(context.Background(), problem, right)
		if err != nil || v.Correct != want {
			t.Errorf("%s: %+v %v, want %v", rules, v, err, want)
		}
	}
}

// TestBrokenSandbox: a sandbox failure is not a wrong answer.
func TestBrokenSandbox(t *testing.T) {
	broken := runFunc(func(sandbox.Request) sandbox.Result {
		return sandbox.Result{Verdict: sandbox.InfraError, Runs: []sandbox.Run{{Status: sandbox.InfraError, Detail: "no slot"}}}
	})
	for _, problem := range []*Problem{squareStdio(), squareCall(), squareAsserts()} {
		for _, opts := range []Options{{}, {Partial: true}, {Rules: Upstream}} {
			g := grader(t, broken, opts)
			v, err := g.Program(context.Background(), problem, Program{Text: "pass"})
			if want := new(InfraError); !errors.As(err, &want) || want.Detail != "no slot" || v.Score != 0 || v.Status != "" {
				t.Errorf("%s: %+v %v", problem.ID, v, err)
			}
			r, err := problem.Rollout()
			if err != nil {
				t.Fatal(err)
			}
			got, err := g.Grade(context.Background(), &r, &rollout.Completion{Text: "```python\npass\n```"})
			if err != nil || got.Status != rollout.NotGraded || !strings.Contains(got.Reason, "no slot") {
				t.Errorf("%s: %+v %v", problem.ID, got, err)
			}
		}
	}
}

// TestUnlucky: a run near its CPU limit, or starved on a busy machine, is repeated and the better result
// counts; a run that only waited is not.
func TestUnlucky(t *testing.T) {
	for _, tt := range []struct {
		name  string
		run   sandbox.Run
		again bool
	}{
		{"near the limit", sandbox.Run{Status: sandbox.TimeLimit, Detail: "cpu", Borderline: true}, true},
		{"far above it", sandbox.Run{Status: sandbox.TimeLimit, Detail: "cpu"}, false},
		{"starved", sandbox.Run{Status: sandbox.TimeLimit, Detail: "wall", Wall: 10 * time.Second, CPU: time.Second}, true},
		{"waited", sandbox.Run{Status: sandbox.TimeLimit, Detail: "wall", Wall: 10 * time.Second, CPU: time.Millisecond}, false},
		{"wrong", sandbox.Run{Status: sandbox.WrongAnswer}, false},
	} {
		for _, second := range []bool{true, false} {
			runs := 0
			g := grader(t, runFunc(func(r sandbox.Request) sandbox.Result {
				runs++
				if runs == 2 && second {
					return sandbox.Result{Verdict: sandbox.OK, Passed: len(r.Tests)}
				}
				return sandbox.Result{Verdict: tt.run.Status, Runs: []sandbox.Run{tt.run}}
			}), Options{})
			v, err := g.Program(context.Background(), squareStdio(), Program{Text: "pass"})
			if err != nil || v.Correct != (second && tt.again) || (runs == 2) != tt.again {
				t.Errorf("%s: %+v %v after %d runs", tt.name, v, err, runs)
			}
		}
	}
}

func TestBadProblems(t *testing.T) {
	g := grader(t, runFunc(func(sandbox.Request) sandbox.Result { return sandbox.Result{} }), Options{})
	for name, p := range map[string]*Problem{
		"no id":        {Tests: []Test{{}}},
		"no tests":     {ID: "x"},
		"no entry":     {ID: "x", Asserts: []string{"f()"}},
		"no name":      {ID: "x", Entry: "f g", Asserts: []string{"f(1)"}},
		"own function": {ID: "x", Entry: "f", Asserts: []string{"def f(x): return 1\nassert f(1) == 1"}},
		"two kinds":    {ID: "x", Asserts: []string{"f()"}, Tests: []Test{{}}},
		"no arguments": {ID: "x", Entry: "f", Tests: []Test{{Args: json.RawMessage("1"), Expect: json.RawMessage("1")}}},
		"no value":     {ID: "x", Entry: "f", Tests: []Test{{Args: json.RawMessage("[1]"), Expect: json.RawMessage("nan")}}},
	} {
		if _, err := g.Response(context.Background(), p, "```\nx = 1\n```"); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := NewGrader(nil, Options{Rules: "best"}); err == nil {
		t.Error("unknown rules are taken")
	}
}

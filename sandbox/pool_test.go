//go:build linux && (amd64 || arm64)

package sandbox

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// honest lists programs that a sandbox must not disturb: their output equals the bare interpreter's.
var honest = map[string]string{
	"hello":      "print('hello')",
	"no newline": "import sys; sys.stdout.write('x')",
	"unicode":    "print('\\u00e9\\u4e2d\\U0001f600')",
	"main":       "print(__name__, __file__.split('/')[-1]); import sys; print(sys.argv[1:], len(sys.path[0]) > 0)",
	"input":      "import sys\nfor line in sys.stdin: print(line.strip()[::-1])",
	"open 0":     "print(len(open(0).read()))",
	"replaced":   "import io, os, sys\nsys.stdin = io.BytesIO(os.read(0, 100))\nprint(sys.stdin.readline())",
	"reconf":     "import sys; sys.stdout.reconfigure(line_buffering=True); print(1)",
	"exit":       "print(1); exit()",
	"atexit":     "import atexit; atexit.register(print, 'last'); print('first')",
	"thread":     "import threading, time\nthreading.Thread(target=lambda: (time.sleep(.05), print('late'))).start()",
	"big stack":  "import threading, sys\nthreading.stack_size(128 << 20)\nsys.setrecursionlimit(60000)\ndef f(n): return 0 if n == 0 else 1 + f(n - 1)\nt = threading.Thread(target=lambda: print(f(50000))); t.start(); t.join()",
	"tempfile":   "import tempfile\nwith tempfile.TemporaryFile() as f: f.write(b'x'); f.seek(0); print(f.read())",
	"asyncio":    "import asyncio\nasync def f(): await asyncio.sleep(.001); return 7\nprint(asyncio.run(f()))",
	"pickle":     "import pickle\nclass A: x = 1\nprint(pickle.loads(pickle.dumps(A())).x)",
	"inspect":    "import inspect\ndef f(): return 1\nprint(inspect.getsource(f))",
	"fork":       "import os\npid = os.fork()\nif pid == 0: print('child', flush=True); os._exit(3)\nprint(os.waitpid(pid, 0)[1] >> 8)",
	"subprocess": "import subprocess, sys\nprint(subprocess.run([sys.executable, '-c', 'print(6*7)'], capture_output=True, text=True).stdout)",
	"pool":       "import multiprocessing as m\nif __name__ == '__main__':\n with m.get_context('fork').Pool(2) as p: print(p.map(abs, [-1, -2]))",
	"imports":    "import heapq, bisect, collections, itertools, functools, math, re, json, random, string\nprint(math.isqrt(10**20))",
	"big int":    "print((1 << 10000).bit_length(), 2**100)",
	"hash":       "print(hash('a'), [*{'a', 'b', 'c', 'd'}])",
	"env":        "import os; print(os.environ['LANG'], os.environ['TZ'])",
	"local time": "import time; print(time.localtime(0)[:6])",
	"locale":     "import locale\nprint(locale.getlocale(), locale.setlocale(locale.LC_ALL, ''))",
	"sigalrm":    "import signal\nsignal.signal(signal.SIGALRM, lambda *a: print('alarm'))\nsignal.setitimer(signal.ITIMER_REAL, .01); signal.pause()",
	"raises":     "def f(): raise KeyError('k')\nf()",
	"excepthook": "import sys\nsys.excepthook = lambda *a: print('hook', a[0].__name__)\n1/0",
	"exit text":  "import sys; sys.exit('bad')",
	"exit 300":   "import sys; sys.exit(300)",
	"abort":      "import os; os.abort()",
	"moved out":  "import io, sys\nsys.stdout = io.StringIO()\nprint(1)\nsys.__stdout__.write(sys.stdout.getvalue())",
	"no stdout":  "import sys\nprint(1)\nsys.stdout = None",
	"out gone":   "import sys\nprint(1)\ndel sys.stdout",
	"open file":  "f = open(1, 'w', closefd=False)\nf.write('last')\nprint('first')",
	"open write": "import os\nwrite = os.fdopen(1, 'w').write\nwrite('x')",
	"held file":  "f = open(1, 'w')\ndef g(held=f): held.write('x')\ng()",
	"exit file":  "import sys\ndef f():\n    held = open(1, 'w')\n    held.write('x')\n    sys.exit(3)\nf()",
	"raise file": "def f():\n    held = open(1, 'w')\n    held.write('x')\n    1/0\nf()",
	"__del__":    "import sys\nclass Lines:\n    def __init__(self): self.all = []\n    def __del__(self): sys.stdout.write(''.join(self.all))\nlines = Lines()\nlines.all.append('x')",
	"generator":  "def f():\n    try: yield\n    finally: print('x')\ng = f()\nnext(g)",
	"syntax":     "print(1",
	"chained":    "try: 1/0\nexcept ZeroDivisionError as e: raise ValueError('v') from e",
}

// TestHonestPrograms compares with the bare interpreter, and warm starts with cold ones.
func TestHonestPrograms(t *testing.T) {
	const stdin = "abc\ndef\n"
	warm := openAt(t, Namespaces, Config{Slots: 1})
	cold := openAt(t, Namespaces, Config{Slots: 1, Cold: true})
	dir := t.TempDir()
	for name, source := range honest {
		r := Request{Source: source, Stdin: stdin, Args: []string{"one", "two"}}
		got := warm.Run(context.Background(), r).Runs[0]
		again := cold.Run(context.Background(), r).Runs[0]
		cmd := exec.Command(warm.m.python.Exe, append([]string{"-s", "main.py"}, r.Args...)...)
		cmd.Dir, cmd.Env, cmd.Stdin = dir, append(environment(), "TMPDIR="+dir), strings.NewReader(stdin)
		if err := os.WriteFile(dir+"/main.py", []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		var stderr strings.Builder
		cmd.Stderr = &stderr
		want, _ := cmd.Output()
		status := cmd.ProcessState.Sys().(syscall.WaitStatus)
		if string(got.Stdout) != string(want) || got.ExitCode != cmd.ProcessState.ExitCode() || (got.Signal != "") != status.Signaled() {
			t.Errorf("%s: %s %q status %d %s, bare %q status %d\n%s", name, got.Status, got.Stdout, got.ExitCode, got.Signal, want, cmd.ProcessState.ExitCode(), got.Stderr)
		}
		plain := func(s string) string {
			return strings.ReplaceAll(strings.ReplaceAll(s, dir+"/", ""), "/box/", "")
		}
		bare := strings.ReplaceAll(plain(stderr.String()), `File "main.py"`, `File "main.py"`)
		if plain(string(got.Stderr)) != bare {
			t.Errorf("%s: stderr %q, bare %q", name, plain(string(got.Stderr)), bare)
		}
		if got.Status != again.Status || string(got.Stdout) != string(again.Stdout) || string(got.Stderr) != string(again.Stderr) || got.ExitCode != again.ExitCode {
			t.Errorf("%s: warm %s %q, cold %s %q", name, got.Status, got.Stdout, again.Status, again.Stdout)
		}
	}
}

// Large input is read or ignored, and never blocks the harness.
func TestLargeInput(t *testing.T) {
	p := openAt(t, Namespaces, Config{Slots: 1})
	input := strings.Repeat("0123456789abcde\n", 5<<20/16)
	for source, want := range map[string]string{"import sys; print(len(sys.stdin.read()))": "5242880\n", "print(1)": "1\n"} {
		if r := p.Run(context.Background(), Request{Source: source, Stdin: input}); r.Verdict != OK || string(r.Runs[0].Stdout) != want {
			t.Errorf("%s: %+v", source, r)
		}
	}
}

// Output of exactly the cap is kept; one byte more is a verdict.
func TestOutputCap(t *testing.T) {
	p := openAt(t, Namespaces, Config{Slots: 1})
	for size, want := range map[int]Verdict{1024: OK, 1025: OutputLimit} {
		r := p.Run(context.Background(), Request{Source: fmt.Sprintf("import os; os.write(1, b'x' * %d)", size), Limits: Limits{StdoutKB: 1}})
		if run := r.Runs[0]; r.Verdict != want || len(run.Stdout) != 1024 || run.StdoutBytes != int64(size) || run.StdoutTruncated != (want != OK) {
			t.Errorf("%d bytes: %s, %d kept, %d received", size, r.Verdict, len(run.Stdout), run.StdoutBytes)
		}
	}
}

// Measurements cover the program only: the time it slept and computed, the memory it held.
func TestFigures(t *testing.T) {
	for _, level := range Levels() {
		t.Run(string(level), func(t *testing.T) {
			p := openAt(t, level, Config{Slots: 1})
			r := p.Run(context.Background(), Request{Source: "import time\nx = b'x' * (50 << 20)\ntime.sleep(.1)\nt = time.process_time()\nwhile time.process_time() < t + .1: pass"})
			run := r.Runs[0]
			if r.Verdict != OK || run.Wall < 200*time.Millisecond || run.CPU < 100*time.Millisecond || run.CPU > run.Wall {
				t.Errorf("%s, wall %v, CPU %v", r.Verdict, run.Wall, run.CPU)
			}
			if mb := run.MemoryKB >> 10; mb < 50 || mb > 80 {
				t.Errorf("%d MB, must be 50 and a little", mb)
			}
		})
	}
}

func TestTests(t *testing.T) {
	p := openAt(t, Namespaces, Config{Slots: 1})
	double := "print(2 * int(input()))"
	tests := []Test{{Stdin: "1", Stdout: "2\n"}, {Stdin: "2", Stdout: "5"}, {Stdin: "x", Stdout: ""}, {Stdin: "4", Stdout: "8"}}
	for _, c := range []struct {
		all           bool
		passed, total int
		runs          int
	}{{false, 1, 4, 2}, {true, 2, 4, 4}} {
		r := p.Run(context.Background(), Request{Source: double, Tests: tests, RunAll: c.all})
		if r.Verdict != WrongAnswer || r.Passed != c.passed || r.Total != c.total || len(r.Runs) != c.runs {
			t.Errorf("run_all %v: %s %d of %d, %d runs", c.all, r.Verdict, r.Passed, r.Total, len(r.Runs))
		}
	}
	files := p.Run(context.Background(), Request{Source: "print(open('data.bin', 'rb').read())", Files: map[string][]byte{"data.bin": {0, 255}}})
	if string(files.Runs[0].Stdout) != "b'\\x00\\xff'\n" {
		t.Errorf("files: %+v", files.Runs[0])
	}
}

func TestCalls(t *testing.T) {
	p := openAt(t, Namespaces, Config{Slots: 1})
	for _, c := range []struct {
		source, args, expect string
		want                 Verdict
	}{
		{"def f(a, b): return a + b", `[1, 2]`, `3`, OK},
		{"class Solution:\n def f(self, a): return sorted(a)", `[[3, 1]]`, `[1, 3]`, OK},
		{"def f(): return (1, 2.0, True)", `[]`, `[1, 2, 1]`, OK}, // tuples are lists, numbers are values
		{"def f(): return {'a': None}", `[]`, `{"a": null}`, OK},
		{"def f(): return 10**30", `[]`, `1000000000000000000000000000000`, OK},
		{"def f(): return 10**30 + 1", `[]`, `1000000000000000000000000000000`, WrongAnswer},
		{"def f(): return 0.1 + 0.2", `[]`, `0.3`, WrongAnswer},
		{"def f(): return float('nan')", `[]`, `0`, WrongAnswer},
		{"from fractions import Fraction as F\ndef f(): return [F(6, 2), F(1, 4), F((1 << 70) + 1)]", `[]`, `[3, 0.25, 1180591620717411303425]`, OK},
		{"from decimal import Decimal as D\ndef f(): return [D('3.0'), D('0.25')]", `[]`, `[3, 0.25]`, OK},
		{"from decimal import Decimal as D\ndef f(): return D('0.1')", `[]`, `0.1`, RuntimeError}, // the float differs
		{"from decimal import Decimal as D\ndef f(): return D('NaN')", `[]`, `0`, RuntimeError},
		{"def f(): return 'NaN \\\" Infinity'", `[]`, `"NaN \" Infinity"`, OK},
		{"def f(): print('noise'); return 1", `[]`, `1`, OK},
		{"class Any(int):\n __eq__ = lambda s, o: True\ndef f(): return Any(3)", `[]`, `4`, WrongAnswer},
		{"import os\ndef f(): os._exit(0)", `[]`, `4`, WrongAnswer},
		{"raise SystemExit(0)", `[]`, `4`, WrongAnswer},
		{"def f(): return f", `[]`, `4`, RuntimeError},
		{"def g(): pass", `[]`, `4`, RuntimeError},
		{"def f(", `[]`, `4`, CompileError},
		{"def f(): raise ValueError", `[]`, `4`, RuntimeError},
	} {
		r := p.Run(context.Background(), Request{Mode: "call", Entry: "f", Source: c.source, Tests: []Test{{Args: json.RawMessage(c.args), Expect: json.RawMessage(c.expect)}}})
		if r.Verdict != c.want {
			t.Errorf("%s expect %s: %s %s, want %s", c.source, c.expect, r.Verdict, r.Runs[0].Detail, c.want)
		}
	}
}

// Runs leak no descriptors, processes or groups, and no memory in the harness or the interpreters.
// EXP_TEST_ALL=1 does 10,000 runs.
func TestNothingIsLeft(t *testing.T) {
	runs := 400
	if os.Getenv("EXP_TEST_ALL") != "" {
		runs = 10_000
	}
	p := openAt(t, Namespaces, Config{Slots: 2})
	requests := []Request{
		{Source: "import os\nos.fork()\nopen('x', 'w')"},
		{Source: "print('x' * 100000)"},
		{Mode: "call", Entry: "f", Source: "def f(x): return x", Tests: []Test{{Args: json.RawMessage("[[1]]"), Expect: json.RawMessage("[1]")}}},
		{Mode: "asserts", Entry: "f", Source: "def f(x): return x", TestCode: "assert f(1) == 1"},
	}
	// memory returns what the harness holds, and what each interpreter holds, in KB.
	memory := func() (harness int64, interpreters []int64) {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		for range p.Slots() {
			at := <-p.idle
			s := at[""]
			var size, resident int64
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", s.command.Process.Pid))
			if err != nil {
				t.Fatal(err)
			}
			_, _ = fmt.Sscan(string(text), &size, &resident)
			interpreters = append(interpreters, resident*int64(os.Getpagesize())/1024)
			p.idle <- at
		}
		return int64(m.HeapAlloc) / 1024, interpreters
	}
	descriptors := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	run := func(n int) {
		var group sync.WaitGroup
		for i := range 4 {
			group.Go(func() {
				for j := range n / 4 {
					if r := p.Run(context.Background(), requests[(i+j)%len(requests)]); r.Verdict != OK {
						t.Errorf("%+v", r)
					}
				}
			})
		}
		group.Wait()
		if err := p.nothingLeft(); err != nil {
			t.Error(err)
		}
	}
	run(40)
	before := descriptors()
	harness, interpreters := memory()
	run(runs)
	if after := descriptors(); after != before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
	// A leak of one page, or of one output, per run would be megabytes.
	const slackKB = 1024
	harnessAfter, interpretersAfter := memory()
	if harnessAfter > harness+slackKB {
		t.Errorf("the harness holds %d KB before, %d after", harness, harnessAfter)
	}
	for i, after := range interpretersAfter {
		if after > slices.Max(interpreters)+slackKB {
			t.Errorf("interpreter %d has %d KB, before it was one of %v", i, after, interpreters)
		}
	}
	t.Logf("%d runs: harness %d to %d KB, interpreters %v to %v KB", runs, harness, harnessAfter, interpreters, interpretersAfter)
}

// A slot that dies is replaced, and the program is run again: no wrong verdict.
func TestBrokenSlot(t *testing.T) {
	p := openAt(t, Namespaces, Config{Slots: 1})
	at := <-p.idle
	s := at[""]
	pid := s.command.Process.Pid
	p.idle <- at
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	r := p.Run(context.Background(), Request{Source: "print(1)"})
	if n, err := p.InfraErrors(); r.Verdict != OK || n != 1 || err == nil {
		t.Errorf("%+v, %d infrastructure errors, %v", r, n, err)
	}
}

// A cancelled context stops a run at once.
func TestCancel(t *testing.T) {
	p := openAt(t, Namespaces, Config{Slots: 1})
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	if r := p.Run(ctx, Request{Source: "import time; time.sleep(9)"}); r.Verdict != InfraError || time.Since(start) > 5*time.Second {
		t.Errorf("%+v after %v", r, time.Since(start))
	}
	if r := p.Run(context.Background(), Request{Source: "print(1)"}); r.Verdict != OK {
		t.Errorf("the next run: %+v", r)
	}
}

// A closed pool says so, and a killed harness leaves no process.
func TestEnd(t *testing.T) {
	if level := Level(os.Getenv("EXP_TEST_POOL")); level != "" {
		p := openAt(t, level, Config{Slots: 1})
		at := <-p.idle
		s := at[""]
		fmt.Printf("slot %d\n", s.command.Process.Pid)
		p.idle <- at
		p.Run(context.Background(), Request{Source: "import time; time.sleep(60)"})
		return
	}
	p := openAt(t, Namespaces, Config{Slots: 1})
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if r := p.Run(context.Background(), Request{Source: "print(1)"}); r.Verdict != InfraError {
		t.Errorf("closed: %+v", r)
	}
	for _, level := range []Level{Namespaces, Landlock} {
		t.Run(string(level), func(t *testing.T) {
			openAt(t, level, Config{Slots: 1}) // or skip
			killHarness(t, level)
		})
	}
}

// sleeps reports whether a process is in the system call of time.sleep.
func sleeps(pid int) bool {
	call, _ := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", pid))
	return strings.HasPrefix(string(call), fmt.Sprint(syscall.SYS_CLOCK_NANOSLEEP, " "))
}

// killHarness ends a harness whose program sleeps, and waits for the end of its slot
// and of all processes in it.
func killHarness(t *testing.T, level Level) {
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestEnd$")
	cmd.Env = append(os.Environ(), "EXP_TEST_POOL="+string(level))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slot := 0
	for s := bufio.NewScanner(out); slot == 0 && s.Scan(); {
		_, _ = fmt.Sscanf(s.Text(), "slot %d", &slot)
	}
	var all []int
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		all = append(children(slot), slot)
		if slices.ContainsFunc(all, sleeps) {
			break
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	deadline := time.Now().Add(5 * time.Second)
	for _, pid := range all {
		for fields := statFields(pid); len(fields) > 0 && fields[0] != "Z"; fields = statFields(pid) {
			if time.Now().After(deadline) {
				t.Fatalf("process %d of slot %d outlives its harness", pid, slot)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	if slot == 0 {
		t.Error("the harness had no slot")
	}
}

// In mode asserts the tests judge the program from outside its process.
func TestAsserts(t *testing.T) {
	p := openAt(t, Namespaces, Config{Slots: 2})
	const test = "def check(candidate):\n    assert candidate(2) == 4\n    assert candidate([1, (2.5, None)]) == [1, (2.5, None)] * 2\ncheck(double)"
	for _, c := range []struct {
		name, source, test string
		want               Verdict
	}{
		{"right", "def double(x): return 2 * x", test, OK},
		{"wrong", "def double(x): return x", test, WrongAnswer},
		{"exits early", "import sys\nsys.exit(0)", test, WrongAnswer},
		{"exits in the call", "import os\ndef double(x): os._exit(0)", test, WrongAnswer},
		{"equal to everything", "class A(int):\n __eq__ = lambda s, o: True\n __hash__ = None\ndef double(x): return A(7)", test, WrongAnswer},
		{"numbers of the library", "from decimal import Decimal\nfrom fractions import Fraction\ndef double(x): return Decimal(x) * 2 if type(x) is int else Fraction(x) * 2", "assert double(2) == 4 and double(0.25) == 0.5 and str(double(0.25)) == '1/2' and str(double(-3)) == '-6'", OK},
		{"iterators", "def double(x): return [(y for y in x), map(str, x), filter(None, x), zip(x, x), iter(x), reversed(x)]", "a, b, c, d, e, f = double([0, 1])\nassert a != [0, 1] and list(a) == [0, 1] and set(b) == {'0', '1'} and list(c) == [1] and dict(d) == {0: 0, 1: 1} and next(e) == 0 and tuple(f) == (1, 0)", OK},
		{"views", "from collections import deque\ndef double(x): return [x.keys(), x.values(), x.items(), deque(x), range(1, len(x) * 4, 2)]", "a, b, c, d, e = double({1: [2], 3: 4})\nassert a == {1, 3} and list(b) == [[2], 4] and (1, [2]) in c and c == {1: [2], 3: 4}.items() and c != [(1, [2]), (3, 4)] and d != [1, 3] and list(d) == [1, 3] and e == range(1, 8, 2) and e != [1, 3, 5, 7]", OK},
		{"an endless iterator", "import itertools\ndef double(x): return itertools.count()", "next(double(1))", WrongAnswer},
		{"a long range", "def double(x): return range(1 << 60)", "double(1)", WrongAnswer},
		{"a fraction that is none", "import os\ndef double(x):\n  os.write(5, b'{\"value\":{\"F\":[\"1\",\"0\"]}}\\n'); os._exit(0)", "try: double(1)\nexcept Exception: pass", WrongAnswer},
		{"no plain value", "class A:\n __eq__ = lambda s, o: True\ndef double(x): return A()", test, WrongAnswer},
		{"forged result", "import os\nfor fd in range(3, 8):\n  try: os.write(fd, b'pass')\n  except OSError: pass\ndef double(x): return 0", test, WrongAnswer},
		{"forged replies", "import os\nos.write(5, b'\"ready\"\\n{\"value\":{\"i\":\"4\"}}\\n{\"value\":{\"i\":\"4\"}}\\n')\nos._exit(0)", test, WrongAnswer},
		{"spins", "def double(x):\n  while True: pass", test, TimeLimit},
		{"syntax", "def double(x", test, CompileError},
		{"raises at import", "1/0", test, RuntimeError},
		{"raises as it must", "def double(x): raise ValueError('v')", "try: double(1)\nexcept ValueError as e: assert str(e) == 'v'\nelse: assert False", OK},
		{"tests that do not compile", "def double(x): return 2 * x", "assert double(1) ==", InfraError},
		{"tests that end during a call", "import time\ndef double(x): time.sleep(.3)", "import os, threading\nthreading.Timer(.05, os._exit, (1,)).start()\ndouble(1)", WrongAnswer},
		{"ends the loop of the tests", "def double(x): raise StopIteration", "for got, want in zip(map(double, (1, 2)), (2, 4)): assert got == want", WrongAnswer},
		{"ends it by a reply", "import os\ndef double(x):\n  os.write(5, b'{\"error\":\"StopIteration\"}\\n'); os._exit(0)", "assert all(map(lambda x: double(x) == 2 * x, (1, 2)))", WrongAnswer},
		{"exceptions are caught by no test", "import os\ndef double(x): os._exit(0)", "try: double(1)\nexcept Exception: pass", WrongAnswer},
		{"values", "def double(x): return x", "import math\nfor v in (None, True, -5, 1 << 99, -0.0, math.inf, 1j, 'a\\ud800', b'\\xff', [1], (1, (2,)), {1, 2}, frozenset({3}), {(1, 2): [3]}):\n  assert double(v) == v and type(double(v)) is type(v), v\nassert math.isnan(double(math.nan))", OK},
	} {
		r := p.Run(context.Background(), Request{Mode: "asserts", Entry: "double", Source: c.source, TestCode: c.test, Limits: Limits{CPUMS: 500}})
		if r.Verdict != c.want {
			t.Errorf("%s: %s, want %s: %+v\n%s", c.name, r.Verdict, c.want, r.Runs[0], r.Runs[0].Stderr)
		}
	}
}

// A set keeps CPython's order of iteration on the way to the program and back, so a text made from it equals one that
// a single process makes.
func TestOrderOfSets(t *testing.T) {
	p := openAt(t, Namespaces, Config{Slots: 2})
	made := "def made(kind, n): return kind('w%d' % (i * i) for i in range(n)) | kind(i * 7 % 1009 for i in range(n))"
	test := made + `
for kind in set, frozenset:
  for n in list(range(40)) + [300]:
    want = made(kind, n)
    got, text = both(kind, n, want)
    assert list(got) == list(want) and type(got) is kind, n
    assert text == str(want), n
`
	source := made + "\ndef both(kind, n, given): return made(kind, n), str(given)"
	r := p.Run(context.Background(), Request{Mode: "asserts", Entry: "both", Source: source, TestCode: test})
	if r.Verdict != OK {
		t.Errorf("%s: %+v\n%s", r.Verdict, r.Runs[0], r.Runs[0].Stderr)
	}
}

// The order of a set that has lost elements cannot be found, and the search for it does not take a program's time.
func TestPrunedSets(t *testing.T) {
	p := openAt(t, Namespaces, Config{Slots: 1})
	source := "def kept(n):\n  s = {i * 7919 % 1000003 for i in range(n)}\n  for x in sorted(s)[::3]: s.discard(x)\n  return s"
	test := "for n in 300, 900, 1400, 2900: assert len(kept(n)) == n - (n + 2) // 3, n"
	r := p.Run(context.Background(), Request{Mode: "asserts", Entry: "kept", Source: source, TestCode: test})
	if r.Verdict != OK {
		t.Errorf("%s: %+v\n%s", r.Verdict, r.Runs[0], r.Runs[0].Stderr)
	}
}

// A program that prints a set prints the same each time, in every slot.
func TestPrintedSets(t *testing.T) {
	printed := map[string]int{}
	for _, cold := range []bool{false, true} {
		p := openAt(t, Namespaces, Config{Slots: 2, Cold: cold})
		for range 4 {
			r := p.Run(context.Background(), Request{Source: "print({'a', 'b', 'c', ('d', 'e'), 2.5, None, 'f', print})"})
			if r.Verdict != OK {
				t.Fatalf("%s: %+v", r.Verdict, r.Runs)
			}
			printed[string(r.Runs[0].Stdout)]++
		}
	}
	if len(printed) != 1 {
		t.Errorf("not one text: %v", printed)
	}
}

// A pool of one slot has room for the tests, too, and is as it was afterwards.
func TestAssertsInOneSlot(t *testing.T) {
	for _, cold := range []bool{false, true} {
		p := openAt(t, Namespaces, Config{Slots: 1, Cold: cold})
		for i, want := range []Verdict{OK, WrongAnswer, OK} {
			r := p.Run(context.Background(), Request{Mode: "asserts", Entry: "double",
				Source:   fmt.Sprintf("def double(x): return %d * x", 2+i%2),
				TestCode: "assert double(4) == 8"})
			if r.Verdict != want {
				t.Errorf("cold %v, %d: %s, want %s: %+v", cold, i, r.Verdict, want, r.Runs)
			}
		}
		if r := p.Run(context.Background(), Request{Source: "print(1)"}); r.Verdict != OK || p.Slots() != 1 {
			t.Errorf("cold %v: afterwards %s in %d slots", cold, r.Verdict, p.Slots())
		}
	}
}

// Tests may use classes of the program, whose objects stay with it, and types.
func TestUses(t *testing.T) {
	p := openAt(t, Namespaces, Config{Slots: 2})
	const source = "class Node:\n    def __init__(self, v): self.v, self.next = v, None\n    def twice(self): return 2 * self.v\n    def __eq__(self, o): return True\ndef follow(n): return n.next\ndef kind(v): return type(v)\n"
	for _, c := range []struct {
		name, source, test string
		want               Verdict
	}{
		{"objects", source, "a, b = Node(1), Node(2)\na.next = b\nassert follow(a).v == 2 and follow(a).twice() == 4 and follow(b) is None", OK},
		{"arguments by name", source, "assert Node(v=3).v == 3", OK},
		{"wrong", source, "a = Node(1)\nassert follow(a).v == 1", WrongAnswer},
		{"an object equals nothing", source, "a = Node(1)\na.next = Node(2)\nassert follow(a) == 2", WrongAnswer},
		{"an object, not a number", source, "a = Node(1)\na.next = Node(2)\nassert abs(follow(a) - 2) < 1", WrongAnswer},
		{"an object for every attribute", "class Any:\n    def __getattr__(self, n): return self\n    def __eq__(self, o): return True\nNode = follow = lambda *a: Any()", "assert follow(Node(1)).v == 1", WrongAnswer},
		{"types", source, "assert follow.__name__ == 'follow' and [str, int] == [type(''), int]", OK},
		{"raises", source, "try: Node()\nexcept TypeError: pass\nelse: assert False", OK},
	} {
		r := p.Run(context.Background(), Request{Mode: "asserts", Entry: "follow", Uses: []string{"Node"}, Source: c.source, TestCode: c.test})
		if r.Verdict != c.want {
			t.Errorf("%s: %s, want %s: %+v\n%s", c.name, r.Verdict, c.want, r.Runs[0], r.Runs[0].Stderr)
		}
	}
	r := p.Run(context.Background(), Request{Mode: "asserts", Entry: "kind", Source: source, TestCode: "assert kind(1) is int and kind('') is str"})
	if r.Verdict != OK {
		t.Errorf("types are plain values: %+v", r.Runs[0])
	}
}

// Judge decides instead of the tests' expectations, also about failed runs.
func TestJudge(t *testing.T) {
	p := openAt(t, Namespaces, Config{Slots: 1})
	var seen []string
	judge := func(i int, r Run) (Verdict, string) {
		seen = append(seen, fmt.Sprintf("%d %s %s%s", i, r.Status, r.Stdout, r.Value))
		return OK, ""
	}
	r := p.Run(context.Background(), Request{Source: "print(int(input()) // int(input()))", Tests: []Test{{Stdin: "4\n2"}, {Stdin: "1\n0"}}, Judge: judge})
	if r.Verdict != OK || r.Passed != 2 {
		t.Errorf("%+v", r)
	}
	r = p.Run(context.Background(), Request{Mode: "call", Entry: "f", Source: "def f(x): return (x, None)", Tests: []Test{{Args: json.RawMessage("[7]")}}, Judge: judge})
	if r.Verdict != OK || r.Passed != 1 {
		t.Errorf("%+v", r)
	}
	if want := []string{"0 ok 2\n", "1 runtime_error ", "0 ok [7, null]"}; !slices.Equal(seen, want) {
		t.Errorf("%q, want %q", seen, want)
	}
}

// Two pools of a process, whose slots have other numbers, run programs at the same time.
func TestTwoPools(t *testing.T) {
	level, _, err := Check(t.Context(), Config{})
	if err != nil {
		t.Skip(err)
	}
	first := openAt(t, level, Config{Slots: 1})
	second, err := Open(t.Context(), Config{Slots: 1, First: 1, Require: level})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	for _, p := range []*Pool{first, second} {
		if r := p.Run(context.Background(), Request{Source: "print(1)"}); r.Verdict != OK {
			t.Errorf("%s: %+v", r.Verdict, r.Runs)
		}
	}
}

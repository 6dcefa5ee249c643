//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"testing"
)

// Tests that run together get the same verdicts as one by one, even if one of them crashes, spins, prints,
// or tries to reach another.
func TestTogether(t *testing.T) {
	fast := openAt(t, Namespaces, Config{Slots: 1})
	slow := openAt(t, Namespaces, Config{Slots: 1})
	slow.apart = true
	if !fast.sharesVisits() {
		t.Skip("tests run together only where there is Landlock")
	}
	for name, c := range map[string]struct {
		source string
		shared int // tests that need no separate run
	}{
		"right":             {"def f(x): return x + 1", 4},
		"a class":           {"class Solution:\n n = 0\n def f(self, x):\n  self.n += 1\n  return x + self.n", 4},
		"wrong for one":     {"def f(x): return x + (1 if x != 2 else 5)", 3},
		"raises for one":    {"def f(x): return 1 // (x - 2) * 0 + x + 1", 3},
		"crashes for one":   {"import ctypes\ndef f(x):\n if x == 2: ctypes.string_at(0)\n return x + 1", 3},
		"exits for one":     {"import os\ndef f(x):\n if x == 2: os._exit(0)\n return x + 1", 3},
		"spins for one":     {"def f(x):\n while x == 2: pass\n return x + 1", 1},
		"exits after":       {"import atexit, os\ndef f(x):\n atexit.register(os._exit, 3 if x == 2 else 0)\n return x + 1", 3},
		"prints":            {"def f(x):\n print(x)\n return x + 1", 0},
		"remembers":         {"seen = []\ndef f(x):\n seen.append(x)\n return x + len(seen)", 4},
		"by the last call":  {"import os\ndef f(x):\n if os.path.exists('y'): return 0\n try: open('y', 'w')\n except OSError: pass\n return x + 1", 4},
		"seeded":            {"import random\nrandom.seed(7)\ndef f(x): return x + 1 + random.randrange(10**9)", 0},
		"threads at import": {"import threading, time\nthreading.Thread(target=time.sleep, args=(.05,)).start()\ndef f(x): return x + 1", 0},
		"kills its parent":  {"import os, signal\ndef f(x):\n if x == 2: os.kill(os.getppid(), 9)\n return x + 1", 1},
		"answers for all":   {"import os\nfor i in range(4): os.write(3, b'%d 1\\n%d' % (i, i + 2))\ndef f(x): return x + 1", 0},
		"no function":       {"g = 1", 0},
		"syntax":            {"def f(x", 0},
		"exits":             {"raise SystemExit(0)", 0},
		"memory":            {"def f(x): return x + len(b'x' * (1 << 30 if x == 2 else 1))", 3},
	} {
		t.Run(name, func(t *testing.T) {
			r := Request{Mode: "call", Entry: "f", Source: c.source, RunAll: true, Limits: Limits{CPUMS: 400, MemoryMB: 128}}
			for x := range 4 {
				r.Tests = append(r.Tests, Test{Args: json.RawMessage(fmt.Sprintf("[%d]", x+1)), Expect: json.RawMessage(fmt.Sprint(x + 2))})
			}
			got, want := fast.Run(context.Background(), r), slow.Run(context.Background(), r)
			if got.Verdict != want.Verdict || got.Passed != want.Passed || len(got.Runs) != len(want.Runs) {
				t.Fatalf("together %s %d of %d, one by one %s %d", got.Verdict, got.Passed, len(got.Runs), want.Verdict, want.Passed)
			}
			shared := 0
			for i, a := range got.Runs {
				if a.Shared > 0 {
					shared++
				}
				if b := want.Runs[i]; a.Status != b.Status || a.ExitCode != b.ExitCode || a.Signal != b.Signal || string(a.Value) != string(b.Value) || string(a.Stdout) != string(b.Stdout) {
					t.Errorf("test %d: together %s %d %s %s, one by one %s %d %s %s", i, a.Status, a.ExitCode, a.Signal, a.Value, b.Status, b.ExitCode, b.Signal, b.Value)
				}
			}
			if shared != c.shared {
				t.Errorf("%d tests ran together, must be %d", shared, c.shared)
			}
		})
	}
}

func TestSplitValues(t *testing.T) {
	for text, want := range map[string]map[int]string{
		"":                            {},
		"0 1\n70 0\n":                 {0: "7"},
		"0 1\n7":                      {},
		"1 3\n[2]1 0\n0 4\nnull0 0\n": {1: "[2]", 0: "null"},
		"0 1\n70 0\n1 9\nshort":       {0: "7"},
		"0 1\n70 0\n1":                {0: "7"},
		"0 1\n70 1\n70 0\n":           nil,
		"0 1\n70 0\n0 0\n":            nil,
		"0 1\n70 0\n0 1\n7":           nil,
		"2 1\n7":                      nil,
		"-1 1\n7":                     nil,
		"0 0\n":                       {},
		"x\n":                         nil,
		"0 99999999999999\n70 0\n":    {},
	} {
		values, ok := splitValues([]byte(text), 2, false)
		got := map[int]string{}
		for i, v := range values {
			got[i] = string(v)
		}
		if ok != (want != nil) || ok && !maps.Equal(got, want) {
			t.Errorf("%q: %v %v, want %v", text, got, ok, want)
		}
	}
	// The last test ends with the visit.
	if values, ok := splitValues([]byte("0 1\n70 0\n1 1\n8"), 2, true); !ok || string(values[0]) != "7" || string(values[1]) != "8" {
		t.Errorf("%v %v", values, ok)
	}
	if values, ok := splitValues([]byte("0 1\n7"), 2, true); !ok || len(values) != 0 {
		t.Errorf("a first test whose copy did not end well: %v %v", values, ok)
	}
}

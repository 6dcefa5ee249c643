//go:build linux && (amd64 || arm64)

package sandbox

import (
	"bytes"
	"context"
	"encoding/binary"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestParseBegun(t *testing.T) {
	released := binary.NativeEndian.AppendUint64([]byte("R"), 5_000_000_000)
	released = binary.NativeEndian.AppendUint64(released, 700_000)
	for _, c := range []struct {
		data []byte
		want begun
	}{
		{nil, begun{}},
		{released[:16], begun{}},
		{released, begun{released: true, at: 5_000_000_000, setup: 700 * time.Microsecond}},
		{append(bytes.Clone(released), 'S'), begun{released: true, at: 5_000_000_000, setup: 700 * time.Microsecond, syntax: true}},
		{append(bytes.Clone(released), "Eexec: no"...), begun{released: true, at: 5_000_000_000, setup: 700 * time.Microsecond, broken: "exec: no"}},
		{[]byte("Emount: no"), begun{broken: "mount: no"}},
	} {
		if got := parseBegun(c.data); got != c.want {
			t.Errorf("%q: %+v, want %+v", c.data, got, c.want)
		}
	}
}

// TestForkHooks: the zygote's children skip what modules registered for a fork, except random's. Another
// preloaded module with such a function needs attention.
func TestForkHooks(t *testing.T) {
	p, err := findPython(context.Background(), "")
	if err != nil {
		t.Skip(err)
	}
	const script = `
import os, sys
found = []
os.register_at_fork = lambda **f: found.extend(x.__module__ or x.__self__.__module__ for x in f.values())
for m in sys.argv[1:]:
    try: __import__(m)
    except ImportError: pass
import ctypes, socket, select, resource, site, linecache, signal
print(*sorted(set(found)))`
	out, err := exec.Command(p.Exe, append([]string{"-I", "-S", "-c", script}, preloaded()...)...).Output()
	if got := strings.TrimSpace(string(out)); err != nil || got != "random threading" {
		t.Errorf("functions at a fork are of %q, want random and threading; %v", got, err)
	}
}

// TestFreshProcess: what a program must not share with earlier ones, and how the kernel sees it.
func TestFreshProcess(t *testing.T) {
	p := openAt(t, Namespaces, Config{Slots: 1})
	run := func(source string) string {
		r := p.Run(context.Background(), Request{Source: source}).Runs[0]
		if r.Status != OK {
			t.Errorf("%s: %s %s\n%s", source, r.Status, r.Detail, r.Stderr)
		}
		return string(r.Stdout)
	}
	const draw = "import random; print(random.getrandbits(128), random.gauss(0, 1))"
	if a, b := run(draw), run(draw); a == b {
		t.Errorf("two programs drew the same numbers: %s", a)
	}
	for range 2 {
		r := p.Run(context.Background(), Request{Source: draw, Seed: 7}).Runs[0]
		plain := run("import random; random.seed(7); print(random.getrandbits(128), random.gauss(0, 1))")
		if string(r.Stdout) != plain {
			t.Errorf("with a seed the program drew %s, want %s", r.Stdout, plain)
		}
	}
	if got := run("print(open('/proc/self/oom_score_adj').read().strip())"); got != "1000\n" {
		t.Errorf("oom_score_adj is %q, want 1000", got)
	}
	if got := run("import os, threading; print(os.getpid(), threading.active_count(), threading.main_thread() is threading.current_thread())"); got != "2 1 True\n" {
		t.Errorf("process: %q, want pid 2, one thread, the main one", got)
	}
	if got := run("import atexit; atexit._clear(); atexit.register(print, 'last')"); got != "last\n" {
		t.Errorf("at exit: %q", got)
	}
	if got := run("import concurrent.futures as c\nc.ThreadPoolExecutor(1).submit(lambda: (__import__('time').sleep(.05), print('done', flush=True)))"); got != "done\n" {
		t.Errorf("a pool's thread at the end: %q", got)
	}
	if got := run("import _thread, time\n_thread.start_new_thread(lambda: time.sleep(9), ())\ntime.sleep(.01)\nprint('left')"); got != "left\n" {
		t.Errorf("a thread that nobody joins: %q", got)
	}
}

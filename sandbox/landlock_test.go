//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
)

// Honest single-process programs run at level landlock as elsewhere, in all modes, and leave no folder
// behind.
func TestLandlock(t *testing.T) {
	folders := func() int {
		list, err := os.ReadDir(os.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, e := range list {
			if strings.HasPrefix(e.Name(), folderPrefix+strconv.Itoa(os.Getpid())+"-") {
				n++
			}
		}
		return n
	}
	before := folders()
	t.Run("programs", func(t *testing.T) {
		p := openAt(t, Landlock, Config{Slots: 2})
		ctx := context.Background()
		if p.Level() != Landlock || folders() != before+2 {
			t.Fatalf("level %s, %d folders", p.Level(), folders()-before)
		}
		for name, want := range map[string]string{
			"hello": "hello\n", "no newline": "x", "input": "cba\nfed\n", "atexit": "first\nlast\n", "thread": "late\n", "big stack": "50000\n",
			"asyncio": "7\n", "pickle": "1\n", "inspect": "def f(): return 1\n\n", "imports": "10000000000\n", "sigalrm": "alarm\n", "env": "C.UTF-8 UTC\n",
		} {
			if r := p.Run(ctx, Request{Source: honest[name], Stdin: "abc\ndef\n"}); r.Verdict != OK || string(r.Runs[0].Stdout) != want || r.Isolation != Landlock {
				t.Errorf("%s: %s %q, want %q\n%s", name, r.Verdict, r.Runs[0].Stdout, want, r.Runs[0].Stderr)
			}
		}
		for name, c := range map[string]struct {
			r    Request
			want Verdict
		}{
			"files":             {Request{Source: "print(open('a.txt').read())", Files: map[string][]byte{"a.txt": []byte("given")}}, OK},
			"call":              {Request{Mode: "call", Entry: "f", Source: "def f(x): return x", Tests: []Test{{Args: json.RawMessage("[1]"), Expect: json.RawMessage("1")}, {Args: json.RawMessage("[2]"), Expect: json.RawMessage("2")}}}, OK},
			"asserts":           {Request{Mode: "asserts", Entry: "f", Source: "def f(x): return x", TestCode: "assert f(1) == 1"}, OK},
			"asserts fail":      {Request{Mode: "asserts", Entry: "f", Source: "def f(x): return x", TestCode: "assert f(1) == 2"}, WrongAnswer},
			"another process":   {Request{Source: "import os; os.fork()"}, RuntimeError},
			"another program":   {Request{Source: "import os; os.execv('/bin/true', ['true'])"}, RuntimeError},
			"the zygote":        {Request{Source: "import os\ntry: os.kill(os.getppid(), 9); print('ESCAPED')\nexcept OSError: print('held')", Tests: []Test{{Stdout: "held"}}}, OK},
			"everybody":         {Request{Source: "import os\ntry: os.kill(-1, 0); print('ESCAPED')\nexcept OSError: print('held')", Tests: []Test{{Stdout: "held"}}}, OK},
			"modes of a file":   {Request{Source: "import os\ntry: os.chmod(os.__file__, 0o777); print('ESCAPED')\nexcept OSError: print('held')", Tests: []Test{{Stdout: "held"}}}, OK},
			"its own folder":    {Request{Source: "open('x', 'w')"}, RuntimeError},
			"another language":  {Request{Language: "c", Source: "int main(){}"}, InfraError},
			"death of a parent": {Request{Source: "import ctypes\nprint(ctypes.CDLL(None).prctl(1, 0, 0, 0, 0))", Tests: []Test{{Stdout: "-1"}}}, OK},
		} {
			if r := p.Run(ctx, c.r); r.Verdict != c.want {
				t.Errorf("%s: %s, want %s: %s %s", name, r.Verdict, c.want, r.Runs[0].Detail, r.Runs[0].Stderr)
			}
		}
		if err := p.nothingLeft(); err != nil {
			t.Error(err)
		}
	})
	if after := folders(); after != before {
		t.Errorf("%d folders are left", after-before)
	}
}

// A level below the required one is rejected, and the error names the missing protections.
func TestLandlockIsLess(t *testing.T) {
	openAt(t, Landlock, Config{Slots: 1})
	var lack *LevelError
	if _, err := Open(context.Background(), Config{Most: Landlock}); !errors.As(err, &lack) || lack.Required != Namespaces || lack.ExitCode() != 8 {
		t.Errorf("%v", err)
	}
	if len(Landlock.Unpromised()) == 0 || Namespaces.Unpromised() != nil || !Namespaces.AtLeast(Landlock) || Landlock.AtLeast(Namespaces) {
		t.Error("landlock must be below namespaces and list what it does not promise")
	}
}

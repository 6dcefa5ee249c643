//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An interpreter describes itself once, until the command or what a shim may look at changes.
func TestInterpreterIsAskedOnce(t *testing.T) {
	ctx := context.Background()
	python, err := findPython(ctx, "")
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	shim, calls := filepath.Join(dir, "shim"), filepath.Join(dir, "calls")
	write := func(more string) {
		text := "#!/bin/sh\necho call >>" + calls + "\nexec " + python.Exe + ` "$@"` + more
		if err := os.WriteFile(shim+".new", []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(shim+".new", shim); err != nil {
			t.Fatal(err)
		}
	}
	asked := func(when string, want int) {
		t.Helper()
		p, err := findPython(ctx, shim)
		if err != nil || p.Exe != python.Exe || p.Version != python.Version {
			t.Errorf("%s: %+v, %v", when, p, err)
		}
		text, _ := os.ReadFile(calls)
		if n := strings.Count(string(text), "call"); n != want {
			t.Errorf("%s: asked %d times, want %d", when, n, want)
		}
	}
	write("")
	asked("at first", 1)
	asked("again", 1)
	t.Setenv("PYENV_VERSION", "another")
	asked("in another environment", 2)
	write(" # changed")
	asked("another shim", 3)
	asked("again", 3)
	if err := os.Remove(shim); err != nil {
		t.Fatal(err)
	}
	if _, err := findPython(ctx, shim); err == nil {
		t.Error("a removed shim was found")
	}
}

// A trial that succeeded is not repeated, for the same interpreter and level.
func TestTrialOnce(t *testing.T) {
	ctx := context.Background()
	m, _, err := probe(ctx, Config{})
	if err != nil {
		t.Fatal(err)
	}
	if !m.level.AtLeast(Landlock) {
		t.Skip("this machine has no level")
	}
	if m.level.AtLeast(Namespaces) {
		m.level = Namespaces
	}
	m.python.Stdlib = filepath.Join(t.TempDir(), "none")
	if err := tried(ctx, m); err != nil {
		t.Errorf("repeated: %v", err)
	}
	m.root = !m.root
	if err := tried(ctx, m); err == nil {
		t.Error("under other conditions it was not repeated")
	}
}

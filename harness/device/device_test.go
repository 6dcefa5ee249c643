package device

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"exp/kernels"
)

func unset(string) string { return "" }

// Every level that this machine runs can be opened and says its name.
func TestOpen(t *testing.T) {
	k := OfThisMachine()
	if !slices.Contains(k.Levels, k.Best) || k.Levels[0] != "portable" {
		t.Errorf("levels %v, the best %s", k.Levels, k.Best)
	}
	for _, level := range k.Levels {
		be, err := Open(Options{Level: level, Threads: 2, Operand: kernels.BF16}, unset)
		if err != nil {
			t.Fatal(err)
		}
		if be.Level() != level || be.Threads() != 2 || be.Operand() != kernels.BF16 {
			t.Errorf("%s on %d threads of %v, want %s on 2 of bf16", be.Level(), be.Threads(), be.Operand(), level)
		}
		be.Close()
	}
	be, err := Open(Options{Name: CPU}, unset)
	if err != nil {
		t.Fatal(err)
	}
	defer be.Close()
	if be.Level() != k.Best {
		t.Errorf("level %s by default, want %s", be.Level(), k.Best)
	}
}

// Errors say whether a person is wrong, or the machine lacks something.
func TestOpenRefuses(t *testing.T) {
	named := func(level string) func(string) string { return func(string) string { return level } }
	lacking := slices.DeleteFunc(AllLevels(), func(l string) bool { return slices.Contains(OfThisMachine().Levels, l) })
	for _, tt := range []struct {
		name   string
		o      Options
		getenv func(string) string
		code   int
		hint   bool
		text   string
	}{
		{"level", Options{Level: "avx1024"}, unset, 2, false, `unknown cpu level "avx1024"`},
		{"level by the environment", Options{}, named("avx1024"), 2, true, `EXP_CPU: unknown cpu level "avx1024"`},
		{"device", Options{Name: "cuda:1"}, unset, 7, false, "no device cuda:1"},
		{"threads", Options{Threads: -1}, unset, 7, false, "-1 threads"},
	} {
		_, err := Open(tt.o, tt.getenv)
		var e *Error
		if !errors.As(err, &e) || e.ExitCode() != tt.code || (e.Hint() != "") != tt.hint || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: %v, want code %d and %q", tt.name, err, tt.code, tt.text)
		}
	}
	for _, level := range lacking {
		var e *Error
		if _, err := DefaultLevel(named(level)); !errors.As(err, &e) || e.ExitCode() != 7 || e.Hint() == "" {
			t.Errorf("%s, which this machine does not run: %v", level, err)
		}
	}
}

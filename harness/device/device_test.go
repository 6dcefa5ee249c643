package device

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"exp/harness/config"
	"exp/kernels"
)

func unset(string) string { return "" }

// Every level that this machine runs can be opened and says its name.
func TestOpenCPU(t *testing.T) {
	k := OfThisMachine()
	if !slices.Contains(k.Levels, k.Best) || k.Levels[0] != "portable" {
		t.Errorf("levels %v, the best %s", k.Levels, k.Best)
	}
	for _, level := range k.Levels {
		be, err := OpenCPU(Options{Level: level, Threads: 2, Operand: kernels.BF16}, unset)
		if err != nil {
			t.Fatal(err)
		}
		if be.Level() != level || be.Where() != "2 threads" || be.Operand() != kernels.BF16 {
			t.Errorf("%s on %s of %v, want %s on 2 of bf16", be.Level(), be.Where(), be.Operand(), level)
		}
		be.Close()
	}
	be, err := Open(Options{Name: CPU, Threads: 1}, unset)
	if err != nil {
		t.Fatal(err)
	}
	defer be.Close()
	if p, ok := be.(OnCPU); !ok || p.Level() != k.Best || p.Where() != "1 thread" {
		t.Errorf("level %s by default, want %s", p.Level(), k.Best)
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
		{"GPU that no machine has", Options{Name: "cuda:999"}, unset, 7, true, "compute.device is cuda:999, and "},
		{"device", Options{Name: "gpu"}, unset, 2, false, `no device "gpu"`},
		{"device without a number", Options{Name: "cuda:x"}, unset, 2, false, `no device "cuda:x"`},
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

// What a GPU lacks is said, with what to do.
func TestLack(t *testing.T) {
	g := &GPUs{List: []GPU{{Name: "NVIDIA A100", Capability: "8.0", Classes: []string{"cpu/fma"}}, {Index: 1, Name: "Tesla T4", Capability: "7.5"},
		{Index: 2, Name: "NVIDIA H200", Capability: "9.0", Classes: []string{"cpu/fma", config.MatrixNumerics}}}}
	for _, tt := range []struct {
		n                    int
		numerics, text, hint string
	}{
		{0, config.OwnNumerics, "", ""},
		{0, config.MatrixNumerics, "the tensor cores of NVIDIA A100, compute capability 8.0, add up in another way", "compute.numerics"},
		{2, config.MatrixNumerics, "", ""},
		{1, config.OwnNumerics, "Tesla T4 has compute capability 7.5", "8.0"},
		{3, config.OwnNumerics, "it lists 3", "exp doctor"},
	} {
		err := g.lack(tt.n, tt.numerics)
		if tt.text == "" && err == nil {
			continue
		}
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(e.Error(), tt.text) || !strings.Contains(e.Hint(), tt.hint) {
			t.Errorf("GPU %d in %s: %v, want %q", tt.n, tt.numerics, err, tt.text)
			continue
		}
		m := missing("cuda:1", err)
		if !errors.As(m, &e) || e.ExitCode() != 7 || !strings.Contains(e.Hint(), tt.hint) || !strings.Contains(e.Hint(), "--device cpu") {
			t.Errorf("%v: %q", m, e.Hint())
		}
	}
	if e := (*Error)(nil); !errors.As(missing("cuda", ErrNotBuilt), &e) || !strings.Contains(e.Hint(), "make build") {
		t.Error("without tag cuda the hint does not say how to build")
	}
}

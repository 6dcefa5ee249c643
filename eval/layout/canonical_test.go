package layout

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"exp/eval/grade/code"
	"exp/eval/rows"
	"exp/sandbox"
)

// openPool opens a pool, or skips where the machine cannot run programs.
func openPool(t testing.TB) *sandbox.Pool {
	t.Helper()
	p, err := sandbox.Open(context.Background(), sandbox.Config{Slots: max(2, runtime.NumCPU())})
	if bad := new(sandbox.LevelError); errors.As(err, &bad) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// programs reads the programming problems of a benchmark's file.
func programs(path string) ([]code.Problem, error) {
	problems, _, err := Programs(rows.Read(path))
	list := make([]code.Problem, len(problems))
	for i := range problems {
		p, err := code.ProblemOf(&problems[i])
		if err != nil {
			return nil, err
		}
		list[i] = *p
	}
	return list, err
}

// benchmark reads a published file from EXP_DATA, or from shared/data next to the repository.
func benchmark(t testing.TB, name string) []code.Problem {
	t.Helper()
	dir := os.Getenv("EXP_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "data")
	}
	problems, err := programs(filepath.Join(dir, "benchmarks", name))
	if errors.Is(err, os.ErrNotExist) {
		t.Skipf("no benchmarks: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	return problems
}

// each calls f for all problems, on all cores.
func each(problems []code.Problem, f func(p *code.Problem)) {
	var next atomic.Int64
	var group sync.WaitGroup
	for range runtime.NumCPU() {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(problems); i = int(next.Add(1)) - 1 {
				f(&problems[i])
			}
		})
	}
	group.Wait()
}

// mutant returns a solution whose every result is wrong.
func mutant(p *code.Problem) string {
	return fmt.Sprintf(`%s

_right = %s
def %s(*args, **kwargs):
    v = _right(*args, **kwargs)
    if isinstance(v, bool):
        return not v
    if isinstance(v, (int, float, complex)):
        return v + 1
    if isinstance(v, str):
        return v + "x"
    if isinstance(v, (list, tuple)):
        return type(v)([*v, None])
    if isinstance(v, (set, frozenset)):
        return v ^ {"mutant"}
    if isinstance(v, dict):
        return {**v, "mutant": 1}
    return "mutant" if v is None else None
`, p.Solution, p.Entry, p.Entry)
}

// TestCanonicalSolutions: every published solution passes, and a copy that returns another value fails. It
// runs every fourth solution and every eighth copy; with EXP_TEST_ALL=1 all; under -short all of every
// tenth problem.
func TestCanonicalSolutions(t *testing.T) {
	var problems []code.Problem
	for name, want := range map[string]int{"humaneval.jsonl": 164, "mbpp.jsonl": 974} {
		list := benchmark(t, name)
		if len(list) != want {
			t.Errorf("%s: %d problems, want %d", name, len(list), want)
		}
		problems = append(problems, list...)
	}
	if testing.Short() {
		for i := 0; 10*i < len(problems); i++ {
			problems[i] = problems[10*i]
		}
		problems = problems[:len(problems)/10]
	}
	g, err := code.NewGrader(openPool(t), code.Options{})
	if err != nil {
		t.Fatal(err)
	}
	all := os.Getenv("EXP_TEST_ALL") != "" || testing.Short()
	each(problems, func(p *code.Problem) {
		for _, tt := range []struct {
			name, source string
			want         bool
			oneIn        uint32
		}{{"canonical", p.Solution, true, 4}, {"mutant", mutant(p), false, 8}} {
			if !all && crc32.ChecksumIEEE([]byte(p.ID))%tt.oneIn > 0 {
				continue
			}
			p := *p
			if tt.want { // MBPP/123 computes for seconds, and for twice as long on a busy core
				p.Limits.CPUMS, p.Limits.WallMS = 60_000, 120_000
			}
			v, err := g.Program(context.Background(), &p, code.Program{Text: tt.source})
			if err != nil || v.Correct != tt.want {
				t.Errorf("%s %s: correct %v, want %v: %s %s %v", p.ID, tt.name, v.Correct, tt.want, v.Status, v.Reason, err)
			}
		}
	})
}

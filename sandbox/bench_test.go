//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"testing"
)

const tenImports = `import sys, os, math, json, re, random, itertools, functools, collections, heapq
print(sum(map(int, sys.stdin.read().split())))`

// BenchmarkPrograms measures programs on one slot per core, compared with starting the bare interpreter and
// bubblewrap at the same parallelism.
func BenchmarkPrograms(b *testing.B) {
	ctx := context.Background()
	p, err := Open(ctx, Config{})
	if err != nil {
		b.Skip(err)
	}
	b.Cleanup(func() { _ = p.Close() })
	python := p.m.python.Exe
	bare := func(args ...string) func() error {
		return func() error { return exec.Command(args[0], args[1:]...).Run() }
	}
	warm := func(r Request) func() error {
		return func() error {
			if got := p.Run(ctx, r); got.Verdict != OK {
				b.Errorf("%+v", got)
			}
			return nil
		}
	}
	cases := []struct {
		name string
		run  func() error
	}{
		{"bare/pass", bare(python, "-I", "-S", "-c", "pass")},
		{"bare/imports", bare(python, "-I", "-S", "-c", tenImports)},
		{"warm/pass", warm(Request{Source: "pass"})},
		{"warm/imports", warm(Request{Source: tenImports})},
		{"warm/call", warm(Request{Mode: "call", Entry: "f", Source: "def f(x): return x + 1", Tests: []Test{{Args: json.RawMessage("[1]"), Expect: json.RawMessage("2")}}})},
		{"warm/call five tests", warm(Request{Mode: "call", Entry: "f", Source: "def f(x): return x + 1", Tests: fiveTests()})},
		{"warm/asserts", warm(Request{Mode: "asserts", Entry: "f", Source: "def f(x): return x + 1", TestCode: "for i in range(5): assert f(i) == i + 1"})},
	}
	if bwrap, err := exec.LookPath("bwrap"); err == nil {
		cases = append(cases, struct {
			name string
			run  func() error
		}{"bubblewrap/pass", bare(bwrap, "--ro-bind", "/", "/", "--unshare-all", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", python, "-I", "-S", "-c", "pass")})
	}
	for _, c := range cases {
		b.Run(c.name+"/one", func(b *testing.B) {
			for b.Loop() {
				if err := c.run(); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(c.name+"/parallel", func(b *testing.B) {
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := c.run(); err != nil {
						b.Error(err)
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "runs/s")
		})
	}
}

func fiveTests() []Test {
	var list []Test
	for i := range 5 {
		list = append(list, Test{Args: json.RawMessage(fmt.Sprintf("[%d]", i)), Expect: json.RawMessage(fmt.Sprint(i + 1))})
	}
	return list
}

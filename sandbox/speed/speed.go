// Package speed measures how fast programs run in the sandbox, compared with the bare interpreter and
// with bubblewrap.
package speed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"exp/sandbox"
)

// Row is a way to run a program, with its timings.
type Row struct {
	Program, Way string
	run          func(ctx context.Context) error

	latencies []time.Duration // one at a time
	runs      int64           // at once, in elapsed
	elapsed   time.Duration
	cpu       time.Duration // of both, everywhere
}

// tenImports is a typical contest solution.
const tenImports = "import sys, os, math, json, re, random, itertools, functools, collections, " +
	"heapq\nprint(sum(map(int, sys.stdin.read().split())))"

// rows returns the rows; the bare interpreter comes first for each program.
func rows(p *sandbox.Pool) []*Row {
	started := func(args ...string) func(context.Context) error {
		return func(ctx context.Context) error { return exec.CommandContext(ctx, args[0], args[1:]...).Run() }
	}
	warm := func(r sandbox.Request) func(context.Context) error {
		return func(ctx context.Context) error {
			if got := p.Run(ctx, r); got.Verdict != sandbox.OK {
				return fmt.Errorf("a program of the benchmark got %s: %s", got.Verdict, got.Runs[0].Detail)
			}
			return nil
		}
	}
	bare := func(source string) []string { return []string{p.Interpreter(), "-I", "-S", "-c", source} }
	var tests []sandbox.Test
	for range 5 {
		tests = append(tests, sandbox.Test{Args: json.RawMessage("[1]"), Expect: json.RawMessage("2")})
	}
	const function = "def f(x): return x + 1"
	bwrap, _ := exec.LookPath("bwrap") // empty: not installed
	var list []*Row
	for _, x := range []struct{ program, source string }{{"pass", "pass"}, {"imports", tenImports}} {
		list = append(list, &Row{Program: x.program, Way: "bare", run: started(bare(x.source)...)})
		if bwrap != "" {
			inside := []string{bwrap, "--ro-bind", "/", "/", "--unshare-all", "--proc", "/proc", "--dev", "/dev",
				"--tmpfs", "/tmp"}
			list = append(list, &Row{Program: x.program, Way: "bubblewrap",
				run: started(append(inside, bare(x.source)...)...)})
		}
		list = append(list, &Row{Program: x.program, Way: "sandbox",
			run: warm(sandbox.Request{Source: x.source})})
	}
	list = append(list, &Row{Program: "call", Way: "sandbox",
		run: warm(sandbox.Request{Mode: "call", Entry: "f", Source: function, Tests: tests})})
	if p.Slots() > 1 {
		list = append(list, &Row{Program: "asserts", Way: "sandbox",
			run: warm(sandbox.Request{Mode: "asserts", Entry: "f", Source: function,
				TestCode: "for i in range(5): assert f(i) == i + 1"})})
	}
	return list
}

// once measures one slice: half of it one program at a time, half with workers at once.
func (r *Row) once(ctx context.Context, slice time.Duration, workers int) error {
	for end := time.Now().Add(slice / 2); time.Now().Before(end); {
		began := time.Now()
		if err := r.run(ctx); err != nil {
			return err
		}
		r.latencies = append(r.latencies, time.Since(began))
	}
	var group sync.WaitGroup
	var runs atomic.Int64
	errs := make([]error, workers)
	began := time.Now()
	end := began.Add(slice / 2)
	for i := range workers {
		group.Go(func() {
			for time.Now().Before(end) && errs[i] == nil {
				if errs[i] = r.run(ctx); errs[i] == nil {
					runs.Add(1)
				}
			}
		})
	}
	group.Wait()
	r.elapsed += time.Since(began)
	r.runs += runs.Load()
	return errors.Join(errs...)
}

// Quantile returns a quantile of the latencies in milliseconds; q is from 0 to 1.
func (r *Row) Quantile(q float64) float64 {
	sorted := slices.Sorted(slices.Values(r.latencies))
	return 1e3 * sorted[min(len(sorted)-1, int(q*float64(len(sorted))))].Seconds()
}

// cpuTime is the CPU time of this process, its children and the pool.
func cpuTime(p *sandbox.Pool) (time.Duration, error) {
	total, err := p.CPUTime()
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		err = errors.Join(err, syscall.Getrusage(who, &u))
		total += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return total, err
}

// Runs returns how many programs ran.
func (r *Row) Runs() int64 { return int64(len(r.latencies)) + r.runs }

// PerSecond returns the rate of programs, one per worker at once.
func (r *Row) PerSecond() float64 { return float64(r.runs) / r.elapsed.Seconds() }

// CPU returns the CPU time per program in milliseconds.
func (r *Row) CPU() float64 { return 1e3 * r.cpu.Seconds() / float64(r.Runs()) }

// turns is how often the ways take turns, so that load slows them all equally.
const turns = 10

// Measure measures each way for some seconds one program at a time, and as long with one program per
// worker. The bare interpreter comes first for each program.
func Measure(ctx context.Context, p *sandbox.Pool, seconds float64) ([]*Row, error) {
	list := rows(p)
	for range turns {
		for _, r := range list {
			before, err := cpuTime(p)
			if err != nil {
				return nil, err
			}
			if err := r.once(ctx, time.Duration(2*seconds/turns*1e9), p.Slots()); err != nil {
				return nil, errors.Join(ctx.Err(), fmt.Errorf("%s, %s: %w", r.Program, r.Way, err))
			}
			after, err := cpuTime(p)
			if err != nil {
				return nil, err
			}
			r.cpu += after - before
		}
	}
	return list, nil
}

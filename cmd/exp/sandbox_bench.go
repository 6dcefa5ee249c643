package main

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

	"exp/cmd/exp/cli"
	"exp/sandbox"
)

func (a *app) sandboxBenchCommand(level []cli.Flag) *cli.Command {
	return &cli.Command{
		Name: "bench", Usage: "measure programs per second, compared with the bare interpreter",
		Description: "Runs a program that does nothing, a solution that imports ten modules, a function with " +
			"five tests, and five assertions against a function: in the sandbox and, where possible, by the " +
			"bare interpreter and by bubblewrap if it is installed. The ways take turns in short slices, so " +
			"that load slows them all equally. p50_ms and p99_ms are the latency of one program at a time, from " +
			"request to result; per_second has one program per worker at once; of_bare compares p50_ms. cpu_ms " +
			"is the processor time per program of harness, sandbox and program together; load hardly changes it.",
		UsageText: "exp sandbox bench # half a minute\n" +
			"exp sandbox bench --seconds 10 --json > bench.json # schema exp.sandbox.bench/1",
		Flags: append([]cli.Flag{
			&cli.Float64Flag{Name: "seconds", Value: 2, Usage: "measure each row for `N` seconds, one at a time " +
				"and at once"},
		}, level...),
		Action: a.sandboxBench,
	}
}

// measured is a way to run a program, with its timings.
type measured struct {
	program, way string
	run          func(ctx context.Context) error

	latencies []time.Duration // one at a time
	runs      int64           // at once, in elapsed
	elapsed   time.Duration
	cpu       time.Duration // of both, everywhere
}

// tenImports is a typical contest solution.
const tenImports = "import sys, os, math, json, re, random, itertools, functools, collections, " +
	"heapq\nprint(sum(map(int, sys.stdin.read().split())))"

// sandboxMeasured returns the rows; the bare interpreter comes first for each program.
func sandboxMeasured(p *sandbox.Pool) []*measured {
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
	var list []*measured
	for _, x := range []struct{ program, source string }{{"pass", "pass"}, {"imports", tenImports}} {
		list = append(list, &measured{program: x.program, way: "bare", run: started(bare(x.source)...)})
		if bwrap != "" {
			inside := []string{bwrap, "--ro-bind", "/", "/", "--unshare-all", "--proc", "/proc", "--dev", "/dev",
				"--tmpfs", "/tmp"}
			list = append(list, &measured{program: x.program, way: "bubblewrap",
				run: started(append(inside, bare(x.source)...)...)})
		}
		list = append(list, &measured{program: x.program, way: "sandbox",
			run: warm(sandbox.Request{Source: x.source})})
	}
	list = append(list, &measured{program: "call", way: "sandbox",
		run: warm(sandbox.Request{Mode: "call", Entry: "f", Source: function, Tests: tests})})
	if p.Slots() > 1 {
		list = append(list, &measured{program: "asserts", way: "sandbox",
			run: warm(sandbox.Request{Mode: "asserts", Entry: "f", Source: function,
				TestCode: "for i in range(5): assert f(i) == i + 1"})})
	}
	return list
}

// once measures one slice: half of it one program at a time, half with workers at once.
func (m *measured) once(ctx context.Context, slice time.Duration, workers int) error {
	for end := time.Now().Add(slice / 2); time.Now().Before(end); {
		began := time.Now()
		if err := m.run(ctx); err != nil {
			return err
		}
		m.latencies = append(m.latencies, time.Since(began))
	}
	var group sync.WaitGroup
	var runs atomic.Int64
	errs := make([]error, workers)
	began := time.Now()
	end := began.Add(slice / 2)
	for i := range workers {
		group.Go(func() {
			for time.Now().Before(end) && errs[i] == nil {
				if errs[i] = m.run(ctx); errs[i] == nil {
					runs.Add(1)
				}
			}
		})
	}
	group.Wait()
	m.elapsed += time.Since(began)
	m.runs += runs.Load()
	return errors.Join(errs...)
}

// quantile of the latencies, in ms; [q] from 0 to 1.
func (m *measured) quantile(q float64) float64 {
	sorted := slices.Sorted(slices.Values(m.latencies))
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

func (a *app) sandboxBench(c *cli.Context) (err error) {
	cfg, err := sandboxConfig(c)
	if err != nil {
		return err
	}
	if _, err := cli.Positionals(c, 0, 0); err != nil {
		return err
	}
	seconds := c.Float64("seconds")
	if !(seconds >= 0.1 && seconds <= 3600) {
		return cli.Usagef("--seconds %g: from 0.1 to 3600", seconds)
	}
	ctx := c.Context
	p, err := sandbox.Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	const turns = 10
	list := sandboxMeasured(p)
	for range turns {
		for _, m := range list {
			before, err := cpuTime(p)
			if err != nil {
				return err
			}
			if err := m.once(ctx, time.Duration(2*seconds/turns*1e9), p.Slots()); err != nil {
				return errors.Join(ctx.Err(), fmt.Errorf("%s, %s: %w", m.program, m.way, err))
			}
			after, err := cpuTime(p)
			if err != nil {
				return err
			}
			m.cpu += after - before
		}
	}
	t := cli.Table{Schema: "exp.sandbox.bench/1", Columns: []cli.Column{{Key: "program"}, {Key: "way"},
		{Key: "per_second"}, {Key: "p50_ms"}, {Key: "p99_ms"}, {Key: "of_bare"}, {Key: "cpu_ms"}, {Key: "runs"}}}
	bare := make(map[string]float64)
	ways := make(map[string]bool)
	for _, m := range list {
		ways[m.way] = true
		p50 := m.quantile(0.5)
		var ratio any
		if m.way == "bare" {
			bare[m.program] = p50
		}
		if b, ok := bare[m.program]; ok {
			ratio = p50 / b
		}
		runs := int64(len(m.latencies)) + m.runs
		t.Rows = append(t.Rows, []any{m.program, m.way, float64(m.runs) / m.elapsed.Seconds(), p50, m.quantile(0.99),
			ratio, 1e3 * m.cpu.Seconds() / float64(runs), runs})
	}
	if err := a.Out.PrintTable(t); err != nil {
		return err
	}
	missing := "; bubblewrap is not installed"
	if ways["bubblewrap"] {
		missing = ""
	}
	a.Note("level %s, %d workers, Python %s%s", p.Level(), p.Slots(), p.Python(), missing)
	return nil
}

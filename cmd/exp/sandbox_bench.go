package main

import (
	"errors"

	"exp/cmd/exp/cli"
	"exp/sandbox"
	"exp/sandbox/speed"
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
	p, err := sandbox.Open(c.Context, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	list, err := speed.Measure(c.Context, p, seconds)
	if err != nil {
		return err
	}
	t := cli.Table{Schema: "exp.sandbox.bench/1", Columns: []cli.Column{{Key: "program"}, {Key: "way"},
		{Key: "per_second"}, {Key: "p50_ms"}, {Key: "p99_ms"}, {Key: "of_bare"}, {Key: "cpu_ms"}, {Key: "runs"}}}
	bare := make(map[string]float64)
	ways := make(map[string]bool)
	for _, r := range list {
		ways[r.Way] = true
		p50 := r.Quantile(0.5)
		var ratio any
		if r.Way == "bare" {
			bare[r.Program] = p50
		}
		if b, ok := bare[r.Program]; ok {
			ratio = p50 / b
		}
		t.Rows = append(t.Rows, []any{r.Program, r.Way, r.PerSecond(), p50, r.Quantile(0.99), ratio,
			r.CPU(), r.Runs()})
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

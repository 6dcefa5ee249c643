package main

import (
	"errors"
	"io"
	"strings"

	"exp/cmd/exp/cli"
	"exp/experiments/store"
	"exp/harness/differ"
)

func diffCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "diff",
		Category:  "Results",
		Usage:     "say what differs between two runs",
		ArgsUsage: "A B",
		Description: "Compares two runs: configuration keys, sources, data and initial weights, environment, and the first step at which " +
			"their trajectories part. It finds causes; exp compare compares results with statistics. Without a flag all parts are " +
			"shown. The exit code is 0 whether they differ or not.",
		UsageText: strings.Join([]string{
			"exp diff @last~1 @last # what changed since the run before",
			"exp diff flowrl#0 ppo#0 --config # the treatment, and what else is not equal",
			"exp diff 5e8d c01f --traj --json # where two trajectories part, for programs",
		}, "\n"),
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "config", Usage: "only configuration keys"},
			&cli.BoolFlag{Name: "code", Usage: "only sources, with the lines that differ"},
			&cli.BoolFlag{Name: "env", Usage: "only the environment"},
			&cli.BoolFlag{Name: "traj", Usage: "only the trajectories"},
		},
		BashComplete: a.completesRuns(2, true, nil),
		Action: func(c *cli.Context) error {
			args, err := cli.Positionals(c, 2, 2)
			if err != nil {
				return err
			}
			return a.WithStore(func(db *store.DB) error { return a.diff(c, db, args) })
		},
	}
}

// diffOptions are what the flags ask for; without one, all parts.
func diffOptions(c *cli.Context) differ.Options {
	o := differ.Options{
		Parts: differ.Parts{
			Config: c.Bool("config"), Code: c.Bool("code"), Env: c.Bool("env"), Trajectory: c.Bool("traj"),
		},
		Lines:   c.Bool("code"),
		EnvText: func(name string, value any) string { return envText(name, cli.TreeOf(value)) },
	}
	if o.Parts == (differ.Parts{}) {
		o.Parts = differ.All()
	}
	return o
}

func (a *app) diff(c *cli.Context, db *store.DB, refs []string) error {
	var runs [2]store.Run
	for i, ref := range refs {
		var err error
		if runs[i], err = a.oneRun(c.Context, db, ref); err != nil {
			return err
		}
	}
	o := diffOptions(c)
	d, err := differ.Runs(c.Context, db, runs[0], runs[1], o)
	if err != nil {
		return err
	}
	return a.Out.PrintDocument(cli.Document{Schema: "exp.diff/1", Data: d, Human: func(w io.Writer) error {
		p := &diffPage{Page: a.Out.NewPage(w), d: d, o: o}
		return errors.Join(p.write(), p.Close())
	}})
}

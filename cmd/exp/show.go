package main

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"exp/cmd/exp/cli"
	"exp/experiments/recorded"
	"exp/experiments/store"
	"exp/harness/stage"
)

func showCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "show",
		Category:  "Results",
		Usage:     "show a run: identity, stages, results, files",
		ArgsUsage: "RUN",
		Description: "RUN is @last, an id or its beginning, NAME where it has one seed, or NAME#SEED. Without a flag the page shows " +
			"everything but the configuration, the environment and the lineage; each flag shows one part alone.",
		UsageText: strings.Join([]string{
			"exp show @last # the newest run",
			"exp show countdown-flowrl#0 --config # its configuration, with everything resolved",
			"exp show @last --source old-code # the very sources that produced it",
			"exp show @last --json # the same for programs",
		}, "\n"),
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "stages", Usage: "only the stages, with what each read and wrote"},
			&cli.BoolFlag{Name: "config", Usage: "only the resolved configuration"},
			&cli.BoolFlag{Name: "env", Usage: "only the attempts and the machines they ran on"},
			&cli.BoolFlag{Name: "lineage", Usage: "only what the run was made from, and what was made from it"},
			&cli.StringFlag{Name: "source", Usage: "write the sources that produced the run to the new folder `DIR`"},
		},
		BashComplete: a.completesRuns(1, true, func(_ context.Context, _ *store.DB, w cli.Word) []cli.Candidate {
			return cli.PathCandidates(w.Text, os.DirEntry.IsDir)
		}),
		Action: func(c *cli.Context) error {
			args, err := cli.Positionals(c, 1, 1)
			if err != nil {
				return err
			}
			return a.WithStore(func(db *store.DB) error { return a.show(c, db, args[0]) })
		},
	}
}

func (a *app) show(c *cli.Context, db *store.DB, ref string) error {
	run, err := a.oneRun(c.Context, db, ref)
	if err != nil {
		return err
	}
	if dir := c.String("source"); dir != "" {
		return a.writeSources(c.Context, db, run, dir)
	}
	s, err := recorded.Read(c.Context, db, run, recorded.Options{
		Parts: recorded.Parts{
			Stages: c.Bool("stages"), Config: c.Bool("config"), Env: c.Bool("env"), Lineage: c.Bool("lineage"),
		},
		Metrics: courseMetrics(), Model: stage.MergedDir,
	})
	if err != nil {
		return err
	}
	for i := range s.Metrics {
		s.Metrics[i].Unit = unitOf(s.Metrics[i].Series)
	}
	return a.Out.PrintDocument(cli.Document{Schema: "exp.show/1", Data: s, Human: func(w io.Writer) error {
		p := &showPage{Page: a.Out.NewPage(w), s: s, now: a.Clock.Now(), here: workingDir()}
		return errors.Join(p.write(), p.Close())
	}})
}

// workingDir is the directory that paths are shown from; empty if unknown.
func workingDir() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	return dir
}

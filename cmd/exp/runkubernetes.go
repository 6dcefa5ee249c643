package main

import (
	"io"
	"os"

	"exp/cmd/exp/cli"
	"exp/harness/config"
)

// runKubernetes fills the spool for the runs that are missing, and prints the manifests of
// their Jobs. It contacts no cluster.
func (a *app) runKubernetes(c *cli.Context, configs []*config.Resolved, seeds []int64) error {
	s, err := a.openSpoolStudy(c, configs, seeds)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.study.CheckPods(); err != nil {
		return err
	}
	dryRun := c.Bool("dry-run")
	if !dryRun {
		if err := s.makeSpool(); err != nil {
			return err
		}
		if err := s.collectEarlier(c.Context); err != nil {
			return err
		}
	}
	missing, err := s.missing(nil)
	if err != nil {
		return err
	}
	if err := s.onlyBegun(missing); err != nil {
		return err
	}
	s.notePresent()
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	k, err := s.study.Pods(c.Context, missing, dir, !dryRun)
	if err != nil {
		return err
	}
	text, err := k.Manifests()
	if err != nil {
		return err
	}
	return s.Out.PrintDocument(cli.Document{Schema: "exp.kubernetes/1", Data: map[string]any{"manifests": text},
		Human: func(w io.Writer) error { _, err := io.WriteString(w, text); return err }})
}

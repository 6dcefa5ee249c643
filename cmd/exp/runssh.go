package main

import (
	"context"
	"os"
	"strings"

	"exp/cmd/exp/cli"
	"exp/harness/cluster"
	"exp/harness/config"
)

// hostsOf returns the hosts of "ssh:HOST,…", nil if it is another engine.
func hostsOf(engine string) []string {
	list, ok := strings.CutPrefix(engine, cluster.OverSSH)
	if !ok {
		return nil
	}
	return strings.Split(list, ",")
}

// runSSH executes the runs that are missing on hosts, one at a time on each. A host that is
// named twice executes two.
func (a *app) runSSH(c *cli.Context, configs []*config.Resolved, seeds []int64, hosts []string) error {
	s, err := a.openSpoolStudy(c, configs, seeds)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.makeSpool(); err != nil {
		return err
	}
	if err := s.collectEarlier(c.Context); err != nil {
		return err
	}
	missing, err := s.missing(nil)
	if err != nil {
		return err
	}
	s.notePresent()
	if err := s.onlyBegun(missing); err != nil {
		return err
	}
	if len(missing) == 0 {
		return s.results()
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	jobs, remote, err := s.study.RemoteJobs(c.Context, missing, dir)
	if err != nil {
		return err
	}
	l := &localStudy{app: a, c: c, db: s.study.DB, jobs: jobs, ran: make(cluster.Results, len(missing))}
	ends := l.execute(len(hosts), "on "+strings.Join(hosts, ", "), func(i, slot int) cluster.Executor {
		remote[i].Host.Name, remote[i].Heard = hosts[slot], l.hears(i)
		return &remote[i]
	})
	if err := s.collectNew(context.WithoutCancel(c.Context)); err != nil {
		return err
	}
	return l.finish(ends)
}

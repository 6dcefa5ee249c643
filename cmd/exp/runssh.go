package main

import (
	"context"
	"os"
	"strings"

	"exp/cmd/exp/cli"
	"exp/harness/cluster"
	"exp/harness/config"
	harness "exp/harness/run"
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
	for _, line := range append(s.present, s.begun...) {
		s.Note("%s", line)
	}
	if len(missing) == 0 {
		if len(s.begun) > 0 {
			return s.beginners()
		}
		return s.results()
	}
	list, err := s.list(missing)
	if err != nil {
		return err
	}
	entries := s.entries(list)
	program, err := s.provide(missing)
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	l := &localStudy{app: a, c: c, db: s.db, jobs: list, counts: make([]harness.Result, len(missing))}
	ends := l.execute(min(len(hosts), len(list)), "on "+strings.Join(hosts, ", "), func(i, slot int) cluster.Executor {
		entries[i].Threads = 0 // all of the host
		host := cluster.Host{Name: hosts[slot], Spool: list[i].Run.Config.Run.Cluster.SSH.Dir, Dir: dir}
		return &cluster.RemoteJob{Entry: entries[i], Spool: s.spool, Program: program, Host: host, Heard: l.hears(i)}
	})
	if err := s.collectNew(context.WithoutCancel(c.Context)); err != nil {
		return err
	}
	return l.finish(ends)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"exp/cmd/exp/cli"
	"exp/experiments/quantity"
	"exp/experiments/store"
	"exp/harness/cluster"
	"exp/harness/config"
	"exp/harness/plan"
	harness "exp/harness/run"
)

// spoolStudy is an exp run whose jobs get what they need through a spool.
type spoolStudy struct {
	*app
	c         *cli.Context
	study     *cluster.Study
	standings []cluster.Standing // before anything was submitted
	collected *cluster.Collected // the last time
}

// openSpoolStudy plans the runs. The caller calls close.
func (a *app) openSpoolStudy(c *cli.Context, configs []*config.Resolved, seeds []int64) (*spoolStudy, error) {
	spool, err := a.spoolOf(c.String("on"), configs)
	if err != nil {
		return nil, err
	}
	open := a.OpenStoreToWrite
	if c.Bool("dry-run") {
		open = a.OpenStore
	}
	db, err := open()
	var none *cli.Failure
	if err != nil && !(errors.As(err, &none) && none.Code == cli.ExitNotFound) {
		return nil, err
	}
	s := &spoolStudy{app: a, c: c, study: &cluster.Study{DB: db, Spool: spool, Tags: c.StringSlice("tag"),
		Getenv: a.Getenv, Find: a.hubCache().Find}}
	if err := s.study.Plan(c.Context, plan.WantedOf(configs, seeds)); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// spoolOf returns the spool for an engine of --on, and checks that jobs will find their files. Hosts have
// files of their own, and their spool is a folder of the store.
func (a *app) spoolOf(engine string, configs []*config.Resolved) (cluster.Spool, error) {
	if hostsOf(engine) != nil {
		store, _, err := a.FindStore()
		if err == nil {
			store, err = filepath.Abs(filepath.Join(store, "ssh"))
		}
		return cluster.Spool{Dir: store}, err
	}
	spool, err := cluster.SpoolOf(engine, configs)
	if err == nil && engine == onSlurm {
		err = spool.CheckLogs()
	}
	for _, r := range configs {
		if err == nil {
			err = harness.RequireFiles(r)
		}
	}
	return spool, err
}

func (s *spoolStudy) close() {
	if s.study.DB != nil {
		s.study.DB.Close()
	}
}

// missing returns the runs that are neither in the store nor with the batch system, whose
// states are by number.
func (s *spoolStudy) missing(states map[string]string) (list []*plan.Run, err error) {
	s.standings, err = s.study.Standings(s.c.Context, states)
	return cluster.MissingOf(s.standings), err
}

// onlyBegun returns an error if no run is missing, and this store has begun some.
func (s *spoolStudy) onlyBegun(missing []*plan.Run) error {
	begun := s.begun()
	if len(missing) > 0 || len(begun) == 0 {
		return nil
	}
	return cli.Failf(cli.ExitResource, "%s", strings.Join(begun, "\n")).
		Advise("finish it here (exp run without --on), or submit with another --store")
}

// standingText says where a run is.
func standingText(at *cluster.Standing) string {
	text := fmt.Sprintf("%s#%d  ", at.Run.Config.Run.Name, at.Run.Seed)
	switch at.Place {
	case cluster.Begun:
		return text + fmt.Sprintf("is in this store already, %s after %s", at.Status,
			quantity.Plural(int(at.Steps), "step"))
	case cluster.Queued:
		return text + fmt.Sprintf("is submitted as job %s, %s", at.Number, at.State)
	case cluster.Published:
		return text + "is done and waits to be collected"
	}
	if at.Status == store.Stopped {
		return text + "is done: its condition stopped it (exp resume --stop-if none continues it here)"
	}
	return text + "is done"
}

// begun says which runs this store has begun.
func (s *spoolStudy) begun() (list []string) {
	for _, at := range s.standings {
		if at.Place == cluster.Begun {
			list = append(list, standingText(&at))
		}
	}
	return list
}

// present says which runs are done or submitted.
func (s *spoolStudy) present() (list []string) {
	for _, at := range s.standings {
		if at.Place != cluster.Begun && at.Place != cluster.Missing {
			list = append(list, standingText(&at))
		}
	}
	return list
}

// notePresent says which runs are not missing.
func (s *spoolStudy) notePresent() {
	for _, line := range append(s.present(), s.begun()...) {
		s.Note("%s", line)
	}
}

// makeSpool creates the spool.
func (s *spoolStudy) makeSpool() error {
	if err := s.study.Spool.Make(); err != nil {
		return cli.Failf(cli.ExitResource, "cluster.spool: %w", err).
			Advise("name a directory that you may write to")
	}
	return nil
}

// collect imports what has arrived.
func (s *spoolStudy) collect(ctx context.Context) (err error) {
	s.collected, err = s.collectDone(ctx, s.study.DB, s.study.Spool)
	return err
}

// collectEarlier imports what earlier jobs have finished. What cannot be imported is a
// warning: it does not keep other runs from being submitted.
func (s *spoolStudy) collectEarlier(ctx context.Context) error {
	if err := s.collect(ctx); err != nil {
		return err
	}
	spool := s.study.Spool
	for _, u := range s.collected.Failed {
		s.Warn("%v\nto compute it again, remove %s and %s", u, spool.Path(cluster.StatePath(u.ID)),
			spool.Path(cluster.BundlePath(u.ID)))
	}
	return nil
}

// collectNew imports what the jobs have finished now. What cannot be imported is an error.
func (s *spoolStudy) collectNew(ctx context.Context) error {
	if err := s.collect(ctx); err != nil {
		return err
	}
	return s.collected.Err()
}

// results says what became of each run.
func (s *spoolStudy) results() error {
	losses, err := s.study.Losses(context.WithoutCancel(s.c.Context), s.standings, s.collected)
	if err != nil {
		return err
	}
	var list []string
	for _, l := range losses {
		list = append(list, l.Job.Name+": "+l.Why)
	}
	if list = append(list, s.begun()...); len(list) > 0 {
		return cli.Failf(cli.ExitFailure, "%s gave no result:\n  %s", quantity.Plural(len(list), "job"),
			strings.Join(list, "\n  ")).
			Advise("the same command again submits only the missing jobs; logs are in " +
				filepath.Join(s.study.Spool.Dir, "log"))
	}
	n := len(s.study.Plans)
	return s.Out.PrintText("exp.waited/1", map[string]any{"runs": n}, "%s done\n", quantity.Plural(n, "run"))
}

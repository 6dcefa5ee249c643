package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"exp/cmd/exp/cli"
	"exp/experiments/bundle"
	"exp/experiments/quantity"
	"exp/experiments/store"
	"exp/harness/cluster"
	"exp/harness/config"
	"exp/harness/device"
	"exp/harness/plan"
	harness "exp/harness/run"
	"exp/harness/stage"
)

// spoolStudy is an exp run whose jobs read what they need from a spool and publish their
// results there.
type spoolStudy struct {
	*app
	c       *cli.Context
	db      *store.DB // nil: no store yet
	spool   cluster.Spool
	plans   []*plan.Run // of all runs, each once
	present []string    // runs that are done or submitted, in words
	begun   []string    // runs that this store has begun, in words
	given   []store.Run // that made stages which the jobs reuse
	suites  map[string]store.Suite

	collected *cluster.Collected // the last time
}

// openSpoolStudy plans the runs. The caller calls close.
func (a *app) openSpoolStudy(c *cli.Context, configs []*config.Resolved, seeds []int64) (*spoolStudy, error) {
	engine := c.String("on")
	overSSH := hostsOf(engine) != nil
	s := &spoolStudy{app: a, c: c, suites: map[string]store.Suite{}}
	for _, r := range configs {
		dir := r.Run.Cluster.Spool
		if overSSH { // nobody else sees it
			store, _, err := a.FindStore()
			if err != nil {
				return nil, err
			}
			dir = filepath.Join(store, "ssh")
		}
		if dir == "" {
			return nil, cli.Usagef("--on %s needs cluster.spool, a directory that all nodes see", engine).
				Advise("exp run … --set cluster.spool=DIR, or set it in ~/.config/exp/config.yaml")
		}
		dir, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		if s.spool.Dir != "" && s.spool.Dir != dir {
			return nil, cli.Usagef("cluster.spool is %s in one configuration and %s in another", s.spool.Dir, dir).
				Advise("use one spool: exp run … --set cluster.spool=DIR")
		}
		if at := strings.IndexAny(dir, " \t\n%\\\"'"); at >= 0 && engine == onSlurm {
			return nil, cli.Usagef("cluster.spool %s: sbatch cannot write logs below a path with %q", dir, dir[at]).
				Advise("name a directory without blanks, quotes, % and \\")
		}
		s.spool.Dir = dir
		if overSSH { // the hosts have their own files
			continue
		}
		if err := harness.RequireFiles(r); err != nil {
			return nil, err
		}
	}
	open := a.OpenStoreToWrite
	if c.Bool("dry-run") {
		open = a.OpenStore
	}
	var none *cli.Failure
	var err error
	if s.db, err = open(); err != nil && !(errors.As(err, &none) && none.Code == cli.ExitNotFound) {
		return nil, err
	}
	if err := s.plan(jobs(configs, seeds)); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *spoolStudy) close() {
	if s.db != nil {
		s.db.Close()
	}
}

// plan plans the runs, each once, and finds the suites that they name. The nodes may have
// devices that this machine lacks: a GPU computes in the CPU's classes.
func (s *spoolStudy) plan(list []job) error {
	sources, err := plan.Sources()
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, j := range list {
		class, err := s.cpuClass(j.config)
		if err != nil {
			return err
		}
		suites, err := harness.Suites(s.c.Context, s.db, j.config)
		if err != nil {
			return err
		}
		p, err := plan.New(j.config, j.seed, class, sources, suites...)
		if err != nil {
			return err
		}
		if !known[p.RID.String()] {
			s.plans = append(s.plans, p)
		}
		known[p.RID.String()] = true
	}
	return s.findSuites()
}

// cpuClass returns the numerics class of a configuration on any device.
func (a *app) cpuClass(r *config.Resolved) (string, error) {
	be, err := device.Open(device.Options{Name: device.CPU, Threads: 1, Operand: stage.Operand(&r.Run),
		Numerics: r.Run.Compute.Numerics}, a.Getenv)
	if err != nil {
		return "", err
	}
	defer be.Close()
	return be.Class(), nil
}

func (s *spoolStudy) findSuites() error {
	if s.db == nil { // it would have none, and plan has not asked for any
		return nil
	}
	all, err := s.db.Suites(s.c.Context)
	for _, row := range all {
		if row.Size > 0 {
			s.suites[row.Name] = row // the newest of a name is last
		}
	}
	return err
}

// nameOf names a run for people.
func nameOf(p *plan.Run) string { return fmt.Sprintf("%s#%d", p.Config.Run.Name, p.Seed) }

// missing returns the runs that are neither in the store nor with the batch system, whose
// states are by number.
func (s *spoolStudy) missing(states map[string]string) ([]*plan.Run, error) {
	known, err := s.spool.Submitted()
	if err != nil {
		return nil, err
	}
	var list []*plan.Run
	for _, p := range s.plans {
		text, begun, err := s.stored(p)
		if err != nil {
			return nil, err
		}
		if text == "" {
			text, err = s.submitted(p, known, states)
		}
		switch {
		case err != nil:
			return nil, err
		case text == "":
			list = append(list, p)
		case begun:
			s.begun = append(s.begun, nameOf(p)+"  "+text)
		default:
			s.present = append(s.present, nameOf(p)+"  "+text)
		}
	}
	return list, nil
}

// stored says how the store has a run, "" if it has not; begun reports whether it is
// unfinished.
func (s *spoolStudy) stored(p *plan.Run) (text string, begun bool, err error) {
	if s.db == nil {
		return "", false, nil
	}
	run, err := s.db.Run(s.c.Context, p.RID)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return "", false, nil
	case err != nil:
		return "", false, err
	case run.Status == store.Done:
		return "is done", false, nil
	case run.Status == store.Stopped:
		return "is done: its condition stopped it (exp resume --stop-if none continues it here)", false, nil
	}
	return fmt.Sprintf("is in this store already, %s after %s", s.db.StatusNow(&run),
		quantity.Plural(int(run.Steps), "step")), true, nil
}

// submitted says where a job of the spool makes a run, "" if none does.
func (s *spoolStudy) submitted(p *plan.Run, known []cluster.Submitted, states map[string]string) (string, error) {
	at := slices.IndexFunc(known, func(j cluster.Submitted) bool { return j.Until == "" && j.RID == p.RID })
	if at < 0 {
		return "", nil
	}
	if state := states[known[at].Number]; state != "" {
		return fmt.Sprintf("is submitted as job %s, %s", known[at].Number, state), nil
	}
	st, err := s.spool.State(known[at].ID)
	if err == nil && st.Finished() {
		return "is done and waits to be collected", nil
	}
	return "", err
}

// makeSpool creates the spool.
func (s *spoolStudy) makeSpool() error {
	if err := s.spool.Make(); err != nil {
		return cli.Failf(cli.ExitResource, "cluster.spool: %w", err).
			Advise("name a directory that you may write to")
	}
	return nil
}

// beginners returns the error for a study with nothing to submit because this store has
// begun the rest.
func (s *spoolStudy) beginners() error {
	return cli.Failf(cli.ExitResource, "%s", strings.Join(s.begun, "\n")).
		Advise("finish it here (exp run without --on), or submit with another --store")
}

// entries returns the jobs of runs as nodes execute them.
func (s *spoolStudy) entries(list []cluster.Job) []cluster.Entry {
	var given []string
	for _, r := range s.given {
		given = append(given, cluster.GivenPath(r.RID))
	}
	entries := make([]cluster.Entry, len(list))
	for i, j := range list {
		c := j.Run.Config.Run
		e := cluster.Entry{ID: j.Run.RID.String(), Name: j.Name(), RID: j.Run.RID, Seed: j.Run.Seed,
			Config: cluster.ConfigPath([]byte(j.Run.Config.YAML())), Until: string(j.Until),
			Needs: slices.Clone(given),
			Tags:  s.c.StringSlice("tag"), Threads: c.Cluster.Slurm.CPUs, MaxRestarts: c.Cluster.Slurm.MaxRestarts,
			Store: c.Cluster.Store}
		if e.Until != "" {
			e.ID += "." + e.Until
		}
		for _, n := range j.Needs {
			e.Needs = append(e.Needs, cluster.BundlePath(entries[n].ID))
		}
		for _, name := range stage.ForeignSuites(&c) {
			e.Suites = append(e.Suites, cluster.SuitePath(s.suites[name]))
		}
		entries[i] = e
	}
	return entries
}

// list makes the jobs of runs.
func (s *spoolStudy) list(runs []*plan.Run) ([]cluster.Job, error) {
	list, err := cluster.List(s.c.Context, s.db, runs)
	if err == nil && s.db != nil {
		s.given, err = cluster.Holders(s.c.Context, s.db, runs)
	}
	return list, err
}

// programPath returns the path in the spool where provide puts the program.
func programPath() (string, error) {
	executable, err := os.Executable()
	if err != nil {
		return "", err
	}
	return cluster.ProgramPath(executable)
}

// provide writes what the jobs read: the program, configurations, suites, and runs of the
// store that made stages they reuse. It returns the program's path in the spool.
func (s *spoolStudy) provide(runs []*plan.Run) (program string, err error) {
	byText := map[string]*plan.Run{}
	for _, p := range runs {
		byText[p.Config.YAML()] = p
		for _, name := range stage.ForeignSuites(&p.Config.Run) {
			if _, err := s.spool.PutSuite(s.db, s.suites[name]); err != nil {
				return "", err
			}
		}
	}
	for _, text := range slices.Sorted(maps.Keys(byText)) {
		if err := s.provideConfig(byText[text], text); err != nil {
			return "", err
		}
	}
	for _, r := range s.given {
		_, err := bundle.Write(s.c.Context, s.db, s.spool.Path(cluster.GivenPath(r.RID)), []store.Run{r},
			bundle.Options{})
		if err != nil {
			return "", err
		}
	}
	executable, err := os.Executable()
	if err != nil {
		return "", err
	}
	return s.spool.AddProgram(executable)
}

// provideConfig writes a configuration out in full, and checks that it still makes the
// run that was asked for.
func (s *spoolStudy) provideConfig(p *plan.Run, text string) error {
	name := cluster.ConfigPath([]byte(text))
	if err := s.spool.Write(name, []byte(text)); err != nil {
		return err
	}
	r, err := config.Load(config.Input{File: s.spool.Path(name), Find: s.hubCache().Find})
	if err != nil {
		return err
	}
	again := &spoolStudy{app: s.app, c: s.c, db: s.db, suites: s.suites}
	if err := again.plan([]job{{r, p.Seed}}); err != nil {
		return err
	}
	if got := again.plans[0].RID; got != p.RID {
		return fmt.Errorf("%s, written out in full, makes run %s, not %s", p.Config.Run.Name, got.Short(),
			p.RID.Short())
	}
	return nil
}

// collect imports what has arrived.
func (s *spoolStudy) collect(ctx context.Context) (err error) {
	s.collected, err = s.collectDone(ctx, s.db, s.spool)
	return err
}

// collectEarlier imports what earlier jobs have finished. What cannot be imported is a
// warning: it does not keep other runs from being submitted.
func (s *spoolStudy) collectEarlier(ctx context.Context) error {
	if err := s.collect(ctx); err != nil {
		return err
	}
	for _, u := range s.collected.Failed {
		s.Warn("%v\nto compute it again, remove %s and %s", u, s.spool.Path(cluster.StatePath(u.ID)),
			s.spool.Path(cluster.BundlePath(u.ID)))
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

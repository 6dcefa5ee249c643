package cluster

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"

	"exp/experiments/bundle"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/plan"
)

// Submission makes the jobs of runs for Slurm. It writes nothing.
func (s *Study) Submission(ctx context.Context, runs []*plan.Run) (*Submission, error) {
	jobs, err := s.jobs(ctx, runs)
	if err != nil {
		return nil, err
	}
	program, err := ownProgramPath()
	return &Submission{Spool: s.Spool, Program: program, Batches: Batches(jobs, s.entries(jobs))}, err
}

// Submit writes what the jobs of runs read, and submits them to Slurm. It returns the numbers of the
// arrays, on an error of the arrays submitted so far.
func (s *Study) Submit(ctx context.Context, runs []*plan.Run) (sub *Submission, numbers []string, err error) {
	jobs, err := s.jobs(ctx, runs)
	if err != nil {
		return nil, nil, err
	}
	program, err := s.provide(ctx, runs)
	if err != nil {
		return nil, nil, err
	}
	sub = &Submission{Spool: s.Spool, Program: program, Batches: Batches(jobs, s.entries(jobs))}
	numbers, err = sub.Submit(ctx)
	return sub, numbers, err
}

// Pods makes the Jobs of runs for Kubernetes; their programs start in dir. If provide is set, it writes
// what they read, else nothing.
func (s *Study) Pods(ctx context.Context, runs []*plan.Run, dir string, provide bool) (*Kubernetes, error) {
	jobs, err := s.jobs(ctx, runs)
	if err != nil {
		return nil, err
	}
	entries := s.entries(jobs)
	for i := range entries {
		o := jobs[i].Run.Config.Run.Cluster.Kubernetes
		entries[i].Threads, entries[i].MaxRestarts, entries[i].Store = o.CPUs, o.MaxRestarts, NodeStore
	}
	k := &Kubernetes{Spool: s.Spool, Dir: dir, Batches: Batches(jobs, entries)}
	if !provide || len(runs) == 0 {
		k.Program, err = ownProgramPath()
		return k, err
	}
	if k.Program, err = s.provide(ctx, runs); err != nil {
		return nil, err
	}
	return k, k.Prepare()
}

// RemoteJobs makes the jobs of runs for hosts, where programs start in dir, and writes what they read.
// The caller names the host of each.
func (s *Study) RemoteJobs(ctx context.Context, runs []*plan.Run, dir string) ([]Job, []RemoteJob, error) {
	jobs, err := s.jobs(ctx, runs)
	if err != nil {
		return nil, nil, err
	}
	program, err := s.provide(ctx, runs)
	if err != nil {
		return nil, nil, err
	}
	remote := make([]RemoteJob, len(jobs))
	for i, e := range s.entries(jobs) {
		e.Threads = 0 // all of the host
		host := Host{Spool: jobs[i].Run.Config.Run.Cluster.SSH.Dir, Dir: dir}
		remote[i] = RemoteJob{Entry: e, Spool: s.Spool, Program: program, Host: host}
	}
	return jobs, remote, nil
}

// jobs makes the jobs of runs, and notes the runs of the store whose stages they reuse.
func (s *Study) jobs(ctx context.Context, runs []*plan.Run) ([]Job, error) {
	list, err := List(ctx, s.DB, runs)
	if err == nil && s.DB != nil {
		s.given, err = Holders(ctx, s.DB, runs)
	}
	return list, err
}

// entries returns the jobs as nodes of Slurm execute them.
func (s *Study) entries(jobs []Job) []Entry {
	var given []string
	for _, r := range s.given {
		given = append(given, GivenPath(r.RID))
	}
	entries := make([]Entry, len(jobs))
	for i, j := range jobs {
		c := j.Run.Config.Run
		e := Entry{ID: j.Run.RID.String(), Name: j.Name(), RID: j.Run.RID, Seed: j.Run.Seed,
			Config: ConfigPath([]byte(j.Run.Config.YAML())), Until: string(j.Until), Needs: slices.Clone(given),
			Tags: s.Tags, Threads: c.Cluster.Slurm.CPUs, MaxRestarts: c.Cluster.Slurm.MaxRestarts,
			Store: c.Cluster.Store, Ranks: s.Ranks, RankTimeout: s.RankTimeout}
		if e.Until != "" {
			e.ID += "." + e.Until
		}
		for _, n := range j.Needs {
			e.Needs = append(e.Needs, BundlePath(entries[n].ID))
		}
		for _, row := range s.suitesOf(j.Run) {
			e.Suites = append(e.Suites, SuitePath(row))
		}
		entries[i] = e
	}
	return entries
}

// suitesOf returns the benchmarks that a run is scored on, and those with the examples in their prompts, each once.
func (s *Study) suitesOf(p *plan.Run) (list []store.Suite) {
	add := func(name string) {
		if !slices.ContainsFunc(list, func(row store.Suite) bool { return row.Name == name }) {
			list = append(list, s.suites[name])
		}
	}
	for _, x := range p.Suites {
		add(x.Name)
		if x.Examples != nil {
			add(x.Examples.Name)
		}
	}
	return list
}

// provide writes what the jobs of runs read: this program, configurations, suites, and the runs of the
// store whose stages they reuse. It returns the program's path in the spool.
func (s *Study) provide(ctx context.Context, runs []*plan.Run) (program string, err error) {
	byText := map[string]*plan.Run{}
	for _, p := range runs {
		byText[p.Config.YAML()] = p
		for _, row := range s.suitesOf(p) {
			if _, err := s.Spool.PutSuite(s.DB, row); err != nil {
				return "", err
			}
		}
	}
	for _, text := range slices.Sorted(maps.Keys(byText)) {
		if err := s.provideConfig(ctx, byText[text], text); err != nil {
			return "", err
		}
	}
	for _, r := range s.given {
		_, err := bundle.Write(ctx, s.DB, s.Spool.Path(GivenPath(r.RID)), []store.Run{r}, bundle.Options{})
		if err != nil {
			return "", err
		}
	}
	executable, err := os.Executable()
	if err != nil {
		return "", err
	}
	return s.Spool.AddProgram(executable)
}

// provideConfig writes a configuration in full, and checks that it still makes the run that was asked
// for.
func (s *Study) provideConfig(ctx context.Context, p *plan.Run, text string) error {
	name := ConfigPath([]byte(text))
	if err := s.Spool.Write(name, []byte(text)); err != nil {
		return err
	}
	r, err := config.Load(config.Input{File: s.Spool.Path(name), Find: s.Find})
	if err != nil {
		return err
	}
	again, err := Plan(ctx, s.DB, []plan.Wanted{{Config: r, Seed: p.Seed}}, s.class)
	if err != nil {
		return err
	}
	if got := again[0].RID; got != p.RID {
		return fmt.Errorf("%s, written out in full, makes run %s, not %s", p.Config.Run.Name, got.Short(),
			p.RID.Short())
	}
	return nil
}

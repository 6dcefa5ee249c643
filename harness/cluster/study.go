package cluster

import (
	"context"
	"errors"
	"slices"
	"time"

	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/device"
	"exp/harness/hub"
	"exp/harness/plan"
	"exp/harness/run"
	"exp/harness/stage"
)

// Study is runs whose jobs read what they need from a spool and publish their results there.
type Study struct {
	DB    *store.DB // nil: no store yet
	Spool Spool
	Plans []*plan.Run // of all runs, each once
	Tags  []string    // that the runs get
	Ranks int         // processes of a run; 0: one
	// RankTimeout is --rank-timeout of the runs; empty: the nodes' own.
	RankTimeout string
	Getenv      func(string) string
	Find        func(hub.Ref) (hub.Found, error) // looks up files of a hub on this machine

	given  []store.Run // whose stages the jobs reuse
	suites map[string]store.Suite
}

// Plan plans runs. class returns the numerics class of a configuration.
func Plan(ctx context.Context, db *store.DB, list []plan.Wanted,
	class func(*config.Resolved) (string, error)) ([]*plan.Run, error) {
	sources, err := plan.Sources()
	if err != nil {
		return nil, err
	}
	var plans []*plan.Run
	for _, w := range list {
		class, err := class(w.Config)
		if err != nil {
			return nil, err
		}
		suites, err := run.Suites(ctx, db, w.Config)
		if err != nil {
			return nil, err
		}
		p, err := plan.New(w.Config, w.Seed, class, sources, suites...)
		if err != nil {
			return nil, err
		}
		plans = append(plans, p)
	}
	return plans, nil
}

// ClassHere returns the numerics class of the device that a configuration names.
func ClassHere(getenv func(string) string) func(*config.Resolved) (string, error) {
	return func(r *config.Resolved) (string, error) {
		be, err := device.ForRun(&r.Run, getenv)
		if err != nil {
			return "", err
		}
		defer be.Close()
		return be.Class(), nil
	}
}

// Plan plans the runs of the study, each once, and finds the suites that they name.
func (s *Study) Plan(ctx context.Context, list []plan.Wanted) error {
	plans, err := Plan(ctx, s.DB, list, s.class)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, p := range plans {
		if !known[p.RID.String()] {
			s.Plans = append(s.Plans, p)
		}
		known[p.RID.String()] = true
	}
	return s.findSuites(ctx)
}

// class returns the numerics class of a configuration on any device. The nodes may have devices that
// this machine lacks: a GPU computes in the CPU's classes.
func (s *Study) class(r *config.Resolved) (string, error) {
	be, err := device.Open(device.Options{Name: device.CPU, Threads: 1, Operand: stage.Operand(&r.Run),
		Numerics: r.Run.Compute.Numerics}, s.Getenv)
	if err != nil {
		return "", err
	}
	defer be.Close()
	return be.Class(), nil
}

func (s *Study) findSuites(ctx context.Context) error {
	s.suites = map[string]store.Suite{}
	if s.DB == nil { // it would have none, and Plan has not asked for any
		return nil
	}
	all, err := s.DB.Suites(ctx)
	for _, row := range all {
		if row.Size > 0 {
			s.suites[row.Name] = row // the newest of a name is last
		}
	}
	return err
}

// Place says where a run of a study is.
type Place uint8

// The places of a run.
const (
	Missing   Place = iota // neither in the store nor with the batch system
	Complete               // in the store: done, or stopped by its own condition
	Begun                  // in the store, unfinished
	Queued                 // with the batch system
	Published              // done, in the spool
)

// Standing is the state of one run of a study.
type Standing struct {
	Run    *plan.Run
	Place  Place
	Status store.Status // in the store
	Steps  int64        // in the store
	Number string       // of a job that is with the batch system
	State  string       // of that job
}

// Standings returns the state of each run. states holds the states of the jobs that the batch system
// has, by number.
func (s *Study) Standings(ctx context.Context, states map[string]string) ([]Standing, error) {
	known, err := s.Spool.Submitted()
	if err != nil {
		return nil, err
	}
	list := make([]Standing, len(s.Plans))
	for i, p := range s.Plans {
		list[i].Run = p
		err := s.lookInStore(ctx, &list[i])
		if err == nil && list[i].Place == Missing {
			err = s.lookInSpool(&list[i], known, states)
		}
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// MissingOf returns the runs that are missing.
func MissingOf(list []Standing) (missing []*plan.Run) {
	for _, at := range list {
		if at.Place == Missing {
			missing = append(missing, at.Run)
		}
	}
	return missing
}

func (s *Study) lookInStore(ctx context.Context, at *Standing) error {
	if s.DB == nil {
		return nil
	}
	r, err := s.DB.Run(ctx, at.Run.RID)
	switch {
	case errors.Is(err, store.ErrNotFound):
	case err != nil:
		return err
	case isComplete(&r):
		at.Place, at.Status, at.Steps = Complete, r.Status, r.Steps
	default:
		at.Place, at.Status, at.Steps = Begun, s.DB.StatusNow(&r), r.Steps
	}
	return nil
}

// isComplete reports whether a run is done, or was stopped by its own condition.
func isComplete(r *store.Run) bool { return r.Status == store.Done || r.Status == store.Stopped }

func (s *Study) lookInSpool(at *Standing, known []Submitted, states map[string]string) error {
	i := slices.IndexFunc(known, func(j Submitted) bool { return j.Until == "" && j.RID == at.Run.RID })
	if i < 0 {
		return nil
	}
	if state := states[known[i].Number]; state != "" {
		at.Place, at.Number, at.State = Queued, known[i].Number, state
		return nil
	}
	st, err := s.Spool.State(known[i].ID)
	if err == nil && st.Finished() {
		at.Place = Published
	}
	return err
}

// waitPause is the time between two looks at the jobs.
const waitPause = 2 * time.Second

// Wait waits until Slurm has no more jobs of the study.
func (s *Study) Wait(ctx context.Context) error {
	for {
		left, err := s.left(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil || left == 0:
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(waitPause):
		}
	}
}

// left returns the number of jobs of the study that Slurm has.
func (s *Study) left(ctx context.Context) (n int, err error) {
	states, err := Slurm{}.States(ctx)
	if err != nil {
		return 0, err
	}
	known, err := s.Spool.Submitted()
	for _, j := range known {
		mine := slices.ContainsFunc(s.Plans, func(p *plan.Run) bool { return p.RID == j.RID })
		if mine && states[j.Number] != "" {
			n++
		}
	}
	return n, err
}

// Loss is a job that gave no result.
type Loss struct {
	Job Submitted
	Why string
}

// Losses returns the jobs of runs that the store lacks, except runs that it had begun before. got is
// what was collected last.
func (s *Study) Losses(ctx context.Context, before []Standing, got *Collected) ([]Loss, error) {
	known, err := s.Spool.Submitted()
	if err != nil {
		return nil, err
	}
	var list []Loss
	for _, at := range before {
		if at.Place == Begun {
			continue
		}
		if r, err := s.DB.Run(ctx, at.Run.RID); err == nil && isComplete(&r) {
			continue
		}
		for _, j := range known {
			if j.RID != at.Run.RID {
				continue
			}
			st, err := s.Spool.State(j.ID)
			if err != nil {
				return nil, err
			}
			switch {
			case !st.Finished() || st.Number != j.Number:
				list = append(list, Loss{j, s.Spool.fate(j, st)})
			case j.Until == "":
				list = append(list, Loss{j, got.why(j.ID)})
			}
		}
	}
	return list, nil
}

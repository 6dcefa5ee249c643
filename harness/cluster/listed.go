package cluster

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
)

// Listed is a job of a spool with its present state.
type Listed struct {
	Job  Submitted
	Said State // its own account
	// State is the batch system's while it has the job, then what the job said last; "lost" if the job
	// never ended.
	State string
	Text  string // why
}

// Exists reports whether the directory is a spool.
func (s Spool) Exists() bool {
	_, err := os.Stat(s.Path(submittedFolder))
	return err == nil
}

// Jobs returns the jobs of a spool. If one of them is Slurm's, it asks Slurm.
func (s Spool) Jobs(ctx context.Context) ([]Listed, error) {
	jobs, err := s.Submitted()
	if err != nil {
		return nil, err
	}
	var states map[string]string
	if slices.ContainsFunc(jobs, Submitted.OnSlurm) {
		if states, err = (Slurm{}).States(ctx); err != nil {
			return nil, err
		}
	}
	var list []Listed
	for _, j := range jobs {
		st, err := s.State(j.ID)
		if err != nil {
			return nil, err
		}
		l := Listed{Job: j, Said: st, State: states[j.Number], Text: st.Text}
		switch {
		case l.State != "":
		case st.Number == j.Number && st.ended():
			l.State = st.Status
		case !j.OnSlurm():
			l.State = cmp.Or(st.Status, "submitted")
		default:
			l.State, l.Text = "lost", s.fate(j, st)
		}
		list = append(list, l)
	}
	return list, nil
}

// fate says what became of a job that the batch system no longer knows.
func (s Spool) fate(j Submitted, st State) string {
	switch {
	case st.Number != j.Number:
		return "never started: it was cancelled, a job that it needs failed, or its node does not see " + s.Dir
	case st.Text != "":
		return st.Text
	}
	return fmt.Sprintf("ended on %s without saying why", st.Host)
}

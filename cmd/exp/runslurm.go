package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"exp/cmd/exp/cli"
	"exp/experiments/quantity"
	"exp/experiments/store"
	"exp/harness/cluster"
	"exp/harness/config"
	"exp/harness/plan"
)

// runSlurm submits the runs that are missing, or prints the scripts.
func (a *app) runSlurm(c *cli.Context, configs []*config.Resolved, seeds []int64) error {
	s, err := a.openSpoolStudy(c, configs, seeds)
	if err != nil {
		return err
	}
	defer s.close()
	if c.Bool("dry-run") {
		return s.printScripts()
	}
	return s.submit()
}

// printScripts prints the scripts of all runs that the store lacks.
func (s *spoolStudy) printScripts() error {
	missing, err := s.missing(nil)
	if err != nil {
		return err
	}
	if len(missing) == 0 && len(s.begun) > 0 {
		return s.beginners()
	}
	for _, line := range append(s.present, s.begun...) {
		s.Note("%s", line)
	}
	list, err := s.list(missing)
	if err != nil {
		return err
	}
	program, err := programPath()
	if err != nil {
		return err
	}
	sub := &cluster.Submission{Spool: s.spool, Program: program, Batches: cluster.Batches(list, s.entries(list))}
	texts, err := sub.Scripts()
	if err != nil {
		return err
	}
	var b strings.Builder
	for i, batch := range sub.Batches {
		fmt.Fprintf(&b, "# %d. %s", i+1, quantity.Plural(len(batch.Entries), "job"))
		for _, n := range batch.After {
			fmt.Fprintf(&b, ", after %d succeeded", n+1)
		}
		b.WriteString(":\n")
		for task, e := range batch.Entries {
			fmt.Fprintf(&b, "#   %d  %s\n", task, e.Name)
		}
		b.WriteString(texts[i])
	}
	return s.Out.PrintDocument(cli.Document{Schema: "exp.slurm/1", Data: map[string]any{"scripts": texts},
		Human: func(w io.Writer) error { _, err := io.WriteString(w, b.String()); return err }})
}

func (s *spoolStudy) submit() error {
	ctx := s.c.Context
	states, err := cluster.Slurm{}.States(ctx) // before anything is written: Slurm may be missing
	if err != nil {
		return err
	}
	if err := s.makeSpool(); err != nil {
		return err
	}
	if err := s.collectEarlier(ctx); err != nil {
		return err
	}
	missing, err := s.missing(states)
	if err != nil {
		return err
	}
	for _, line := range s.present {
		s.Note("%s", line)
	}
	if len(missing) == 0 && len(s.begun) > 0 {
		return s.beginners()
	}
	for _, line := range s.begun {
		s.Warn("%s; finish it here (exp run without --on)", line)
	}
	numbers := []string{}
	if len(missing) > 0 {
		if numbers, err = s.submitMissing(missing); err != nil {
			return err
		}
	}
	if s.c.Bool("wait") {
		return s.wait()
	}
	return s.Out.PrintText("exp.submitted/1", map[string]any{"jobs": numbers, "runs": len(missing)},
		"%s submitted; exp jobs %s shows them, exp collect %s brings the results here\n",
		quantity.Plural(len(missing), "run"), s.spool.Dir, s.spool.Dir)
}

func (s *spoolStudy) submitMissing(missing []*plan.Run) (numbers []string, err error) {
	list, err := s.list(missing)
	if err != nil {
		return nil, err
	}
	program, err := s.provide(missing)
	if err != nil {
		return nil, err
	}
	sub := &cluster.Submission{Spool: s.spool, Program: program, Batches: cluster.Batches(list, s.entries(list))}
	numbers, err = sub.Submit(s.c.Context)
	for i, number := range numbers {
		b := sub.Batches[i]
		s.Note("job %s  %s, %s", number, b.Name, quantity.Plural(len(b.Entries), "task"))
	}
	return numbers, err
}

// waitPause is the time between two looks at the jobs.
const waitPause = 2 * time.Second

// wait waits until Slurm has none of the runs any more, and collects them.
func (s *spoolStudy) wait() error {
	ctx := s.c.Context
	s.Note("waiting for the jobs; Ctrl-C only ends the waiting")
	for {
		left, err := s.left()
		if err != nil && ctx.Err() == nil {
			return err
		}
		if left == 0 && ctx.Err() == nil {
			break
		}
		select {
		case <-ctx.Done():
			return cli.Stoppedf(ctx, "the jobs go on; exp collect %s brings the results here", s.spool.Dir)
		case <-time.After(waitPause):
		}
	}
	if err := s.collectNew(ctx); err != nil {
		return err
	}
	return s.results()
}

// left returns the number of runs that are with Slurm.
func (s *spoolStudy) left() (n int, err error) {
	states, err := cluster.Slurm{}.States(s.c.Context)
	if err != nil {
		return 0, err
	}
	known, err := s.spool.Submitted()
	for _, j := range known {
		mine := slices.ContainsFunc(s.plans, func(p *plan.Run) bool { return p.RID == j.RID })
		if mine && states[j.Number] != "" {
			n++
		}
	}
	return n, err
}

// results says what became of each run.
func (s *spoolStudy) results() error {
	ctx := context.WithoutCancel(s.c.Context)
	known, err := s.spool.Submitted()
	if err != nil {
		return err
	}
	var missing []string
	for _, p := range s.plans {
		begun := func(text string) bool { return strings.HasPrefix(text, nameOf(p)+"  ") }
		if slices.ContainsFunc(s.begun, begun) {
			continue
		}
		if run, err := s.db.Run(ctx, p.RID); err == nil && (run.Status == store.Done || run.Status == store.Stopped) {
			continue
		}
		for _, j := range known {
			if j.RID != p.RID {
				continue
			}
			st, err := s.spool.State(j.ID)
			if err != nil {
				return err
			}
			switch {
			case !st.Finished() || st.Number != j.Number:
				missing = append(missing, j.Name+": "+fateText(s.spool, j, st))
			case j.Until == "":
				missing = append(missing, j.Name+": "+s.uncollected(j))
			}
		}
	}
	if len(missing) > 0 || len(s.begun) > 0 {
		return cli.Failf(cli.ExitFailure, "%s gave no result:\n  %s",
			quantity.Plural(len(missing)+len(s.begun), "job"),
			strings.Join(append(missing, s.begun...), "\n  ")).
			Advise("the same command again submits only what is missing; logs are in " +
				filepath.Join(s.spool.Dir, "log"))
	}
	return s.Out.PrintText("exp.waited/1", map[string]any{"runs": len(s.plans)}, "%s done\n",
		quantity.Plural(len(s.plans), "run"))
}

// uncollected says why the store lacks a run that is done.
func (s *spoolStudy) uncollected(j cluster.Submitted) string {
	for _, u := range s.collected.Failed {
		if u.ID == j.ID {
			return u.Err.Error()
		}
	}
	for _, w := range s.collected.Waiting {
		if w.ID == j.ID {
			return w.Why()
		}
	}
	return waitingText
}

// fateText says what became of a job that the batch system does not know any more.
func fateText(spool cluster.Spool, j cluster.Submitted, st cluster.State) string {
	switch {
	case st.Number != j.Number:
		return "never started: it was cancelled, a job that it needs failed, or its node does not see " + spool.Dir
	case st.Text != "":
		return st.Text
	}
	return fmt.Sprintf("ended on %s without a word", st.Host)
}

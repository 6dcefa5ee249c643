package main

import (
	"fmt"
	"io"
	"strings"

	"exp/cmd/exp/cli"
	"exp/experiments/quantity"
	"exp/harness/cluster"
	"exp/harness/config"
	"exp/harness/plan"
)

// runSlurm submits the runs that are missing, or prints the scripts.
func (a *app) runSlurm(c *cli.Context, configs []*config.Resolved, seeds []int64) error {
	if err := a.checkRankJobs(c, configs); err != nil {
		return err
	}
	s, err := a.openSpoolStudy(c, configs, seeds)
	if err != nil {
		return err
	}
	defer s.close()
	if n := c.Int("ranks"); n > 1 {
		s.study.Ranks, s.study.RankTimeout = n, c.String("rank-timeout")
	}
	if c.Bool("dry-run") {
		return s.printScripts()
	}
	return s.submit()
}

// checkRankJobs returns an error if jobs of --ranks cannot compute the configurations. What the nodes
// need is checked there.
func (a *app) checkRankJobs(c *cli.Context, configs []*config.Resolved) error {
	n := c.Int("ranks")
	if err := a.ranksFit(configs, n); err != nil || n == 1 {
		return err
	}
	for _, r := range configs {
		if err := cluster.CheckRanks(&r.Run, n); err != nil {
			return err
		}
	}
	_, err := a.rankTimeout(c)
	return err
}

// printScripts prints the scripts of all runs that the store lacks.
func (s *spoolStudy) printScripts() error {
	missing, err := s.missing(nil)
	if err != nil {
		return err
	}
	if err := s.onlyBegun(missing); err != nil {
		return err
	}
	s.notePresent()
	sub, err := s.study.Submission(s.c.Context, missing)
	if err != nil {
		return err
	}
	texts, err := sub.Scripts()
	if err != nil {
		return err
	}
	return s.Out.PrintDocument(cli.Document{Schema: "exp.slurm/1", Data: map[string]any{"scripts": texts},
		Human: func(w io.Writer) error { return writeScripts(w, sub.Batches, texts) }})
}

// writeScripts writes the script of each batch below its jobs.
func writeScripts(w io.Writer, batches []cluster.Batch, texts []string) error {
	var b strings.Builder
	for i, batch := range batches {
		fmt.Fprintf(&b, "# %d. %s", i+1, quantity.Plural(len(batch.Entries), "job"))
		if batch.Ranks > 0 {
			fmt.Fprintf(&b, " of %d ranks", batch.Ranks)
		}
		for _, n := range batch.After {
			fmt.Fprintf(&b, ", after %d succeeded", n+1)
		}
		b.WriteString(":\n")
		for task, e := range batch.Entries {
			fmt.Fprintf(&b, "#   %d  %s\n", task, e.Name)
		}
		b.WriteString(texts[i])
	}
	_, err := io.WriteString(w, b.String())
	return err
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
	for _, line := range s.present() {
		s.Note("%s", line)
	}
	if err := s.onlyBegun(missing); err != nil {
		return err
	}
	for _, line := range s.begun() {
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
	dir := s.study.Spool.Dir
	return s.Out.PrintText("exp.submitted/1", map[string]any{"jobs": numbers, "runs": len(missing)},
		"%s submitted; exp jobs %s shows them, exp collect %s brings the results here\n",
		quantity.Plural(len(missing), "run"), dir, dir)
}

func (s *spoolStudy) submitMissing(missing []*plan.Run) ([]string, error) {
	sub, numbers, err := s.study.Submit(s.c.Context, missing)
	for i, number := range numbers {
		b := sub.Batches[i]
		s.Note("job %s  %s, %s", number, b.Name, quantity.Plural(len(b.Entries), "task"))
	}
	return numbers, err
}

// wait waits until Slurm has no more jobs of the study, and collects them.
func (s *spoolStudy) wait() error {
	ctx := s.c.Context
	s.Note("waiting for the jobs; Ctrl-C only ends the waiting")
	err := s.study.Wait(ctx)
	switch {
	case ctx.Err() != nil:
		return cli.Stoppedf(ctx, "the jobs go on; exp collect %s brings the results here", s.study.Spool.Dir)
	case err != nil:
		return err
	}
	if err := s.collectNew(ctx); err != nil {
		return err
	}
	return s.results()
}

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
	"exp/experiments/quantity"
	"exp/experiments/recorded"
	"exp/experiments/store"
	"exp/harness/audit"
)

// auditRun audits the completions of a run: exp grade --audit RUN.
func (a *app) auditRun(c *cli.Context, db *store.DB) error {
	for _, flag := range []string{"in", "out", "strict", "tokenizer"} {
		if c.IsSet(flag) {
			return a.Usagef("--audit grades what a run recorded; --%s is for a file", flag)
		}
	}
	run, err := a.oneRun(c.Context, db, c.String("audit"))
	if err != nil {
		return err
	}
	if run.Task != "math" {
		return cli.Failf(cli.ExitUsage, "run %s is of %s: %w", run.RID.Short(), run.Task, audit.ErrNoMathematics)
	}
	o := audit.Options{Scope: recorded.TrainSuite, Graders: audit.GradersOf(c.Context, db, run)}
	if g := c.String("grader"); c.IsSet("grader") && !slices.Contains(o.Graders, g) {
		o.Graders = append(o.Graders, g)
	}
	report, err := audit.Run(c.Context, db, run, o)
	if err == nil && report.Completions == 0 {
		o.Scope = "eval"
		report, err = audit.Run(c.Context, db, run, o)
	}
	switch {
	case errors.Is(err, context.Canceled):
		return cli.Stoppedf(c.Context, "the audit stopped")
	case err != nil:
		return err
	case report.Completions == 0:
		f := cli.Failf(cli.ExitNotFound, "run %s has no completions with a text", run.RID.Short())
		f.Help = "store.samples.train and store.samples.eval set how many are kept"
		return f
	}
	a.noteAudit(report, o)
	return a.Out.PrintTable(auditTable(report, a.Out.Stream.Unicode))
}

// noteAudit says how much was audited, and how, and what was left out.
func (a *app) noteAudit(r *audit.Report, o audit.Options) {
	a.Note("%d of %d completions (%.1f %%) deserve a look; %d are right by the recorded verdicts", r.Suspicious,
		r.Completions, 100*float64(r.Suspicious)/float64(r.Completions), r.Right)
	if r.Changed > 0 {
		a.Note("the same grader judges %d of them otherwise today (cause: changed)", r.Changed)
	}
	if r.NoVerdict > 0 {
		a.Note("judged by our grader, without a recorded verdict: %s", quantity.Plural(r.NoVerdict, "completion"))
	}
	if r.NotGraded > 0 {
		a.Note("left out, not graded: %s", quantity.Plural(r.NotGraded, "completion"))
	}
	if o.Scope != recorded.TrainSuite {
		a.Note("they are of the evaluations: no completions of training are recorded")
	}
	if r.NotKept > 0 {
		a.Note("left out, without a text: %s", quantity.Plural(r.NotKept, "completion"))
	}
	if r.NoGold > 0 {
		a.Note("left out, of problems that are not recorded: %s", quantity.Plural(r.NoGold, "completion"))
	}
	if len(o.Graders) < 2 {
		a.Note("--grader NAME adds the completions where another grader disagrees")
	}
}

// auditTable has one row for each cluster, the largest first.
func auditTable(r *audit.Report, unicode bool) cli.Table {
	t := cli.Table{Schema: "exp.grade.audit/1", Columns: []cli.Column{
		{Key: "cause"}, {Key: "form", Min: 16, Rank: 2}, {Key: "completions", Title: "n"},
		{Key: "share", Digits: 4},
		{Key: "by_step", Title: "over steps", Text: func(v any) string {
			var shares []float64
			for _, b := range v.([]auditBin) {
				shares = append(shares, b.Share)
			}
			return term.Spark(shares, len(shares), unicode)
		}},
		{Key: "first_step", Title: "from", Drop: 2}, {Key: "last_step", Title: "to", Drop: 2},
		{Key: "graders", Min: 12, Rank: 1}, {Key: "gold", Min: 8, Rank: 1}, {Key: "example", Min: 16, Rank: 3},
		{Key: "item", Drop: 1}, {Key: "k", Drop: 1}, {Key: "step", Drop: 3}, {Key: "reason", Wide: true},
	}}
	for _, c := range r.Clusters {
		var byStep []auditBin
		for i, share := range r.Share(c) {
			byStep = append(byStep, auditBin{r.Bins[i].First, r.Bins[i].Last, c.ByBin[i], share})
		}
		var graders any
		if len(c.Accepted) > 0 {
			graders = fmt.Sprintf("%s, not %s", strings.Join(c.Accepted, ", "), strings.Join(c.Refused, ", "))
		}
		e := c.Example
		t.Rows = append(t.Rows, []any{string(c.Cause), c.Form, c.Completions,
			float64(c.Completions) / float64(r.Completions), byStep, c.First, c.Last, graders, e.Gold, e.Answer,
			e.Item, e.Sample, e.Step, e.Reason})
	}
	return t
}

// auditBin is a cluster's share of the completions in a range of steps.
type auditBin struct {
	First       int64   `json:"first"`
	Last        int64   `json:"last"`
	Completions int     `json:"completions"`
	Share       float64 `json:"share"`
}

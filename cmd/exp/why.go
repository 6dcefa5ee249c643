package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
	"exp/experiments/ident"
	"exp/experiments/quantity"
	"exp/experiments/store"
	"exp/harness/explain"
)

func whyCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "why",
		Category:  "Results",
		Usage:     "explain why stages of a run were executed instead of reused",
		ArgsUsage: "RUN [STAGE]",
		Description: "Compares each stage with the nearest earlier one of its kind, in any run, and says what " +
			"differs: parameters, inputs, code, numerics class or seed. STAGE is train, eval.gen or, for one " +
			"suite, eval.gen[test]. Of a run that failed or was stopped by its condition it first says why.",
		UsageText: strings.Join([]string{
			"exp why @last # every stage",
			"exp why @last train # what made it train again",
			"exp why @last 'eval.score[test]' --json # for programs",
		}, "\n"),
		BashComplete: a.completesRuns(1, true, nil),
		Action: cli.WithArgs(1, 2, func(c *cli.Context, args []string) error {
			stage := ""
			if len(args) == 2 {
				stage = args[1]
				kind, _, _ := strings.Cut(stage, "[")
				if _, err := cli.OneOf("STAGE", kind, stageNames()); err != nil {
					return err
				}
			}
			return cli.With(a.OpenStore, func(db *store.DB) error { return a.why(c, db, args[0], stage) })
		}),
	}
}

func (a *app) why(c *cli.Context, db *store.DB, ref, stage string) error {
	run, err := a.oneRun(c.Context, db, ref)
	if err != nil {
		return err
	}
	e, err := explain.OfRun(c.Context, db, run, stage)
	if errors.Is(err, explain.ErrNoStage) {
		return cli.Failf(cli.ExitNotFound, "run %s has no stage %s", run.RID.Short(), cmp.Or(stage, "yet")).
			Advise("exp show " + run.RID.Short() + " lists its stages")
	}
	if err != nil {
		return err
	}
	return a.Out.PrintDocument(cli.Document{Schema: "exp.why/1", Data: e, Human: func(w io.Writer) error {
		p := &whyPage{Page: a.Out.NewPage(w), e: e, now: a.Clock.Now()}
		return errors.Join(p.write(), p.Close())
	}})
}

// whyPage writes the explanation for people.
type whyPage struct {
	*cli.Page
	e   *explain.Run
	now time.Time
}

func (p *whyPage) write() error {
	if p.e.Reason != "" {
		first, _, _ := strings.Cut(p.e.Reason, "\n") // the rest may be a stack
		p.Line("not finished: %s", term.Clean(first))
	}
	for _, s := range p.e.Stages {
		p.Heading(s.Name)
		p.Line("%s", p.verdict(s))
		var rows [][]any
		for _, r := range s.Reasons {
			rows = append(rows, []any{string(r.What), r.Name, reasonText(r.Old), reasonText(r.New), madeBy(r)})
		}
		if len(rows) == 0 {
			continue
		}
		columns := []cli.Column{{Title: "what"}, {Title: "which", Rank: 1, Min: 12}, {Title: "then", Rank: 2, Min: 8},
			{Title: "now", Rank: 2, Min: 8}, {Title: ""}}
		if err := p.Table(columns, rows); err != nil {
			return err
		}
	}
	return nil
}

func madeBy(r explain.Reason) string {
	if r.By == "" {
		return ""
	}
	return "made by " + r.By
}

// reasonText formats one of the two values of a reason; digests are shortened, also inside
// parameters.
func reasonText(v any) string {
	switch v := v.(type) {
	case ident.Digest:
		return v.Short()
	case string:
		if len(v) == 2*len(ident.Digest{}) {
			return v[:8]
		}
	}
	return valueText(v)
}

// verdict explains a stage in one line.
func (p *whyPage) verdict(s explain.Stage) string {
	switch {
	case s.Status == store.Cached && s.Nearest.Run == p.e.Run:
		return "cached: this run had done it before"
	case s.Status == store.Cached:
		return fmt.Sprintf("cached: reused from run %s (%s)", s.Nearest.Run.Short(), s.Nearest.Name)
	case s.Miss == explain.First:
		return "executed: the first stage of its kind"
	case s.Miss == explain.Again:
		return fmt.Sprintf("executed again although run %s had done the same: "+
			"with --no-cache, or because its files were missing", s.Nearest.Run.Short())
	}
	var kinds []string
	for _, r := range s.Reasons {
		kinds = append(kinds, string(r.What))
	}
	slices.SortFunc(kinds, cmp.Compare)
	return fmt.Sprintf("executed: different %s than in the nearest earlier run, %s (%s), %s ago",
		strings.Join(slices.Compact(kinds), ", "), s.Nearest.Run.Short(), term.Clean(s.Nearest.Name),
		quantity.Ago(p.now, s.Nearest.Started))
}

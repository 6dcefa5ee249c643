package main

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"

	"exp/cmd/exp/cli"
	"exp/experiments/recorded"
	"exp/experiments/store"
)

// problemsShown is how many problems people see by default.
const problemsShown = 20

func problemsCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "problems",
		Category:  "Results",
		Usage:     "list training problems with their pass rates before training",
		ArgsUsage: "RUN",
		Description: "Lists the training problems of a run whose pass rates were measured or read " +
			"(data.pass_rate), in the order of the data, with what became of the completions sampled for each " +
			"and whether the run trained on it. exp show has the histogram.",
		UsageText: strings.Join([]string{
			"exp problems @last # the first ones",
			"exp problems @last --left-out --sort rate # what training did not see, the hardest first",
			"exp problems @last --kept -o csv > kept.csv # for other programs",
		}, "\n"),
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "kept", Usage: "only problems that the run trains on"},
			&cli.BoolFlag{Name: "left-out", Usage: "only the others"},
			&cli.StringFlag{Name: "sort", Usage: "order by `WHAT`: data or rate", DefaultText: "data", Value: "data"},
			&cli.IntFlag{Name: "limit", Aliases: []string{"n"}, Usage: "show at most `N`, 0 for all",
				DefaultText: "20 for people, else all"},
			&cli.BoolFlag{Name: "all", Usage: "show all"},
		},
		BashComplete: a.completesRuns(1, true, func(_ context.Context, _ *store.DB, w cli.Word) []cli.Candidate {
			if w.Flag == "sort" {
				return cli.Candidates([]string{"data", "rate"})
			}
			return nil
		}),
		Action: a.reads(1, 1, a.ofRun(a.problems)),
	}
}

func (a *app) problems(c *cli.Context, db *store.DB, run store.Run) error {
	limit, err := a.rowLimitOf(c, problemsShown)
	if err != nil {
		return err
	}
	if c.Bool("kept") && c.Bool("left-out") {
		return a.Usagef("--kept and --left-out exclude each other")
	}
	order, err := cli.OneOf("--sort", c.String("sort"), []string{"data", "rate"})
	if err != nil {
		return err
	}
	stages, err := db.Stages(c.Context, run.ID)
	if err != nil {
		return err
	}
	list, err := recorded.RatedProblems(db, stages)
	if errors.Is(err, recorded.ErrNotRated) {
		return cli.Failf(cli.ExitNotFound, "run %s has no pass rates of its training problems", run.RID.Short()).
			Advise("data.pass_rate.samples measures them: exp config explain data.pass_rate.samples")
	}
	if err != nil {
		return err
	}
	if c.Bool("kept") || c.Bool("left-out") {
		want := c.Bool("kept")
		list = slices.DeleteFunc(list, func(p recorded.RatedProblem) bool { return p.Kept == nil || *p.Kept != want })
	}
	if order == "rate" {
		slices.SortStableFunc(list, func(x, y recorded.RatedProblem) int {
			return compareRates(x.Rate, y.Rate)
		})
	}
	if n := int(limit); n > 0 && n < len(list) {
		list = list[:n]
		defer a.Note("there are more; --all shows all") // below the table
	}
	return a.Out.PrintTable(a.problemTable(list))
}

// compareRates orders rates, unknown ones last.
func compareRates(x, y *float64) int {
	of := func(r *float64) float64 {
		if r == nil {
			return math.Inf(1)
		}
		return *r
	}
	switch {
	case of(x) < of(y):
		return -1
	case of(x) > of(y):
		return 1
	}
	return 0
}

func (a *app) problemTable(list []recorded.RatedProblem) cli.Table {
	sampled := slices.ContainsFunc(list, func(p recorded.RatedProblem) bool { return p.Samples > 0 })
	scored := slices.ContainsFunc(list, func(p recorded.RatedProblem) bool { return p.Score != nil })
	mixed := slices.ContainsFunc(list, func(p recorded.RatedProblem) bool { return p.Kind != "" })
	t := cli.Table{Schema: "exp.problems/1", Columns: []cli.Column{
		{Key: "problem", ID: true}, {Key: "kind", Wide: !mixed},
		{Key: "pass_rate", Title: "pass rate", Digits: 3}, {Key: "kept"},
		{Key: "correct", Wide: !sampled}, {Key: "graded", Wide: !sampled}, {Key: "samples", Wide: true},
		{Key: "truncated", Wide: !sampled}, {Key: "tokens", Wide: !sampled},
		{Key: "score", Digits: 3, Wide: !scored}, {Key: "answer", Wide: true}, {Key: "prompt", Rank: 1, Min: 16},
	}}
	for _, p := range list {
		var rate, score, kept any
		if p.Rate != nil {
			rate = *p.Rate
		}
		if p.Score != nil {
			score = *p.Score
		}
		if p.Kept != nil {
			kept = *p.Kept
		}
		text := p.Prompt
		if a.Out.ForPeople() {
			text = visible(text)
		}
		t.Rows = append(t.Rows, []any{p.ID, p.Kind, rate, kept, p.Correct, p.Graded, p.Samples, p.Truncated, p.Tokens,
			score, p.Answer, text})
	}
	return t
}

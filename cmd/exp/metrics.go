package main

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"exp/cmd/exp/cli"
	"exp/experiments/quantity"
	"exp/experiments/spelling"
	"exp/experiments/store"
	"exp/harness/metric"
)

func metricsCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "metrics",
		Category:  "Results",
		Usage:     "print the metrics of runs step by step",
		ArgsUsage: "RUN...",
		Description: "For people, it prints one row per step and one column per metric, thinned out to fit the " +
			"screen; without -m, the few most telling metrics. For programs (-o csv, tsv, json, jsonl), it " +
			"prints one row per point, and every point of every metric unless flags select some.\n" +
			"In a GLOB, * matches any characters, ? one, [ab] one of a set. Names are verl's, such as " +
			"actor/entropy.\n" +
			"--explain describes all metrics, or the ones that the arguments name: metrics, GLOBs, or a run for " +
			"what it recorded.",
		UsageText: strings.Join([]string{
			"exp metrics @last # the newest run, step by step",
			"exp metrics @last --stage sft # the steps of fine-tuning, before training",
			"exp metrics @last --list # the recorded metrics, with smallest and largest values",
			"exp metrics @last -m 'actor/*' --steps 100:200 # some of them",
			"exp metrics countdown-flowrl -m critic/score/mean -o csv > reward.csv # all seeds, for a plot",
			"exp metrics @last -m actor/entropy --decimate 500 -o csv # for a plot 500 pixels wide; keeps every peak",
			"exp metrics --explain actor/ppo_kl # describe a metric",
			"exp metrics @last --explain # describe a run's metrics",
		}, "\n"),
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "metric", Aliases: []string{"m"},
				Usage: "only metrics that match `GLOB`; repeatable"},
			&cli.StringFlag{Name: "stage", Usage: "the steps of `STAGE`, " + strings.Join(curveStages(), " or ") +
				", once it has ended, in place of training's"},
			&cli.StringFlag{Name: "steps", Usage: "only steps `A:B`, inclusive; A: and :B are open"},
			&cli.IntFlag{Name: "every", Usage: "only steps divisible by `N`", DefaultText: "for people, what fits"},
			&cli.IntFlag{Name: "decimate", Usage: "one row for each of at most `N` spans of steps, with the " +
				"smallest and the largest value", DefaultText: "none"},
			&cli.BoolFlag{Name: "explain",
				Usage: "describe metrics: unit, title, definition, and which direction is better"},
			&cli.BoolFlag{Name: "list", Usage: "list the metrics with unit, last, smallest and largest value"},
		},
		BashComplete: a.completesRuns(0, false, func(ctx context.Context, db *store.DB, w cli.Word) []cli.Candidate {
			return a.metricCandidates(ctx, db, w)
		}),
		Action: func(c *cli.Context) error {
			if c.Bool("explain") {
				return a.explainMetrics(c)
			}
			return a.reads(1, -1, a.metrics)(c)
		},
	}
}

// screenSteps is the most steps in a table for people, unless --every is given.
const screenSteps = 40

// courseMetrics are the most telling metrics of a run.
func courseMetrics() []string {
	var names []string
	for _, m := range metric.ShownIn(metric.OverSteps) {
		names = append(names, m.Name)
	}
	return names
}

// runCurves are the curves of a run.
type runCurves struct {
	run    store.Run
	curves []store.Curve
}

func (a *app) metrics(c *cli.Context, db *store.DB, refs []string) error {
	from, to, err := parseSteps(c.String("steps"))
	if err != nil {
		return err
	}
	if c.IsSet("every") && c.Int("every") < 1 {
		return a.Usagef("--every %d: it must be at least 1", c.Int("every"))
	}
	if err := errors.Join(a.checkDecimate(c), a.checkStage(c)); err != nil {
		return err
	}
	runs, err := a.selectRuns(c.Context, db, a.finder(db), refs)
	if err != nil {
		return err
	}
	if c.IsSet("decimate") {
		return a.decimateMetrics(c, db, runs)
	}
	if c.Bool("list") {
		return a.listMetrics(c, db, runs)
	}
	var all []runCurves
	points := 0
	for _, r := range runs {
		curves, err := a.curvesOf(c, db, r, from, to)
		if err != nil {
			return err
		}
		for _, v := range curves {
			points += len(v.Steps)
		}
		all = append(all, runCurves{r, curves})
	}
	switch {
	case points == 0 && c.IsSet("stage"):
		return a.noStageMetrics(c, db, runs)
	case points == 0:
		return a.noMetrics(c, db, runs)
	}
	if a.Out.ForPeople() {
		return a.printMetricTable(all, c.Int("every"))
	}
	return a.Out.PrintTable(pointTable(all, int64(max(c.Int("every"), 1))))
}

// metricGlobs returns the selected metrics.
func (a *app) metricGlobs(c *cli.Context) []string {
	globs := c.StringSlice("metric")
	switch {
	case len(globs) > 0:
		return globs
	case a.Out.ForPeople() && !c.IsSet("stage"):
		return courseMetrics()
	}
	return []string{"*"}
}

// unitOf is the unit of a series, from the catalogue, else from the record.
func unitOf(s store.Series) string {
	if m, ok := metric.Find(s.Name); ok {
		return m.Unit
	}
	return s.Unit
}

// noMetrics says why there is nothing to print.
func (a *app) noMetrics(c *cli.Context, db *store.DB, runs []store.Run) error {
	for _, r := range runs {
		series, err := db.Series(c.Context, r.ID, "")
		if err != nil {
			return err
		}
		if len(series) == 0 {
			continue
		}
		f := cli.Failf(cli.ExitNotFound, "run %s has no matching point; it has %s", r.RID.Short(),
			quantity.Plural(int(r.Steps), "step"))
		f.Help = "exp metrics " + r.RID.Short() + " --list shows its metrics"
		var names []string
		for _, s := range series {
			names = append(names, s.Name)
		}
		for _, g := range c.StringSlice("metric") {
			matched, err := db.Series(c.Context, r.ID, g)
			if err != nil {
				return err
			}
			if s := spelling.Nearest(g, names); s != "" && len(matched) == 0 {
				f.Help = "did you mean " + s + "?"
			}
		}
		return f
	}
	f := cli.Failf(cli.ExitNotFound, "these runs have no recorded steps of training yet")
	for _, r := range runs {
		kind, err := stageWithCurve(c.Context, db, r)
		if err != nil {
			return err
		}
		if kind != "" {
			f.Help = "exp metrics " + r.RID.Short() + " --stage " + kind + " shows the steps of stage " + kind
		}
	}
	if len(runs) == 0 {
		f = cli.Failf(cli.ExitNotFound, "no run matches")
	}
	return f
}

// parseSteps reads A:B, A:, :B or A; empty is all.
func parseSteps(text string) (from, to int64, err error) {
	from, to = 0, store.AllSteps
	if text == "" {
		return from, to, nil
	}
	a, b, ranged := strings.Cut(text, ":")
	if !ranged {
		b = a
	}
	if a != "" {
		from, err = strconv.ParseInt(a, 10, 64)
	}
	if b != "" && err == nil {
		to, err = strconv.ParseInt(b, 10, 64)
	}
	if err != nil || from > to || from < 0 {
		return 0, 0, cli.Usagef("--steps %q is not a range of steps such as 100:200, 100: or :200", text)
	}
	return from, to, nil
}

// pointTable has one row per point, for programs.
func pointTable(all []runCurves, every int64) cli.Table {
	t := cli.Table{Schema: "exp.metrics/1", Columns: []cli.Column{{Key: "run"}, {Key: "name"}, {Key: "seed"},
		{Key: "metric"}, {Key: "step"}, {Key: "value"}}}
	for _, rc := range all {
		id := cli.HexID(rc.run.RID.String())
		for _, c := range rc.curves {
			for i, step := range c.Steps {
				if step%every == 0 {
					t.Rows = append(t.Rows, []any{id, rc.run.Name, rc.run.Seed, c.Name, step, c.Values[i]})
				}
			}
		}
	}
	return t
}

// listMetrics prints what metrics runs have.
func (a *app) listMetrics(c *cli.Context, db *store.DB, runs []store.Run) error {
	t := cli.Table{Schema: "exp.metrics.list/1", Columns: []cli.Column{
		{Key: "run", Wide: len(runs) == 1}, {Key: "metric", ID: true}, {Key: "unit"}, {Key: "points", Title: "n"},
		{Key: "last"},
		{Key: "last_step", Wide: true}, {Key: "min"}, {Key: "min_step", Title: "at"},
		{Key: "max"}, {Key: "max_step", Title: "at"},
		{Key: "deterministic", Wide: true},
	}}
	globs := c.StringSlice("metric")
	if len(globs) == 0 {
		globs = []string{"*"}
	}
	for _, r := range runs {
		for _, g := range globs {
			series, err := db.Series(c.Context, r.ID, g)
			if err != nil {
				return err
			}
			for _, s := range series {
				t.Rows = append(t.Rows, []any{cli.HexID(r.RID.String()), s.Name, unitOf(s), s.N, s.Last, s.LastStep,
					numberOrNil(s.Min), s.ArgMin, numberOrNil(s.Max), s.ArgMax, s.Det})
			}
		}
	}
	if len(t.Rows) == 0 {
		return a.noMetrics(c, db, runs)
	}
	return a.Out.PrintTable(t)
}

func numberOrNil(v float64) any {
	if math.IsNaN(v) {
		return nil
	}
	return v
}

// metricCandidates proposes the metrics of the run named before, or of the newest one.
func (a *app) metricCandidates(ctx context.Context, db *store.DB, w cli.Word) []cli.Candidate {
	if w.Flag != "metric" {
		return nil
	}
	ref := "@last"
	if len(w.Args) > 0 {
		ref = w.Args[0]
	}
	runs, err := a.finder(db).All(ctx, ref)
	if err != nil {
		return nil
	}
	series, err := db.Series(ctx, runs[0].ID, "")
	if err != nil {
		return nil
	}
	var list []cli.Candidate
	for _, s := range series {
		list = append(list, cli.Candidate{Text: s.Name, Note: unitOf(s)})
	}
	return list
}

// checkDecimate refuses a --decimate that makes no sense.
func (a *app) checkDecimate(c *cli.Context) error {
	if !c.IsSet("decimate") {
		return nil
	}
	if n := c.Int("decimate"); n < 1 {
		return a.Usagef("--decimate %d: it must be at least 1", n)
	}
	for _, other := range []string{"steps", "every", "list", "stage"} {
		if c.IsSet(other) {
			return a.Usagef("--decimate covers all steps of a metric; it does not go with --%s", other)
		}
	}
	return nil
}

// decimateMetrics prints the range of metrics over at most N equal spans of steps: all
// that a display of N pixels can show.
func (a *app) decimateMetrics(c *cli.Context, db *store.DB, runs []store.Run) error {
	t := cli.Table{Schema: "exp.metrics.decimated/1",
		Columns: []cli.Column{{Key: "run"}, {Key: "name", Wide: len(runs) == 1}, {Key: "seed", Wide: len(runs) == 1},
			{Key: "metric"}, {Key: "from"}, {Key: "to"}, {Key: "points", Title: "n"}, {Key: "min"},
			{Key: "max"}}}
	t.Columns[0].Wide = len(runs) == 1
	for _, r := range runs {
		var names []string
		for _, g := range a.metricGlobs(c) {
			series, err := db.Series(c.Context, r.ID, g)
			if err != nil {
				return err
			}
			for _, s := range series {
				if !slices.Contains(names, s.Name) {
					names = append(names, s.Name)
				}
			}
		}
		for _, name := range names {
			buckets, err := db.Overview(c.Context, r.ID, name, int64(c.Int("decimate")))
			if err != nil {
				return err
			}
			for _, b := range buckets {
				t.Rows = append(t.Rows, []any{cli.HexID(r.RID.String()), r.Name, r.Seed, name, b.From, b.To, b.N,
					numberOrNil(b.Min), numberOrNil(b.Max)})
			}
		}
	}
	if len(t.Rows) == 0 {
		return a.noMetrics(c, db, runs)
	}
	return a.Out.PrintTable(t)
}

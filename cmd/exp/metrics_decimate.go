package main

import (
	"slices"

	"exp/cmd/exp/cli"
	"exp/experiments/store"
)

// checkDecimate refuses a --decimate that means nothing.
func (a *app) checkDecimate(c *cli.Context) error {
	if !c.IsSet("decimate") {
		return nil
	}
	if n := c.Int("decimate"); n < 1 {
		return a.Usagef("--decimate %d: it must be at least 1", n)
	}
	for _, other := range []string{"steps", "every", "list"} {
		if c.IsSet(other) {
			return a.Usagef("--decimate looks at all steps of a metric, and not together with --%s", other)
		}
	}
	return nil
}

// decimateMetrics prints the extent of metrics over at most N spans of equal numbers of
// steps, which is all that a display of N pixels can show.
func (a *app) decimateMetrics(c *cli.Context, db *store.DB, runs []store.Run) error {
	t := cli.Table{Schema: "exp.metrics.decimated/1", Columns: []cli.Column{{Key: "run"}, {Key: "name", Wide: len(runs) == 1}, {Key: "seed", Wide: len(runs) == 1},
		{Key: "metric"}, {Key: "from"}, {Key: "to"}, {Key: "points", Title: "n"}, {Key: "min", Title: "least"}, {Key: "max", Title: "most"}}}
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
				t.Rows = append(t.Rows, []any{cli.HexID(r.RID.String()), r.Name, r.Seed, name, b.From, b.To, b.N, numberOrNil(b.Min), numberOrNil(b.Max)})
			}
		}
	}
	if len(t.Rows) == 0 {
		return a.noMetrics(c, db, runs)
	}
	return a.Out.PrintTable(t)
}

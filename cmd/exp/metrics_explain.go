package main

import (
	"context"
	"path"
	"strings"

	"exp/cmd/exp/cli"
	"exp/experiments/spelling"
	"exp/experiments/store"
	"exp/harness/metric"
)

// explainMetrics prints the catalogue, or its entries for the matching metrics.
func (a *app) explainMetrics(c *cli.Context) error {
	for _, flag := range []string{"metric", "steps", "every", "decimate", "list"} {
		if c.IsSet(flag) {
			return a.Usagef("--explain describes metrics; it does not go with --%s", flag)
		}
	}
	list := metric.All()
	if names := c.Args().Slice(); len(names) > 0 {
		list = nil
		for _, name := range names {
			found, err := describedBy(name)
			if err != nil {
				found, err = a.describedOf(c.Context, name, err)
			}
			if err != nil {
				return err
			}
			list = append(list, found...)
		}
	}
	if len(list) == 1 && a.Out.ForPeople() {
		p := a.Out.NewPage(a.Out.W)
		writeMetric(p, list[0])
		return p.Close()
	}
	return a.Out.PrintTable(catalogueTable(list))
}

// describedBy finds metrics by a recorded name, or by a glob over the catalogue's names.
func describedBy(name string) ([]metric.Metric, error) {
	if m, ok := metric.Find(name); ok {
		return []metric.Metric{m}, nil
	}
	var list []metric.Metric
	var names []string
	flat := func(s string) string { return strings.ReplaceAll(s, "/", "\x00") } // a * crosses slashes, as in -m
	for _, m := range metric.All() {
		names = append(names, m.Name)
		switch ok, err := path.Match(flat(name), flat(m.Name)); {
		case err != nil:
			return nil, cli.Usagef("%q is not a valid GLOB: %w", name, err)
		case ok:
			list = append(list, m)
		}
	}
	if len(list) > 0 {
		return list, nil
	}
	f := cli.Failf(cli.ExitNotFound, "no metric is called %s", name)
	f.Help = "exp metrics --explain lists all"
	if s := spelling.Nearest(name, names); s != "" {
		f.Help = "did you mean " + s + "?"
	}
	return nil, f
}

// describedOf finds the metrics that the run of a reference recorded. If no run has that name, the error is unknown;
// but no metric begins with @, so such a reference gets the error of looking for its run.
func (a *app) describedOf(ctx context.Context, ref string, unknown error) (list []metric.Metric, err error) {
	err = cli.With(a.OpenStore, func(db *store.DB) error {
		run, err := a.oneRun(ctx, db, ref)
		if err != nil {
			return err
		}
		series, err := db.Series(ctx, run.ID, "")
		for _, s := range series {
			if m, ok := metric.Find(s.Name); ok {
				list = append(list, m)
			}
		}
		return err
	})
	if err != nil && !strings.HasPrefix(ref, "@") {
		return nil, unknown
	}
	return list, err
}

// writeMetric writes the catalogue's entry of one metric.
func writeMetric(p *cli.Page, m metric.Metric) {
	better := map[string]string{"up": "higher", "down": "lower"}[string(m.Direction)]
	p.Heading(m.Name)
	p.Facts(cli.Fact{Name: "title", Text: m.Title}, cli.Fact{Name: "is", Text: m.Definition},
		cli.Fact{Name: "unit", Text: m.Counts()}, cli.Fact{Name: "better", Text: better},
		cli.Fact{Name: "heading", Text: m.Heading}, cli.Fact{Name: "axis", Text: m.Axis.Label},
		cli.Fact{Name: "scale", Text: m.Scale()},
		cli.Fact{Name: "shown in", Text: strings.Join(m.Shown.Places(), ", ")},
		cli.Fact{Name: "why absent", Text: m.Absent})
}

// catalogueTable has a row per metric.
func catalogueTable(list []metric.Metric) cli.Table {
	t := cli.Table{Schema: "exp.metrics.explain/1", Columns: []cli.Column{
		{Key: "metric", ID: true}, {Key: "unit"}, {Key: "per", Wide: true}, {Key: "title", Wide: true},
		{Key: "heading", Wide: true}, {Key: "direction", Title: "better"}, {Key: "axis", Wide: true},
		{Key: "scale", Wide: true}, {Key: "shown", Wide: true}, {Key: "absent", Wide: true},
		{Key: "definition", Rank: 1, Min: 24, Wrap: true}}}
	for _, m := range list {
		t.Rows = append(t.Rows, []any{m.Name, m.Unit, m.Per, m.Title, m.Heading, string(m.Direction),
			m.Axis.Label, m.Scale(), strings.Join(m.Shown.Places(), ", "), m.Absent, m.Definition})
	}
	return t
}

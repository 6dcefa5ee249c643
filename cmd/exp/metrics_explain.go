package main

import (
	"path"
	"strings"

	"github.com/urfave/cli/v2"

	"exp/harness/metric"
)

// explainMetrics prints the catalogue, or what it says of the metrics that names match.
func (a *app) explainMetrics(c *cli.Context) error {
	for _, flag := range []string{"metric", "steps", "every", "decimate", "list"} {
		if c.IsSet(flag) {
			return usagef("--explain describes metrics and reads no run; it does not go together with --%s", flag).
				see(a.line.command())
		}
	}
	list := metric.All()
	if names := c.Args().Slice(); len(names) > 0 {
		list = nil
		for _, name := range names {
			found, err := describedBy(name)
			if err != nil {
				return err
			}
			list = append(list, found...)
		}
	}
	if len(list) == 1 && a.out.forPeople() {
		p := a.out.newPage(a.out.w)
		p.metric(list[0])
		return p.w.Flush()
	}
	return a.out.printTable(catalogueTable(list))
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
			return nil, usagef("%q is no GLOB: %w", name, err)
		case ok:
			list = append(list, m)
		}
	}
	if len(list) > 0 {
		return list, nil
	}
	f := failf(exitNotFound, "no metric is called %s", name)
	f.Help = "exp metrics --explain lists all"
	if s := nearest(name, names); s != "" {
		f.Help = "did you mean " + s + "?"
	}
	return nil, f
}

// metric is what the catalogue says of one metric.
func (p *page) metric(m metric.Metric) {
	better := map[string]string{"up": "higher", "down": "lower"}[string(m.Direction)]
	p.heading(m.Name)
	p.facts(fact{"title", m.Title}, fact{"is", m.Definition}, fact{"unit", m.Counts()}, fact{"better", better},
		fact{"heading", m.Heading}, fact{"axis", m.Axis.Label}, fact{"scale", m.Scale()},
		fact{"shown in", strings.Join(m.Shown.Places(), ", ")}, fact{"why absent", m.Absent})
}

// catalogueTable has a row for each metric.
func catalogueTable(list []metric.Metric) table {
	t := table{Schema: "exp.metrics.explain/1", Columns: []column{
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

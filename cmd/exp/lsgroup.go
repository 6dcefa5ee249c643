package main

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"exp/cmd/exp/cli"
	"exp/eval/stat"
	"exp/experiments/quantity"
	"exp/experiments/query"
	"exp/experiments/store"
	"exp/harness/metric"
)

// byXID is the field that --group xid names: a group is an experiment.
var byXID = store.Field{Kind: store.FieldColumn, Name: "xid"}

// exactText is fieldText with every digit of a number, which tells groups apart.
func exactText(v any) string {
	if x, ok := v.(float64); ok {
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	return fieldText(v)
}

// groupTable has one row per experiment (the runs that differ only in the seed), or per
// value of another field; these are in order unless --sort orders the runs. Results are
// means over the runs that have them, with the standard deviation between runs (divided
// by n-1).
func (a *app) groupTable(q lsQuery, l *query.List) cli.Table {
	groups := l.Groups(len(q.cols))
	experiments := q.group.field == byXID
	if !experiments && q.sort.Newest() {
		slices.SortStableFunc(groups, func(x, y query.Group) int {
			return query.CompareValues(x.Value, y.Value, false)
		})
	}
	results := query.ResultNames(l.Runs)
	t := cli.Table{Schema: "exp.ls.group/1", Columns: a.groupColumns(q.group, results)}
	now := a.Clock.Now()
	for _, group := range groups {
		g := group.Runs
		newest := slices.MaxFunc(g, func(x, y store.Run) int { return x.Created.Compare(y.Created) })
		row := []any{group.Value}
		if experiments {
			row = []any{cli.HexID(newest.XID.String()), newest.Name, newest.Algo}
		}
		row = append(row, len(g), query.Seeds(g), a.groupStatus(g))
		for _, name := range results {
			row = append(row, a.spread(g, name)...)
		}
		var wall time.Duration
		for i := range g {
			d, _ := g[i].Took(now)
			wall += d
		}
		t.Rows = append(t.Rows, append(row, newest.Created, wall))
	}
	return t
}

func (a *app) groupColumns(by *namedField, results []string) []cli.Column {
	created := cli.Column{Key: "created", Title: "age"}
	now := a.Clock.Now()
	if a.Out.Format != cli.FormatWide && a.Out.ForPeople() {
		created.Text = func(v any) string { t, _ := v.(time.Time); return quantity.Ago(now, t) }
	} else {
		created.Title = ""
	}
	columns := []cli.Column{{Key: by.name, Text: exactText}}
	if by.field == byXID {
		columns = []cli.Column{{Key: "xid", ID: true}, {Key: "name", Rank: 1, Min: 8}, {Key: "algo"}}
	}
	columns = append(columns, cli.Column{Key: "runs"}, cli.Column{Key: "seeds", Rank: 2},
		cli.Column{Key: "status", Style: statusStyle})
	for i, name := range results {
		columns = append(columns, cli.Column{Key: name, Title: metric.Heading(name), Wide: i >= a.roomFor(14),
			Drop: min(i, 1)})
		if !a.Out.ForPeople() {
			columns = append(columns, cli.Column{Key: name + "_std"})
		}
	}
	return append(columns, created, cli.Column{Key: "wall_s", Title: "took", Drop: 2})
}

// spread returns the mean and standard deviation of a result over runs: one cell for
// people, two for programs.
func (a *app) spread(runs []store.Run, name string) []any {
	var values []float64
	for i := range runs {
		if v, ok := query.Result(&runs[i], name).(float64); ok {
			values = append(values, v)
		}
	}
	mean, std := stat.MeanStd(values)
	switch {
	case !a.Out.ForPeople() && len(values) > 1:
		return []any{mean, std}
	case !a.Out.ForPeople() && len(values) == 1:
		return []any{mean, nil}
	case !a.Out.ForPeople():
		return []any{nil, nil}
	case len(values) > 1:
		return []any{quantity.PlusMinus(mean, std, 3)}
	case len(values) == 1:
		return []any{quantity.Fixed(mean, 3)}
	}
	return []any{nil}
}

// groupStatus sums up the status of runs: "done", "1/3 done" in the narrow table, or
// "1 done, 2 failed".
func (a *app) groupStatus(runs []store.Run) string {
	count := map[store.Status]int{}
	var order []store.Status
	for _, r := range runs {
		if count[r.Status]++; count[r.Status] == 1 {
			order = append(order, r.Status)
		}
	}
	if len(order) == 1 {
		return string(order[0])
	}
	if a.Out.Format == cli.FormatTable {
		return strconv.Itoa(count[store.Done]) + "/" + strconv.Itoa(len(runs)) + " done"
	}
	slices.Sort(order)
	var parts []string
	for _, s := range order {
		parts = append(parts, strconv.Itoa(count[s])+" "+string(s))
	}
	return strings.Join(parts, ", ")
}

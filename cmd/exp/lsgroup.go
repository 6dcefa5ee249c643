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

// groupTable has one row per experiment (the runs that differ only in the seed), or per
// value of another field; these are in order unless --sort orders the runs. Results are
// means over the runs that have them, with the standard deviation between runs (divided
// by n-1). So are metrics that --cols adds; of other fields a group shows the different values.
func (a *app) groupTable(q lsQuery, l *query.List) cli.Table {
	groups := l.Groups(len(q.cols))
	experiments := q.group.field == byXID
	if !experiments && q.sort.Newest() {
		slices.SortStableFunc(groups, func(x, y query.Group) int {
			return query.CompareValues(x.Value, y.Value, false)
		})
	}
	results := query.ResultNames(l.Runs)
	t := cli.Table{Schema: "exp.ls.group/1", Columns: a.groupColumns(&q, results)}
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
			row = append(row, a.spread(resultsOf(g, name), fixed3)...)
		}
		for _, i := range q.addedToGroups() {
			if query.Averaged(q.cols[i].field) {
				row = append(row, a.spread(group.Numbers(i), quantity.Short)...)
			} else {
				row = append(row, group.Different(i))
			}
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

func fixed3(v float64) string { return quantity.Fixed(v, 3) }

func (a *app) groupColumns(q *lsQuery, results []string) []cli.Column {
	by := q.group
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
		columns = append(columns, cli.Column{Key: name, Title: metric.Heading(name), Wide: i >= shownResults,
			Drop: i + min(i, 1)})
		if !a.Out.ForPeople() {
			columns = append(columns, cli.Column{Key: name + "_std"})
		}
	}
	titles := q.titles(a.Out.Stream.TTY && a.Out.Stream.Width() < 100)
	for _, i := range q.addedToGroups() {
		columns = append(columns, cli.Column{Key: q.cols[i].name, Title: titles[i], Text: textOf(q.cols[i].field)})
		if query.Averaged(q.cols[i].field) && !a.Out.ForPeople() {
			columns = append(columns, cli.Column{Key: q.cols[i].name + "_std"})
		}
	}
	return append(columns, created, cli.Column{Key: "wall_s", Title: "took", Drop: 1})
}

// addedToGroups returns the indices of the columns of --cols that a list of groups does not have anyway.
func (q *lsQuery) addedToGroups() (list []int) {
	had := []string{q.group.name, "config." + q.group.name, "status", "created"}
	if q.group.field == byXID {
		had = append(had, "name", "algo")
	}
	for i, c := range q.cols {
		if !slices.Contains(had, c.name) {
			list = append(list, i)
		}
	}
	return list
}

// resultsOf returns the values of a result that runs have.
func resultsOf(runs []store.Run, name string) (values []float64) {
	for i := range runs {
		if v, ok := query.Result(&runs[i], name).(float64); ok {
			values = append(values, v)
		}
	}
	return values
}

// spread returns the mean and standard deviation of values: one cell for people, two for
// programs.
func (a *app) spread(values []float64, text func(float64) string) []any {
	mean, std := stat.MeanStd(values)
	switch {
	case !a.Out.ForPeople() && len(values) > 1:
		return []any{mean, std}
	case !a.Out.ForPeople() && len(values) == 1:
		return []any{mean, nil}
	case !a.Out.ForPeople():
		return []any{nil, nil}
	case len(values) > 1:
		return []any{text(mean) + " ±" + text(std)}
	case len(values) == 1:
		return []any{text(mean)}
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

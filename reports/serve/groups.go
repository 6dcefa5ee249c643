package serve

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"exp/eval/stat"
	"exp/experiments/quantity"
	"exp/experiments/query"
	"exp/experiments/store"
	"exp/harness/metric"
)

// groupRows makes a row per group: means over its runs, ± their standard deviation.
func (s *Server) groupRows(body *runsBody, q runsQuery, l *query.List) {
	groups := l.Groups(len(q.cols))
	if q.order.Newest() && q.group.name != "xid" {
		slices.SortStableFunc(groups, func(x, y query.Group) int {
			return query.CompareValues(x.Value, y.Value, false)
		})
	}
	results := query.ResultNames(l.Runs)
	body.Grouped, body.Total = true, len(groups)
	first := min(q.from, len(groups))
	last := min(first+runsShown, len(groups))
	body.First, body.Last = min(first+1, last), last
	if first > 0 {
		body.Earlier = href("/", q.values, "from", strconv.Itoa(max(0, first-runsShown)))
	}
	if last < len(groups) {
		body.Later = href("/", q.values, "from", strconv.Itoa(last))
	}
	for _, text := range []string{q.group.name, "runs", "seeds", "status"} {
		body.Head = append(body.Head, headCell{Text: text, Right: text == "runs"})
	}
	for _, name := range results {
		m, _ := metric.Find(name)
		body.Head = append(body.Head, headCell{Text: metric.Heading(name), Title: m.Definition, Right: true})
	}
	for _, c := range q.cols {
		body.Head = append(body.Head, headCell{Text: c.title(), Right: true})
	}
	body.Head = append(body.Head, headCell{Text: "age", Right: true})
	for _, g := range groups[first:last] {
		body.Rows = append(body.Rows, s.groupRow(q, g, results))
	}
}

func (s *Server) groupRow(q runsQuery, g query.Group, results []string) runRow {
	newest := slices.MaxFunc(g.Runs, func(x, y store.Run) int { return x.Created.Compare(y.Created) })
	name := cmp.Or(exactText(g.Value), "(none)")
	condition := strings.Join([]string{q.group.filterName(), "=", literalOf(g.Value)}, " ")
	sel := condition
	if q.group.field == (store.Field{Kind: store.FieldColumn, Name: "xid"}) {
		name, sel = newest.Name, "xid:"+newest.XID.String()[:selDigits]
	} else if q.values.Get("F") != "" {
		sel = and(q.values.Get("F"), condition)
	}
	if g.Value == nil {
		condition = "not " + q.group.filterName() + " is set"
		sel = and(q.values.Get("F"), condition)
	}
	row := runRow{Sel: sel, Name: name, Link: href("/", q.values, "F", and(q.values.Get("F"), condition),
		"group", "", "from", ""), Status: statusCell{Text: groupStatus(g.Runs)}}
	row.Cells = append(row.Cells, cell{strconv.Itoa(len(g.Runs)), true}, cell{Text: query.Seeds(g.Runs)},
		cell{Text: row.Status.Text})
	for _, result := range results {
		var values []float64
		for i := range g.Runs {
			if v, ok := query.Result(&g.Runs[i], result).(float64); ok {
				values = append(values, v)
			}
		}
		fixed3 := func(v float64) string { return quantity.Fixed(v, 3) }
		row.Cells = append(row.Cells, cell{spreadText(values, fixed3), true})
	}
	for i, c := range q.cols {
		text := textOf(c.field, g.Different(i))
		if query.Averaged(c.field) {
			text = spreadText(g.Numbers(i), quantity.Short)
		}
		row.Cells = append(row.Cells, cell{text, true})
	}
	row.Cells = append(row.Cells, cell{quantity.Ago(s.clock(), newest.Created), true})
	row.Also = []option{{Text: "curves", Link: href("/curves", url.Values{"sel": {sel}})}}
	return row
}

// spreadText is the mean of values ± their standard deviation.
func spreadText(values []float64, text func(float64) string) string {
	switch mean, std := stat.MeanStd(values); len(values) {
	case 0:
		return ""
	case 1:
		return text(mean)
	default:
		return text(mean) + " ±" + text(std)
	}
}

// title is the field as the head of a column.
func (f namedField) title() string {
	return strings.TrimPrefix(strings.TrimPrefix(f.name, "config."), "metric.")
}

// filterName is the field as a filter writes it.
func (f namedField) filterName() string {
	if f.field.Kind == store.FieldConfig {
		return "config." + f.name
	}
	return f.name
}

// groupStatus sums up the status of runs: "3 done, 1 failed".
func groupStatus(runs []store.Run) string {
	count := map[string]int{}
	for _, r := range runs {
		count[string(r.Status)]++
	}
	var parts []string
	for _, status := range []store.Status{store.Done, store.Running, store.Failed, store.Interrupted,
		store.Stopped, store.Pending} {
		if n := count[string(status)]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, status))
		}
	}
	return strings.Join(parts, ", ")
}

package main

import (
	"slices"
	"strings"
	"time"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
	"exp/experiments/quantity"
	"exp/experiments/query"
	"exp/experiments/store"
	"exp/harness/metric"
)

// runColumn is a column of a list of runs and where its cells come from.
type runColumn struct {
	cli.Column
	cell func(i int, r *store.Run) any
}

// runTable makes the table of the first n runs of a list. The result columns come from
// all of them, so they do not depend on n; only shown values are looked up. Programs get
// every column. also has the runs' other names. A narrow terminal drops the third result, the duration and the second
// result, in this order, before it shortens a name.
func (a *app) runTable(runs []store.Run, n int, also map[int64][]string, extra []runColumn) cli.Table {
	columns := slices.Concat(a.identityColumns(also), a.resultColumns(runs), a.timeColumns())
	extra = withoutTwins(columns, extra)
	columns = append(columns, extra...)
	if slices.ContainsFunc(extra, func(c runColumn) bool { return c.Key != verifiedKey && c.Key != alsoNamed.Key }) {
		giveWay(columns[:len(columns)-len(extra)])
	}
	t := cli.Table{Schema: "exp.ls/1", Rows: make([][]any, n)}
	for _, c := range columns {
		t.Columns = append(t.Columns, c.Column)
	}
	cells := make([]any, n*len(columns))
	for i := range n {
		t.Rows[i], cells = cells[:len(columns):len(columns)], cells[len(columns):]
		for k, c := range columns {
			if a.Out.Shows(c.Column) {
				t.Rows[i][k] = c.cell(i, &runs[i])
			}
		}
	}
	return t
}

// withoutTwins returns the extra columns that a table lacks. It shows the others in their usual place.
func withoutTwins(columns, extra []runColumn) []runColumn {
	return slices.DeleteFunc(extra, func(c runColumn) bool {
		i := slices.IndexFunc(columns, func(d runColumn) bool { return d.Key == c.Key })
		if i >= 0 {
			columns[i].Wide, columns[i].Drop = false, 0
		}
		return i >= 0
	})
}

// giveWay lets a narrow terminal drop default columns before the ones named by --cols: the
// results and times first, then what the run's page has too.
func giveWay(columns []runColumn) {
	order := []string{"algo", "steps", "seed", "", "created", "wall_s"} // "": results
	for i := range columns {
		c := &columns[i].Column
		at := slices.Index(order, c.Key)
		if _, result := metric.Find(c.Key); at < 0 && result {
			at = 3
		}
		if at >= 0 {
			c.Drop += 4 * (at + 1)
		}
	}
}

// alsoNamed is the column of the names that find a run besides its own.
var alsoNamed = cli.Column{Key: "also_named", Wide: true}

// otherNames is a cell of alsoNamed.
func otherNames(names []string) any {
	if len(names) == 0 {
		return nil
	}
	return strings.Join(names, " ")
}

// nameText returns a run's name, for people with the others that find it: they may have asked for one of these.
func (a *app) nameText(r *store.Run, also map[int64][]string) string {
	if names := also[r.ID]; len(names) > 0 && a.Out.ForPeople() {
		return r.Name + " (also " + strings.Join(names, ", ") + ")"
	}
	return r.Name
}

func (a *app) identityColumns(also map[int64][]string) []runColumn {
	people, roomy := a.Out.ForPeople(), !a.Out.Stream.TTY || a.Out.Stream.Width() >= 100
	return []runColumn{
		{cli.Column{Key: "run", ID: true}, func(_ int, r *store.Run) any { return cli.HexID(r.RID.String()) }},
		{cli.Column{Key: "xid", Wide: true}, func(_ int, r *store.Run) any { return cli.HexID(r.XID.String()) }},
		{cli.Column{Key: "name", Rank: 1, Min: 8}, func(_ int, r *store.Run) any {
			return a.nameText(r, also)
		}},
		{cli.Column{Key: "task", Wide: true}, func(_ int, r *store.Run) any { return r.Task }},
		{cli.Column{Key: "algo"}, func(_ int, r *store.Run) any { return r.Algo }},
		{cli.Column{Key: "model", Wide: true}, func(_ int, r *store.Run) any { return r.Model }},
		{cli.Column{Key: "seed"}, func(_ int, r *store.Run) any { return r.Seed }},
		{cli.Column{Key: "status", Style: statusStyle}, func(_ int, r *store.Run) any {
			if people && (roomy || r.Foreign() != "") {
				return statusText(r)
			}
			return string(r.Status)
		}},
		{cli.Column{Key: "steps"}, func(_ int, r *store.Run) any { return r.Steps }},
		{cli.Column{Key: "steps_total", Title: "of", Wide: true}, func(_ int, r *store.Run) any {
			return r.StepsTotal
		}},
	}
}

// statusText is a run's status with its progress, unless it is done, and for an imported
// run with its framework.
func statusText(r *store.Run) string {
	if from := r.Foreign(); from != "" {
		return string(r.Status) + " (" + from + ")"
	}
	unfinished := r.Status == store.Running || r.Status == store.Interrupted || r.Status == store.Stopped
	if unfinished && 0 < r.Steps && r.Steps < r.StepsTotal {
		return string(r.Status) + " " + quantity.Percent(float64(r.Steps)/float64(r.StepsTotal), 0)
	}
	return string(r.Status)
}

// statusStyle styles a status, which more words may follow.
func statusStyle(v any) term.Style {
	text, _ := v.(string)
	word, _, _ := strings.Cut(text, " ")
	return styleOfStatus(word)
}

var styleOfStatus = styleOf(map[store.Status]term.Style{
	store.Done: term.Good, store.Running: term.Accent, store.Interrupted: term.Warn, store.Stopped: term.Warn,
	store.Failed: term.Bad, store.Diverged: term.Bad,
})

// styleOf returns the style of each text; other texts are plain.
func styleOf[T ~string](styles map[T]term.Style) func(v any) term.Style {
	return func(v any) term.Style {
		text, _ := v.(string)
		return styles[T(text)]
	}
}

// resultDigits returns the digits after the point of a result. Those in nats differ by orders of
// magnitude, so they have three that matter.
func resultDigits(name string) int {
	if m, _ := metric.Find(name); m.Unit == metric.Nats {
		return 0
	}
	return 3
}

// resultColumns returns the headline results of the runs, in the order that runs name
// them.
func (a *app) resultColumns(runs []store.Run) []runColumn {
	var list []runColumn
	for i, name := range query.ResultNames(runs) {
		c := cli.Column{Key: name, Title: metric.Heading(name), Digits: resultDigits(name), Wide: i >= shownResults,
			Drop: [...]int{0, 1, 3}[min(i, 2)]} // the second goes after "took", the third before it
		list = append(list, runColumn{c, func(_ int, r *store.Run) any { return query.Result(r, name) }})
	}
	return list
}

// shownResults is how many results a list shows to people.
const shownResults = 3

func (a *app) timeColumns() []runColumn {
	now := a.Clock.Now()
	created := cli.Column{Key: "created", Title: "age"}
	if a.Out.Format == cli.FormatTable || a.Out.Format == cli.FormatMD {
		created.Text = func(v any) string { t, _ := v.(time.Time); return quantity.Ago(now, t) }
	}
	if a.Out.Format == cli.FormatWide {
		created.Title = "created"
	}
	return []runColumn{
		{created, func(_ int, r *store.Run) any { return r.Created }},
		{cli.Column{Key: "started", Wide: true}, func(_ int, r *store.Run) any { return timeOrNil(r.Started) }},
		{cli.Column{Key: "ended", Wide: true}, func(_ int, r *store.Run) any { return timeOrNil(r.Ended) }},
		{cli.Column{Key: "wall_s", Title: "took", Drop: 2}, func(_ int, r *store.Run) any { return took(now, r) }},
		{cli.Column{Key: "tokens", Wide: true}, func(_ int, r *store.Run) any { return r.Tokens }},
		{cli.Column{Key: "numerics", Wide: true}, func(_ int, r *store.Run) any { return r.Numerics }},
		{cli.Column{Key: "device", Wide: true}, func(_ int, r *store.Run) any { return r.Device }},
	}
}

func timeOrNil(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t
}

func took(now time.Time, r *store.Run) any {
	if d, known := r.Took(now); known {
		return d
	}
	return nil
}

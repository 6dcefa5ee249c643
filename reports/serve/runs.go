package serve

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"exp/experiments/quantity"
	"exp/experiments/query"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/metric"
)

// runsShown is how many rows a page of runs has.
const runsShown = 100

// runsQuery is the state of the page of runs, in the terms of exp ls.
type runsQuery struct {
	values url.Values
	filter *query.Filter
	order  query.Order
	cols   []namedField
	group  *namedField
	from   int // rows before the page
}

type namedField struct {
	name  string
	field store.Field
}

// runsBody is the data of runs.tmpl.
type runsBody struct {
	Filter, Sort, Group, Cols string
	Fields                    []string // that filter, sort and columns can name
	Keys                      []string // that runs can be grouped by
	Quick                     []option
	Problem                   string // why the filter cannot be read
	Unknown                   []string
	Head                      []headCell
	Rows                      []runRow
	Total, First, Last        int
	Earlier, Later            string // addresses
	Grouped                   bool
}

// option is a link; Chosen marks the current one.
type option struct {
	Text, Link string
	Chosen     bool
}

// headCell is the head of a column.
type headCell struct {
	Text, Link string
	Sorted     string // "ascending", "descending"
	Right      bool
	Title      string // explains it; may be empty
}

// runRow is a run, or a group of runs.
type runRow struct {
	Sel, Name, Link string
	Seed            string
	Status          statusCell
	Cells           []cell
	Tags            []option
	Also            []option // of a group: its runs, its curves
}

// statusCell is a status with its progress.
type statusCell struct {
	Text, Class string
	Steps, Of   int64 // of an unfinished run; 0: no bar
}

// cell is text in a column.
type cell struct {
	Text  string
	Right bool
}

func (s *Server) runsPage(ctx context.Context, r *http.Request) (page, error) {
	values := r.URL.Query()
	body := runsBody{Filter: values.Get("F"), Sort: values.Get("sort"), Group: values.Get("group"),
		Cols: values.Get("cols"), Keys: slices.Concat(groupColumns, configPaths())}
	p := page{Title: "Runs", Section: "runs", Use: "runs"}
	q, err := readRunsQuery(values)
	if err != nil {
		body.Problem = problemText(err)
		q = runsQuery{values: values, order: newestFirst()}
	}
	body.Fields = query.FieldNames(ctx, s.db)
	body.Quick = quickFilters(values)
	l, err := s.list(ctx, q)
	if err != nil {
		return p, err
	}
	if body.Unknown, err = s.unrecorded(ctx, q); err != nil {
		return p, err
	}
	if q.group != nil {
		s.groupRows(&body, q, &l)
	} else if err := s.runRows(ctx, &body, q, &l); err != nil {
		return p, err
	}
	p.Command, p.Body = q.command(), body
	return p, nil
}

// problemText shows an error of the query with its place.
func problemText(err error) string { return strings.TrimPrefix(err.Error(), errRequest.Error()+": ") }

// groupColumns are the columns of runs to group by.
var groupColumns = []string{"xid", "name", "algo", "model", "task", "seed", "numerics", "device"}

func configPaths() (list []string) {
	for _, k := range config.Keys() {
		list = append(list, k.Path)
	}
	return list
}

func newestFirst() query.Order {
	return query.Order{Name: "created", Field: store.Field{Kind: store.FieldColumn, Name: "created"}, Descend: true}
}

func readRunsQuery(values url.Values) (q runsQuery, err error) {
	q = runsQuery{values: values, order: newestFirst()}
	if text := values.Get("F"); strings.TrimSpace(text) != "" {
		if q.filter, err = config.Fields().Parse(text); err != nil {
			return q, err
		}
	}
	for name := range strings.SplitSeq(values.Get("cols"), ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		f, err := query.ParseField(name)
		if err != nil {
			return q, badRequest("columns: %v", err)
		}
		q.cols = append(q.cols, namedField{name, f})
	}
	if text := values.Get("sort"); text != "" {
		name, descend := strings.CutPrefix(text, "-")
		q.order = query.Order{Name: name, Descend: descend}
		if q.order.Field, err = query.ParseField(name); err != nil {
			q.order.Result = name // a headline result
		}
	}
	if name := values.Get("group"); name != "" {
		if _, ok := config.Describe(name); ok && !slices.Contains(store.Columns(), name) {
			name = "config." + name
		}
		f, err := query.ParseField(name)
		if err != nil || f.Kind == store.FieldColumn && !slices.Contains(groupColumns, f.Name) {
			return q, badRequest("runs are grouped by %s or a configuration key, not by %s",
				strings.Join(groupColumns, ", "), name)
		}
		q.group = &namedField{strings.TrimPrefix(name, "config."), f}
	}
	q.from, _ = strconv.Atoi(values.Get("from"))
	q.from = max(q.from, 0)
	return q, nil
}

// fields lists the values that the page needs: the columns, the tags or the group, then
// the sort key.
func (q runsQuery) fields() (list []store.Field) {
	for _, c := range q.cols {
		list = append(list, c.field)
	}
	if q.group != nil {
		list = append(list, q.group.field)
	} else {
		list = append(list, store.Field{Kind: store.FieldTag})
	}
	if q.order.Needs() {
		list = append(list, q.order.Field)
	}
	return list
}

// list reads the runs: all that pass the filter, or the newest up to the end of the page.
func (s *Server) list(ctx context.Context, q runsQuery) (query.List, error) {
	f := s.finder()
	if q.filter == nil && q.order.Newest() && q.group == nil {
		return f.Newest(ctx, q.fields(), q.from+runsShown)
	}
	l, err := f.List(ctx, q.filter, q.fields())
	if err == nil {
		l.Sort(q.order)
	}
	return l, err
}

// unrecorded lists the fields of columns and filter that no run has recorded.
func (s *Server) unrecorded(ctx context.Context, q runsQuery) (names []string, err error) {
	var fields []store.Field
	if q.filter != nil {
		fields = q.filter.Fields()
	}
	for _, c := range q.cols {
		fields = append(fields, c.field)
	}
	for _, f := range fields {
		known, err := s.db.Recorded(ctx, f)
		if err != nil {
			return nil, err
		}
		name := f.Name
		if f.Suite != "" {
			name = f.Suite + "." + f.Name
		}
		if !known && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}

func (s *Server) runRows(ctx context.Context, body *runsBody, q runsQuery, l *query.List) error {
	body.Total = len(l.Runs) + l.More
	first := min(q.from, len(l.Runs))
	last := min(first+runsShown, len(l.Runs))
	body.First, body.Last = min(first+1, last), last
	if first > 0 {
		body.Earlier = href("/", q.values, "from", strconv.Itoa(max(0, first-runsShown)))
	}
	if last < body.Total {
		body.Later = href("/", q.values, "from", strconv.Itoa(last))
	}
	results := query.ResultNames(l.Runs[first:last])
	q.runHead(body, results)
	now := s.clock()
	for i := first; i < last; i++ {
		r := &l.Runs[i]
		row := runRow{Sel: r.RID.String()[:selDigits], Name: r.Name, Link: "/run/" + r.RID.String()[:selDigits],
			Seed: strconv.FormatInt(r.Seed, 10), Status: statusOf(r)}
		row.Cells = append(row.Cells, cell{Text: r.Algo}, cell{quantity.Count(r.Steps), true})
		for _, name := range results {
			row.Cells = append(row.Cells, cell{numberText(query.Result(r, name), 3), true})
		}
		for k := range q.cols {
			_, number := l.Values[i][k].(float64)
			row.Cells = append(row.Cells, cell{textOf(q.cols[k].field, l.Values[i][k]), number})
		}
		row.Cells = append(row.Cells, cell{quantity.Ago(now, r.Created), true}, cell{tookText(now, r), true})
		tags, _ := l.Values[i][len(q.cols)].([]any)
		for _, t := range tags {
			text, _ := t.(string)
			row.Tags = append(row.Tags, option{Text: text, Link: href("/", q.values, "F", and(q.values.Get("F"),
				"tag = "+literal(text)), "from", "")})
		}
		body.Rows = append(body.Rows, row)
	}
	return ctx.Err()
}

// selDigits is how many digits of an id a link has: 10,000 runs share 12 with a chance of
// 2e-7.
const selDigits = 12

// runHead makes the heads of the columns behind name, seed and status.
func (q runsQuery) runHead(body *runsBody, results []string) {
	add := func(text, key, title string, right bool) {
		h := headCell{Text: text, Title: title, Right: right}
		to := "-" + key
		if q.order.Name == key {
			h.Sorted = "ascending"
			if q.order.Descend {
				h.Sorted, to = "descending", key
			}
		}
		h.Link = href("/", q.values, "sort", to, "from", "")
		body.Head = append(body.Head, h)
	}
	add("name", "name", "", false)
	add("seed", "seed", "", true)
	add("status", "status", "", false)
	add("algo", "algo", "", false)
	add("steps", "steps", "steps recorded", true)
	for _, name := range results {
		m, _ := metric.Find(name)
		add(metric.Heading(name), name, m.Definition, true)
	}
	for _, c := range q.cols {
		add(c.title(), c.name, "", true)
	}
	add("age", "created", "since the run was made", true)
	add("took", "wall", "duration of all attempts", true)
}

// and joins two conditions.
func and(a, b string) string {
	switch {
	case strings.TrimSpace(a) == "":
		return b
	case strings.Contains(" "+a+" ", " or "):
		return "(" + a + ") and " + b
	}
	return a + " and " + b
}

// literalOf writes a value for a filter: a text in quotes, which a number must not have.
func literalOf(v any) string {
	if _, number := v.(float64); number {
		return exactText(v)
	}
	return literal(exactText(v))
}

// literal quotes a text for a filter.
func literal(text string) string {
	if !strings.Contains(text, `"`) {
		return `"` + text + `"`
	}
	return "'" + strings.ReplaceAll(text, "'", "?") + "'"
}

func quickFilters(values url.Values) []option {
	now := values.Get("F")
	var list []option
	for _, o := range []struct{ text, filter string }{{"all", ""}, {"running", "status = running"},
		{"done", "status = done"}, {"failed", "status = failed"}, {"last day", "created < 1d"}} {
		list = append(list, option{o.text, href("/", values, "F", o.filter, "from", ""), now == o.filter})
	}
	return list
}

// command is the same list on the command line.
func (q runsQuery) command() string {
	line := "exp ls"
	for _, flag := range []struct{ name, key string }{{"-F", "F"}, {"--sort", "sort"}, {"--group", "group"},
		{"--cols", "cols"}} {
		if v := q.values.Get(flag.key); v != "" {
			line += " " + flag.name + " " + quoted(v)
		}
	}
	return line
}

// statusOf is a run's status, with its progress unless it is done.
func statusOf(r *store.Run) statusCell {
	c := statusCell{Text: string(r.Status), Class: string(r.Status)}
	if from := r.Foreign(); from != "" {
		c.Text += " (" + from + ")"
	}
	unfinished := r.Status == store.Running || r.Status == store.Interrupted || r.Status == store.Stopped
	if unfinished && r.Steps < r.StepsTotal {
		c.Steps, c.Of = r.Steps, r.StepsTotal
	}
	return c
}

// fieldHelp explains the language of filters.
func fieldHelp() []fact {
	return []fact{
		{Name: "operators", Text: "= != < <= > >= ~ (glob), in [a, b] (one of), is set, and, or, not, ( )"},
		{Name: "columns", Text: strings.Join(store.Columns(), " ") + " tag"},
		{Name: "config.PATH", Text: "a setting, as config.train.optim.lr"},
		{Name: "metric.NAME", Text: "the last value of a metric; with .min, .max or .at(STEP) another one"},
		{Name: "eval.SUITE.NAME", Text: "a score, as eval.test.pass@1"},
		{Name: "pass@1", Text: "a result of the list"},
		{Name: "values", Text: "numbers, words, \"texts\", durations (3h), ages (created < 2d), days (2026-01-02)"},
	}
}

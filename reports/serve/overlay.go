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
	"exp/harness/metric"
	"exp/reports/compare"
)

// mostRuns is how many runs one page of curves, a comparison or a report takes.
const mostRuns = 300

// curvesBody is the data of curves.tmpl.
type curvesBody struct {
	Sel     []string
	By      string
	Keys    []string // to group by
	Arms    []armRow
	Charts  []chart
	Choices choices
	Note    string   // on lines and bands
	Others  []option // the same runs on other pages
	Empty   bool     // no run was chosen
}

// armRow is an arm in the legend.
type armRow struct {
	Arm   arm
	Seeds string
	Link  string
}

// choices are the ways to draw curves.
type choices struct {
	X, Smooth, Axis, Band []option
	Metrics               []metricGroup
	Reset                 string // address that shows all steps; empty: it does
	From, To              string
	Keep                  []pair // hidden values of the form
}

// pair is a hidden value of a form.
type pair struct{ Name, Value string }

// metricGroup is metrics whose names begin alike.
type metricGroup struct {
	Name    string
	Metrics []metricChoice
}

type metricChoice struct {
	Name, Title string
	Chosen      bool
}

// selected forms the arms that an address selects, as exp compare does.
func (s *Server) selected(ctx context.Context, q url.Values) ([]arm, error) {
	list, err := selectionOf(q).Arms(ctx, s.finder())
	if err != nil {
		return nil, err
	}
	runs := 0
	labels := compare.Labels(list)
	arms := make([]arm, len(list))
	for i := range list {
		arms[i] = arm{list[i], i}
		arms[i].Label = labels[i]
		slices.SortFunc(arms[i].Runs, func(a, b store.Run) int { return int(a.Seed - b.Seed) })
		runs += len(list[i].Runs)
	}
	if runs > mostRuns {
		return nil, badRequest("%d runs are selected; a page takes %d at most", runs, mostRuns)
	}
	return arms, nil
}

func selectionOf(q url.Values) compare.Selection {
	var runs []string
	for _, sel := range q["sel"] {
		if sel = strings.TrimSpace(sel); sel != "" && sel != "-" {
			runs = append(runs, sel)
		}
	}
	return compare.Selection{Runs: runs, Vs: q.Get("vs"), By: q.Get("by"), Stdin: strings.NewReader("")}
}

func (s *Server) curvesPage(ctx context.Context, r *http.Request) (page, error) {
	q := r.URL.Query()
	p := page{Title: "Curves", Section: "curves", Use: "curves"}
	body := curvesBody{Sel: q["sel"], By: q.Get("by"), Keys: slices.Concat([]string{"xid", "name", "algo", "model",
		"task"}, configPaths())}
	if len(selectionOf(q).Runs) == 0 {
		body.Empty = true
		p.Body = body
		return p, nil
	}
	arms, err := s.selected(ctx, q)
	if err != nil {
		return p, err
	}
	how, err := readPlotted(q, -1)
	if err != nil {
		return p, err
	}
	var runs []store.Run
	for _, a := range arms {
		runs = append(runs, a.Runs...)
		body.Arms = append(body.Arms, armRow{a, query.Seeds(a.Runs), runsLink(a)})
	}
	names, _, err := s.recorded(ctx, runs, arms)
	if err != nil {
		return p, err
	}
	chosen := chosenMetrics(q, names)
	if body.Charts, err = s.charts(ctx, arms, chosen, how, q); err != nil {
		return p, err
	}
	body.Choices = choicesOf("/curves", q, how, names, chosen)
	for i := range body.Charts { // said once, unless it differs
		if c := &body.Charts[i]; body.Note == "" {
			body.Note = c.Band
		} else if c.Band != "" && c.Band != body.Note {
			c.Note = strings.TrimPrefix(c.Note+"; "+c.Band, "; ")
		}
	}
	body.Others = []option{{Text: "compare", Link: href("/compare", only(q, "sel", "by", "vs"))},
		{Text: "report", Link: href("/report", only(q, "sel", "by", "vs"))},
		{Text: "problems", Link: href("/problems", only(q, "sel", "by"))},
		{Text: "benchmarks", Link: href("/benchmarks", only(q, "sel"))}}
	p.Title = "Curves of " + quantity.Plural(len(arms), "arm")
	p.Command = "exp metrics " + words(q["sel"])
	p.Body = body
	return p, nil
}

// runsLink lists the runs of an arm.
func runsLink(a arm) string {
	if len(a.Runs) == 1 {
		return "/run/" + a.Runs[0].RID.String()[:selDigits]
	}
	var ids []string
	for _, r := range a.Runs {
		ids = append(ids, r.RID.String())
	}
	return href("/", url.Values{"F": {"id in [" + strings.Join(ids, ", ") + "]"}})
}

// only keeps some values.
func only(q url.Values, names ...string) url.Values {
	out := url.Values{}
	for _, name := range names {
		if v := q[name]; len(v) > 0 && v[0] != "" {
			out[name] = v
		}
	}
	return out
}

func words(list []string) string {
	quotedWords := make([]string, len(list))
	for i, w := range list {
		quotedWords[i] = quoted(w)
	}
	return strings.Join(quotedWords, " ")
}

// recorded lists the metrics of runs, which form the arms: of training, and of the stages before it. early are
// the latter that the page of a run draws. names are sorted.
func (s *Server) recorded(ctx context.Context, runs []store.Run, arms []arm) (names, early []string, err error) {
	if names, err = s.stageMetrics(ctx, arms); err != nil {
		return nil, nil, err
	}
	early = stageDefaults(names)
	seen := map[string]bool{}
	for _, r := range runs {
		series, err := s.db.Series(ctx, r.ID, "")
		if err != nil {
			return nil, nil, err
		}
		for _, x := range series {
			if !seen[x.Name] {
				seen[x.Name] = true
				names = append(names, x.Name)
			}
		}
	}
	slices.Sort(names)
	return names, early, nil
}

// chosenMetrics returns the metrics that an address names, else the ones that exp show has,
// else the first ones. early are shown before the ones that exp show has.
func chosenMetrics(q url.Values, names []string, early ...string) []string {
	var chosen []string
	for _, name := range q["metric"] {
		if name != "" && !slices.Contains(chosen, name) && len(chosen) < mostCurves {
			chosen = append(chosen, name)
		}
	}
	if len(chosen) > 0 {
		return chosen
	}
	chosen = append(chosen, early...)
	for _, m := range metric.ShownIn(metric.OverSteps) {
		if slices.Contains(names, m.Name) {
			chosen = append(chosen, m.Name)
		}
	}
	if len(chosen) == 0 {
		chosen = slices.Clone(names[:min(len(names), 8)])
	}
	return chosen
}

// choicesOf lists the ways to draw the curves of a page.
func choicesOf(path string, q url.Values, p plotted, names, chosen []string) choices {
	var c choices
	for _, x := range []string{"step", "tokens", "time"} {
		c.X = append(c.X, option{x, href(path, q, "x", x), p.x == x})
	}
	if p.usual < 0 {
		c.Smooth = append(c.Smooth, option{"auto", href(path, q, "smooth", ""), p.smooth < 0})
	}
	for _, n := range []int{0, 5, 15, 51, 151} {
		text := strconv.Itoa(n)
		if n == 0 {
			text = "none"
		}
		c.Smooth = append(c.Smooth, option{text, href(path, q, "smooth", strconv.Itoa(n)), p.smooth == n})
	}
	for _, o := range []option{{Text: "auto"}, {Text: "log", Link: "1"}, {Text: "linear", Link: "0"}} {
		c.Axis = append(c.Axis, option{o.Text, href(path, q, "log", o.Link), p.log == o.Link})
	}
	for _, o := range []option{{Text: "auto"}, {Text: "95 % interval of the mean", Link: "t"},
		{Text: "least to greatest seed", Link: "range"}} {
		c.Band = append(c.Band, option{o.Text, href(path, q, "band", o.Link), p.band == o.Link})
	}
	for _, name := range names {
		head, _, found := strings.Cut(name, "/")
		if !found {
			head = "other"
		}
		i := slices.IndexFunc(c.Metrics, func(g metricGroup) bool { return g.Name == head })
		if i < 0 {
			i = len(c.Metrics)
			c.Metrics = append(c.Metrics, metricGroup{Name: head})
		}
		m, _ := metric.Find(name)
		c.Metrics[i].Metrics = append(c.Metrics[i].Metrics, metricChoice{name, m.Title, slices.Contains(chosen, name)})
	}
	if p.from > 0 || p.to > 0 {
		c.Reset = href(path, q, "from", "", "to", "")
	}
	for _, name := range []string{"sel", "by", "vs", "x", "smooth", "log", "band", "from", "to"} {
		for _, v := range q[name] {
			c.Keep = append(c.Keep, pair{name, v})
		}
	}
	return c
}

package serve

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"exp/eval"
	"exp/experiments/ident"
	"exp/experiments/quantity"
	"exp/experiments/query"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/metric"
	"exp/reports/compare"
)

// benchmarkRuns is how many runs the page of benchmarks reads unless some are chosen.
const benchmarkRuns = 60

// benchmarksBody is the data of benchmarks.tmpl.
type benchmarksBody struct {
	Filter string
	Sel    []string
	Suites []benchmarkSuite
	Note   string
}

// benchmarkSuite is a table of scores on a suite: a row per run and checkpoint.
type benchmarkSuite struct {
	Name    string
	About   string
	Metrics []headCell
	Rows    []benchmarkRow
	items   int64
	samples []int64 // per problem, of any run
}

type benchmarkRow struct {
	Run, Link, Seed, Checkpoint string
	Cells                       []scoreCell
	order                       int64
}

// scoreCell is a score with its interval; Best marks the best of its column.
type scoreCell struct {
	Text, Interval string
	Best           bool
	value          float64
}

// benchmarksPage shows the scores of runs by suite and checkpoint.
func (s *Server) benchmarksPage(ctx context.Context, r *http.Request) (page, error) {
	q := r.URL.Query()
	p := page{Title: "Benchmarks", Section: "benchmarks", Use: "benchmarks"}
	body := benchmarksBody{Filter: q.Get("F"), Sel: q["sel"]}
	runs, note, err := s.benchmarked(ctx, q)
	if err != nil {
		return p, err
	}
	body.Note = note
	counted, err := compare.Counted(ctx, s.db, runs)
	if err != nil {
		return p, err
	}
	for _, run := range runs {
		evals, err := s.db.Evals(ctx, run.ID)
		if err != nil {
			return p, err
		}
		curves, err := s.db.Metrics(ctx, run.ID, "val/*", 0, store.AllSteps)
		if err != nil {
			return p, err
		}
		body.add(run, slices.DeleteFunc(evals, func(e store.Eval) bool {
			return !slices.ContainsFunc(counted[run.ID],
				func(c compare.Evaluation) bool { return c.Scored.ID == e.StageScore })
		}))
		if len(q["sel"]) > 0 { // every checkpoint of all runs would be a long page
			body.addValidation(run, curves)
		}
	}
	for i := range body.Suites {
		body.Suites[i].markBest()
		body.Suites[i].describe()
	}
	slices.SortStableFunc(body.Suites, func(a, b benchmarkSuite) int { return strings.Compare(a.Name, b.Name) })
	p.Body = body
	return p, nil
}

// benchmarked returns the runs that the address selects, else the ones that pass its filter,
// the newest.
func (s *Server) benchmarked(ctx context.Context, q url.Values) (runs []store.Run, note string, err error) {
	if sel := selectionOf(q).Runs; len(sel) > 0 {
		runs, err = s.finder().Select(ctx, sel, strings.NewReader(""))
	} else {
		var filter *query.Filter
		if text := q.Get("F"); strings.TrimSpace(text) != "" {
			if filter, err = config.Fields().Parse(text); err != nil {
				return nil, "", err
			}
		}
		var l query.List
		if filter == nil {
			l, err = s.finder().Newest(ctx, nil, benchmarkRuns)
		} else {
			l, err = s.finder().List(ctx, filter, nil)
		}
		runs = l.Runs
		if l.More > 0 {
			note = fmt.Sprintf("The newest %d runs; a filter finds others.", benchmarkRuns)
		}
	}
	if len(runs) > mostRuns {
		note = fmt.Sprintf("The newest %d of %d runs.", mostRuns, len(runs))
		runs = runs[:mostRuns]
	}
	return runs, note, err
}

// add adds a run's final scores and those before training.
func (b *benchmarksBody) add(run store.Run, evals []store.Eval) {
	for _, e := range evals {
		name, start := strings.CutSuffix(e.SuiteName, ident.StartSuffix)
		checkpoint, order := "final", int64(1)<<60
		if start {
			checkpoint, order = "start", 0
		}
		c := scoreCell{Text: quantity.Typeset(quantity.Fixed(e.Value, 3)), value: e.Value}
		if e.Lo < e.Hi {
			c.Interval = intervalText(e.Metric, e.Lo, e.Hi)
		}
		if s := b.put(name, e.Metric, run, checkpoint, order, c); s != nil {
			s.items = max(s.items, e.Items)
			s.samples = append(s.samples, e.N)
		}
	}
}

// describe says how much the scores rest on. Runs without settings in common may have
// different numbers of samples.
func (s *benchmarkSuite) describe() {
	if len(s.samples) == 0 {
		s.About = "validation problems, during training"
		return
	}
	least, most := slices.Min(s.samples), slices.Max(s.samples)
	each := quantity.Plural(int(most), "sample") + " each"
	if least < most {
		each = fmt.Sprintf("%d to %s each, by run", least, quantity.Plural(int(most), "sample"))
	}
	s.About = fmt.Sprintf("%s, %s; 95 %% intervals", quantity.Plural(int(s.items), "problem"), each)
}

// addValidation adds the scores on validation problems during training.
func (b *benchmarksBody) addValidation(run store.Run, curves []store.Curve) {
	for _, c := range curves {
		name := strings.TrimPrefix(c.Name, "val/")
		for i, v := range c.Values {
			cell := scoreCell{Text: quantity.Typeset(quantity.Fixed(v, 3)), value: v}
			b.put(run.Task+"/validation", name, run, "step "+strconv.FormatInt(c.Steps[i], 10), c.Steps[i], cell)
		}
	}
}

// put sets a cell, and adds its suite, row and column if they are new. Only metrics that
// comparisons show have a column; it returns nil for others, else the suite.
func (b *benchmarksBody) put(
	suite, name string, run store.Run, checkpoint string, order int64, c scoreCell,
) *benchmarkSuite {
	m, _ := metric.Find(name)
	if m.Shown&(metric.InLists|metric.Tested|metric.Described) == 0 {
		return nil
	}
	at := slices.IndexFunc(b.Suites, func(s benchmarkSuite) bool { return s.Name == suite })
	if at < 0 {
		at = len(b.Suites)
		b.Suites = append(b.Suites, benchmarkSuite{Name: suite})
	}
	s := &b.Suites[at]
	column := slices.IndexFunc(s.Metrics, func(h headCell) bool { return h.Link == name })
	if column < 0 {
		column = len(s.Metrics)
		s.Metrics = append(s.Metrics, headCell{Text: metric.Heading(name), Link: name, Title: m.Definition})
	}
	link := "/run/" + run.RID.String()[:selDigits]
	row := slices.IndexFunc(s.Rows, func(r benchmarkRow) bool { return r.Link == link && r.Checkpoint == checkpoint })
	if row < 0 {
		row, _ = slices.BinarySearchFunc(s.Rows, order, func(r benchmarkRow, order int64) int {
			if r.Link != link {
				return -1 // rows of earlier runs
			}
			return int(min(max(r.order-order, -1), 1))
		})
		s.Rows = slices.Insert(s.Rows, row, benchmarkRow{Run: run.Name, Link: link,
			Seed: strconv.FormatInt(run.Seed, 10), Checkpoint: checkpoint, order: order})
	}
	for len(s.Rows[row].Cells) <= column {
		s.Rows[row].Cells = append(s.Rows[row].Cells, scoreCell{})
	}
	s.Rows[row].Cells[column] = c
	return s
}

// markBest marks the best score of each column in its metric's direction, none if all are equal, and
// fills the rows.
func (s *benchmarkSuite) markBest() {
	for i := range s.Rows {
		for len(s.Rows[i].Cells) < len(s.Metrics) {
			s.Rows[i].Cells = append(s.Rows[i].Cells, scoreCell{})
		}
	}
	for column, head := range s.Metrics {
		m, _ := metric.Find(head.Link)
		if m.Direction != eval.Up && m.Direction != eval.Down || len(s.Rows) < 2 {
			continue
		}
		least, most := math.Inf(1), math.Inf(-1)
		for i := range s.Rows {
			if c := &s.Rows[i].Cells[column]; c.Text != "" && !math.IsNaN(c.value) {
				least, most = min(least, c.value), max(most, c.value)
			}
		}
		best := most
		if m.Direction == eval.Down {
			best = least
		}
		for i := range s.Rows {
			c := &s.Rows[i].Cells[column]
			c.Best = c.Text != "" && c.value == best && least < most
		}
	}
}

package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"exp/experiments/store"
	"exp/harness/metric"
	"exp/reports/compare"
	"exp/reports/figure"
)

const (
	// curvePoints is how many points a line has at most; longer series are summarised,
	// with the range of each part.
	curvePoints = 500
	// curveHeight is in pixels.
	curveHeight = 220
	// smoothFrom is the fewest points of a line that is smoothed unless asked otherwise,
	// as in reports.
	smoothFrom = 80
	// mostCurves is how many metrics one page draws.
	mostCurves = 24
)

// plotted says how curves are drawn.
type plotted struct {
	x        string // "step", "tokens" or "time"
	smooth   int    // points; 0: none, -1: by the length of the run
	usual    int    // smooth unless asked otherwise
	log      string // "1", "0" or as the catalogue has it
	band     string // "t" or "range" or by the number of seeds
	from, to int64  // steps; to 0: all
	order    []string
}

// readPlotted reads the state of a page of curves. smooth is the default.
func readPlotted(q url.Values, smooth int) (plotted, error) {
	p := plotted{x: "step", smooth: smooth, usual: smooth, log: q.Get("log"), band: q.Get("band")}
	if x := q.Get("x"); x != "" {
		p.x = x
	}
	if !slices.Contains([]string{"step", "tokens", "time"}, p.x) {
		return p, badRequest("x=%s: it is step, tokens or time", p.x)
	}
	for name, to := range map[string]*int64{"from": &p.from, "to": &p.to} {
		text := q.Get(name)
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 || n > 1<<50 {
			return p, badRequest("%s=%s: it is a step", name, text)
		}
		*to = n
	}
	if text := q.Get("smooth"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > 999 {
			return p, badRequest("smooth=%s: it is a number of points", text)
		}
		p.smooth = n
	}
	return p, nil
}

// arm is the runs of one line, with its colour.
type arm struct {
	compare.Arm
	Place int
}

// Class is the classes of the arm's colour and dash.
func (a arm) Class() string {
	return fmt.Sprintf("c%d d%d", a.Place%figure.LiveColors, a.Place/figure.LiveColors%figure.LiveDashes)
}

// chart is a curve on a page.
type chart struct {
	Metric, Title, Unit, Definition string
	SVG                             template.HTML
	Points                          string // address of the values
	Note, Band                      string
	Last                            []lastValue
	Whole                           bool // its steps are a stage's before training: no part of them can be chosen
}

// lastValue is where an arm's line ends.
type lastValue struct {
	Arm  arm
	Text string
}

// readCurves reads metrics of arms, each on a grid for the steps that have it: by metric, the arms' series.
func (s *Server) readCurves(
	ctx context.Context, arms []arm, metrics []string, p plotted,
) (map[string][]figure.Arm, error) {
	grids, err := s.gridsOf(ctx, arms, metrics, p)
	if err != nil {
		return nil, err
	}
	out := map[string][]figure.Arm{}
	for grid, names := range grids {
		if err := s.readOn(ctx, grid, arms, names, p.x, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// readOn adds the series of metrics on a grid to out.
func (s *Server) readOn(
	ctx context.Context, grid store.Grid, arms []arm, metrics []string, x string, out map[string][]figure.Arm,
) error {
	for _, a := range arms {
		drawn := map[string]figure.Arm{}
		for _, r := range a.Runs {
			spans, err := s.spans.read(ctx, s.db, r, metrics, grid)
			if err != nil {
				return err
			}
			at, err := s.places(ctx, r, grid, x)
			if err != nil {
				return err
			}
			for name, list := range spans {
				line := drawn[name]
				line.Name = a.Label
				if seed := seriesOf(list, at); len(seed.Step) > 0 {
					line.Seeds = append(line.Seeds, seed)
				}
				drawn[name] = line
			}
		}
		for name, line := range drawn {
			if len(line.Seeds) > 0 {
				out[name] = append(out[name], line)
			}
		}
	}
	return nil
}

// gridsOf returns the metrics by grid, which holds all steps that have a metric, or those asked for. It
// does not depend on the other metrics: a chart and its values are read apart.
func (s *Server) gridsOf(
	ctx context.Context, arms []arm, metrics []string, p plotted,
) (map[store.Grid][]string, error) {
	if p.to > 0 {
		return map[store.Grid][]string{{From: p.from, To: p.to, N: curvePoints}: metrics}, nil
	}
	last := map[string]int64{}
	for _, a := range arms {
		for _, r := range a.Runs {
			series, err := s.db.Series(ctx, r.ID, "")
			if err != nil {
				return nil, err
			}
			for _, x := range series {
				last[x.Name] = max(last[x.Name], x.LastStep)
			}
		}
	}
	grids := map[store.Grid][]string{}
	for _, name := range metrics {
		g := store.Grid{From: p.from, To: roundedUp(last[name]), N: curvePoints}
		grids[g] = append(grids[g], name)
	}
	return grids, nil
}

// roundedUp returns a step at most an eighth larger that stays the same for a while: the
// steps of a running run then rarely change the grid.
func roundedUp(step int64) int64 {
	unit := int64(1)
	for unit*16 <= step {
		unit *= 2
	}
	return (step + unit - 1) / unit * unit
}

// place returns where a span is drawn on x; false: nowhere.
type place func(store.Span) (float64, bool)

// places returns the places of a run's spans on an axis.
func (s *Server) places(ctx context.Context, r store.Run, g store.Grid, x string) (place, error) {
	if x == "step" {
		return func(sp store.Span) (float64, bool) { return float64(sp.From+sp.To) / 2, true }, nil
	}
	paces, err := s.db.Paces(ctx, r.ID, g)
	if err != nil {
		return nil, err
	}
	bySpan := make(map[int64]store.Pace, len(paces))
	for _, p := range paces {
		bySpan[max(p.Step-g.From, 0)/g.Width()] = p
	}
	return func(sp store.Span) (float64, bool) {
		if sp.To == 0 { // the start, which has no row
			return 0, !r.Started.IsZero() || x == "tokens"
		}
		p, ok := bySpan[(sp.Start-g.From)/g.Width()]
		if x == "tokens" {
			return float64(p.Tokens), ok
		}
		return p.Time.Sub(r.Started).Hours(), ok && !r.Started.IsZero()
	}, nil
}

// seriesOf turns spans into a line's points, with their range if they are many.
func seriesOf(spans []store.Span, at place) figure.Series {
	var out figure.Series
	summarised := slices.ContainsFunc(spans, func(s store.Span) bool { return s.N > 1 })
	for _, s := range spans {
		x, ok := at(s)
		if !ok {
			continue
		}
		out.Step, out.X, out.Y = append(out.Step, float64(s.Start)), append(out.X, x), append(out.Y, s.Mean)
		if summarised {
			out.Min, out.Max = append(out.Min, s.Min), append(out.Max, s.Max)
		}
	}
	return out
}

// curve builds the figure of a metric.
func (p plotted) curve(name string, arms []figure.Arm) figure.Curve {
	m, _ := metric.Find(name)
	f := figure.Curve{Head: figure.Head{Name: "curve", Title: m.Title, Order: p.order}, Arms: arms,
		Y: figure.Axis{Label: m.Axis.Label, Unit: m.AxisUnit(), Log: m.Axis.Log, Zero: m.Axis.Zero,
			Share: m.Unit == metric.Share}}
	if p.band == "" {
		f.Focus = focused(p.order, arms, m.Direction)
	}
	f.X = map[string]figure.Axis{"step": {Label: "training step"}, "tokens": {Label: "tokens sampled"},
		"time": {Label: "time", Unit: "hours"}}[p.x]
	if stage, before := metric.StageOf(name); before {
		f.X = figure.Axis{Label: stage.Step}
	}
	if m.Axis.Least != nil {
		f.Y.Cut, f.Y.Least = true, *m.Axis.Least
	}
	switch p.log {
	case "1":
		f.Y.Log = true
	case "0":
		f.Y.Log = false
	default:
		f.Y.Log = f.Y.Log || !f.Y.Share && figure.ManyTens(valuesOf(arms))
	}
	longest, fewest := 0, math.MaxInt
	for _, a := range arms {
		fewest = min(fewest, len(a.Seeds))
		for _, seed := range a.Seeds {
			longest = max(longest, len(seed.Step))
		}
	}
	if f.Smooth = p.smooth | 1; p.smooth == 0 {
		f.Smooth = 0
	}
	if p.smooth < 0 {
		f.Smooth = 0
		if longest >= smoothFrom {
			f.Smooth = longest/20 | 1
		}
	}
	// A t interval of two seeds is 13 standard errors wide and would flatten the rest.
	if p.band == "t" || p.band == "" && fewest >= 3 {
		f.Band = figure.TInterval
	}
	return f
}

// charts draws metrics of arms, in the order of metrics.
func (s *Server) charts(ctx context.Context, arms []arm, metrics []string, p plotted, q url.Values) ([]chart, error) {
	for _, a := range arms {
		p.order = append(p.order, a.Label)
	}
	read, staged, err := s.readAll(ctx, arms, metrics, p)
	if err != nil {
		return nil, err
	}
	var list []chart
	for _, name := range metrics {
		c := describeChart(name)
		c.Points = href("/points", pointsQuery(arms, q), "metric", name)
		drawn, all := read[name], read[name]
		stage, before := metric.StageOf(name)
		if before {
			c.Whole = true
			drawn, all = lines(staged[name])
		}
		f := p.curve(name, drawn)
		live, err := f.Live(curveHeight)
		switch {
		case errors.Is(err, figure.ErrNoData) && p.to > 0 && !before:
			c.Note = "No value between these steps."
		case errors.Is(err, figure.ErrNoData):
			c.Note = noValue(drawn, f.Y.Log)
		case err != nil:
			return nil, err
		default:
			c.SVG = template.HTML(live.SVG)
			c.Note, c.Band = chartNote(f, live.Note, arms, all), bandNote(f)
			if before {
				c.Note = strings.TrimSuffix(stageNote(stage, staged[name])+"; "+c.Note, "; ")
			}
		}
		c.Last = lastValues(arms, all)
		list = append(list, c)
	}
	return list, nil
}

// readAll reads metrics of arms by name, from training and from the stages before it.
func (s *Server) readAll(ctx context.Context, arms []arm, metrics []string, p plotted) (
	trained map[string][]figure.Arm, staged map[string][]stageLine, err error) {
	var rest []string
	for _, name := range metrics {
		if _, before := metric.StageOf(name); !before {
			rest = append(rest, name)
		}
	}
	if trained, err = s.readCurves(ctx, arms, rest, p); err != nil {
		return nil, nil, err
	}
	staged, err = s.readStages(ctx, arms, metrics)
	return trained, staged, err
}

// pointsQuery is the state that the values of a chart depend on.
func pointsQuery(arms []arm, q url.Values) url.Values {
	out := url.Values{}
	for _, name := range []string{"x", "smooth", "log", "band", "from", "to", "by", "vs", "sel"} {
		if v, ok := q[name]; ok {
			out[name] = v
		}
	}
	if len(out["sel"]) == 0 { // the page of a run
		out.Set("sel", arms[0].Runs[0].RID.String()[:selDigits])
		if !q.Has("smooth") {
			out.Set("smooth", "0")
		}
	}
	return out
}

// sendPoints sends what a chart draws, as JSON.
func (s *Server) sendPoints(w http.ResponseWriter, r *http.Request) {
	content, err := s.points(r.Context(), r.URL.Query())
	if err != nil {
		p := explain(r.Context(), err)
		refuse(w, p.Status, err.Error())
		return
	}
	send(w, r, http.StatusOK, "application/json", content)
}

func (s *Server) points(ctx context.Context, q url.Values) ([]byte, error) {
	arms, err := s.selected(ctx, q)
	if err != nil {
		return nil, err
	}
	p, err := readPlotted(q, -1)
	if err != nil {
		return nil, err
	}
	name := q.Get("metric")
	for _, a := range arms {
		p.order = append(p.order, a.Label)
	}
	read, staged, err := s.readAll(ctx, arms, []string{name}, p)
	if err != nil {
		return nil, err
	}
	drawn := read[name]
	if len(staged) > 0 {
		drawn, _ = lines(staged[name])
	}
	live, err := p.curve(name, drawn).Live(curveHeight)
	if err != nil {
		return nil, err
	}
	return json.Marshal(live.Data)
}

package reports

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"exp/experiments/quantity"
	"exp/harness/metric"
	"exp/reports/compare"
	"exp/reports/figure"
)

// Galleries of the sections on results.
const (
	groupFirst     = "First" // on the page before all others
	groupResults   = "Results"
	groupOptimum   = "Optimum"
	groupDiversity = "Diversity"
)

// ofDiversity reports whether a metric belongs to the section on diversity rather than to
// the results.
func ofDiversity(name string) bool {
	m, _ := metric.Find(name)
	return m.Diversity
}

// metricWord returns a metric's name for sentences.
func metricWord(name string) string {
	if m, ok := metric.Find(name); ok {
		return m.InSentence()
	}
	return strings.ReplaceAll(name, "_", " ")
}

// valueOf returns *p, NaN for nil.
func valueOf(p *float64) float64 {
	if p == nil {
		return math.NaN()
	}
	return *p
}

func bounds(iv *compare.Interval) (lo, hi float64) {
	if iv == nil {
		return math.NaN(), math.NaN()
	}
	return iv.Lo, iv.Hi
}

// estimate converts an arm's value for figures.
func estimate(e compare.Estimate) figure.Estimate {
	lo, hi := bounds(e.Interval)
	return figure.Estimate{Value: valueOf(e.Mean), Lo: lo, Hi: hi}
}

// estimateCell formats "0.562 [0.530, 0.594]".
func estimateCell(e compare.Estimate, digits int) line {
	v := valueOf(e.Mean)
	digits = fine(v, digits)
	l := text("%s", fixed(v, digits))
	if lo, hi := bounds(e.Interval); lo < hi {
		l = l.with(styled(muted, fmt.Sprintf(" [%s, %s]", fixed(lo, digits), fixed(hi, digits))))
	}
	return l
}

// fine returns digits, or 4 for a value that would round to zero.
func fine(v float64, digits int) int {
	if v != 0 && math.Abs(v) < 0.01 {
		return 4
	}
	return digits
}

// digitsOf returns the number of decimals for a metric's values.
func digitsOf(m *compare.Metric) int {
	var means []float64
	for _, e := range m.Arms {
		means = append(means, valueOf(e.Mean))
	}
	return digitsFor(means...)
}

// digitsFor returns, by the largest value, 3 decimals up to 1, 2 below 10 and 1 above.
func digitsFor(values ...float64) int {
	most := 0.0
	for _, v := range values {
		if a := math.Abs(v); !math.IsInf(a, 0) && !math.IsNaN(a) {
			most = max(most, a)
		}
	}
	switch {
	case most <= 1:
		return 3
	case most < 10:
		return 2
	}
	return 1
}

// resultsSection shows scores and differences, suite by suite.
func (s *source) resultsSection(d drawn) section {
	sec := section{ID: "results", Title: "Results"}
	sec = withGallery(sec, d.groups[groupOptimum])
	sec.Blocks = append(sec.Blocks, s.suiteGrids(func(m string) bool { return !ofDiversity(m) })...)
	if g := s.ratingGrid(); g != nil {
		sec.Blocks = append(sec.Blocks, g)
	}
	return withGallery(sec, d.groups[groupResults])
}

func (s *source) diversitySection(d drawn) section {
	sec := section{ID: "diversity", Title: "Diversity"}
	sec.Blocks = append(sec.Blocks, paragraph{text("Whether a policy knows one way to solve a problem or " +
		"several. Answers are compared in the task's canonical form, so a solution written in two ways counts " +
		"once. All arms have the same number of samples per problem.")})
	sec.Blocks = append(sec.Blocks, s.suiteGrids(ofDiversity)...)
	return withGallery(sec, d.groups[groupDiversity])
}

// suiteGrids shows scores and differences of the metrics to keep, suite by suite.
func (s *source) suiteGrids(keep func(metric string) bool) []block {
	if s.result == nil {
		return s.aloneGrids(keep)
	}
	var list []block
	for i := range s.result.Suites {
		suite := &s.result.Suites[i]
		scores := s.scoreGrid(suite, keep)
		if scores.long() {
			tested := func(name string) bool { return keep(name) && suite.Metric(name).Tested }
			list = append(list, s.scoreGrid(suite, tested), folded{"All metrics of " + suite.Name, []block{scores}})
		} else {
			list = append(list, scores)
		}
		list = append(list, s.pairGrid(suite, keep).orFolded())
	}
	return list
}

func withGallery(sec section, g gallery) section {
	sec.Blocks = slices.DeleteFunc(sec.Blocks, func(b block) bool { t, ok := b.(*grid); return ok && t == nil })
	if len(g) > 0 {
		sec.Blocks = append(sec.Blocks, foldedFigures(g, ""))
	}
	return sec
}

// foldedFigures shows a gallery on demand.
func foldedFigures(g gallery, about string) folded {
	const most = 8
	var titles []string
	for i, f := range g {
		if i == most && len(g) > most+1 {
			titles = append(titles, fmt.Sprintf("%d more", len(g)-most))
			break
		}
		titles = append(titles, f.Title)
	}
	count := quantity.Plural(len(g), "figure")
	return folded{strings.TrimSpace(about + " " + count + ": " + strings.Join(titles, " · ")), []block{g}}
}

// scoreGrid shows each arm's metrics on a suite; nil if none is wanted.
func (s *source) scoreGrid(suite *compare.Suite, wanted func(string) bool) *grid {
	g := &grid{Caption: fmt.Sprintf("%s: %s, %s each", suite.Name, quantity.Plural(suite.Items, "problem"),
		quantity.Plural(suite.Samples, "sample")), Columns: []column{left("metric")}}
	starts := false
	for _, m := range suite.Metrics {
		starts = starts || wanted(m.Name) && sameStart(&m)
	}
	if starts {
		g.Columns = append(g.Columns, right("start"))
	}
	for _, a := range s.arms {
		g.Columns = append(g.Columns, right(a.Name))
	}
	for i := range suite.Metrics {
		m := &suite.Metrics[i]
		if !wanted(m.Name) {
			continue
		}
		digits := digitsOf(m)
		cells := []line{s.metricCell(m)}
		if starts {
			v := math.NaN()
			if sameStart(m) {
				v = valueOf(m.Arms[0].Start)
			}
			cells = append(cells, line{styled(muted, fixed(v, fine(v, digits)))})
		}
		for _, e := range m.Arms {
			cells = append(cells, estimateCell(e, digits))
		}
		g.add(cells...)
	}
	if len(g.Rows) == 0 {
		return nil
	}
	g.Note = text("%s", s.intervalNote(suite))
	return g
}

// sameStart reports whether all arms started from the same known value.
func sameStart(m *compare.Metric) bool {
	if len(m.Arms) == 0 || m.Arms[0].Start == nil {
		return false
	}
	first := *m.Arms[0].Start
	return !slices.ContainsFunc(m.Arms, func(e compare.Estimate) bool { return e.Start == nil || *e.Start != first })
}

func (s *source) metricCell(m *compare.Metric) line {
	l := text("%s", m.Name)
	if m.Tested {
		l = line{styled(strong, m.Name)}
	}
	switch m.Direction {
	case "up":
		l = l.with(styled(muted, " ↑"))
	case "down":
		l = l.with(styled(muted, " ↓"))
	}
	if m.Unit != "" && m.Unit != metric.Share {
		l = l.with(styled(muted, " "+m.Unit))
	}
	return l
}

// intervalNote explains the brackets in a suite's tables.
func (s *source) intervalNote(suite *compare.Suite) string {
	level := fixed(100*s.result.Level, 0)
	over := "over problems only: an arm has too few seeds to cover other training seeds"
	switch {
	case suite.SeedVariance:
		over = "Student's t, for other seeds and other problems"
	case mixed(suite):
		over = fmt.Sprintf("Student's t, for other seeds and other problems; of arms with fewer than %d seeds over "+
			"problems only", compare.MinSeeds)
	}
	return fmt.Sprintf("Means over problems and seeds (%s); ↑ and ↓ show the better direction, bold metrics were "+
		"tested. Brackets are %s\u202f%% intervals, %s%s.",
		s.seedText(), level, over, unanimousNote(suite, func(string) bool { return true }))
}

// unanimousNote explains the interval of a share that is 0 or 1 on every problem; empty if the
// suite has no such share among some metrics.
func unanimousNote(suite *compare.Suite, among func(name string) bool) string {
	for _, m := range suite.Metrics {
		for _, e := range m.Arms {
			lo, hi := bounds(e.Interval)
			whole := valueOf(e.Mean) == 0 || valueOf(e.Mean) == 1
			if among(m.Name) && m.Unit == metric.Share && whole && lo < hi {
				return "; Wilson's where every problem has 0 or every one 1"
			}
		}
	}
	return ""
}

// seedText returns "FlowRL 3 seeds, PPO 3 seeds", or "3 seeds per arm".
func (s *source) seedText() string {
	var parts []string
	same := true
	for _, a := range s.arms {
		same = same && len(a.Runs) == len(s.arms[0].Runs)
		parts = append(parts, a.Name+" "+quantity.Plural(len(a.Runs), "seed"))
	}
	if same {
		parts = []string{quantity.Plural(len(s.arms[0].Runs), "seed")}
		if len(s.arms) > 1 {
			parts[0] += " per arm"
		}
	}
	return strings.Join(parts, ", ")
}

// pairGrid shows the tested differences between arms, nil if none is wanted.
func (s *source) pairGrid(suite *compare.Suite, wanted func(string) bool) *grid {
	g := &grid{Caption: "Differences", Columns: []column{left("metric"), left("arms"), right("Δ"), right("p"),
		right("p Holm"), right("MDE"), left("verdict")}}
	alone := len(s.arms) == 2 // a column for the arms would be constant
	if alone {
		g.Caption = "Differences, " + s.arms[0].Name + " − " + s.arms[1].Name
		g.Columns = slices.Delete(g.Columns, 1, 2)
	}
	for i := range suite.Metrics {
		m := &suite.Metrics[i]
		if !m.Tested || !wanted(m.Name) {
			continue
		}
		digits := digitsOf(m)
		for _, p := range m.Pairs {
			at := fine(valueOf(p.Delta), digits)
			delta := text("%s", signed(valueOf(p.Delta), at))
			if lo, hi := bounds(p.Interval); lo < hi {
				delta = delta.with(styled(muted, fmt.Sprintf(" [%s, %s]", signed(lo, at), signed(hi, at))))
			}
			cells := []line{{styled(strong, m.Name)}, {s.arms[p.A].span(), {Text: " − "}, s.arms[p.B].span()}, delta,
				text("%s", pText(valueOf(p.P))), text("%s", pText(valueOf(p.PHolm))),
				text("%s", fixed(valueOf(p.MDE), fine(valueOf(p.MDE), digits))), s.verdictCell(p)}
			if alone {
				cells = slices.Delete(cells, 1, 2)
			}
			g.add(cells...)
		}
	}
	if len(g.Rows) == 0 {
		return nil
	}
	g.Note = text("Δ is paired by problem. %s; p Holm is p with Holm’s correction for the %s in this report. "+
		"MDE (minimum detectable effect): the true difference that would give p ≤ 0.05, uncorrected, "+
		"80\u202f%% of the time. α = %g.",
		testNote(suite), quantity.Plural(s.result.Tests, "test"), s.result.Alpha)
	return g
}

// mixed reports whether some arms' intervals cover other seeds and some do not.
func mixed(suite *compare.Suite) bool {
	return slices.ContainsFunc(suite.Metrics, func(m compare.Metric) bool {
		arms, _ := m.Kinds()
		return len(arms) > 1
	})
}

// testNote explains p.
func testNote(suite *compare.Suite) string {
	if suite.SeedVariance {
		return "p is from the t test that gives the interval, and covers other seeds and problems"
	}
	few := "from a sign-flip test over problems and holds for these runs only"
	for i := range suite.Metrics {
		if _, kinds := suite.Metrics[i].Kinds(); len(kinds) > 1 {
			return "p is from the t test that gives the interval; of arms with too few seeds it is " + few
		}
	}
	return "An arm has too few seeds, so p is " + few
}

// verdictCell names the arm that a verdict favours.
func (s *source) verdictCell(p compare.Pair) line {
	a, b := s.arms[p.A].Name, s.arms[p.B].Name
	switch p.Verdict {
	case compare.Better:
		return line{styled(good, a+" better")}
	case compare.Worse:
		return line{styled(good, b+" better")}
	case compare.Higher:
		return line{styled(strong, a+" higher")}
	case compare.Lower:
		return line{styled(strong, b+" higher")}
	}
	return line{styled(muted, string(p.Verdict))}
}

func pText(p float64) string {
	if p < 0.001 { // as exp compare prints it
		return "< 0.001"
	}
	return fixed(p, 3)
}

// aloneGrids returns the tables of one arm: means over seeds, or one seed's value with
// the interval recorded by its evaluation.
func (s *source) aloneGrids(wanted func(string) bool) []block {
	a := s.arms[0]
	var out []block
	for _, suite := range suiteNames(s.arms) {
		g := &grid{Caption: suite, Columns: []column{left("metric"), right("start"), right(a.Name)}}
		for _, metric := range s.evalMetrics(suite) {
			if !wanted(metric) {
				continue
			}
			start, _ := a.mean(func(r *run) float64 { return r.evalValue(suite+startSuffix, metric) })
			end, _ := a.mean(func(r *run) float64 { return r.evalValue(suite, metric) })
			digits := digitsFor(start, end)
			g.add(text("%s", metric), line{styled(muted, fixed(start, fine(start, digits)))},
				aloneCell(a, suite, metric, fine(end, digits)))
		}
		if len(g.Rows) == 0 {
			continue
		}
		g.Note = text("Mean over %s; brackets give the smallest and the largest seed.",
			quantity.Plural(len(a.Runs), "seed"))
		if len(a.Runs) == 1 {
			g.Note = text("One seed: brackets are 95\u202f%% intervals over problems and say nothing about other " +
				"training seeds.")
		}
		out = append(out, g)
	}
	return out
}

func aloneCell(a *arm, suite, metric string, digits int) line {
	v, _ := a.mean(func(r *run) float64 { return r.evalValue(suite, metric) })
	lo, hi := a.spread(func(r *run) float64 { return r.evalValue(suite, metric) })
	if len(a.Runs) == 1 {
		if e, ok := a.Runs[0].eval(suite, metric); ok {
			lo, hi = e.Lo, e.Hi
		}
	}
	l := text("%s", fixed(v, digits))
	if lo < hi {
		l = l.with(styled(muted, fmt.Sprintf(" [%s, %s]", fixed(lo, digits), fixed(hi, digits))))
	}
	return l
}

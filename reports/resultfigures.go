package reports

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"exp/experiments/quantity"
	"exp/harness/metric"
	"exp/reports/compare"
	"exp/reports/figure"
)

// resultFigures draws the final scores of a comparison or of one arm.
func (s *source) resultFigures() []drawing {
	list := []drawing{try(groupResults, s.suiteBars())}
	list = append(list, s.forests()...)
	list = append(list, s.acrossFigures()...)
	for _, suite := range s.scored() {
		list = append(list, s.keyFigure(suite)...)
		list = append(list, try(groupResults, s.passAtK(suite)), try(groupDiversity, s.diversity(suite)),
			try(groupDiversity, s.clusters(suite)))
		list = append(list, s.choice(suite)...)
		list = append(list, s.judged(suite)...)
		list = append(list, s.graderFigures(suite)...)
	}
	return append(append(list, s.itemFigures()...), s.ratingFigure())
}

// drawer is a figure that can be drawn.
type drawer interface {
	Draw() (figure.Figure, error)
	Heading() (name, title string)
}

func try(group string, f drawer) drawing {
	name, title := f.Heading()
	return drawing{group: group, name: name, title: title, draw: f.Draw}
}

// scoredSuite holds a suite's metrics for figures, from any source.
type scoredSuite struct {
	name           string
	items, samples int
	interval       string // kind of the estimates' intervals
	metric         func(name string) []figure.Estimate
	seeds          func(name string, arm int) []float64
	curve          func(arm int) []figure.PassKPoint
	start          func(metric string) float64 // before training; NaN if not known, or if arms differ in it
}

// scored lists the suites of the comparison or of the only arm.
func (s *source) scored() []scoredSuite {
	var out []scoredSuite
	if s.result != nil {
		for i := range s.result.Suites {
			out = append(out, s.comparedSuite(&s.result.Suites[i]))
		}
		return out
	}
	for _, name := range suiteNames(s.arms) {
		out = append(out, s.aloneSuite(name))
	}
	return out
}

func (s *source) comparedSuite(suite *compare.Suite) scoredSuite {
	out := scoredSuite{name: suite.Name, items: suite.Items, samples: suite.Samples,
		interval: "95 %, over problems, not training seeds"}
	switch {
	case suite.SeedVariance:
		out.interval = "95 %, Student's t over seeds and problems"
	case mixed(suite):
		out.interval = fmt.Sprintf("95 %%, Student's t over seeds and problems; of arms with fewer than %d seeds "+
			"over problems, not training seeds", compare.MinSeeds)
	}
	out.interval += unanimousNote(suite, func(name string) bool {
		_, isPass := metric.PassK(name)
		return isPass
	})
	out.metric = func(name string) []figure.Estimate {
		m := suite.Metric(name)
		list := make([]figure.Estimate, len(s.arms))
		for i := range list {
			list[i] = figure.Point(math.NaN())
			if m != nil {
				list[i] = estimate(m.Arms[i])
			}
		}
		return list
	}
	out.start = func(name string) float64 {
		if m := suite.Metric(name); m != nil && sameStart(m) {
			return *m.Arms[0].Start
		}
		return math.NaN()
	}
	out.seeds = func(name string, arm int) []float64 {
		var list []float64
		if m := suite.Metric(name); m != nil {
			for _, v := range m.Arms[arm].Seeds {
				list = append(list, valueOf(v.Value))
			}
		}
		return list
	}
	out.curve = func(arm int) []figure.PassKPoint {
		var list []figure.PassKPoint
		for _, c := range suite.Curves {
			if c.Arm != arm {
				continue
			}
			for _, p := range c.Points {
				lo, hi := bounds(p.Interval)
				list = append(list, figure.PassKPoint{K: p.K,
					Estimate: figure.Estimate{Value: valueOf(p.Mean), Lo: lo, Hi: hi}})
			}
		}
		return list
	}
	return out
}

// aloneSuite computes means over seeds from the stored evaluations; for one seed it takes
// the stored interval.
func (s *source) aloneSuite(name string) scoredSuite {
	a := s.arms[0]
	out := scoredSuite{name: name, interval: "the smallest to the largest seed"}
	if len(a.Runs) == 1 {
		out.interval = "95 %, over problems, not training seeds"
	}
	if e, ok := a.Runs[0].eval(name, "pass@1"); ok {
		out.items, out.samples = int(e.Items), int(e.N)
	}
	one := func(metric string) figure.Estimate {
		value := func(r *run) float64 { return r.evalValue(name, metric) }
		v, _ := a.mean(value)
		lo, hi := a.spread(value)
		if e, ok := a.Runs[0].eval(name, metric); ok && len(a.Runs) == 1 {
			lo, hi = e.Lo, e.Hi
		}
		return figure.Estimate{Value: v, Lo: lo, Hi: hi}
	}
	out.metric = func(metric string) []figure.Estimate { return []figure.Estimate{one(metric)} }
	out.start = func(metric string) float64 {
		v := a.Runs[0].evalValue(name+startSuffix, metric)
		for _, r := range a.Runs {
			if r.evalValue(name+startSuffix, metric) != v {
				return math.NaN()
			}
		}
		return v
	}
	out.seeds = func(metric string, _ int) []float64 {
		var list []float64
		for _, r := range a.Runs {
			list = append(list, r.evalValue(name, metric))
		}
		return list
	}
	out.curve = func(int) []figure.PassKPoint {
		var list []figure.PassKPoint
		for _, m := range s.evalMetrics(name) {
			if k, ok := metric.PassK(m); ok {
				list = append(list, figure.PassKPoint{K: k, Estimate: one(m)})
			}
		}
		slices.SortFunc(list, func(a, b figure.PassKPoint) int { return a.K - b.K })
		return list
	}
	return out
}

// suiteBars compares the arms' accuracy on all suites.
func (s *source) suiteBars() figure.Bar {
	f := figure.Bar{Head: figure.Head{Name: "suites", Title: "Accuracy by suite", Order: labels(s.arms),
		About: "pass@1: the share of a problem's completions that are right, mean over problems"},
		Y: axisOf("pass@1")}
	for _, a := range s.arms {
		f.Arms = append(f.Arms, figure.ArmValues{Name: a.label, Seeds: len(a.Runs)})
	}
	for _, suite := range s.scored() {
		f.Groups = append(f.Groups, suite.name)
		if v := suite.start("pass@1"); !math.IsNaN(v) || f.Start != nil {
			for len(f.Start) < len(f.Groups)-1 {
				f.Start = append(f.Start, math.NaN())
			}
			f.Start = append(f.Start, v)
		}
		f.Interval = suite.interval
		for i, e := range suite.metric("pass@1") {
			f.Arms[i].Values = append(f.Arms[i].Values, e)
		}
	}
	return f
}

func (s *source) passAtK(suite scoredSuite) figure.PassK {
	f := figure.PassK{Head: figure.Head{Name: "pass-at-k-" + slug(suite.name), Title: "pass@k on " + suite.name,
		Order: labels(s.arms), Focus: focused(s.arms),
		About: "Chance that at least one of k samples of a problem is right, unbiased estimate from n samples, mean " +
			"over problems"},
		Problems: suite.items, Samples: suite.samples, Interval: suite.interval}
	for i, a := range s.arms {
		f.Arms = append(f.Arms, figure.PassKArm{Name: a.label, Seeds: len(a.Runs), Points: suite.curve(i)})
	}
	if len(f.Arms) > 0 {
		for _, p := range f.Arms[0].Points {
			if v := suite.start(fmt.Sprintf("pass@%d", p.K)); !math.IsNaN(v) {
				f.Start = append(f.Start, figure.PassKPoint{K: p.K, Estimate: figure.Point(v)})
			}
		}
	}
	return f
}

func (s *source) diversity(suite scoredSuite) figure.Scatter {
	return s.againstAccuracy(suite, "distinct_correct", perProblem(suite.samples), figure.Scatter{
		Head: figure.Head{Name: "diversity-" + slug(suite.name), Title: "Diversity against accuracy on " + suite.name,
			About: "Different right answers among a problem's samples against the share of right samples, means " +
				"over problems. Up and to the right is better"}})
}

// clusters is for tasks whose problems have one right answer that can be reached in
// several ways.
func (s *source) clusters(suite scoredSuite) figure.Scatter {
	return s.againstAccuracy(suite, "correct_clusters", perProblem(suite.samples), figure.Scatter{
		Head: figure.Head{Name: "clusters-" + slug(suite.name), Title: "Ways to be right against accuracy on " +
			suite.name,
			About: "Groups of similar texts among a problem's right samples against the share of right samples, " +
				"means over problems. Up and to the right is better"}})
}

// judged is for runs whose completions a language model has judged.
func (s *source) judged(suite scoredSuite) []drawing {
	known := func(e figure.Estimate) bool { return !math.IsNaN(e.Value) }
	if !slices.ContainsFunc(suite.metric("judged_diversity"), known) {
		return nil
	}
	return []drawing{try(groupDiversity, s.againstAccuracy(suite, "judged_diversity", "1 to 5", figure.Scatter{
		Head: figure.Head{Name: "judged-diversity-" + slug(suite.name),
			Title: "Diversity by a judge against accuracy on " + suite.name,
			About: "How many approaches a language model sees in a problem's samples, from 1 (nearly all share one) " +
				"to 5, against the share of right samples, means over problems. Up and to the right is better"}}))}
}

// againstAccuracy plots a metric of the arms, which counts in unit, against their accuracy.
func (s *source) againstAccuracy(suite scoredSuite, metric, unit string, f figure.Scatter) figure.Scatter {
	f.Order, f.Interval = labels(s.arms), suite.interval
	f.X, f.Y = axisOf("pass@1"), axisOf(metric)
	f.X.Label += ", pass@1"
	f.Y.Unit = unit
	xs, ys := suite.metric("pass@1"), suite.metric(metric)
	if start := [2]float64{suite.start("pass@1"), suite.start(metric)}; start[0] >= 0 && start[1] >= 0 {
		f.Start = &start
	}
	for i, a := range s.arms {
		drawn := figure.ScatterArm{Name: a.label, X: xs[i], Y: ys[i]}
		sx, sy := suite.seeds("pass@1", i), suite.seeds(metric, i)
		for j := range min(len(sx), len(sy)) {
			if len(a.Runs) == 1 {
				break // the arm's mark already shows it
			}
			drawn.Seeds = append(drawn.Seeds, [2]float64{sx[j], sy[j]})
		}
		f.Arms = append(f.Arms, drawn)
	}
	return f
}

func perProblem(samples int) string {
	if samples == 0 {
		return "per problem"
	}
	return fmt.Sprintf("per problem, %s", quantity.Plural(samples, "sample"))
}

// forests draws the tested differences, one figure per unit: a share and a number of
// solutions cannot share an axis.
func (s *source) forests() []drawing {
	if s.result == nil {
		return []drawing{{name: "differences", title: "Paired differences",
			reason: notTheirs{"a difference needs two arms"}}}
	}
	var units []string
	forests := map[string]*figure.Forest{}
	for _, suite := range s.result.Suites {
		for i := range suite.Metrics {
			m := &suite.Metrics[i]
			if !m.Tested || len(s.arms) > mostArms && allEqual(m) {
				continue
			}
			f := forests[m.Unit]
			if f == nil {
				units = append(units, m.Unit)
				f = s.forest(m.Unit)
				forests[m.Unit] = f
			}
			f.Rows = append(f.Rows, s.forestRows(suite, m)...)
		}
	}
	var out []drawing
	for _, u := range units {
		out = append(out, try(groupResults, *forests[u]))
	}
	if len(out) == 0 {
		out = append(out, drawing{name: "differences", title: "Paired differences",
			reason: errors.New("no metric was tested")})
	}
	return out
}

func (s *source) forest(unit string) *figure.Forest {
	f := &figure.Forest{Head: figure.Head{Name: "differences-" + slug(unit), Title: "Paired differences, " +
		unitWord(unit), Order: labels(s.arms),
		About: "Difference between two arms on the same problems, first minus second"},
		X: figure.Axis{Label: "difference", Unit: unit}, Seeds: s.seedText(), Interval: fixed(100*s.result.Level, 0) +
			" %, without Holm's correction; p Holm includes it"}
	if len(s.arms) > mostArms && s.result.Baseline < 0 {
		f.About += ". Only pairs with each metric's best arm; the tables have all"
	}
	if len(s.arms) == 2 {
		a, b := s.arms[0].label, s.arms[1].label
		f.X.Label, f.Less, f.More = a+" − "+b, b+" higher", a+" higher"
	}
	return f
}

// unitWord returns a unit's name for a title.
func unitWord(unit string) string {
	switch unit {
	case metric.Share:
		return "shares"
	case "":
		return "other metrics"
	}
	return unit
}

// mostArms is the most arms for which a forest plot shows every pair.
const mostArms = 4

// forestPairs returns the pairs of a metric to draw: with many arms and no baseline, those with
// the best arm, which the caption says.
func (s *source) forestPairs(m *compare.Metric) []compare.Pair {
	if len(s.arms) <= mostArms || s.result.Baseline >= 0 {
		return m.Pairs
	}
	best, top := 0, math.Inf(-1)
	for i, e := range m.Arms {
		v := valueOf(e.Mean)
		if m.Direction == "down" {
			v = -v
		}
		if v > top {
			best, top = i, v
		}
	}
	return slices.DeleteFunc(slices.Clone(m.Pairs), func(p compare.Pair) bool { return p.A != best && p.B != best })
}

func (s *source) forestRows(suite compare.Suite, m *compare.Metric) []figure.ForestRow {
	short := labels(s.arms)
	var rows []figure.ForestRow
	for _, p := range s.forestPairs(m) {
		name := strings.ReplaceAll(m.Name, "_", " ")
		if len(s.result.Suites) > 1 {
			name = suite.Name + " " + name
		}
		if len(s.arms) > 2 {
			name += ", " + short[p.A] + " − " + short[p.B]
		}
		lo, hi := bounds(p.Interval)
		seeds := min(len(s.arms[p.A].Runs), len(s.arms[p.B].Runs))
		note := ""
		if p.PHolm != nil {
			note = "p Holm " + pText(*p.PHolm)

		}
		rows = append(rows, figure.ForestRow{Name: name, Seeds: seeds,
			Diff: figure.Estimate{Value: valueOf(p.Delta), Lo: lo, Hi: hi}, Note: note})
	}
	return rows
}

// withoutPrefix drops the names' common prefix up to a dash, slash or the like:
// countdown-ppo and countdown-grpo become ppo and grpo. A number keeps what stands before it,
// the key of sweep_beta-5.
func withoutPrefix(names []string) []string {
	end := strings.LastIndexAny(names[0], "-_/: ") + 1
	for ; end > 0; end = strings.LastIndexAny(names[0][:end-1], "-_/: ") + 1 {
		prefix := names[0][:end]
		if !slices.ContainsFunc(names, func(n string) bool {
			return !strings.HasPrefix(n, prefix) || n == prefix || n[end] >= '0' && n[end] <= '9'
		}) {
			break
		}
	}
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = n[end:]
	}
	return out
}

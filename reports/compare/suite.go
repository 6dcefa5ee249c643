package compare

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"exp/eval"
	"exp/harness/metric"
)

// measured is a suite with scores of all runs.
type measured struct {
	name   string
	of     map[*record]*evaluation
	start  map[*record]*evaluation // nil if the run has none
	scores map[*record]*scores     // nil if any run kept none
	before map[*record]*scores     // of start; the same pointer for the same blob
}

// chooseSuites finds the suites with scores of all runs, and the evaluations to compare: the
// newest scoring settings that all runs share, else each run's newest, which then differ in a
// key to refuse or waive.
func (c *comparison) chooseSuites() error {
	seen := map[string]int{}
	runs := 0
	c.records(func(_ int, r *record) {
		runs++
		own := map[string]bool{}
		for i := range r.evaluations {
			if name := r.evaluations[i].suite; !own[name] && !strings.HasSuffix(name, startSuffix) {
				own[name] = true
				seen[name]++
			}
		}
	})
	names := sortedKeys(seen)
	if err := c.checkSuites(names); err != nil {
		return err
	}
	for _, name := range names {
		switch {
		case !c.wanted(name):
		case seen[name] < runs:
			c.note("%s is excluded: only %d of %d runs were scored on it", name, seen[name], runs)
		default:
			c.suites = append(c.suites, c.evaluationsOn(name))
		}
	}
	if len(c.suites) > 0 {
		return nil
	}
	d := &differences{comparison: c}
	d.add("suites", Protocol, func(r *record) string {
		var own []string
		for i := range r.evaluations {
			if name := r.evaluations[i].suite; !strings.HasSuffix(name, startSuffix) {
				own = append(own, name)
			}
		}
		slices.Sort(own)
		return strings.Join(slices.Compact(own), ", ")
	})
	return &NotComparableError{Arms: c.result.Arms, Comparability: Comparability{Differences: d.list,
		Excluded: c.excluded()}}
}

// checkSuites refuses names of suites without a score of any run.
func (c *comparison) checkSuites(names []string) error {
	for _, want := range c.o.Suites {
		if !slices.ContainsFunc(names, func(name string) bool { return suiteIs(name, want) }) {
			return &OptionError{Option: "suite", Value: want, Problem: "has no scored run", Advice: "one of " +
				strings.Join(names, ", ")}
		}
	}
	return nil
}

func (c *comparison) wanted(name string) bool {
	return len(c.o.Suites) == 0 || slices.ContainsFunc(c.o.Suites,
		func(want string) bool { return suiteIs(name, want) })
}

// suiteIs reports whether want names the suite, with or without the task.
func suiteIs(name, want string) bool { return name == want || strings.HasSuffix(name, "/"+want) }

func (c *comparison) evaluationsOn(name string) *measured {
	m := &measured{name: name, of: map[*record]*evaluation{}, start: map[*record]*evaluation{}}
	how := sharedSettings(c.allRecords(), name)
	c.records(func(_ int, r *record) {
		m.of[r] = r.find(name, how)
		m.start[r] = r.find(name+startSuffix, m.of[r].how)
	})
	return m
}

// measure computes the metrics of all suites.
func (c *comparison) measure() error {
	for _, m := range c.suites {
		if err := c.readScores(m); err != nil {
			return err
		}
		s, err := c.measureSuite(m)
		if err != nil {
			return err
		}
		c.result.Suites = append(c.result.Suites, *s)
	}
	return c.checkMetrics()
}

// readScores reads a suite's per-problem scores. All runs have the suite's order of
// problems, which pairs them.
func (c *comparison) readScores(m *measured) (err error) {
	m.scores, m.before = map[*record]*scores{}, map[*record]*scores{}
	var first *record
	complete := true
	c.records(func(_ int, r *record) {
		if err != nil {
			return
		}
		var s *scores
		if s, err = c.scoresOf(m.of[r]); err != nil {
			return
		}
		if m.before[r], err = c.scoresOf(m.start[r]); err != nil {
			return
		}
		m.scores[r] = s
		switch {
		case s == nil || len(s.Items) == 0:
			complete = false
		case first == nil:
			first = r
		default:
			if why := unpaired(m.scores[first].Items, s.Items); why != "" {
				err = &PairingError{Suite: m.name, Runs: [2]string{first.run.RID.String(), r.run.RID.String()},
					Why: why}
			}
		}
	})
	if !complete {
		m.scores = nil
	}
	return err
}

// unpaired explains how two lists of problems differ, "" if they do not.
func unpaired(a, b []eval.Item) string {
	if len(a) != len(b) {
		return fmt.Sprintf("%d and %d problems", len(a), len(b))
	}
	for i := range a {
		if a[i].ProblemID != b[i].ProblemID || a[i].Cluster != b[i].Cluster {
			return fmt.Sprintf("problem %d is %s in one and %s in the other", i+1, a[i].ProblemID, b[i].ProblemID)
		}
	}
	return ""
}

func (c *comparison) measureSuite(m *measured) (*Suite, error) {
	first := m.of[c.arms[0].runs[0]]
	out := &Suite{Name: m.name, Digest: first.digest.String(), Protocol: first.protocol.String(),
		Samples: first.samples, SeedVariance: true}
	c.records(func(_ int, r *record) { out.Samples = min(out.Samples, m.of[r].samples) })
	for _, s := range c.arms {
		out.SeedVariance = out.SeedVariance && len(s.runs) >= MinSeeds
	}
	ks, err := c.ksOf(m, out.Samples)
	if err != nil {
		return nil, err
	}
	tests := c.o.Metrics
	if len(tests) == 0 {
		tests = defaultTests(ks[len(ks)-1])
	}
	t, err := c.tableOf(m, ks)
	if err != nil {
		return nil, err
	}
	c.tables = append(c.tables, t)
	out.Items, out.Clusters = t.items, t.clusters
	for i := range t.panels {
		out.Metrics = append(out.Metrics, Metric{Tested: slices.Contains(tests, t.panels[i].def.Name)})
	}
	t.fill(c, out.Metrics)
	out.Metrics = append(out.Metrics, c.runMetrics(m, out.Metrics, tests)...)
	out.Curves = c.curves(out, ks)
	return out, nil
}

// ksOf returns the k of pass@k: the ones in the options, else the ones that every run has.
func (c *comparison) ksOf(m *measured, samples int) ([]int, error) {
	for _, k := range c.o.K {
		if k > samples {
			return nil, &OptionError{Option: "k", Value: strconv.Itoa(k),
				Problem: fmt.Sprintf("exceeds the %d samples per problem of %s", samples, m.name),
				Advice:  "pass@k is never extrapolated; set eval.final.n to sample more"}
		}
	}
	if len(c.o.K) > 0 {
		return withOne(c.o.K), nil
	}
	times, runs := map[int]int{}, 0
	c.records(func(_ int, r *record) {
		runs++
		for name := range m.of[r].values {
			if k, ok := metric.PassK(name); ok {
				times[k]++
			}
		}
	})
	var ks []int
	for k, n := range times {
		if n == runs {
			ks = append(ks, k)
		}
	}
	return withOne(ks), nil
}

// curves collects pass@k by arm.
func (c *comparison) curves(s *Suite, ks []int) []Curve {
	curves := make([]Curve, len(c.arms))
	for a := range c.arms {
		curves[a] = Curve{Arm: a, Points: []Point{}}
		for _, k := range ks {
			if m := s.Metric(nameAt(metric.PassAt, k)); m != nil {
				e := &m.Arms[a]
				curves[a].Points = append(curves[a].Points,
					Point{K: k, Mean: e.Mean, Interval: e.Interval, Start: e.Start})
			}
		}
	}
	return curves
}

// checkMetrics refuses to test a metric that no suite has.
func (c *comparison) checkMetrics() error {
	var names []string
	for i := range c.result.Suites {
		for j := range c.result.Suites[i].Metrics {
			if name := c.result.Suites[i].Metrics[j].Name; !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	for _, want := range c.o.Metrics {
		if !slices.Contains(names, want) {
			return &OptionError{Option: "metric", Value: want, Problem: "does not exist", Advice: "one of " +
				strings.Join(names, ", ")}
		}
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// known returns a pointer to v, nil if v is not finite.
func known(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

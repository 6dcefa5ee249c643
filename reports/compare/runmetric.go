package compare

import (
	"math"
	"slices"

	"exp/eval/stat"
	"exp/experiments/ident"
	"exp/harness/metric"
)

// runMetrics compares, over runs alone, the metrics that every run recorded and that are
// not in had, which have per-problem scores.
func (c *comparison) runMetrics(m *measured, had []Metric, tests []string) []Metric {
	times, runs := map[string]int{}, 0
	c.records(func(_ int, r *record) {
		runs++
		for name := range m.of[r].values {
			times[name]++
		}
	})
	var list []Metric
	for _, name := range runMetricNames(times) {
		if times[name] < runs || slices.ContainsFunc(had, func(h Metric) bool { return h.Name == name }) {
			continue
		}
		d, _ := metric.Find(name)
		out := Metric{Name: name, Unit: d.Unit, Direction: string(d.Direction), Definition: d.Definition, ByRun: true,
			Tested: slices.Contains(tests, name), Pairs: []Pair{}}
		for a := range c.arms {
			out.Arms = append(out.Arms, c.runEstimate(m, name, a))
		}
		for _, ab := range c.pairs() {
			out.Pairs = append(out.Pairs, c.runPair(m, &out, ab[0], ab[1]))
		}
		list = append(list, out)
	}
	return list
}

// runMetricNames orders metrics as definitions does, then by name.
func runMetricNames(times map[string]int) []string {
	var names []string
	for _, d := range definitions(ksIn(times)) {
		if times[d.Name] > 0 {
			names = append(names, d.Name)
		}
	}
	for _, name := range sortedKeys(times) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// ksIn returns the k of each pass@k among metrics.
func ksIn(names map[string]int) []int {
	var ks []int
	for name := range names {
		if k, ok := metric.PassK(name); ok {
			ks = append(ks, k)
		}
	}
	return withOne(ks)
}

// runValues returns the values of a metric that an arm's runs recorded.
func (c *comparison) runValues(m *measured, name string, arm int) []float64 {
	var values []float64
	for _, r := range c.arms[arm].runs {
		values = append(values, m.of[r].values[name])
	}
	return values
}

func (c *comparison) runEstimate(m *measured, name string, arm int) Estimate {
	values := c.runValues(m, name, arm)
	e := Estimate{Mean: known(stat.ClusterMean(values, nil).Value), Seeds: c.seedValues(arm, values)}
	if e.Mean == nil {
		return e
	}
	if len(values) >= MinSeeds {
		e.Interval = tInterval(stat.ClusterMean(values, nil), OverSeeds)
	}
	var starts []float64
	seen := map[ident.Digest]bool{}
	for _, r := range c.arms[arm].runs {
		if ev := m.start[r]; ev != nil && !seen[ev.scores] {
			seen[ev.scores] = true
			if v, ok := ev.values[name]; ok && !math.IsNaN(v) {
				starts = append(starts, v)
			}
		}
	}
	if len(starts) > 0 {
		e.Start = known(stat.ClusterMean(starts, nil).Value)
		e.Gain = known(*e.Mean - *e.Start)
	}
	return e
}

// runPair compares arms by the values of their runs, with stat.Welch's t. A sign test of
// three differences could never give p below 0.25.
func (c *comparison) runPair(m *measured, out *Metric, a, b int) Pair {
	x, y := c.runValues(m, out.Name, a), c.runValues(m, out.Name, b)
	mx, my := stat.ClusterMean(x, nil), stat.ClusterMean(y, nil)
	p := Pair{A: a, B: b, Delta: known(mx.Value - my.Value), PairedSeeds: c.sameSeeds(a, b)}
	if p.Delta == nil {
		return p
	}
	difference := stat.Welch(mx, my)
	p.setSE(difference)
	p.setMargin(out)
	if len(x) >= MinSeeds && len(y) >= MinSeeds {
		p.Interval = tInterval(difference, OverSeeds)
		if out.Tested {
			p.setTTest(difference)
		}
	}
	if p.PairedSeeds {
		d := make([]float64, len(x))
		for i := range d {
			d[i] = x[i] - y[i]
		}
		if v, ok := stat.EffectSize(d); ok {
			p.Effect = known(v)
		}
	}
	return p
}

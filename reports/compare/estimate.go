package compare

import (
	"math"
	"slices"

	"exp/eval/stat"
	"exp/harness/metric"
)

// fillMetric computes a metric from its panel.
func (c *comparison) fillMetric(t *table, p *panel, m *Metric) {
	m.Name, m.Unit, m.Direction, m.Definition = p.def.Name, p.def.Unit, string(p.def.Direction), p.def.Definition
	m.Items = len(p.clusters)
	for a := range c.arms {
		m.Arms = append(m.Arms, c.estimate(t, p, a))
	}
	m.Pairs = []Pair{}
	for _, ab := range c.pairs() {
		m.Pairs = append(m.Pairs, c.pair(t, p, ab, m))
	}
}

func (c *comparison) estimate(t *table, p *panel, arm int) Estimate {
	mean := stat.ClusterMean(p.mean[arm], p.clusters)
	e := Estimate{Mean: known(mean.Value), Seeds: c.seedValues(arm, p.ofRun[arm])}
	kind := OverItems
	switch {
	case len(p.values[arm]) >= MinSeeds:
		kind = TwoLevel
		e.Interval = tInterval(stat.CrossedMean(p.values[arm], p.clusters), kind)
	case p.def.K > 1:
		iv, ok := stat.Bootstrap(p.mean[arm], p.clusters,
			stat.Resampling{Draws: c.o.Draws, Seed: t.seed, Level: level})
		e.Interval = interval(iv, ok, OverItems)
	default:
		e.Interval = c.itemInterval(p, mean, arm)
	}
	e.Interval = p.honest(e.Interval, kind, p.mean[arm])
	if rows := p.starts[arm]; len(rows) > 0 {
		var sum float64
		for _, row := range rows {
			sum += stat.ClusterMean(row, nil).Value
		}
		e.Start = known(sum / float64(len(rows)))
		if len(rows) == 1 && len(rows[0]) == len(p.clusters) {
			e.StartInterval = p.honest(tInterval(stat.ClusterMean(rows[0], p.clusters), OverItems), OverItems, rows[0])
		}
		e.Gain = known(*e.Mean - *e.Start)
	}
	return e
}

// itemInterval returns Student's t interval over clusters, or Wilson's for one run with
// one sample per problem, where a score is right or wrong.
func (c *comparison) itemInterval(p *panel, mean stat.Mean, arm int) *Interval {
	binary := p.def.K == 1 && len(p.values[arm]) == 1
	correct := 0
	for i, v := range p.mean[arm] {
		binary = binary && p.clusters[i] == "" && (v == 0 || v == 1)
		correct += int(v)
	}
	if binary {
		iv := stat.Wilson(correct, len(p.clusters), level)
		return &Interval{Lo: iv.Lo, Hi: iv.Hi, Kind: OverItems, Method: iv.Method}
	}
	return tInterval(mean, OverItems)
}

// honest cuts an interval to the values that the metric can take, or replaces the interval of a share
// without spread (stat.Unanimous).
func (p *panel) honest(iv *Interval, kind IntervalKind, values []float64) *Interval {
	if same, ok := stat.Unanimous(values, p.clusters, level); ok && p.def.Unit == metric.Share {
		return &Interval{Lo: same.Lo, Hi: same.Hi, Kind: kind, Method: same.Method}
	}
	iv.cut(p.def.Unit)
	return iv
}

// tInterval returns Student's t interval.
func tInterval(m stat.Mean, kind IntervalKind) *Interval {
	iv, ok := stat.TInterval(m, level)
	return interval(iv, ok, kind)
}

// interval returns nil for an interval without width, which values without spread give: they do not show how
// far off they may be.
func interval(iv stat.Interval, ok bool, kind IntervalKind) *Interval {
	if !ok || !(iv.Hi > iv.Lo) || math.IsInf(iv.Hi-iv.Lo, 0) {
		return nil
	}
	return &Interval{Lo: iv.Lo, Hi: iv.Hi, Kind: kind, Method: iv.Method}
}

// cut limits an interval to the values that a mean of the unit can take.
func (iv *Interval) cut(unit string) {
	if iv != nil {
		iv.Lo, iv.Hi = metric.Cut(unit, iv.Lo, iv.Hi)
	}
}

func (c *comparison) seedValues(arm int, values []float64) []SeedValue {
	list := make([]SeedValue, len(values))
	for i, r := range c.arms[arm].runs {
		list[i] = SeedValue{Seed: r.run.Seed, RID: r.run.RID.String(), Value: known(values[i])}
	}
	return list
}

// pair compares two arms problem by problem. With MinSeeds runs in each arm, interval and
// p value come from one t test and cover other runs and problems; with fewer, they cover
// other problems only, and p comes from a sign-flip test.
func (c *comparison) pair(t *table, p *panel, ab [2]int, m *Metric) Pair {
	a, b := ab[0], ab[1]
	d := make([]float64, len(p.clusters))
	for i := range d {
		d[i] = p.mean[a][i] - p.mean[b][i]
	}
	mean, kind := stat.ClusterMean(d, p.clusters), OverItems
	if len(p.values[a]) >= MinSeeds && len(p.values[b]) >= MinSeeds {
		mean, kind = stat.CrossedDifference(p.values[a], p.values[b], p.clusters), TwoLevel
	}
	out := Pair{A: a, B: b, Delta: known(mean.Value), Interval: tInterval(mean, kind), PairedSeeds: c.sameSeeds(a, b)}
	out.setSE(mean)
	out.setMargin(m)
	if v, ok := stat.EffectSize(d); ok {
		out.Effect = known(v)
	}
	switch {
	case !m.Tested:
	case kind == TwoLevel:
		out.setTTest(mean)
	case !slices.ContainsFunc(d, func(x float64) bool { return x != 0 }):
		// No sign to flip: p would be 1 whatever is true, and only make Holm's correction harsher (Tarone, Biometrics
		// 46, 1990).
	default:
		v, exact := stat.SignFlip(d, p.clusters, t.seed)
		out.P, out.Exact, out.Test = known(v), exact, SignFlips
	}
	return out
}

// setTTest sets P to the p value of the interval's t test, if anything varies: otherwise p would be 1 whatever is
// true, as in pair.
func (p *Pair) setTTest(m stat.Mean) {
	if v, ok := stat.TTest(m); ok && m.SE > 0 {
		p.P, p.Test = known(v), TTest
	}
}

// setSE sets SE and MDE (minimum detectable effect). Without spread it sets no MDE:
// scores that are all equal, such as zero everywhere, do not show that a difference would
// be found.
func (p *Pair) setSE(m stat.Mean) {
	if p.SE = known(m.SE); p.SE != nil && m.SE > 0 {
		p.MDE = known(stat.MDE(m.SE, m.DF))
	}
}

// sameSeeds reports whether two arms have runs of the same seeds.
func (c *comparison) sameSeeds(a, b int) bool {
	return slices.EqualFunc(c.arms[a].runs, c.arms[b].runs,
		func(x, y *record) bool { return x.run.Seed == y.run.Seed })
}

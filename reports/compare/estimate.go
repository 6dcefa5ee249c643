package compare

import (
	"math"
	"slices"

	"exp/eval/stat"
)

// fillMetric computes a metric from its panel and the arms' means under the draws,
// [arms][draws].
func (c *comparison) fillMetric(t *table, p *panel, drawn [][]float64, m *Metric) {
	m.Name, m.Unit, m.Direction, m.Definition = p.def.Name, p.def.Unit, string(p.def.Direction), p.def.Definition
	m.Items = len(p.clusters)
	for a := range c.arms {
		m.Arms = append(m.Arms, c.estimate(p, drawn, a))
	}
	m.Pairs = []Pair{}
	for _, ab := range c.pairs() {
		m.Pairs = append(m.Pairs, c.pair(t, p, drawn, ab, m))
	}
}

func (c *comparison) estimate(p *panel, drawn [][]float64, arm int) Estimate {
	mean := stat.ClusterMean(p.mean[arm], p.clusters)
	e := Estimate{Mean: known(mean.Value), Seeds: c.seedValues(arm, p.ofRun[arm])}
	switch {
	case len(p.values[arm]) >= MinSeeds:
		e.Interval = percentile(slices.Clone(drawn[arm]), TwoLevel)
	case p.def.K > 1:
		e.Interval = percentile(slices.Clone(drawn[arm]), OverItems)
	default:
		e.Interval = c.itemInterval(p, mean, arm)
	}
	if rows := p.starts[arm]; len(rows) > 0 {
		var sum float64
		for _, row := range rows {
			sum += stat.ClusterMean(row, nil).Value
		}
		e.Start = known(sum / float64(len(rows)))
		if len(rows) == 1 && len(rows[0]) == len(p.clusters) {
			e.StartInterval = interval(stat.TInterval(stat.ClusterMean(rows[0], p.clusters), level))
		}
		e.Gain = known(*e.Mean - *e.Start)
	}
	return e
}

// itemInterval is Student's t over clusters, but Wilson's for one sample a problem
// of one run, where a score is right or wrong.
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
	return interval(stat.TInterval(mean, level))
}

// interval is one over problems.
func interval(iv stat.Interval, ok bool) *Interval {
	if !ok || math.IsInf(iv.Hi-iv.Lo, 0) || math.IsNaN(iv.Hi-iv.Lo) {
		return nil
	}
	return &Interval{Lo: iv.Lo, Hi: iv.Hi, Kind: OverItems, Method: iv.Method}
}

func (c *comparison) seedValues(arm int, values []float64) []SeedValue {
	list := make([]SeedValue, len(values))
	for i, r := range c.arms[arm].runs {
		list[i] = SeedValue{Seed: r.run.Seed, RID: r.run.RID.String(), Value: known(values[i])}
	}
	return list
}

// pair compares two arms problem by problem.
func (c *comparison) pair(t *table, p *panel, drawn [][]float64, ab [2]int, m *Metric) Pair {
	a, b := ab[0], ab[1]
	d := make([]float64, len(p.clusters))
	for i := range d {
		d[i] = p.mean[a][i] - p.mean[b][i]
	}
	mean := stat.ClusterMean(d, p.clusters)
	out := Pair{A: a, B: b, Delta: known(mean.Value), PairedSeeds: c.sameSeeds(a, b)}
	if len(p.values[a]) >= MinSeeds && len(p.values[b]) >= MinSeeds {
		diff := slices.Clone(drawn[a])
		for i := range diff {
			diff[i] -= drawn[b][i]
		}
		out.Interval = percentile(diff, TwoLevel)
	} else {
		out.Interval = interval(stat.TInterval(mean, level))
	}
	out.setSE(math.Sqrt(float64(mean.SE*mean.SE) + seedVariance(p.values[a], p.values[b])))
	out.setMargin(m)
	if v, ok := stat.EffectSize(d); ok {
		out.Effect = known(v)
	}
	if m.Tested {
		v, exact := stat.SignFlip(d, p.clusters, t.seed)
		out.P, out.Exact = known(v), exact
	}
	return out
}

// seedVariance is s_A²/n_A + s_B²/n_B for the means of runs, [runs][problems]; 0 with
// fewer than two runs in an arm, where nothing is known of it.
func seedVariance(a, b [][]float64) float64 {
	if len(a) < 2 || len(b) < 2 {
		return 0
	}
	var sum float64
	for _, runs := range [][][]float64{a, b} {
		means := make([]float64, len(runs))
		for i, row := range runs {
			means[i] = stat.ClusterMean(row, nil).Value
		}
		se := stat.ClusterMean(means, nil).SE // s/√n
		sum += float64(se * se)
	}
	return sum
}

// setSE sets SE and MDE. Without any spread there is no MDE: scores that are all
// equal, such as zero everywhere, do not show that a difference would be found.
func (p *Pair) setSE(se float64) {
	if p.SE = known(se); p.SE != nil && se > 0 {
		p.MDE = known(stat.MDE(se))
	}
}

// sameSeeds reports whether two arms have runs of the same seeds.
func (c *comparison) sameSeeds(a, b int) bool {
	return slices.EqualFunc(c.arms[a].runs, c.arms[b].runs, func(x, y *record) bool { return x.run.Seed == y.run.Seed })
}

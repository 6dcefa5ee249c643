package compare

import (
	"fmt"
	"slices"

	"exp/eval/stat"
	"exp/experiments/ident"
)

// acrossDraws is the number of resamples for the aggregates' intervals, as in
// arXiv:2108.13264.
const acrossDraws = 2_000

// mostThresholds bounds the points of a profile; more would not be visible.
const mostThresholds = 64

// Across aggregates pass@1 over all suites, after arXiv:2108.13264 §4 with a run's score
// on a suite as the unit. Intervals come from stat.AcrossSuites: they cover other runs
// and problems if every arm has MinSeeds runs, else other problems only.
type Across struct {
	Suites []string    `json:"suites"`
	Draws  int         `json:"draws"`
	Kind   string      `json:"kind"` // of the intervals, as in Interval
	Arms   []AcrossArm `json:"arms"`
	// Pairs follows Result.Baseline. Improvement is missing unless every arm has MinSeeds
	// runs.
	Pairs []AcrossPair `json:"pairs"`
	// Thresholds holds the thresholds of the arms' profiles, ascending: 0, 1/n, … for n
	// samples.
	Thresholds []float64 `json:"thresholds"`
}

// AcrossArm holds an arm's aggregates. With fewer than four scores, the IQM is the mean.
type AcrossArm struct {
	Scores int       `json:"scores"` // suites × runs
	Mean   Aggregate `json:"mean"`   // of the suites' means, weighted equally
	IQM    Aggregate `json:"iqm"`    // stat.IQM of the scores
	Gap    Aggregate `json:"gap"`    // stat.OptimalityGap of the scores to 1
	// Profile is, per threshold, the share of problems whose share of right completions
	// exceeds it, mean over runs and suites, suites weighted equally.
	Profile []Aggregate `json:"profile"`
}

// Aggregate is a number with its interval.
type Aggregate struct {
	Value    *float64  `json:"value"`
	Interval *Interval `json:"interval"`
}

// AcrossPair compares arm A with arm B.
type AcrossPair struct {
	A           int       `json:"a"`
	B           int       `json:"b"`
	Improvement Aggregate `json:"improvement"` // stat.ProbabilityOfImprovement of A over B
}

// aggregate fills in Result.Across from the tables of pass@1, if any suite has
// per-problem scores.
func (c *comparison) aggregate() {
	var names []string
	var tables []*table
	samples := 0
	for i := range c.tables {
		if t := c.tables[i]; len(t.panels) > 0 && t.panels[0].def.Name == defaultMetric {
			names, tables = append(names, c.suites[i].name), append(tables, t)
			samples = max(samples, c.result.Suites[i].Samples)
		}
	}
	if len(tables) == 0 {
		return
	}
	a := &aggregation{comparison: c, order: tables[0].order, seeds: true}
	for _, s := range c.arms {
		a.seeds = a.seeds && len(s.runs) >= MinSeeds
	}
	out := &Across{Suites: names, Draws: acrossDraws, Kind: string(OverItems), Pairs: []AcrossPair{},
		Thresholds: thresholds(samples)}
	if a.seeds {
		out.Kind = string(TwoLevel)
	}
	a.result = out
	var seeds []uint64
	for _, t := range tables {
		a.suites = append(a.suites, a.scoresOf(&t.panels[0]))
		seeds = append(seeds, t.seed)
	}
	a.profile()
	for _, ab := range c.pairs() {
		out.Pairs = append(out.Pairs, AcrossPair{A: ab[0], B: ab[1]})
	}
	point := a.numbers(stat.All(a.suites))
	// Suites are ordered by name, arms by their scores.
	r := stat.Resampling{Draws: acrossDraws, Seed: ident.Seed(0, "compare/across/"+fmt.Sprint(seeds)), Level: level}
	a.fill(point, stat.AcrossSuites(a.suites, a.seeds, r, a.numbers))
	c.result.Across = out
}

// aggregation computes the numbers of Across under a draw.
type aggregation struct {
	*comparison
	suites   []stat.SuiteScores // arms in order
	order    []int              // of arms, independent of the caller's
	profiles [][]*stat.Profile  // [arms in order][suites], of all runs
	seeds    bool               // every arm has MinSeeds runs
	result   *Across
}

// thresholds returns the shares of n samples below 1, at most mostThresholds of them.
func thresholds(n int) []float64 {
	n = min(max(n, 1), mostThresholds)
	list := make([]float64, n)
	for i := range list {
		list[i] = float64(i) / float64(n)
	}
	return list
}

// scoresOf returns the scores of a suite.
func (a *aggregation) scoresOf(p *panel) stat.SuiteScores {
	s := stat.SuiteScores{Clusters: p.clusters}
	for _, arm := range a.order {
		s.Arms = append(s.Arms, p.values[arm])
	}
	return s
}

func (a *aggregation) profile() {
	for arm := range a.order {
		var list []*stat.Profile
		for _, s := range a.suites {
			list = append(list, stat.NewProfile(slices.Concat(s.Arms[arm]...), a.result.Thresholds))
		}
		a.profiles = append(a.profiles, list)
	}
}

// numbers returns mean, IQM, gap and profile of each arm in order.
func (a *aggregation) numbers(w stat.Weights) []float64 {
	var out []float64
	for i := range a.order {
		scores := slices.Concat(w.Means(a.suites, i)...)
		out = append(out, stat.ClusterMean(scores, nil).Value, stat.IQM(scores), stat.OptimalityGap(scores, 1))
		out = append(out, a.share(w, i)...)
	}
	return out
}

// improvement returns the probability that a run of arm i in order beats a run of arm k.
func (a *aggregation) improvement(i, k int) Aggregate {
	w := stat.All(a.suites)
	p := stat.ProbabilityOfImprovement(w.Means(a.suites, i), w.Means(a.suites, k))
	iv := stat.ImprovementInterval(p, len(w.Seeds[i]), len(w.Seeds[k]), level)
	return Aggregate{Value: known(p), Interval: &Interval{Lo: iv.Lo, Hi: iv.Hi, Kind: OverSeeds, Method: iv.Method}}
}

// share returns the profile of arm i in order under a draw, mean over suites.
func (a *aggregation) share(w stat.Weights, i int) []float64 {
	sum := make([]float64, len(a.result.Thresholds))
	for s, p := range a.profiles[i] {
		weights := make([]int, 0, len(w.Seeds[i])*len(w.Problems[s]))
		for _, seed := range w.Seeds[i] {
			for _, times := range w.Problems[s] {
				weights = append(weights, seed*times)
			}
		}
		for k, v := range p.Share(weights) {
			sum[k] += v / float64(len(a.suites))
		}
	}
	return sum
}

// fill unpacks numbers into the arm's aggregates.
func (a *aggregation) fill(point []float64, intervals []stat.Interval) {
	at := 0
	next := func() Aggregate {
		e := Aggregate{Value: known(point[at]), Interval: interval(intervals[at], true, IntervalKind(a.result.Kind))}
		at++
		return e
	}
	a.result.Arms = make([]AcrossArm, len(a.order))
	for _, arm := range a.order {
		out := &a.result.Arms[arm]
		out.Scores = len(a.suites) * len(a.arms[arm].runs)
		out.Mean, out.IQM, out.Gap = next(), next(), next()
		for range a.result.Thresholds {
			out.Profile = append(out.Profile, next())
		}
	}
	if a.seeds {
		for i, p := range a.result.Pairs {
			a.result.Pairs[i].Improvement = a.improvement(slices.Index(a.order, p.A), slices.Index(a.order, p.B))
		}
	}
}

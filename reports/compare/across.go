package compare

import (
	"fmt"
	"slices"

	"exp/eval/stat"
	"exp/experiments/ident"
)

// acrossDraws is how many resamples the aggregates' intervals are made of, as in
// arXiv:2108.13264.
const acrossDraws = 2_000

// mostThresholds bounds the points of a profile: what more samples would add cannot be
// seen.
const mostThresholds = 64

// Across is what all suites together say, by pass@1: arXiv:2108.13264 §4 with the
// score of a run on a suite as unit. Intervals are those of
// stat.AcrossSuites: for other runs and problems where every arm has MinSeeds runs, else
// for other problems only.
type Across struct {
	Suites []string    `json:"suites"`
	Draws  int         `json:"draws"`
	Kind   string      `json:"kind"` // of the intervals, as in Interval
	Arms   []AcrossArm `json:"arms"`
	// Pairs are as in Result.Baseline; without Improvement unless every arm has MinSeeds
	// runs.
	Pairs []AcrossPair `json:"pairs"`
	// Thresholds are those of the arms' profiles, ascending: 0, 1/n, … for n samples.
	Thresholds []float64 `json:"thresholds"`
}

// AcrossArm is an arm's aggregates. One that is made of less than four scores leaves
// nothing out, and its IQM is its mean.
type AcrossArm struct {
	Scores int       `json:"scores"` // suites × runs
	Mean   Aggregate `json:"mean"`   // of the suites' means, each counting the same
	IQM    Aggregate `json:"iqm"`    // stat.IQM of the scores
	Gap    Aggregate `json:"gap"`    // stat.OptimalityGap of the scores to 1
	// Profile is the share of problems of which more than a threshold of the completions
	// are right, mean over runs and suites, each suite counting the same.
	Profile []Aggregate `json:"profile"`
}

// Aggregate is a number with its interval.
type Aggregate struct {
	Value    *float64  `json:"value"`
	Interval *Interval `json:"interval"`
}

// AcrossPair sets arm A against arm B.
type AcrossPair struct {
	A           int       `json:"a"`
	B           int       `json:"b"`
	Improvement Aggregate `json:"improvement"` // stat.ProbabilityOfImprovement of A over B
}

// aggregate fills in Result.Across from the tables of pass@1; without any suite that
// has scores of problems there is none.
func (c *comparison) aggregate() {
	var names []string
	var tables []*table
	samples := 0
	for i := range c.tables {
		if t := c.tables[i]; len(t.panels) > 0 && t.panels[0].def.Name == passName(1) {
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
	out := &Across{Suites: names, Draws: acrossDraws, Kind: string(OverItems), Pairs: []AcrossPair{}, Thresholds: thresholds(samples)}
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
	// The order of suites is that of their names, that of arms of their scores.
	r := stat.Resampling{Draws: acrossDraws, Seed: ident.Seed(0, "compare/across/"+fmt.Sprint(seeds)), Level: level}
	a.fill(point, stat.AcrossSuites(a.suites, a.seeds, r, a.numbers))
	c.result.Across = out
}

// aggregation computes the numbers of Across under a draw.
type aggregation struct {
	*comparison
	suites   []stat.SuiteScores // arms in order
	order    []int              // of arms, which does not depend on the caller's
	profiles [][]*stat.Profile  // [arms in order][suites], of all runs
	seeds    bool               // every arm has MinSeeds runs
	result   *Across
}

// thresholds are the shares of n samples below 1, at most mostThresholds of them.
func thresholds(n int) []float64 {
	n = min(max(n, 1), mostThresholds)
	list := make([]float64, n)
	for i := range list {
		list[i] = float64(i) / float64(n)
	}
	return list
}

// scoresOf are the scores of a suite.
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

// numbers are mean, IQM, gap and profile of each arm in order.
func (a *aggregation) numbers(w stat.Weights) []float64 {
	var out []float64
	for i := range a.order {
		scores := slices.Concat(w.Means(a.suites, i)...)
		out = append(out, stat.ClusterMean(scores, nil).Value, stat.IQM(scores), stat.OptimalityGap(scores, 1))
		out = append(out, a.share(w, i)...)
	}
	return out
}

// improvement is the probability that a run of arm i in order beats one of arm k.
func (a *aggregation) improvement(i, k int) Aggregate {
	w := stat.All(a.suites)
	p := stat.ProbabilityOfImprovement(w.Means(a.suites, i), w.Means(a.suites, k))
	iv := stat.ImprovementInterval(p, len(w.Seeds[i]), len(w.Seeds[k]), level)
	return Aggregate{Value: known(p), Interval: &Interval{Lo: iv.Lo, Hi: iv.Hi, Kind: OverSeeds, Method: iv.Method}}
}

// share is the profile of arm i in order under a draw, mean over suites.
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

// fill takes numbers apart again.
func (a *aggregation) fill(point []float64, intervals []stat.Interval) {
	at := 0
	next := func() Aggregate {
		e := Aggregate{Value: known(point[at]),
			Interval: &Interval{Lo: intervals[at].Lo, Hi: intervals[at].Hi, Kind: IntervalKind(a.result.Kind), Method: intervals[at].Method}}
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

package stat

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
)

// Aggregates across suites from Agarwal et al., arXiv:2108.13264 §4. Their unit is the score of one run on
// one suite.

// IQM returns the interquartile mean: the mean of the middle half of xs, without ⌊n/4⌋ values at each end
// (SciPy's trim_mean at 0.25, which the authors' code calls). It panics if xs is empty.
func IQM(xs []float64) float64 {
	if len(xs) == 0 {
		panic("stat: mean of nothing")
	}
	sorted := slices.Sorted(slices.Values(xs))
	cut := len(sorted) / 4
	return mean(sorted[cut : len(sorted)-cut])
}

// OptimalityGap returns the mean shortfall of xs from target; values above target count as target:
//
//	mean(target - min(x, target))
//
// It panics if xs is empty.
func OptimalityGap(xs []float64, target float64) float64 {
	if len(xs) == 0 {
		panic("stat: mean of nothing")
	}
	var sum float64
	for _, x := range xs {
		sum += target - min(x, target)
	}
	return sum / float64(len(xs))
}

// ProbabilityOfImprovement returns the probability that a run of a scores higher than a run of b on the
// same suite, ties counting half, averaged over suites (arXiv:2108.13264 §4.3; for one suite the
// Mann-Whitney U over its maximum). a and b are [suites][runs]. It panics if the numbers of suites differ,
// and without suites or runs.
func ProbabilityOfImprovement(a, b [][]float64) float64 {
	if len(a) != len(b) || len(a) == 0 {
		panic("stat: length mismatch")
	}
	var sum float64
	for s := range a {
		if len(a[s]) == 0 || len(b[s]) == 0 {
			panic("stat: a suite without runs")
		}
		var wins float64
		for _, x := range a[s] {
			for _, y := range b[s] {
				switch {
				case same(x, y):
					wins += 0.5
				case x > y:
					wins++
				}
			}
		}
		sum += wins / float64(len(a[s])*len(b[s]))
	}
	return sum / float64(len(a))
}

// Profile holds scores binned by threshold, so that the shares above each threshold are quick to compute
// under many weightings.
type Profile struct {
	above []int // per score: number of thresholds below it
	n     int   // number of thresholds
}

// NewProfile bins xs by thresholds, which must ascend. A score that only rounding puts above a threshold is not
// above it: PassAtK finds 0.20000000000000007 for 2 of 10.
func NewProfile(xs, thresholds []float64) *Profile {
	p := &Profile{above: make([]int, len(xs)), n: len(thresholds)}
	for i, x := range xs {
		p.above[i] = sort.Search(p.n, func(k int) bool { return thresholds[k] >= x || same(thresholds[k], x) })
	}
	return p
}

// Share returns the share of scores above each threshold, the score distribution of a performance profile
// (arXiv:2108.13264 §4.2). Score i counts weights[i] times; nil means once each. It panics if lengths
// differ or all weights are zero.
func (p *Profile) Share(weights []int) []float64 {
	if weights != nil && len(weights) != len(p.above) {
		panic("stat: length mismatch")
	}
	count := make([]int, p.n+1)
	total := 0
	for i, k := range p.above {
		w := 1
		if weights != nil {
			w = weights[i]
		}
		count[k] += w
		total += w
	}
	if total == 0 {
		panic("stat: share of nothing")
	}
	out := make([]float64, p.n)
	over := 0
	for k := p.n - 1; k >= 0; k-- {
		over += count[k+1]
		out[k] = float64(over) / float64(total)
	}
	return out
}

// SuiteScores holds the scores of several arms on the problems of one suite.
type SuiteScores struct {
	Arms     []Scores // [arms][seeds][problems]
	Clusters []string // as in ClusterMean
}

// Weights says how often a draw took each seed and each problem.
type Weights struct {
	Seeds    [][]int // [arms][seeds]; the same for all suites
	Problems [][]int // [suites][problems]
}

// AcrossSuites returns intervals for the numbers that statistic computes. statistic must return the same
// number of values each time, all in [0, 1]; w is valid only during the call.
//
// Without seeds it bootstraps stratified by suite: each draw takes clusters of problems with replacement
// within each suite, the same for all arms, and the interval runs between percentiles of the results. It
// describes these seeds only.
//
// With seeds, at least two per arm, the interval is the number ± t·SE,
//
//	SE² = P + Σ_arms (n-1)/n · Σ_s (v_(s) - v̄)²
//
// P is the variance of those draws. Seeds are too few to bootstrap, so their part is the jackknife: v_(s)
// is the number without seed s of an arm (Efron and Stein 1981). Degrees of freedom are Satterthwaite's,
// from n-1 per arm and G-1 of the smallest suite. Both parts include the noise of one seed on one problem,
// which errs on the large side.
//
// Agarwal et al. draw the seeds of each suite separately, because their runs are trained on one suite each.
// Here one run is scored on all suites, so it is left out of all at once; otherwise what runs have in
// common would seem to average out. AcrossSuites panics if arms, seeds or problems do not match.
func AcrossSuites(suites []SuiteScores, seeds bool, r Resampling, statistic func(w Weights) []float64) []Interval {
	if r.Draws < 1 {
		panic("stat: a bootstrap needs draws")
	}
	if len(suites) == 0 || len(suites[0].Arms) == 0 {
		panic("stat: bootstrap of nothing")
	}
	var w Weights
	for _, arm := range suites[0].Arms {
		w.Seeds = append(w.Seeds, slices.Repeat([]int{1}, len(arm)))
	}
	var index, sizes [][]int
	for _, s := range suites {
		if len(s.Arms) != len(w.Seeds) {
			panic("stat: length mismatch")
		}
		for a, arm := range s.Arms {
			if len(arm) != len(w.Seeds[a]) {
				panic("stat: length mismatch")
			}
		}
		at, G := checkedClusters(s.Clusters, s.Arms...)
		index, sizes = append(index, at), append(sizes, clusterSizes(at, G))
		w.Problems = append(w.Problems, make([]int, len(at)))
	}

	rng := rand.New(rand.NewPCG(r.Seed, 0))
	var values [][]float64 // [numbers][draws]
	for d := range r.Draws {
		w.drawProblems(rng, index, sizes)
		numbers := statistic(w)
		if values == nil {
			values = make([][]float64, len(numbers))
		}
		if len(numbers) != len(values) {
			panic(fmt.Sprintf("stat: %d numbers in draw %d, not %d", len(numbers), d, len(values)))
		}
		for i, v := range numbers {
			values[i] = append(values[i], v)
		}
	}
	if seeds {
		return overSeeds(suites, values, sizes, r.Level, statistic)
	}
	out := make([]Interval, len(values))
	for i, v := range values {
		slices.Sort(v)
		out[i] = Interval{Lo: Quantile(v, 0.5-r.Level/2), Hi: Quantile(v, 0.5+r.Level/2), Method: "bootstrap"}
	}
	return out
}

// overSeeds computes the intervals of AcrossSuites with seeds, from the draws over problems
// [numbers][draws] and the cluster sizes [suites][G].
func overSeeds(suites []SuiteScores, draws [][]float64, sizes [][]int, level float64,
	statistic func(w Weights) []float64) []Interval {
	all := All(suites)
	point := statistic(all)
	fewest := len(sizes[0])
	for _, s := range sizes {
		fewest = min(fewest, len(s))
	}
	parts := make([][]variance, len(point))
	for i, v := range draws {
		parts[i] = append(parts[i], variance{squaresAround(v) / float64(max(1, len(v)-1)), float64(max(1, fewest-1))})
	}
	for _, times := range all.Seeds {
		n := len(times)
		without := make([][]float64, len(point)) // [numbers][seeds]
		for s := range times {
			times[s] = 0
			for i, v := range statistic(all) {
				without[i] = append(without[i], v)
			}
			times[s] = 1
		}
		for i, v := range without {
			parts[i] = append(parts[i], variance{float64(n-1) / float64(n) * squaresAround(v), float64(n - 1)})
		}
	}
	out := make([]Interval, len(point))
	for i, v := range point {
		m := Mean{Value: v}
		m.SE, m.DF = satterthwaite(parts[i]...)
		iv, _ := TInterval(m, level) // every part is known
		out[i] = iv.Within(0, 1)
	}
	return out
}

// squaresAround returns Σ (x - mean)².
func squaresAround(xs []float64) float64 {
	m := mean(xs)
	var ss float64
	for _, x := range xs {
		ss += float64((x - m) * (x - m))
	}
	return ss
}

// drawProblems draws problems by cluster.
func (w Weights) drawProblems(rng *rand.Rand, index, sizes [][]int) {
	for s, times := range w.Problems {
		drawn := make([]int, len(sizes[s]))
		drawClusters(rng, sizes[s], drawn)
		for i, g := range index[s] {
			times[i] = drawn[g]
		}
	}
}

// Means returns an arm's scores under the draw, [suites][seeds drawn]: for each drawn seed, as often as
// drawn, the mean over the drawn problems.
func (w Weights) Means(suites []SuiteScores, arm int) [][]float64 {
	out := make([][]float64, len(suites))
	for s := range suites {
		items := 0
		for _, n := range w.Problems[s] {
			items += n
		}
		for seed, row := range suites[s].Arms[arm] {
			if w.Seeds[arm][seed] == 0 {
				continue
			}
			var sum float64
			for i, x := range row {
				sum += float64(x * float64(w.Problems[s][i]))
			}
			for range w.Seeds[arm][seed] {
				out[s] = append(out[s], sum/float64(items))
			}
		}
	}
	return out
}

// All returns weights that take everything once: the statistic itself.
func All(suites []SuiteScores) Weights {
	ones := func(n int) []int { return slices.Repeat([]int{1}, n) }
	var w Weights
	for _, arm := range suites[0].Arms {
		w.Seeds = append(w.Seeds, ones(len(arm)))
	}
	for _, s := range suites {
		w.Problems = append(w.Problems, ones(len(s.Arms[0][0])))
	}
	return w
}

func mean(xs []float64) float64 {
	var sum float64
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}

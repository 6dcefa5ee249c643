package stat

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
)

// The aggregates across suites of Agarwal et al., arXiv:2108.13264 §4. Their unit is
// the score of a run on a suite.

// IQM is the interquartile mean: that of the middle half of xs, leaving out ⌊n/4⌋ at
// each end (SciPy's trim_mean at 0.25, which the authors' code calls). It panics if
// there are none.
func IQM(xs []float64) float64 {
	if len(xs) == 0 {
		panic("stat: mean of nothing")
	}
	sorted := slices.Sorted(slices.Values(xs))
	cut := len(sorted) / 4
	return mean(sorted[cut : len(sorted)-cut])
}

// OptimalityGap is by how much xs fall short of target on average; what is above it
// counts as target:
//
//	mean(target - min(x, target))
//
// It panics if there are none.
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

// ProbabilityOfImprovement is the probability that a run of a scores more than a run
// of b on the same suite, a tie counting half, mean over suites (arXiv:2108.13264
// §4.3; of one suite the Mann-Whitney U over its greatest value). a and b are
// [suites][runs]. It panics if the suites' numbers differ or if there is nothing.
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
				case x > y:
					wins++
				case x == y:
					wins += 0.5
				}
			}
		}
		sum += wins / float64(len(a[s])*len(b[s]))
	}
	return sum / float64(len(a))
}

// Profile is a sample of scores by the intervals between thresholds, ready for the
// shares above them under many weightings.
type Profile struct {
	above []int // of each score: how many thresholds it is above
	n     int   // thresholds
}

// NewProfile sorts xs into the intervals between thresholds, which ascend.
func NewProfile(xs, thresholds []float64) *Profile {
	p := &Profile{above: make([]int, len(xs)), n: len(thresholds)}
	for i, x := range xs {
		p.above[i] = sort.Search(p.n, func(k int) bool { return thresholds[k] >= x })
	}
	return p
}

// Share is the share of the scores above each threshold, the score distribution of a
// performance profile (arXiv:2108.13264 §4.2), with score i counted weights[i] times;
// nil: once each. It panics if the lengths differ or nothing counts.
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

// SuiteScores are the scores of several arms on one suite, whose problems they share.
type SuiteScores struct {
	Arms     []Scores // [arms][seeds][problems]
	Clusters []string // as in ClusterMean
}

// Weights is how often a draw took each seed and each problem.
type Weights struct {
	Seeds    [][]int // [arms][seeds]; the same for all suites
	Problems [][]int // [suites][problems]
}

// AcrossSuites is the bootstrap stratified by suite: each draw takes seeds with
// replacement within each arm, and clusters of problems with replacement within each
// suite, once for all arms. It returns the percentile intervals of the numbers that
// statistic computes of a draw, which must be as many each time; w is valid during the
// call.
//
// Agarwal et al. draw the seeds of each suite apart, because there a run is trained on
// one. Here a run is scored on all suites: a draw takes it on all of them, or what
// runs have in common would count as averaged out. Without seeds, each seed is taken
// once, and the intervals speak of these alone; so they do where an arm has one seed,
// or a suite one cluster.
// It panics if arms, seeds or problems do not match.
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
		if seeds {
			w.drawSeeds(rng)
		}
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
	out := make([]Interval, len(values))
	for i, v := range values {
		slices.Sort(v)
		out[i] = Interval{Lo: Quantile(v, 0.5-r.Level/2), Hi: Quantile(v, 0.5+r.Level/2), Method: "bootstrap"}
	}
	return out
}

func (w Weights) drawSeeds(rng *rand.Rand) {
	for _, times := range w.Seeds {
		clear(times)
		for range times {
			times[rng.IntN(len(times))]++
		}
	}
}

// drawProblems takes problems by their clusters.
func (w Weights) drawProblems(rng *rand.Rand, index, sizes [][]int) {
	for s, times := range w.Problems {
		drawn, _ := drawClusters(rng, sizes[s])
		for i, g := range index[s] {
			times[i] = drawn[g]
		}
	}
}

// Means are an arm's scores under the draw, [suites][seeds drawn]: of each seed that
// was drawn, as often as it was, the mean over the problems drawn.
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

// All are weights that take everything once: the statistic itself.
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

package stat

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Scores are one arm's item scores, [seeds][problems].
type Scores [][]float64

// Resampling is how a bootstrap draws.
type Resampling struct {
	Draws int     // 10 000 for problems, 2 000 across suites
	Seed  uint64  // from the digests of the inputs, so that equal inputs print equal numbers
	Level float64 // coverage
}

// Bootstrap is the two-level percentile interval of an arm's mean: each draw
// takes seeds with replacement and clusters of problems with replacement. With
// one seed it is the cluster bootstrap over problems. clusters is as in
// ClusterMean. ok is false if there are fewer than two clusters and fewer than two
// seeds. It panics if the rows' lengths differ.
//
// A percentile interval over few seeds is too short (three seeds have ten
// different samples): a caller says how many there were.
func Bootstrap(a Scores, clusters []string, r Resampling) (iv Interval, ok bool) {
	index, G := checkedClusters(clusters, a)
	if G < 2 && len(a) < 2 {
		return Interval{}, false
	}
	arm := sumClusters(a, index, G)
	sizes := clusterSizes(index, G)
	return resample(r, func(rng *rand.Rand) float64 {
		times, items := drawClusters(rng, sizes)
		return arm.mean(rng, times, items)
	}), true
}

// BootstrapDifference is the two-level percentile interval of mean(a) - mean(b)
// on the same problems: each draw takes seeds with replacement within each arm,
// and clusters with replacement once for both. Conditions are those of Bootstrap.
func BootstrapDifference(a, b Scores, clusters []string, r Resampling) (iv Interval, ok bool) {
	index, G := checkedClusters(clusters, a, b)
	if G < 2 && (len(a) < 2 || len(b) < 2) {
		return Interval{}, false
	}
	armA, armB := sumClusters(a, index, G), sumClusters(b, index, G)
	sizes := clusterSizes(index, G)
	return resample(r, func(rng *rand.Rand) float64 {
		times, items := drawClusters(rng, sizes)
		return armA.mean(rng, times, items) - armB.mean(rng, times, items)
	}), true
}

// clusterSums is an arm's scores summed within clusters, [seeds][G].
type clusterSums [][]float64

// mean is the arm's mean under one draw: seeds drawn now, clusters as in times.
// items is the number of problems drawn.
func (c clusterSums) mean(rng *rand.Rand, times []int, items int) float64 {
	var sum float64
	for range c {
		for g, s := range c[rng.IntN(len(c))] {
			sum += float64(s * float64(times[g]))
		}
	}
	return sum / float64(len(c)*items)
}

// drawClusters draws as many clusters as there are, with replacement: how often
// each came, and how many problems that makes.
func drawClusters(rng *rand.Rand, sizes []int) (times []int, items int) {
	times = make([]int, len(sizes))
	for range sizes {
		g := rng.IntN(len(sizes))
		times[g]++
		items += sizes[g]
	}
	return times, items
}

// resample is the percentile interval of a statistic over r.Draws draws.
func resample(r Resampling, draw func(*rand.Rand) float64) Interval {
	if r.Draws < 1 {
		panic("stat: a bootstrap needs draws")
	}
	rng := rand.New(rand.NewPCG(r.Seed, 0))
	values := make([]float64, r.Draws)
	for i := range values {
		values[i] = draw(rng)
	}
	slices.Sort(values)
	return Interval{
		Lo:     Quantile(values, 0.5-r.Level/2),
		Hi:     Quantile(values, 0.5+r.Level/2),
		Method: "bootstrap",
	}
}

// Quantile is the p-quantile of sorted values by linear interpolation between
// order statistics at (len-1)·p (Hyndman and Fan 1996, type 7; NumPy's default).
// It panics if there are none.
func Quantile(sorted []float64, p float64) float64 {
	if len(sorted) == 0 {
		panic("stat: quantile of nothing")
	}
	at := p * float64(len(sorted)-1)
	lo := int(math.Floor(at))
	if lo >= len(sorted)-1 {
		return sorted[len(sorted)-1]
	}
	frac := at - float64(lo)
	return sorted[lo] + float64(frac*(sorted[lo+1]-sorted[lo]))
}

func checkedClusters(clusters []string, arms ...Scores) (index []int, G int) {
	if len(arms[0]) == 0 || len(arms[0][0]) == 0 {
		panic("stat: bootstrap of nothing")
	}
	n := len(arms[0][0])
	for _, arm := range arms {
		if len(arm) == 0 {
			panic("stat: bootstrap of nothing")
		}
		for _, row := range arm {
			if len(row) != n {
				panic("stat: length mismatch")
			}
		}
	}
	return Clusters(n, clusters)
}

func sumClusters(a Scores, index []int, G int) clusterSums {
	sums := make(clusterSums, len(a))
	for s, row := range a {
		sums[s] = make([]float64, G)
		for i, x := range row {
			sums[s][index[i]] += x
		}
	}
	return sums
}

func clusterSizes(index []int, G int) []int {
	sizes := make([]int, G)
	for _, g := range index {
		sizes[g]++
	}
	return sizes
}

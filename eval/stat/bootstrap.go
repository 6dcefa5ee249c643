package stat

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Scores holds the item scores of one arm, [seeds][problems].
type Scores [][]float64

// Resampling configures a bootstrap.
type Resampling struct {
	Draws int     // 10 000 for problems, 2000 across suites
	Seed  uint64  // derived from the digests of the inputs, so equal inputs print equal numbers
	Level float64 // coverage
}

// Bootstrap returns the percentile interval of the mean of xs over problems: each draw takes clusters with
// replacement. clusters is as in ClusterMean. ok is false with fewer than two clusters. For seeds use
// CrossedMean: they are few (three have ten different samples), so a bootstrap would be too narrow.
func Bootstrap(xs []float64, clusters []string, r Resampling) (iv Interval, ok bool) {
	index, G := checkedClusters(clusters, Scores{xs})
	if G < 2 {
		return Interval{}, false
	}
	sums := make([]float64, G)
	for i, x := range xs {
		sums[index[i]] += x
	}
	sizes, times := clusterSizes(index, G), make([]int, G)
	return resample(r, func(rng *rand.Rand) float64 {
		items := drawClusters(rng, sizes, times)
		var sum float64
		for g, s := range sums {
			sum += float64(s * float64(times[g]))
		}
		return sum / float64(items)
	}), true
}

// drawClusters draws as many clusters as there are, with replacement. It sets times to how often each came, and
// returns how many problems that makes.
func drawClusters(rng *rand.Rand, sizes, times []int) (items int) {
	clear(times)
	for range sizes {
		g := rng.IntN(len(sizes))
		times[g]++
		items += sizes[g]
	}
	return items
}

// resample returns the percentile interval of a statistic over r.Draws draws.
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

// Quantile returns the p-quantile of sorted values, interpolating linearly between order statistics at
// (len-1)·p (Hyndman and Fan 1996, type 7; NumPy's default). It panics if sorted is empty.
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

func clusterSizes(index []int, G int) []int {
	sizes := make([]int, G)
	for _, g := range index {
		sizes[g]++
	}
	return sizes
}

package stat

import "math"

// Mean is a mean with what is needed for its interval and its test.
type Mean struct {
	N     int     // values
	G     int     // clusters
	Value float64 // Σ x / N
	// SE is the cluster-robust standard error; +Inf if there are fewer than two
	// clusters, because then nothing is known of the spread.
	SE float64
	DF float64 // degrees of freedom of SE: G-1, if nothing else is said
}

// ClusterMean is the mean of xs [N] and its cluster-robust standard error
//
//	SE = sqrt( G/(G-1) · Σ_g (Σ_{i∈g} (x_i - mean))² ) / N
//
// (Miller, arXiv:2411.00640 §2.2, with the small-sample factor G/(G-1), so that
// it is sd/√N with N-1 where each value is a cluster of its own). clusters [N]
// names each value's cluster; an empty name is a cluster of one, and nil means
// that all are. It panics if the lengths differ or if there are no values.
func ClusterMean(xs []float64, clusters []string) Mean {
	if len(xs) == 0 {
		panic("stat: mean of nothing")
	}
	index, G := Clusters(len(xs), clusters)
	m := Mean{N: len(xs), G: G, SE: math.Inf(1), DF: float64(G - 1)}
	var sum float64
	for _, x := range xs {
		sum += x
	}
	m.Value = sum / float64(m.N)
	if G < 2 {
		return m
	}

	dev := make([]float64, G)
	for i, x := range xs {
		dev[index[i]] += x - m.Value
	}
	var ss float64
	for _, d := range dev {
		ss += float64(d * d)
	}
	m.SE = math.Sqrt(float64(G)/float64(G-1)*ss) / float64(m.N)
	return m
}

// Clusters numbers clusters in the order in which they first appear: index [n]
// is each item's, G how many there are. names is as in ClusterMean.
func Clusters(n int, names []string) (index []int, G int) {
	if names != nil && len(names) != n {
		panic("stat: length mismatch")
	}
	index = make([]int, n)
	seen := make(map[string]int)
	for i := range index {
		if names == nil || names[i] == "" {
			index[i] = G
			G++
			continue
		}
		g, ok := seen[names[i]]
		if !ok {
			g = G
			seen[names[i]] = g
			G++
		}
		index[i] = g
	}
	return index, G
}

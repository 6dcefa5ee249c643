package stat

import "math"

// Mean is a mean with what its interval and test need.
type Mean struct {
	N     int     // values
	G     int     // clusters
	Value float64 // Σ x / N
	// SE is the cluster-robust standard error; 0 where only rounding tells the values apart, +Inf with
	// fewer than two clusters, which leave the spread unknown.
	SE float64
	DF float64 // degrees of freedom of SE: G-1 unless stated otherwise
}

// ClusterMean returns the mean of xs [N] and its cluster-robust standard error
//
//	SE = sqrt( G/(G-1) · Σ_g (Σ_{i∈g} (x_i - mean))² ) / N
//
// (Miller, arXiv:2411.00640 §2.2, with the small-sample factor G/(G-1), so that it equals sd/√N, sd with
// divisor N-1, if each value is its own cluster). clusters [N] names each value's cluster; an empty name is
// a cluster of one, and nil makes every value one. It panics if lengths differ or xs is empty.
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
	if m.SE < rounding*math.Abs(m.Value) {
		m.SE = 0
	}
	return m
}

// rounding is the relative size of what rounding leaves between sums of equal numbers: 3·0.1 is not 0.3.
const rounding = 1e-12

// same reports whether only rounding tells x and y apart.
func same(x, y float64) bool { return math.Abs(x-y) <= rounding*max(math.Abs(x), math.Abs(y)) }

// Clusters numbers clusters by first appearance: index [n] holds each item's cluster, G counts them. names
// is as in ClusterMean.
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

package stat

import (
	"math"
	"math/bits"
	"math/rand/v2"
)

const (
	// exactClusters is the most clusters whose 2^G sign patterns are all counted.
	exactClusters = 20
	// permutationDraws is the number of patterns drawn beyond that. It gives p = 0.05 with a standard error
	// of 0.0015.
	permutationDraws = 20_000
	// signTie is the relative difference below which two sums count as the same sum added in another order.
	signTie = 1e-9
)

// SignFlip returns the two-sided p value of the hypothesis that the paired differences d [N] are symmetric
// around zero: the share of sign patterns, one sign per cluster, whose |Σ d| is at least the observed one.
// With up to 20 clusters with nonzero differences it counts all patterns; with more it draws 20 000 and
// returns (1+hits)/(1+draws), which is never zero (Phipson and Smyth 2010). exact says which. clusters is
// as in ClusterMean; seed matters only for drawing. With no differences, or only zeros, p = 1.
func SignFlip(d []float64, clusters []string, seed uint64) (p float64, exact bool) {
	index, G := Clusters(len(d), clusters)
	all := make([]float64, G)
	for i, x := range d {
		all[index[i]] += x
	}
	// A cluster with sum 0 changes nothing, whatever its sign.
	var sums []float64
	var observed, scale float64
	for _, s := range all {
		if s != 0 {
			sums = append(sums, s)
			observed += s
			scale += math.Abs(s)
		}
	}
	threshold := math.Abs(observed) - signTie*scale
	if len(sums) <= exactClusters {
		return flipAll(sums, threshold), true
	}
	return flipSome(sums, threshold, seed), false
}

// flipAll visits the patterns in Gray code order, changing one sign per step.
func flipAll(sums []float64, threshold float64) float64 {
	var sum float64
	for _, s := range sums {
		sum += s
	}
	negative := make([]bool, len(sums))
	total := 1 << len(sums)
	hits := 1 // the observed pattern
	for i := 1; i < total; i++ {
		k := bits.TrailingZeros(uint(i))
		if negative[k] {
			sum += 2 * sums[k]
		} else {
			sum -= 2 * sums[k]
		}
		negative[k] = !negative[k]
		if math.Abs(sum) >= threshold {
			hits++
		}
	}
	return float64(hits) / float64(total)
}

func flipSome(sums []float64, threshold float64, seed uint64) float64 {
	rng := rand.New(rand.NewPCG(seed, 0))
	hits := 0
	for range permutationDraws {
		var sum float64
		var word uint64
		for i, s := range sums {
			if i%64 == 0 {
				word = rng.Uint64()
			}
			sum += math.Float64frombits(math.Float64bits(s) ^ word<<63) // ±s without a branch
			word >>= 1
		}
		if math.Abs(sum) >= threshold {
			hits++
		}
	}
	return float64(1+hits) / float64(1+permutationDraws)
}

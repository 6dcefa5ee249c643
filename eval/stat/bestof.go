package stat

import (
	"math"
)

// SubsetDraws configures BootstrapSubsets; verl uses 1000 draws with seed 42.
type SubsetDraws struct {
	Draws int
	Seed  uint32
}

// Moments holds a mean and a standard deviation with divisor n.
type Moments struct{ Mean, Std float64 }

// MomentsOf returns the moments of xs. It panics if xs is empty.
func MomentsOf(xs []float64) Moments {
	if len(xs) == 0 {
		panic("stat: mean of nothing")
	}
	n := float64(len(xs))
	var m Moments
	for _, x := range xs {
		m.Mean += x
	}
	m.Mean /= n
	var ss float64
	for _, x := range xs {
		ss += float64((x - m.Mean) * (x - m.Mean))
	}
	m.Std = math.Sqrt(ss / n)
	return m
}

// BootstrapSubsets draws size of n samples with replacement, applies reduce, and returns the moments over
// draws (verl's bootstrap_metric, to the last draw). index is valid only during the call of reduce. Equal
// arguments draw equal samples.
//
// With the maximum as reduce it computes verl's best@size. That underestimates the probability that size
// samples contain a correct one, because a draw repeats samples: with n = size only 63 % are different.
// PassAtK is unbiased. The standard deviation describes a single draw, not the mean.
func BootstrapSubsets(n, size int, d SubsetDraws, reduce func(index []int) float64) Moments {
	if n < 1 || size < 1 || d.Draws < 1 {
		panic("stat: a bootstrap needs draws")
	}
	rng := newMersenne(d.Seed)
	index, values := make([]int, size), make([]float64, d.Draws)
	for k := range values {
		for i := range index {
			index[i] = rng.below(n)
		}
		values[k] = reduce(index)
	}
	return MomentsOf(values)
}

// Majority returns the value of the first sample, in index order, that has the most frequent answer. On a
// tie the answer seen first wins. answers and values cover all samples.
func Majority(answers []string, values []float64, index []int) float64 {
	votes := make(map[string]int)
	for _, i := range index {
		votes[answers[i]]++
	}
	winner := index[0]
	for _, i := range index {
		if votes[answers[i]] > votes[answers[winner]] {
			winner = i
		}
	}
	return values[winner]
}

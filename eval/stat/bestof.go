package stat

import (
	"math"
)

// SubsetDraws is how BootstrapSubsets draws; verl's are 1000 draws with seed 42.
type SubsetDraws struct {
	Draws int
	Seed  uint32
}

// Moments are a mean and a standard deviation that divides by the number of values.
type Moments struct{ Mean, Std float64 }

// MomentsOf returns those of xs. It panics if there are none.
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

// BootstrapSubsets returns the moments, over draws, of reduce of size samples out of
// n, drawn with replacement (verl's bootstrap_metric, to the last draw). index is
// valid during the call of reduce. Equal arguments draw equal samples.
//
// With the maximum for reduce it is verl's best@size. That is below the probability
// that size samples hold a correct one, since a draw repeats samples: of n = size,
// only 63 % are different. PassAtK has no such bias. The standard deviation is of one
// draw's value, not of the mean.
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

// Majority returns the value of the first sample, in the order of index, whose
// answer is the most frequent one among them; of equally frequent answers the one
// seen first counts. answers and values are of all samples.
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

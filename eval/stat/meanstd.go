package stat

import "math"

// MeanStd is the mean of xs and their standard deviation with the divisor n-1; the deviation
// is NaN for fewer than two values, and the mean of none is NaN too.
func MeanStd(xs []float64) (mean, std float64) {
	n := float64(len(xs))
	for _, x := range xs {
		mean += x
	}
	mean /= n
	if len(xs) < 2 {
		return mean, math.NaN()
	}
	var ss float64
	for _, x := range xs {
		ss += float64((x - mean) * (x - mean))
	}
	return mean, math.Sqrt(ss / (n - 1))
}

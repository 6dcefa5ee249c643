package stat

import "math"

// MeanStd returns the mean and the standard deviation (divisor n-1) of xs. The deviation is NaN for fewer
// than two values, the mean is NaN for none.
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

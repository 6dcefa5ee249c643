package stat

import "math"

// EffectSize is Cohen's d of paired differences: mean(d) / sd(d), with N-1 in the
// standard deviation (Lakens 2013, d_z). Zero where all differences are zero; ±Inf
// where all are the same other value. ok is false with fewer than two.
func EffectSize(d []float64) (value float64, ok bool) {
	if len(d) < 2 {
		return 0, false
	}
	var sum float64
	for _, x := range d {
		sum += x
	}
	mean := sum / float64(len(d))
	var ss float64
	for _, x := range d {
		ss += float64((x - mean) * (x - mean))
	}
	if ss == 0 && mean == 0 {
		return 0, true
	}
	return mean / math.Sqrt(ss/float64(len(d)-1)), true
}

// MDE is the minimum detectable effect: the true difference that a two-sided test
// at 5 % finds with a probability of 80 %, (1.96 + 0.84)·SE = 2.8·SE for a
// difference with standard error se.
func MDE(se float64) float64 { return 2.8 * se }

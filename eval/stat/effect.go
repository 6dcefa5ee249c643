package stat

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// EffectSize returns Cohen's d of paired differences: mean(d) / sd(d), sd with divisor N-1 (Lakens 2013,
// d_z). It is zero if all differences are zero and ±Inf if all equal another value. ok is false with fewer
// than two.
func EffectSize(d []float64) (value float64, ok bool) {
	if len(d) < 2 {
		return 0, false
	}
	m := ClusterMean(d, nil)
	if m.SE == 0 && m.Value == 0 {
		return 0, true
	}
	return m.Value / (m.SE * math.Sqrt(float64(m.N))), true
}

// MDE returns the minimum detectable effect: the true difference that a two-sided test at 5 % finds with a
// probability of 80 % (Bloom 1995),
//
//	(t(.975) + t(.8))·SE
//
// with quantiles of Student's t at df degrees of freedom: 2.8·SE for large df (+Inf is allowed), 3.7·SE for
// df = 4. It panics unless df > 0.
func MDE(se, df float64) float64 {
	if !(df > 0) {
		panic("stat: no degrees of freedom")
	}
	quantile := mathext.NormalQuantile
	if !math.IsInf(df, 1) {
		quantile = student{df}.quantile
	}
	return (quantile(0.975) + quantile(0.8)) * se
}

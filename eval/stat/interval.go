package stat

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// Interval is an interval for a parameter, with the name of its method: "t", "wilson", "score" or
// "bootstrap".
type Interval struct {
	Lo, Hi float64
	Method string
}

// Within returns the interval cut to what a mean of values between least and most can be.
func (iv Interval) Within(least, most float64) Interval {
	iv.Lo, iv.Hi = max(iv.Lo, least), min(iv.Hi, most)
	return iv
}

// TInterval returns mean ± t·SE with the quantile of Student's t at the mean's degrees of freedom. It is
// not cut to the range of the values. ok is false if the spread is unknown.
func TInterval(m Mean, level float64) (iv Interval, ok bool) {
	if m.DF <= 0 || math.IsInf(m.SE, 1) {
		return Interval{}, false
	}
	t := student{m.DF}.quantile(0.5 + level/2)
	return Interval{Lo: m.Value - t*m.SE, Hi: m.Value + t*m.SE, Method: "t"}, true
}

// TTest returns the two-sided p value for a true mean of zero: 1 minus the level at which TInterval just
// touches zero. ok is false if the spread is unknown, or if it is zero around a nonzero mean: equal scores
// say little about the next one.
func TTest(m Mean) (p float64, ok bool) {
	switch {
	case m.DF <= 0 || math.IsInf(m.SE, 1):
		return 0, false
	case m.Value == 0:
		return 1, true
	case m.SE == 0:
		return 0, false
	}
	return student{m.DF}.tails(math.Abs(m.Value) / m.SE), true
}

// Wilson returns the score interval for a proportion of c successes in n independent trials (Wilson 1927;
// Brown, Cai, DasGupta 2001, eq. 4):
//
//	(p + z²/2n ± z·sqrt(p(1-p)/n + z²/4n²)) / (1 + z²/n)
//
// with z the normal quantile. It stays in [0,1]. It panics unless 0 ≤ c ≤ n and n ≥ 1.
func Wilson(c, n int, level float64) Interval {
	if n < 1 || c < 0 || c > n {
		panic("stat: successes out of range")
	}
	z := mathext.NormalQuantile(0.5 + level/2)
	N := float64(n)
	p := float64(c) / N
	centre := p + z*z/(2*N)
	half := z * math.Sqrt(p*(1-p)/N+z*z/(4*N*N))
	scale := 1 + z*z/N
	iv := Interval{Lo: (centre - half) / scale, Hi: (centre + half) / scale, Method: "wilson"}
	if c == 0 {
		iv.Lo = 0 // exactly; the difference above leaves rounding
	}
	if c == n {
		iv.Hi = 1
	}
	return iv
}

// Unanimous returns Wilson's interval for the mean of shares that are all 0 or all 1: 0 of G clusters, or G of
// G. Intervals from the spread of such values have no width, as if 0 of 16 proved 0. clusters is as in
// ClusterMean. ok is false for other values.
func Unanimous(shares []float64, clusters []string, level float64) (iv Interval, ok bool) {
	if len(shares) == 0 || shares[0] != 0 && shares[0] != 1 {
		return iv, false
	}
	for _, v := range shares {
		if v != shares[0] {
			return iv, false
		}
	}
	_, G := Clusters(len(shares), clusters)
	return Wilson(int(shares[0])*G, G, level), true
}

package stat

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Interval is an interval for a parameter, with the name of how it was made: "t",
// "wilson" or "bootstrap".
type Interval struct {
	Lo, Hi float64
	Method string
}

// TInterval is mean ± t·SE with the quantile of Student's t at G-1 degrees of
// freedom. It is not cut to the range of the values. ok is false where fewer than
// two clusters leave the spread unknown.
func TInterval(m Mean, level float64) (iv Interval, ok bool) {
	if m.G < 2 {
		return Interval{}, false
	}
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(m.G - 1)}.Quantile(0.5 + level/2)
	return Interval{Lo: m.Value - t*m.SE, Hi: m.Value + t*m.SE, Method: "t"}, true
}

// Wilson is the score interval for a proportion of c successes in n independent
// trials (Wilson 1927; Brown, Cai, DasGupta 2001, eq. 4):
//
//	(p + z²/2n ± z·sqrt(p(1-p)/n + z²/4n²)) / (1 + z²/n)
//
// with z the normal quantile. It stays within [0,1]. It panics unless 0 ≤ c ≤ n
// and n ≥ 1.
func Wilson(c, n int, level float64) Interval {
	if n < 1 || c < 0 || c > n {
		panic("stat: successes out of range")
	}
	z := distuv.UnitNormal.Quantile(0.5 + level/2)
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

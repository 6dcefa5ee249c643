package stat

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// student is Student's t distribution with df > 0 degrees of freedom. Its tails are an incomplete beta function
// (Abramowitz and Stegun 1964, 26.7.1):
//
//	P(|T| ≥ t) = I_x(df/2, 1/2),  x = df/(df + t²)
type student struct{ df float64 }

// tails returns the probability of a value at least t ≥ 0 away from zero, on either side.
func (s student) tails(t float64) float64 {
	return mathext.RegIncBeta(s.df/2, 0.5, s.df/(s.df+t*t))
}

// quantile returns the value that a share p in [1/2, 1) of the distribution lies below.
func (s student) quantile(p float64) float64 {
	x := mathext.InvRegIncBeta(s.df/2, 0.5, 2*(1-p))
	return math.Sqrt(s.df * (1 - x) / x)
}

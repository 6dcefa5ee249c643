package stat

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// ImprovementInterval returns the interval of a ProbabilityOfImprovement p between arms of m and n runs:
// every θ that a score test does not reject,
//
//	|p - θ| <= z·√V(θ),   V(θ) = θ(1-θ)/(mn) · (1 + (ν-1)·((1-θ)/(2-θ) + θ/(1+θ)))
//
// with ν = (m+n)/2 and the variance of the Mann-Whitney statistic by Hanley and McNeil (1982), which
// Newcombe (2006, Statistics in Medicine 25, 559-573) makes symmetric. The interval has a width even if all
// runs of one arm beat all of the other, as happens with few runs.
//
// For several suites p is the mean. Runs are scored on all suites, so all suites count as one and do not
// narrow the interval. It panics if an arm has no runs.
func ImprovementInterval(p float64, m, n int, level float64) Interval {
	if m < 1 || n < 1 {
		panic("stat: an arm without runs")
	}
	z := mathext.NormalQuantile(0.5 + level/2)
	lo := improvementBound(p, m, n, z)
	hi := 1 - improvementBound(1-p, m, n, z) // V is symmetric
	return Interval{Lo: lo, Hi: hi, Method: "score"}
}

// improvementBound finds the smallest θ that is not rejected by bisection: 0 is rejected, a θ just below p
// is not.
func improvementBound(p float64, m, n int, z float64) float64 {
	if p <= 0 {
		return 0
	}
	nu := float64(m+n) / 2
	lo, hi := 0.0, p
	for range 60 {
		t := (lo + hi) / 2
		v := t * (1 - t) / float64(m*n) * (1 + (nu-1)*((1-t)/(2-t)+t/(1+t)))
		if p-t > z*math.Sqrt(v) {
			lo = t
		} else {
			hi = t
		}
	}
	return hi
}

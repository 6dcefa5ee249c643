package stat

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// ImprovementInterval is the interval of a ProbabilityOfImprovement p between arms of m
// and n runs: the θ that a score test does not reject,
//
//	|p - θ| <= z·√V(θ),   V(θ) = θ(1-θ)/(mn) · (1 + (ν-1)·((1-θ)/(2-θ) + θ/(1+θ)))
//
// with ν = (m+n)/2 and the variance of the Mann-Whitney statistic by Hanley and McNeil
// (1982), which Newcombe (2006, Statistics in Medicine 25, 559-573) makes symmetric. It
// has a width where all runs of one arm beat all of the other, as happens with few.
//
// Of several suites p is the mean. Runs are scored on all of them, so that suites are
// counted as one: what they tell apart narrows nothing. It panics if there are no runs.
func ImprovementInterval(p float64, m, n int, level float64) Interval {
	if m < 1 || n < 1 {
		panic("stat: an arm without runs")
	}
	z := distuv.UnitNormal.Quantile(0.5 + level/2)
	lo := improvementBound(p, m, n, z)
	hi := 1 - improvementBound(1-p, m, n, z) // V is symmetric
	return Interval{Lo: lo, Hi: hi, Method: "score"}
}

// improvementBound is the least θ that is not rejected, by bisection: at 0 it is, right
// below p it is not.
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

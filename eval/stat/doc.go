// Package stat holds the statistics of evaluation: how precisely a score is known, whether two arms differ,
// and how diverse a policy's answers are. All functions are pure: the ones that draw random numbers take the
// seed as an argument, so equal arguments give equal bits.
//
// Terms:
//
//	n, c      samples of one problem, and how many of them are correct
//	cluster   problems that must not be counted independently of each other;
//	          G clusters. A problem without a cluster forms a cluster alone.
//	level     coverage of an interval, 0.95 for 95 %
//
// COVERAGE.md shows how often the intervals hold and the tests err; coverage_test.go repeats that study.
//
// The package never pools seeds and problems as if they were independent, and never extrapolates pass@k
// beyond the samples available.
package stat

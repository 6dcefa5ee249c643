// Package stat holds the statistics of evaluation: how good a score is known,
// whether two arms differ, and how many different things a policy says. All of it
// is pure functions: what draws random numbers takes its seed as an argument, so
// equal arguments give equal bits.
//
// Words used throughout:
//
//	n, c      samples of one problem, and how many of them are correct
//	cluster   problems that must not be counted independently of each other;
//	          G clusters. A problem without a cluster is one of its own.
//	level     coverage of an interval, 0.95 for 95 %
//
// How often the intervals hold and the tests err is in COVERAGE.md, a study that
// coverage_test.go repeats.
//
// It does not pool seeds and problems as if they were independent, and it never
// extrapolates pass@k beyond the samples there are.
package stat

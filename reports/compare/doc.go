// Package compare compares runs: it groups them into arms, refuses arms that differ in
// more than the treatment, and reports the differences in score, their uncertainty and
// the cost. It reads the store and calls eval/stat; it renders nothing and changes
// nothing.
//
// # Comparability
//
// An arm is a set of runs that repeat one experiment with different seeds. Arms may be
// compared if they differ in the treatment only: configuration, data, initial weights,
// sources of every stage, and the evaluation protocol must be the same. Any other
// difference is refused key by key (NotComparableError) unless it is declared part of the
// treatment (Options.Vary) or waived (Options.Allow); the result lists waivers.
//
// # The numbers
//
// Problems are paired: both arms answered the same ones. A problem's score in an arm is
// its mean over the arm's runs, one per seed.
//
//	mean      mean over problems of the arm's scores
//	Δ         mean over problems of d_i = score in arm A - score in arm B
//	interval  with MinSeeds runs in each arm: Student's t for other runs and other
//	          problems, crossed (stat.CrossedDifference; for one arm
//	          stat.CrossedMean). Runs are not paired, even with equal seeds. With
//	          fewer runs: over clusters of problems only, by Student's t (pass@k of an
//	          arm: cluster bootstrap; right or wrong in one run: Wilson). It then does
//	          not cover other training seeds, and Suite.SeedVariance is false. An
//	          arm's interval is cut to the metric's range; where every problem scored
//	          0, or 1, it is Wilson's (stat.Unanimous). A Δ without spread has none.
//	          eval/stat/COVERAGE.md has the measured coverage
//	p         of the same t test: at most 0.05 exactly if the 95 % interval excludes
//	          zero. With fewer runs, a sign-flip test over clusters of d_i: the
//	          probability of a Δ this large if it made no difference which arm a
//	          problem's score came from, for these runs; no test where no problem's
//	          score differs, since nothing could reject
//	p Holm    p adjusted for all tests of the comparison (Result.Tests): suites ×
//	          pairs of arms × tested metrics
//	SE        standard error of Δ, as in the interval
//	MDE       minimum detectable effect, the true difference that would give p ≤ 0.05,
//	          before Holm's correction, 80 % of the time: 2.8·SE, more if few runs
//	          make SE uncertain (stat.MDE)
//	effect    mean(d_i) / sd(d_i)
//
// Across aggregates over all suites.
//
// Runs and problems are never pooled as if independent. A metric without per-problem
// scores (such as the distance of an enumerable policy from its optimum) is compared over
// runs alone, with Welch's t, if each arm has MinSeeds runs.
//
// # Verdicts
//
// See Verdict. Resampling is seeded from the digests of the resampled data, so equal
// inputs give equal bits, for any order of runs.
//
// It does not correct for repeated looks at the data.
package compare

// Package compare compares runs: it forms arms, refuses arms that differ in more
// than the treatment, and says what the difference between them is, how well it is
// known and what it cost. It reads the store and calls eval/stat; it renders
// nothing and changes nothing.
//
// # What is compared
//
// An arm is a set of runs that repeat one experiment with different seeds. Arms may
// be compared when nothing but the treatment differs: configuration, data, initial
// weights, sources of every stage, and the protocol of the evaluation. What differs
// otherwise is refused key by key (NotComparableError) unless it is declared part
// of the treatment (Options.Vary) or waived (Options.Allow); a waiver is part of the
// result.
//
// # Where the numbers come from
//
// Problems are paired: both arms answered the same ones. A problem's score in an
// arm is its mean over the arm's runs, one run a seed.
//
//	mean      mean over problems of the arm's scores
//	Δ         mean over problems of d_i = score in arm A - score in arm B
//	interval  with at least MinSeeds runs in each arm Student's t for other runs and
//	          other problems, which are crossed: stat.CrossedDifference, of an arm
//	          stat.CrossedMean. Runs are not paired, also where their seeds are the
//	          same. With fewer, clusters of problems only, by Student's t (pass@k of an
//	          arm: cluster bootstrap; right or wrong in one run: Wilson). It then says
//	          nothing about other training seeds, and Suite.SeedVariance is false. An
//	          arm's is cut to what the metric can be. eval/stat/COVERAGE.md says how
//	          often they hold
//	p         of the same t: at most 0.05 where the interval at 95 % leaves zero out, and
//	          only there. With fewer runs it flips the signs of d_i, a cluster at a
//	          time: the probability of such a Δ if it made no difference which arm a
//	          problem's score came from, for these runs
//	p Holm    p adjusted for all tests of the comparison (Result.Tests): suites ×
//	          pairs of arms × tested metrics
//	SE        standard error of Δ, the one of the interval
//	MDE       the true difference that would be found 80 % of the time: 2.8·SE, and
//	          more where few runs leave SE doubtful (stat.MDE)
//	effect    mean(d_i) / sd(d_i)
//
// Across says what all suites come to together.
//
// Runs and problems are never pooled as if they were independent. A metric without
// scores of problems (such as the distance of an enumerable policy from its optimum)
// is compared over runs alone, with Welch's t, from MinSeeds runs an arm on.
//
// # Verdicts
//
// See Verdict. All resampling is seeded from the digests of what is resampled, so
// equal inputs give equal bits, in whatever order runs are handed in.
//
// Left out: any correction for looking twice.
package compare

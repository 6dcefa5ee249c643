package stat

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

// The study behind COVERAGE.md: how often intervals hold the truth and tests reject
// what is true, on made-up problems, runs and suites. Minutes, so by flag only:
//
//	go test ./eval/stat -run TestCoverage -study 1000 -timeout 60m
var study = flag.Int("study", 0, "write COVERAGE.md from so many replications of each case")

func TestCoverage(t *testing.T) {
	if *study == 0 {
		t.Skip("a study of minutes; -study 1000 runs it and writes COVERAGE.md")
	}
	var b strings.Builder
	fmt.Fprintf(&b, coverageIntro, *study)
	for _, part := range []func(*simulation){intervalCases, seedCases, testCases, acrossCases} {
		s := &simulation{reps: *study, rng: rand.New(rand.NewPCG(1, 2))}
		part(s)
		b.WriteString(s.table())
	}
	b.WriteString(coverageReading)
	if err := os.WriteFile("COVERAGE.md", []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

const coverageIntro = `# Coverage of the intervals, size of the tests

Made by

    go test ./eval/stat -run TestCoverage -study %d -timeout 60m

Each line is that many made-up evaluations, ± is two standard errors of the share
found. An interval at 95 %% should hold the truth 95 %% of the time, a test at 5 %% should
reject what is true at most 5 %% of the time.

A problem's chance of a right completion is 1/(1 + e^-z), z = difficulty of its cluster
and its own + effect of the run, all normal; a score is the share of right ones of n
completions. Runs have a standard deviation of 0.3 in z where they have an effect, which
moves an accuracy of 40 %% by about 5 points. The truth is the mean over problems and
runs without end, from ten million draws; of IQM and of the probability of improvement
it is the estimate's own mean. Bootstraps have 400 to 1000 draws here, 2000 to 10 000 in
comparisons.
`

const coverageReading = `
## What to make of it

Problems: the intervals hold what they say from some thirty clusters on, and fall a few
points short with less. Counting completions as if they were independent is wrong by a
factor of two and more.

Seeds: percentile intervals over three to five seeds are too short where runs differ by
more than problems can hide, and so false verdicts come too often: 14 % of the time with
three seeds in place of 5 %, 8 % with five. Ten seeds are about enough. Sign flips alone say nothing of other seeds, which is why a verdict asks for the
interval too.

Suites: a run has to be drawn once for all suites.
`

// simulation is one table.
type simulation struct {
	rng   *rand.Rand
	reps  int
	title string
	head  string
	rows  []string
}

func (s *simulation) table() string {
	return fmt.Sprintf("\n## %s\n\n| %s |\n|%s\n%s\n", s.title, s.head, strings.Repeat("---|", 1+strings.Count(s.head, "|")), strings.Join(s.rows, "\n"))
}

// share runs trial reps times and adds a row with the share of the times that each of
// its answers was true.
func (s *simulation) share(name string, trial func() []bool) {
	var hits []int
	for range s.reps {
		for i, ok := range trial() {
			if i == len(hits) {
				hits = append(hits, 0)
			}
			if ok {
				hits[i]++
			}
		}
	}
	row := "| " + name
	for _, h := range hits {
		p := float64(h) / float64(s.reps)
		row += fmt.Sprintf(" | %.1f ± %.1f", 100*p, 200*math.Sqrt(p*(1-p)/float64(s.reps)))
	}
	for range strings.Count(s.head, "|") - strings.Count(row, "|") + 1 {
		row += " | –" // the wrong assumption has no part in it
	}
	s.rows = append(s.rows, row+" |")
}

// world is what scores are drawn from.
type world struct {
	problems, cluster int     // in a suite, and in each cluster
	n                 int     // completions of a problem
	center, spread    float64 // of difficulties in z
	shared            float64 // share of the spread's variance that a cluster has in common
	runs              float64 // standard deviation of runs in z
}

// difficulties draws problems, and names their clusters.
func (w world) difficulties(rng *rand.Rand) (z []float64, clusters []string) {
	var common float64
	for i := range w.problems {
		if i%w.cluster == 0 {
			common = rng.NormFloat64()
		}
		z = append(z, w.center+w.spread*(math.Sqrt(w.shared)*common+math.Sqrt(1-w.shared)*rng.NormFloat64()))
		clusters = append(clusters, fmt.Sprint(i/w.cluster))
	}
	return z, clusters
}

// run draws the counts of a run on problems, by how much it is better than center.
func (w world) run(rng *rand.Rand, z []float64, better float64) []int {
	effect := better + w.runs*rng.NormFloat64()
	right := make([]int, len(z))
	for i := range z {
		p := chance(z[i] + effect)
		for range w.n {
			if rng.Float64() < p {
				right[i]++
			}
		}
	}
	return right
}

func chance(z float64) float64 { return 1 / (1 + math.Exp(-z)) }

// scores draws seeds of an arm.
func (w world) scores(rng *rand.Rand, z []float64, seeds int, better float64) Scores {
	var out Scores
	for range seeds {
		var row []float64
		for _, c := range w.run(rng, z, better) {
			row = append(row, float64(c)/float64(w.n))
		}
		out = append(out, row)
	}
	return out
}

// truth is the expectation of f(chance) over problems and runs.
func (w world) truth(better float64, f func(p float64) float64) float64 {
	rng := rand.New(rand.NewPCG(7, 7))
	var sum float64
	const draws = 10_000_000
	sd := math.Hypot(w.spread, w.runs)
	for range draws {
		sum += f(chance(w.center + better + sd*rng.NormFloat64()))
	}
	return sum / draws
}

func identity(p float64) float64 { return p }

func (iv Interval) holds(x float64) bool { return iv.Lo <= x && x <= iv.Hi }

func intervalCases(s *simulation) {
	s.title, s.head = "Intervals over problems: one run", "interval of | problems | covers, % | too naive: p(1−p) over all completions, %"
	for _, w := range []world{
		{30, 1, 16, -1.5, 2, 0, 0}, {30, 5, 16, -1.5, 2, 0.7, 0}, {272, 1, 16, -0.8, 2, 0, 0}, {500, 1, 16, 0.8, 2, 0, 0}, {500, 10, 16, 0.8, 2, 0.7, 0}} {
		truth := w.truth(0, identity)
		s.share(fmt.Sprintf("avg@%d: t, cluster-robust | %d in %d clusters", w.n, w.problems, w.problems/w.cluster), func() []bool {
			z, clusters := w.difficulties(s.rng)
			m := ClusterMean(w.scores(s.rng, z, 1, 0)[0], clusters)
			iv, _ := TInterval(m, 0.95)
			half := 1.96 * math.Sqrt(m.Value*(1-m.Value)/float64(w.problems*w.n))
			return []bool{iv.holds(truth), math.Abs(m.Value-truth) <= half}
		})
	}
	for _, w := range []world{{30, 1, 1, -3, 1, 0, 0}, {30, 1, 1, 0, 1, 0, 0}, {500, 1, 1, -3, 1, 0, 0}} {
		truth := w.truth(0, identity)
		s.share(fmt.Sprintf("one sample a problem: Wilson, accuracy %.2f | %d", truth, w.problems), func() []bool {
			z, _ := w.difficulties(s.rng)
			right := 0
			for _, c := range w.run(s.rng, z, 0) {
				right += c
			}
			p := float64(right) / float64(w.problems)
			return []bool{Wilson(right, w.problems, 0.95).holds(truth), math.Abs(p-truth) <= 1.96*math.Sqrt(p*(1-p)/float64(w.problems))}
		})
	}
	for _, w := range []world{{30, 1, 16, -1.5, 2, 0, 0}, {272, 1, 16, -1.5, 2, 0, 0}} {
		const k = 8
		truth := w.truth(0, func(p float64) float64 { return 1 - math.Pow(1-p, k) })
		s.share(fmt.Sprintf("pass@%d of 16: cluster bootstrap | %d", k, w.problems), func() []bool {
			z, clusters := w.difficulties(s.rng)
			var row []float64
			for _, c := range w.run(s.rng, z, 0) {
				v, _ := PassAtK(w.n, c, k)
				row = append(row, v)
			}
			iv, _ := Bootstrap(Scores{row}, clusters, Resampling{1000, s.rng.Uint64(), 0.95})
			m := mean(row)
			return []bool{iv.holds(truth), math.Abs(m-truth) <= 1.96*math.Sqrt(m*(1-m)/float64(w.problems*w.n))}
		})
	}
}

func seedCases(s *simulation) {
	s.title, s.head = "Two-level bootstrap: other seeds too", "problems | seeds | mean of an arm, % | difference of two arms, % | too naive: that arm's interval over problems only, %"
	for _, w := range []world{{30, 1, 8, -1.5, 2, 0, 0.3}, {500, 1, 8, -0.4, 2, 0, 0.3}} {
		truth, other := w.truth(0, identity), w.truth(0.4, identity)
		for _, seeds := range []int{3, 5, 10} {
			s.share(fmt.Sprintf("%d | %d", w.problems, seeds), func() []bool {
				z, clusters := w.difficulties(s.rng)
				a, b := w.scores(s.rng, z, seeds, 0), w.scores(s.rng, z, seeds, 0.4)
				r := Resampling{500, s.rng.Uint64(), 0.95}
				arm, _ := Bootstrap(a, clusters, r)
				d, _ := BootstrapDifference(a, b, clusters, r)
				naive, _ := TInterval(ClusterMean(meanOverSeeds(a), clusters), 0.95)
				return []bool{arm.holds(truth), d.holds(truth - other), naive.holds(truth)}
			})
		}
	}
}

// meanOverSeeds is each problem's mean.
func meanOverSeeds(a Scores) []float64 {
	out := make([]float64, len(a[0]))
	for _, row := range a {
		for i, x := range row {
			out[i] += x / float64(len(a))
		}
	}
	return out
}

func testCases(s *simulation) {
	s.title, s.head = "Tests at 5 %: arms that do not differ", "test | problems, seeds | rejects, % | with the wrong assumption, %"
	differences := func(w world, seeds int, better float64) ([]float64, []string) {
		z, clusters := w.difficulties(s.rng)
		a, b := meanOverSeeds(w.scores(s.rng, z, seeds, better)), meanOverSeeds(w.scores(s.rng, z, seeds, 0))
		for i := range a {
			a[i] -= b[i]
		}
		return a, clusters
	}
	p := func(d []float64, clusters []string) float64 {
		v, _ := SignFlip(d, clusters, s.rng.Uint64())
		return v
	}
	fixed := func(w world) world { w.runs = 0; return w }
	plain, clustered := world{100, 1, 8, -0.4, 2, 0, 0.3}, world{100, 10, 8, -0.4, 2, 0.7, 0.3}
	s.share("sign flips, arms of the same weights | 100, 1", func() []bool { return []bool{p(differences(fixed(plain), 1, 0)) <= 0.05} })
	s.share("sign flips by cluster of 10 (without: clusters ignored) | 100, 1", func() []bool {
		// What a prompt does to a cluster: each arm has its own effect on each.
		z, clusters := clustered.difficulties(s.rng)
		d := make([]float64, len(z))
		for _, sign := range []float64{1, -1} {
			w := fixed(clustered)
			shift := make([]float64, len(z))
			for i := range shift {
				if i%w.cluster == 0 {
					shift[i] = z[i] + 0.5*s.rng.NormFloat64()
				} else {
					shift[i] = z[i] + shift[i-i%w.cluster] - z[i-i%w.cluster]
				}
			}
			for i, c := range w.run(s.rng, shift, 0) {
				d[i] += sign * float64(c) / float64(w.n)
			}
		}
		return []bool{p(d, clusters) <= 0.05, p(d, nil) <= 0.05}
	})
	s.share("sign flips, runs that differ by their seed: it speaks of these runs | 100, 1", func() []bool {
		return []bool{p(differences(plain, 1, 0)) <= 0.05}
	})
	for _, seeds := range []int{3, 5, 10} {
		s.share(fmt.Sprintf("the same and the two-level interval leaves zero out, as verdicts ask (without: sign flips alone) | 100, %d", seeds), func() []bool {
			z, clusters := plain.difficulties(s.rng)
			a, b := plain.scores(s.rng, z, seeds, 0), plain.scores(s.rng, z, seeds, 0)
			d := meanOverSeeds(a)
			for i, x := range meanOverSeeds(b) {
				d[i] -= x
			}
			iv, _ := BootstrapDifference(a, b, clusters, Resampling{500, s.rng.Uint64(), 0.95})
			reject := p(d, clusters) <= 0.05
			return []bool{reject && !iv.holds(0), reject}
		})
	}
	s.share("any of 8 tests after Holm (without: before) | 30, 1", func() []bool {
		var ps []float64
		for range 8 {
			ps = append(ps, p(differences(world{30, 1, 8, -0.4, 2, 0, 0}, 1, 0)))
		}
		return []bool{slices.Min(Holm(ps)) <= 0.05, slices.Min(ps) <= 0.05}
	})
	s.share("MDE: finds a true difference of its size (should be 80 %) | 100, 1", func() []bool {
		// Differences with a standard error of 0.01 in truth, shifted by its MDE.
		d := make([]float64, 100)
		for i := range d {
			d[i] = MDE(0.01) + 0.1*s.rng.NormFloat64()
		}
		return []bool{p(d, nil) <= 0.05}
	})
}

// acrossCases have three suites of their own sizes and difficulties.
func acrossCases(s *simulation) {
	s.title, s.head = "Across three suites of 30, 40 and 272 problems", "seeds | mean, % | IQM, % | probability of improvement, % | too naive: mean with seeds drawn apart in each suite, %"
	worlds := []world{{30, 1, 8, -1.5, 2, 0, 0.3}, {40, 1, 8, 0.4, 2, 0, 0.3}, {272, 1, 8, -0.8, 2, 0, 0.3}}
	const better = 0.2
	draw := func(rng *rand.Rand, seeds int) []SuiteScores {
		out := make([]SuiteScores, len(worlds))
		var effects [2][]float64 // a run has one effect on all suites
		for a := range effects {
			for range seeds {
				effects[a] = append(effects[a], float64(1-a)*better+worlds[0].runs*rng.NormFloat64())
			}
		}
		for i, w := range worlds {
			w.runs = 0
			z, _ := w.difficulties(rng)
			for a := range effects {
				var arm Scores
				for _, e := range effects[a] {
					arm = append(arm, w.scores(rng, z, 1, e)[0])
				}
				out[i].Arms = append(out[i].Arms, arm)
			}
		}
		return out
	}
	numbers := func(suites []SuiteScores, w Weights) []float64 {
		a, b := w.Means(suites, 0), w.Means(suites, 1)
		all := slices.Concat(a...)
		return []float64{mean(all), IQM(all), ProbabilityOfImprovement(a, b)}
	}
	for _, seeds := range []int{3, 5, 10} {
		// The truth is what the numbers are on average.
		truth := make([]float64, 3)
		rng := rand.New(rand.NewPCG(3, uint64(seeds)))
		const draws = 4000
		for range draws {
			suites := draw(rng, seeds)
			for i, v := range numbers(suites, All(suites)) {
				truth[i] += v / draws
			}
		}
		s.share(fmt.Sprint(seeds), func() []bool {
			suites := draw(s.rng, seeds)
			r := Resampling{400, s.rng.Uint64(), 0.95}
			ivs := AcrossSuites(suites, true, r, func(w Weights) []float64 { return numbers(suites, w) })
			// Apart: the bootstrap of each suite by itself, and their mean.
			var apart []float64
			rng := rand.New(rand.NewPCG(r.Seed, 1))
			for range r.Draws {
				var sum float64
				for i := range suites {
					one := suites[i : i+1]
					w := All(one)
					_, sizes := Clusters(len(one[0].Arms[0][0]), nil)
					index := make([]int, sizes)
					for k := range index {
						index[k] = k
					}
					w.drawSeeds(rng)
					w.drawProblems(rng, [][]int{index}, [][]int{slices.Repeat([]int{1}, sizes)})
					sum += mean(w.Means(one, 0)[0]) / float64(len(suites))
				}
				apart = append(apart, sum)
			}
			slices.Sort(apart)
			naive := Interval{Lo: Quantile(apart, 0.025), Hi: Quantile(apart, 0.975)}
			return []bool{ivs[0].holds(truth[0]), ivs[1].holds(truth[1]), ivs[2].holds(truth[2]), naive.holds(truth[0])}
		})
	}
}

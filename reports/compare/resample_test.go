package compare

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"exp/eval"
	"exp/eval/stat"
	"exp/experiments/ident"
	"exp/experiments/store"
)

// The shared resamples give the interval of stat.BootstrapDifference, which draws
// for one metric at a time.
func TestResampleIsBootstrapDifference(t *testing.T) {
	const seed = 5
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, clusters := range []int{37, 9} { // problems alone, and about four a cluster
		f := newFixture(t)
		names := make([]string, 37)
		for i := range names {
			names[i] = fmt.Sprint("c", i%clusters)
		}
		var arms [2][]store.Run
		var scores [2]stat.Scores
		for s := range int64(3) {
			for a, algo := range []string{"flowrl", "ppo"} {
				var correct []int
				var row []float64
				for range names {
					c := rng.IntN(3)
					correct, row = append(correct, c), append(row, float64(c)/2)
				}
				items := answers(correct...)
				for i := range items {
					items[i].Cluster = names[i]
				}
				arms[a] = append(arms[a], f.put(plainRun(fmt.Sprint(algo, clusters), algo, s, items...)))
				scores[a] = append(scores[a], row)
			}
		}
		const draws = 700 // more than two blocks
		r, err := f.compareRuns(Options{Draws: draws}, arms[0], arms[1])
		f.must(err)
		got := r.Suites[0].Metric("pass@1").Pairs[0].Interval

		c := &comparison{reader: newReader(f.db), o: Options{Draws: draws}}
		f.must(c.load(context.Background(), []Arm{{Runs: arms[0]}, {Runs: arms[1]}}))
		f.must(c.chooseSuites())
		f.must(c.readScores(c.suites[0]))
		table := c.tableOf(c.suites[0], []int{1})
		sign := 1.0
		if table.order[0] == 1 { // drawn first: the other arm
			scores[0], scores[1] = scores[1], scores[0]
			sign = -1
		}
		want, ok := stat.BootstrapDifference(scores[0], scores[1], names, stat.Resampling{Draws: draws, Seed: table.seed, Level: level})
		lo, hi := sign*want.Lo, sign*want.Hi
		if sign < 0 {
			lo, hi = hi, lo
		}
		if !ok || math.Abs(got.Lo-lo) > 1e-12 || math.Abs(got.Hi-hi) > 1e-12 {
			t.Errorf("seed %d, %d clusters: [%.15g, %.15g], want [%.15g, %.15g]", seed, clusters, got.Lo, got.Hi, lo, hi)
		}
	}
}

// Problems without a value in some run take no part: of 2 1 1 0 and 1 1 0 0 correct
// where the third problem of B was not graded, problems 1, 2 and 4 stay:
// means (1 + .5 + 0)/3 = .5 and (.5 + .5 + 0)/3 = 1/3.
func TestProblemsWithoutValue(t *testing.T) {
	f := newFixture(t)
	second := answers(1, 1, 0, 0)
	second[2].Graded, second[2].Correct, second[2].Formatted = 0, 0, 0
	a, b := f.put(plainRun("flow", "flowrl", 0, answers(2, 1, 1, 0)...)), f.put(plainRun("ppo", "ppo", 0, second...))
	r, err := f.compareRuns(Options{}, []store.Run{a}, []store.Run{b})
	f.must(err)
	m := r.Suites[0].Metric("pass@1")
	if m.Items != 3 {
		t.Errorf("%d problems, want 3", m.Items)
	}
	near(t, "A", m.Arms[0].Mean, 0.5)
	near(t, "B", m.Arms[1].Mean, 1.0/3)
	near(t, "share not graded of B", r.Suites[0].Metric("not_graded").Arms[1].Mean, 0.25) // one of four problems
}

// One sample a problem: right or wrong, so the interval is Wilson's. 3 of 4:
// p = .75, z² = 3.8414588: centre (.75 + .4801824)/1.9603647 = .6275273,
// half width 1.9599640·sqrt(.75·.25/4 + 3.8414588/64)/1.9603647 = .3268854.
func TestSingleSamples(t *testing.T) {
	f := newFixture(t)
	one := func(correct ...int) []eval.Item {
		items := answers(correct...)
		for i := range items {
			items[i].Samples, items[i].Graded, items[i].Formatted = 1, 1, 1
		}
		return items
	}
	a, b := f.put(plainRun("flow", "flowrl", 0, one(1, 1, 1, 0)...)), f.put(plainRun("ppo", "ppo", 0, one(1, 0, 0, 0)...))
	r, err := f.compareRuns(Options{K: []int{1}}, []store.Run{a}, []store.Run{b})
	f.must(err)
	iv := r.Suites[0].Metric("pass@1").Arms[0].Interval
	near(t, "lo", &iv.Lo, 0.6275273-0.3268854)
	near(t, "hi", &iv.Hi, 0.6275273+0.3268854)
	if iv.Method != "wilson" {
		t.Errorf("method %s", iv.Method)
	}
}

// filled is a store with arms of runs, each of problems with 16 samples.
func filled(t testing.TB, arms, runs, problems int) (*fixture, []Arm) {
	f := newFixture(t)
	rng := rand.New(rand.NewPCG(1, 0))
	list := make([]Arm, arms)
	for a := range list {
		for s := range runs {
			var items []eval.Item
			for p := range problems {
				c := rng.IntN(17)
				items = append(items, eval.Item{ProblemID: ident.Sum([]byte{byte(p), byte(p >> 8)}).Short(), Samples: 16, Graded: 16, Correct: c, Formatted: 16,
					DistinctCorrect: (c + 2) / 3, DistinctAnswers: 8, AnswerEntropy: rng.Float64() * 2, Reward: float64(c), Tokens: 200 + c, TokenEntropy: 40})
			}
			r := plainRun(fmt.Sprint("arm", a), []string{"flowrl", "ppo"}[a%2], int64(s), items...)
			r.suites["test@start"] = items[:problems:problems]
			r.extra = map[string]float64{"pass@4": 0.5, "pass@8": 0.5, "pass@16": 0.5}
			list[a].Runs = append(list[a].Runs, f.put(r))
		}
	}
	return f, list
}

// Go runs it with: go test -bench Compare ./reports/compare
func BenchmarkCompare(b *testing.B) {
	for _, size := range []struct{ arms, runs, problems int }{{2, 3, 256}, {2, 10, 256}, {2, 50, 256}} {
		b.Run(fmt.Sprintf("arms=%d/runs=%d/problems=%d", size.arms, size.runs, size.problems), func(b *testing.B) {
			f, arms := filled(b, size.arms, size.runs, size.problems)
			for b.Loop() {
				if _, err := Compare(context.Background(), f.db, arms, Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestPercentileLeavesUnknownOut(t *testing.T) {
	iv := percentile([]float64{3, math.NaN(), 1, 2}, TwoLevel)
	// 1 2 3: quantile .025 is at .05 of the way from 1, .975 at .05 before 3.
	if iv == nil || !slices.Equal([]float64{iv.Lo, iv.Hi}, []float64{1 + 0.025*2, 3 - 0.05}) && math.Abs(iv.Lo-1.05) > 1e-12 {
		t.Errorf("interval %+v", iv)
	}
	if percentile([]float64{math.NaN()}, TwoLevel) != nil {
		t.Error("an interval of nothing")
	}
}

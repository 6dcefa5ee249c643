package compare

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"exp/eval"
	"exp/experiments/ident"
	"exp/experiments/store"
)

// Interval and p value of arms with several runs are of one test: p is at most .05
// where the interval leaves zero out, and only there; of arms with one run they speak of
// the same thing, the problems.
func TestIntervalAndPAgree(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 0))
	for _, runs := range []int{1, 3, 4} {
		f := newFixture(t)
		shown := 0
		for trial := range 6 {
			var arms [2][]store.Run
			for a, algo := range []string{"flowrl", "ppo"} {
				for s := range runs {
					var correct []int
					for range 24 {
						correct = append(correct, min(2, rng.IntN(3)+a*rng.IntN(1+trial/2)))
					}
					arms[a] = append(arms[a], f.put(plainRun(fmt.Sprint(algo, trial), algo, int64(s), answers(correct...)...)))
				}
			}
			r, err := f.compareRuns(Options{Metrics: []string{"pass@1", "pass@2"}}, arms[0], arms[1])
			f.must(err)
			for _, name := range []string{"pass@1", "pass@2"} {
				p := r.Suites[0].Metric(name).Pairs[0]
				kind, test := OverItems, SignFlips
				if runs >= MinSeeds {
					kind, test = TwoLevel, TTest
				}
				if p.Interval.Kind != kind || p.Test != test {
					t.Errorf("%d runs: interval over %s, test %s", runs, p.Interval.Kind, p.Test)
				}
				leaves := p.Interval.Lo > 0 || p.Interval.Hi < 0
				if leaves {
					shown++
				}
				if runs >= MinSeeds && leaves != (*p.P <= 0.05) {
					t.Errorf("%d runs, trial %d, %s: p %g, interval %+v", runs, trial, name, *p.P, *p.Interval)
				}
			}
		}
		if shown == 0 || shown == 12 {
			t.Errorf("%d runs: %d of 12 differences shown: the test tries one side only", runs, shown)
		}
	}
}

// The interval of a share stays within [0, 1]: runs that solve 1 of 2 problems, all or
// nothing are .5 ± t(.975, 2)·.5/√3 and more.
func TestIntervalsOfSharesAreCut(t *testing.T) {
	f := newFixture(t)
	var a, b []store.Run
	for seed, c := range [][]int{{2, 0}, {2, 2}, {0, 0}} {
		a = append(a, f.put(plainRun("flow", "flowrl", int64(seed), answers(c...)...)))
		b = append(b, f.put(plainRun("ppo", "ppo", int64(seed), answers(1, 1)...)))
	}
	r, err := f.compareRuns(Options{}, a, b)
	f.must(err)
	if iv := r.Suites[0].Metric("pass@1").Arms[0].Interval; iv.Lo != 0 || iv.Hi != 1 {
		t.Errorf("interval %+v, want [0, 1]", *iv)
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

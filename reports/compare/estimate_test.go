package compare

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
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

// Values that are all equal do not show how far off they may be: counts of zero everywhere, a difference
// of 1 on every problem and means over suites have no interval. The test of signs still tells
// arms apart: p = 2/2^8.
func TestNoSpread(t *testing.T) {
	f := newFixture(t)
	a := f.put(plainRun("flow", "flowrl", 0, answers(2, 2, 2, 2, 2, 2, 2, 2)...))
	b := f.put(plainRun("ppo", "ppo", 0, answers(0, 0, 0, 0, 0, 0, 0, 0)...))
	r, err := f.compareRuns(Options{}, []store.Run{a}, []store.Run{b})
	f.must(err)
	for _, name := range []string{"distinct_correct", "length_mean", "reward_mean"} {
		if iv := r.Suites[0].Metric(name).Arms[1].Interval; iv != nil {
			t.Errorf("%s: interval %+v of values without spread", name, *iv)
		}
	}
	p := r.Suites[0].Metric("pass@1").Pairs[0]
	if p.Interval != nil || p.Verdict != Better {
		t.Errorf("difference %+v, want no interval, and better", p)
	}
	near(t, "delta", p.Delta, 1)
	near(t, "p", p.P, 2.0/256)
	for _, x := range r.Across.Arms {
		if x.Mean.Interval != nil || x.IQM.Interval != nil || x.Gap.Interval != nil {
			t.Errorf("across suites: mean %+v, want no interval", x.Mean)
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

// Of 16 answers one is right: Wilson's interval reaches from .0625 down to .011 and up to .283.
func TestReach(t *testing.T) {
	iv := &Interval{Lo: 0.011, Hi: 0.283}
	if got := iv.Reach(0.0625); math.Abs(got-0.2205) > 1e-9 {
		t.Errorf("up: %v, want .2205", got)
	}
	if got := (&Interval{Lo: 0.7, Hi: 1}).Reach(0.9); math.Abs(got-0.2) > 1e-9 {
		t.Errorf("down: %v, want .2", got)
	}
}

// Two arms of three runs are compared over seeds, each of them with an arm of one run over problems: the note
// names the arm that it is about.
func TestMixedCoverage(t *testing.T) {
	f := newFixture(t)
	var arms [3][]store.Run
	for seed, c := range [][]int{{2, 0, 1}, {2, 2, 0}, {0, 0, 1}} {
		arms[0] = append(arms[0], f.put(plainRun("flow", "flowrl", int64(seed), answers(c...)...)))
		arms[1] = append(arms[1], f.put(plainRun("ppo", "ppo", int64(seed), answers(1, 1, 0)...)))
	}
	arms[2] = append(arms[2], f.put(plainRun("grpo", "grpo", 0, answers(1, 2, 0)...)))
	r, err := f.compareRuns(Options{}, arms[:]...)
	f.must(err)
	own, pairs := r.Suites[0].Metric("pass@1").Kinds()
	if want := []IntervalKind{TwoLevel, OverItems}; !slices.Equal(own, want) || !slices.Equal(pairs, want) {
		t.Errorf("arms cover %q, pairs %q, want %q", own, pairs, want)
	}
	want := "training-seed variance not measured (grpo has 1 of the 3 runs needed): intervals and verdicts with " +
		"grpo hold for these runs only"
	if !slices.Contains(r.Notes, want) {
		t.Errorf("notes %q lack %q", r.Notes, want)
	}
}

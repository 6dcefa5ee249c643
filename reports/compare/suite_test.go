package compare

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"exp/eval"
	"exp/experiments/store"
)

// on is a run that was scored on several suites, with these numbers correct.
func on(r fakeRun, suites map[string][]int) fakeRun {
	r.suites = map[string][]eval.Item{}
	for label, correct := range suites {
		r.suites[label] = answers(correct...)
	}
	return r
}

func TestSuites(t *testing.T) {
	f := newFixture(t)
	a := []store.Run{f.put(on(plainRun("flow", "flowrl", 0), map[string][]int{"test": {2, 1}, "val": {2, 2}, "aime24": {0, 1}}))}
	b := []store.Run{f.put(on(plainRun("ppo", "ppo", 0), map[string][]int{"test": {1, 1}, "val": {0, 1}}))}
	for _, test := range []struct {
		o     Options
		want  string
		tests int // 4 metrics a suite; one is 0 everywhere on test
	}{
		{Options{}, "countdown/test countdown/val", 7},
		{Options{Suites: []string{"val"}}, "countdown/val", 4},
		{Options{Suites: []string{"countdown/test", "val"}, Metrics: []string{"pass@1"}}, "countdown/test countdown/val", 2},
	} {
		r, err := f.compareRuns(test.o, a, b)
		f.must(err)
		var names []string
		for _, s := range r.Suites {
			names = append(names, s.Name)
		}
		if got := strings.Join(names, " "); got != test.want || r.Tests != test.tests {
			t.Errorf("%+v: suites %q with %d tests, want %q with %d", test.o, got, r.Tests, test.want, test.tests)
		}
		leftOut := slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, "countdown/aime24 is excluded: only 1 of 2 runs") })
		if wanted := len(test.o.Suites) == 0; leftOut != wanted {
			t.Errorf("%+v: notes %q", test.o, r.Notes)
		}
	}
}

// Where options are compared by likelihood, nothing was sampled whose length or diversity could be compared.
func TestSuiteOfOptions(t *testing.T) {
	f := newFixture(t)
	believed := func(right ...float64) []eval.Item {
		items := answers(make([]int, len(right))...)
		for i, p := range right {
			items[i].Samples, items[i].Graded, items[i].Belief = 1, 1, &eval.Belief{Right: p, Brier: 2 * (1 - p) * (1 - p)}
		}
		return items
	}
	a, b := f.put(plainRun("flow", "flowrl", 0, believed(0.5, 0.75)...)), f.put(plainRun("ppo", "ppo", 0, believed(0.25, 0.75)...))
	r, err := f.compareRuns(Options{}, []store.Run{a}, []store.Run{b})
	f.must(err)
	var names []string
	for _, m := range r.Suites[0].Metrics {
		names = append(names, m.Name)
	}
	if want := []string{"pass@1", "not_graded", "option_prob", "option_brier"}; !slices.Equal(names, want) {
		t.Errorf("metrics %q, want %q", names, want)
	}
	near(t, "option_prob", r.Suites[0].Metric("option_prob").Arms[0].Mean, 0.625)
}

// Where a run was scored with two sets of examples, the scores count whose examples the other run had.
func TestSharedExamples(t *testing.T) {
	f := newFixture(t)
	first, second := plainRun("flow", "flowrl", 0, answers(2, 1)...), plainRun("ppo", "ppo", 0, answers(1, 1)...)
	first.examples, second.examples = "dev", "dev"
	a, b := f.put(first), f.put(second)
	first.examples, first.suites = "newer dev", map[string][]eval.Item{"test": answers(0, 0)}
	f.evaluate(first, a, "test")
	r, err := f.compareRuns(Options{}, []store.Run{a}, []store.Run{b})
	f.must(err)
	near(t, "pass@1", r.Suites[0].Metric("pass@1").Arms[0].Mean, 0.75)
}

// Arms without a suite in common cannot be compared, and no waiver helps.
func TestNoCommonSuite(t *testing.T) {
	f := newFixture(t)
	a := []store.Run{f.put(on(plainRun("flow", "flowrl", 0), map[string][]int{"test": {2, 1}}))}
	b := []store.Run{f.put(on(plainRun("ppo", "ppo", 0), map[string][]int{"val": {1, 1}}))}
	stopped := plainRun("flow", "flowrl", 1)
	stopped.status = store.Interrupted
	a = append(a, f.put(stopped))
	_, err := f.compareRuns(Options{}, a, b)
	var refused *NotComparableError
	if !errors.As(err, &refused) || len(refused.Comparability.Differences) != 1 {
		t.Fatalf("error %v", err)
	}
	if x := refused.Comparability.Excluded; len(x) != 1 || x[0].Seed != 1 || x[0].Arm != 0 || x[0].Reason != "interrupted at step 0 of 4" {
		t.Errorf("left out: %+v", x)
	}
	if d := refused.Comparability.Differences[0]; d.Key != "suites" || d.Values[0] != "countdown/test" || d.Values[1] != "countdown/val" {
		t.Errorf("difference %+v", d)
	}
}

// Problems of a cluster count together. Four problems in two clusters, d = 1 1 and
// 0 0: mean .5, cluster sums of deviations ±1, SE = sqrt(2/1 · 2)/4 = .5, and of the
// signs of one cluster with a difference both are as far out: p = 1.
func TestClusters(t *testing.T) {
	f := newFixture(t)
	clustered := func(correct ...int) []eval.Item {
		items := answers(correct...)
		for i := range items {
			items[i].Cluster = []string{"easy", "hard"}[i/2]
		}
		return items
	}
	a, b := f.put(plainRun("flow", "flowrl", 0, clustered(2, 2, 0, 0)...)), f.put(plainRun("ppo", "ppo", 0, clustered(0, 0, 0, 0)...))
	r, err := f.compareRuns(Options{}, []store.Run{a}, []store.Run{b})
	f.must(err)
	s := &r.Suites[0]
	p := s.Metric("pass@1").Pairs[0]
	near(t, "delta", p.Delta, 0.5)
	near(t, "SE", p.SE, 0.5)
	near(t, "p", p.P, 1)
	if s.Clusters != 2 || !slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, "2 clusters of problems") }) {
		t.Errorf("%d clusters, notes %q", s.Clusters, r.Notes)
	}
}

// Runs of one trajectory, in spite of other sources, are one observation.
func TestSameTrajectory(t *testing.T) {
	old, again := &record{run: store.Run{ID: 1, RID: digest("a"), XID: digest("x"), Chain: digest("chain")}},
		&record{run: store.Run{ID: 2, RID: digest("b"), XID: digest("y"), Chain: digest("chain")}}
	other := &record{run: store.Run{ID: 3, RID: digest("c"), XID: digest("x"), Seed: 1}}
	s := &side{runs: []*record{old, again, other}}
	s.dropReplays(0)
	if len(s.runs) != 2 || len(s.excluded) != 1 || s.excluded[0].RID != old.run.RID.String() {
		t.Errorf("%d runs count, excluded %+v; want the newer one of the trajectory", len(s.runs), s.excluded)
	}
}

// The scores of an imported run have what its files had: no answers to count and no lengths.
func TestImportedScores(t *testing.T) {
	f := newFixture(t)
	put := func(name string, correct ...int) store.Run {
		r := plainRun(name, "unknown", 0, answers(correct...)...)
		r.numerics = store.ForeignNumerics("verl")
		return f.put(r)
	}
	a, b := put("ours", 2, 1, 1, 0), put("theirs", 1, 1, 0, 0)
	r, err := f.compareRuns(Options{}, []store.Run{a}, []store.Run{b})
	f.must(err)
	var names []string
	for _, m := range r.Suites[0].Metrics {
		names = append(names, m.Name)
	}
	if want := []string{"pass@1", "pass@2", "reward_mean"}; !slices.Equal(names, want) {
		t.Errorf("metrics %q, want %q", names, want)
	}
}

package compare

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/experiments/store"
)

// Two suites of two problems with two samples, three runs an arm:
//
//	        test            second          run's means
//	A   0   2 0   .5        2 2   1
//	    1   2 1   .75       2 0   .5
//	    2   2 2   1         2 1   .75
//	B   0   0 0   0         1 1   .5        test, B: 0 .5 .5    second, B: .5 .5 .5
//	    1   1 1   .5        1 1   .5
//	    2   2 0   .5        1 1   .5
//
//	mean  A  (.5+.75+1+1+.5+.75)/6 = .75        B  2.5/6
//	IQM   A  six scores, one cut at each end: (.5+.75+.75+1)/4 = .75
//	      B  0 .5 .5 .5 .5 .5 → .5
//	P(A > B)  test: .5 against 0 .5 .5: 1 + ½ + ½; .75 and 1: 3 each → 8/9
//	          second: 1 and .75 above, .5 ties: (3 + 1.5 + 3)/9 = 7.5/9;  mean 15.5/18
//	profile   shares above 0 and ½: A test 5/6, 4/6; second 5/6, 4/6
//	          B test 3/6, 1/6; second 1, 0
func TestAcross(t *testing.T) {
	f := newFixture(t)
	arm := func(name, algo string, test, second [3][2]int) (runs []store.Run) {
		for seed := range 3 {
			r := plainRun(name, algo, int64(seed), answers(test[seed][0], test[seed][1])...)
			r.suites["second"] = answers(second[seed][0], second[seed][1])
			runs = append(runs, f.put(r))
		}
		return runs
	}
	a := arm("flow", "flowrl", [3][2]int{{2, 0}, {2, 1}, {2, 2}}, [3][2]int{{2, 2}, {2, 0}, {2, 1}})
	b := arm("ppo", "ppo", [3][2]int{{0, 0}, {1, 1}, {2, 0}}, [3][2]int{{1, 1}, {1, 1}, {1, 1}})
	r, err := f.compareRuns(Options{}, a, b)
	f.must(err)
	x := r.Across
	if x == nil || len(x.Suites) != 2 || x.Kind != string(TwoLevel) || len(x.Pairs) != 1 {
		t.Fatalf("across %+v", x)
	}
	for i, want := range []struct{ mean, iqm float64 }{{0.75, 0.75}, {2.5 / 6, 0.5}} {
		near(t, r.Arms[i].Label+" mean", x.Arms[i].Mean.Value, want.mean)
		near(t, r.Arms[i].Label+" IQM", x.Arms[i].IQM.Value, want.iqm)
		near(t, r.Arms[i].Label+" gap", x.Arms[i].Gap.Value, 1-want.mean)
		if x.Arms[i].Scores != 6 {
			t.Errorf("%d scores, want 6", x.Arms[i].Scores)
		}
	}
	near(t, "improvement", x.Pairs[0].Improvement.Value, 15.5/18)
	if iv := x.Pairs[0].Improvement.Interval; iv.Lo <= 0.3 || iv.Lo >= 0.5 || iv.Hi <= 15.5/18 || iv.Hi > 1 || iv.Kind != OverSeeds || iv.Method != "score" {
		t.Errorf("improvement in %+v", iv)
	}
	if d := cmp.Diff([]float64{0, 0.5}, x.Thresholds); d != "" {
		t.Errorf("thresholds (-want +got):\n%s", d)
	}
	for i, want := range [][]float64{{5.0 / 6, 4.0 / 6}, {0.75, 0.5 / 6}} {
		for k, v := range want {
			near(t, "profile", x.Arms[i].Profile[k].Value, v)
		}
	}

	// The other way around everything is the mirror image, to the last bit.
	back, err := f.compareRuns(Options{}, b, a)
	f.must(err)
	if d := cmp.Diff(x.Arms[0], back.Across.Arms[1]); d != "" {
		t.Errorf("arms exchanged (-want +got):\n%s", d)
	}
	near(t, "improvement of the other", back.Across.Pairs[0].Improvement.Value, 2.5/18)
}

// One run an arm has nothing to say of other runs: no probability of improvement, and
// intervals over problems.
func TestAcrossOneRun(t *testing.T) {
	f := newFixture(t)
	r, err := f.compareRuns(Options{}, []store.Run{f.put(plainRun("flow", "flowrl", 0, answers(2, 1, 1, 0)...))},
		[]store.Run{f.put(plainRun("ppo", "ppo", 0, answers(1, 1, 0, 0)...))})
	f.must(err)
	x := r.Across
	near(t, "mean", x.Arms[0].Mean.Value, 0.5)
	// Two seeds are each taken once: profiles are means over them.
	two, err := f.compareRuns(Options{}, []store.Run{f.put(plainRun("new", "flowrl", 0, answers(2, 0)...)), f.put(plainRun("new", "flowrl", 1, answers(0, 2)...))},
		[]store.Run{f.put(plainRun("old", "ppo", 0, answers(1, 1)...))})
	f.must(err)
	near(t, "profile of two seeds", two.Across.Arms[0].Profile[0].Value, 0.5)
	if x.Kind != string(OverItems) || x.Pairs[0].Improvement.Value != nil || x.Arms[0].Mean.Interval.Lo >= 0.5 {
		t.Errorf("across %+v", x)
	}
}

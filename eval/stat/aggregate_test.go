package stat

import (
	"math"
	"slices"
	"testing"
)

func TestIQM(t *testing.T) {
	tests := []struct {
		xs   []float64
		want float64
	}{
		{[]float64{5}, 5},
		{[]float64{1, 2, 9}, 4}, // ⌊3/4⌋ = 0 are cut
		{[]float64{8, 1, 2, 3}, 2.5},
		{[]float64{0, 10, 4, 6, 5, 100, -100, 7}, 5.5}, // 4 5 6 7
	}
	for _, tt := range tests {
		given := slices.Clone(tt.xs)
		if got := IQM(tt.xs); !near(got, tt.want, 1e-15) {
			t.Errorf("IQM(%v) = %v, want %v", tt.xs, got, tt.want)
		}
		if !slices.Equal(given, tt.xs) {
			t.Errorf("IQM changed its argument to %v", tt.xs)
		}
	}
}

func TestOptimalityGap(t *testing.T) {
	if got := OptimalityGap([]float64{0.5, 1.5, 1, 0.25}, 1); !near(got, (0.5+0.75)/4, 1e-15) {
		t.Errorf("got %v, want 0.3125", got)
	}
}

func TestProbabilityOfImprovement(t *testing.T) {
	tests := []struct {
		name string
		a, b [][]float64
		want float64
	}{
		{"always", [][]float64{{2, 3}}, [][]float64{{0, 1}}, 1},
		{"never", [][]float64{{0, 1}}, [][]float64{{2, 3}}, 0},
		{"equal", [][]float64{{1, 1}}, [][]float64{{1}}, 0.5},
		{"equal but for rounding", [][]float64{{0.6000000000000001}}, [][]float64{{0.6}}, 0.5}, // .1+.2+.3
		{"one suite", [][]float64{{1, 3}}, [][]float64{{2, 1, 0}}, (0.5 + 1 + 3) / 6},          // 1 ties 1, beats 0; 3 beats all
		{"two suites", [][]float64{{1}, {0, 2}}, [][]float64{{0}, {1}}, 0.75},                  // 1 and one half
	}
	for _, tt := range tests {
		if got := ProbabilityOfImprovement(tt.a, tt.b); !near(got, tt.want, 1e-15) {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
		if got := ProbabilityOfImprovement(tt.b, tt.a); !near(got, 1-tt.want, 1e-15) {
			t.Errorf("%s, exchanged: got %v, want %v", tt.name, got, 1-tt.want)
		}
	}
}

func TestProfile(t *testing.T) {
	p := NewProfile([]float64{0.5, 0, 1, 0.5}, []float64{-1, 0, 0.25, 0.5, 1})
	if got, want := p.Share(nil), []float64{1, 0.75, 0.75, 0.25, 0}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	// 0 three times and 1 once.
	if got, want := p.Share([]int{0, 3, 1, 0}), []float64{1, 0.25, 0.25, 0.25, 0}; !slices.Equal(got, want) {
		t.Errorf("weighted: got %v, want %v", got, want)
	}
}

// Each problem's share of right completions is itself a threshold, which it does not exceed.
func TestProfileOfShares(t *testing.T) {
	for n := 1; n <= 64; n++ {
		var xs, thresholds, want []float64
		for c := range n {
			x, err := PassAtK(n, c, 1)
			if err != nil {
				t.Fatal(err)
			}
			xs, thresholds = append(xs, x), append(thresholds, float64(c)/float64(n))
			want = append(want, float64(n-1-c)/float64(n))
		}
		if got := NewProfile(xs, thresholds).Share(nil); !slices.Equal(got, want) {
			t.Errorf("%d samples: %v, want %v", n, got, want)
		}
	}
}

// twoSuites has two arms with two and one seeds, and problems in clusters.
func twoSuites() []SuiteScores {
	return []SuiteScores{
		{Arms: []Scores{{{1, 0, 1}, {0, 0, 1}}, {{1, 1, 1}}}, Clusters: []string{"x", "x", ""}},
		{Arms: []Scores{{{1, 0}, {1, 1}}, {{0, 0}}}},
	}
}

func TestWeightsMeans(t *testing.T) {
	suites := twoSuites()
	all := All(suites)
	for arm, want := range [][][]float64{{{2.0 / 3, 1.0 / 3}, {0.5, 1}}, {{1}, {0}}} {
		if got := all.Means(suites, arm); !slices.EqualFunc(got, want, slices.Equal) {
			t.Errorf("arm %d: %v, want %v", arm, got, want)
		}
	}
	// The first seed twice; the cluster of two problems twice, the third problem never.
	w := Weights{Seeds: [][]int{{2, 0}, {1}}, Problems: [][]int{{2, 2, 0}, {0, 2}}}
	if got, want := w.Means(suites, 0), [][]float64{{0.5, 0.5}, {0, 0}}; !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("drawn: %v, want %v", got, want)
	}
}

// Without seeds, of one suite and one arm it is the bootstrap over problems, which
// another function draws.
func TestAcrossSuitesIsBootstrap(t *testing.T) {
	scores := Scores{{0.2, 0.9, 0.4, 0.7, 0, 1}, {0.1, 1, 0.4, 0.5, 0.2, 0.8}, {0.6, 0.9, 0.9, 0.6, 0.1, 0.9}}
	clusters := []string{"a", "a", "", "", "b", "b"}
	r := Resampling{Draws: 20_000, Seed: 5, Level: 0.9}
	want, _ := Bootstrap(problemMeans(scores), clusters, r)
	suites := []SuiteScores{{Arms: []Scores{scores}, Clusters: clusters}}
	got := AcrossSuites(suites, false, r, func(w Weights) []float64 { return []float64{mean(w.Means(suites, 0)[0])} })
	if len(got) != 1 || !near(got[0].Lo, want.Lo, 0.01) || !near(got[0].Hi, want.Hi, 0.01) { // other draws
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// With one problem per suite only seeds vary: the mean of .2 .4 .6 is .4 ± t·.2/√3, cut to [0, 1]. Together
// with a suite on which the runs differ as much the other way it does not vary at all: a run is left out of
// all suites.
func TestAcrossSuitesOverSeeds(t *testing.T) {
	up, down := SuiteScores{Arms: []Scores{{{0.2}, {0.4}, {0.6}}}}, SuiteScores{Arms: []Scores{{{0.6}, {0.4}, {0.2}}}}
	suites := []SuiteScores{up, down}
	r := Resampling{Draws: 20, Seed: 1, Level: 0.5}
	got := AcrossSuites(suites, true, r, func(w Weights) []float64 {
		m := w.Means(suites, 0)
		return []float64{mean(m[0]), (mean(m[0]) + mean(m[1])) / 2}
	})
	const quartile = 0.8164966 // t(.75, 2) = 1/sqrt(1.5)
	half := quartile * 0.2 / math.Sqrt(3)
	if !near(got[0].Lo, 0.4-half, 1e-6) || !near(got[0].Hi, 0.4+half, 1e-6) || got[0].Method != "t" {
		t.Errorf("one suite: %+v, want .4 ± %.6f", got[0], half)
	}
	if !near(got[1].Lo, 0.4, 1e-12) || !near(got[1].Hi, 0.4, 1e-12) {
		t.Errorf("both suites: %+v, want .4 alone", got[1])
	}
	r.Level = 0.95 // .4 ± .497
	wide := AcrossSuites(suites, true, r, func(w Weights) []float64 { return []float64{mean(w.Means(suites, 0)[0])} })
	if wide[0].Lo != 0 || !near(wide[0].Hi, 0.4+4.3026527*0.2/math.Sqrt(3), 1e-6) {
		t.Errorf("at 95 %%: %+v, want [0, .897]", wide[0])
	}
	// One problem without drawn seeds leaves nothing to vary.
	none := AcrossSuites(suites, false, r, func(w Weights) []float64 { return []float64{mean(w.Means(suites, 0)[0])} })
	if !near(none[0].Lo, 0.4, 1e-12) || none[0].Lo != none[0].Hi {
		t.Errorf("without seeds: %+v, want .4 in every draw", none[0])
	}
}

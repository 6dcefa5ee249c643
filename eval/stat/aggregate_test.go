package stat

import (
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
		{"one suite", [][]float64{{1, 3}}, [][]float64{{2, 1, 0}}, (0.5 + 1 + 3) / 6}, // 1 ties 1, beats 0; 3 beats all
		{"two suites", [][]float64{{1}, {0, 2}}, [][]float64{{0}, {1}}, 0.75},         // 1 and one half
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

// twoSuites have two arms of two and one seeds, and problems in clusters.
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

// Of one suite and one arm it is the two-level bootstrap, which another function draws.
func TestAcrossSuitesIsBootstrap(t *testing.T) {
	scores := Scores{{0.2, 0.9, 0.4, 0.7, 0, 1}, {0.1, 1, 0.4, 0.5, 0.2, 0.8}, {0.6, 0.9, 0.9, 0.6, 0.1, 0.9}}
	clusters := []string{"a", "a", "", "", "b", "b"}
	r := Resampling{Draws: 20_000, Seed: 5, Level: 0.9}
	want, _ := Bootstrap(scores, clusters, r)
	suites := []SuiteScores{{Arms: []Scores{scores}, Clusters: clusters}}
	got := AcrossSuites(suites, true, r, func(w Weights) []float64 { return []float64{mean(w.Means(suites, 0)[0])} })
	if len(got) != 1 || !near(got[0].Lo, want.Lo, 0.01) || !near(got[0].Hi, want.Hi, 0.01) { // other draws
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// Seeds are drawn once for all suites: arms whose runs differ by a constant on both
// suites, in opposite directions, have a sum that does not vary at all.
func TestAcrossSuitesSharesSeeds(t *testing.T) {
	suites := []SuiteScores{{Arms: []Scores{{{0}, {1}, {2}}}}, {Arms: []Scores{{{2}, {1}, {0}}}}}
	got := AcrossSuites(suites, true, Resampling{Draws: 200, Seed: 1, Level: 0.95}, func(w Weights) []float64 {
		m := w.Means(suites, 0)
		return []float64{mean(m[0]) + mean(m[1]), mean(m[0])}
	})
	if got[0].Lo != 2 || got[0].Hi != 2 {
		t.Errorf("the sum has %+v, want 2 in every draw", got[0])
	}
	if got[1].Lo >= got[1].Hi {
		t.Errorf("one suite has %+v, want some spread", got[1])
	}
	// One problem and seeds that are not drawn leave nothing to vary.
	got = AcrossSuites(suites, false, Resampling{Draws: 200, Seed: 1, Level: 0.95}, func(w Weights) []float64 { return []float64{mean(w.Means(suites, 0)[0])} })
	if got[0].Lo != 1 || got[0].Hi != 1 {
		t.Errorf("without drawing seeds: %+v, want 1 in every draw", got[0])
	}
}

package stat

import (
	"math"
	"slices"
	"testing"
)

// Two seeds of three problems:
//
//	x        1 0 1      2/3     S = s²/n = ((1/6)²·2)/1/2 = 1/36
//	         0 0 1      1/3     P: .5 0 1 around .5: (1/4+1/4)·3/2/9 = 1/12
//	means   .5 0 1      1/2
//	residual of seed 1: 1/2-1/6 = 1/3, -1/6, -1/6; of seed 2 the negatives: Σ r² = 1/3
//	C = 3/2 · 1/3 / (2·9) = 1/36
//	SE² = 1/36 + 1/12 - 1/36 = 1/12,  DF = (1/12)² / ((1/36)²/1 + (1/18)²/2) = 3
//
// With problems 1 and 2 in a cluster, G = 2: deviations of the clusters' sums -1/2 and
// 1/2, P = 2·(1/2)/9 = 1/9; residuals 1/6 and -1/6, Σ r² = 4/36, C = 2·(1/9)/18 = 1/81;
// SE² = 1/36 + 1/9 - 1/81 = 41/324, DF = (41/324)² / ((1/36)² + (8/81)²) = 1681/1105.
func TestCrossedMean(t *testing.T) {
	x := Scores{{1, 0, 1}, {0, 0, 1}}
	for _, tt := range []struct {
		name     string
		scores   Scores
		clusters []string
		want     Mean
	}{
		{"problems", x, nil, Mean{3, 3, 0.5, math.Sqrt(1.0 / 12), 3}},
		{"a cluster", x, []string{"a", "a", ""}, Mean{3, 2, 0.5, math.Sqrt(41.0 / 324), 1681.0 / 1105}},
		// Means of seeds .5 .5, of problems .5 .5: S = P = 0, and C = 2·1/(2·4) = 1/4 takes nothing more away.
		{"noise alone", Scores{{1, 0}, {0, 1}}, nil, Mean{2, 2, 0.5, 0, 1}},
		// Seeds 0 and 1 on all problems: S = (1/2)/2, P = C = 0.
		{"seeds alone", Scores{{0, 0, 0}, {1, 1, 1}}, nil, Mean{3, 3, 0.5, 0.5, 1}},
		{"one seed", Scores{{0, 1, 1}}, nil, Mean{3, 3, 2.0 / 3, math.Inf(1), 0}},
		{"one cluster", Scores{{0, 1}, {1, 1}}, []string{"a", "a"}, Mean{2, 1, 0.75, math.Inf(1), 0}},
	} {
		t.Run(tt.name, func(t *testing.T) { sameMean(t, CrossedMean(tt.scores, tt.clusters), tt.want) })
	}
}

// Sums of equal numbers round, .1 three times is not quite .3: that does not count as spread.
func TestCrossedMeanRounding(t *testing.T) {
	if m := CrossedMean(Scores{{0.1, 0.1, 0.1}, {0.1, 0.1, 0.1}}, nil); m.SE != 0 || !near(m.Value, 0.1, 1e-15) {
		t.Errorf("got %+v, want .1 ± 0", m)
	}
}

func sameMean(t *testing.T, got, want Mean) {
	t.Helper()
	if got.N != want.N || got.G != want.G || !near(got.Value, want.Value, 1e-12) || !near(got.SE, want.SE, 1e-12) || !near(got.DF, want.DF, 1e-9) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// Two seeds against three, on two problems:
//
//	a   1 0   .5          b  0 0  0       d = 1-1/6, .5-1/6 = 5/6, 1/3: mean 7/12
//	    1 1   1              0 0  0       P = 2·(2·(1/4)²)/4 = 1/16
//	                         .5 .5 .5     S_a = (1/8)/2 = 1/16, S_b = (1/12)/3 = 1/36
//	C: a's residuals ±1/4, four of them: 2·(1/4)/(2·4) = 1/16; b's are 0
//	SE² = 1/16 + 1/36 = 13/144,  DF = (13/144)² / ((9/144)²/1 + (4/144)²/2) = 169/89
func TestCrossedDifference(t *testing.T) {
	a, b := Scores{{1, 0}, {1, 1}}, Scores{{0, 0}, {0, 0}, {0.5, 0.5}}
	sameMean(t, CrossedDifference(a, b, nil), Mean{2, 2, 7.0 / 12, math.Sqrt(13) / 12, 169.0 / 89})
	sameMean(t, CrossedDifference(b, a, nil), Mean{2, 2, -7.0 / 12, math.Sqrt(13) / 12, 169.0 / 89})
}

// Both arms see the same problems: what problems have in common does not count as spread.
func TestCrossedDifferenceIsPaired(t *testing.T) {
	b := Scores{{0.5, 0, 1, 0.25}, {0.5, 0, 1, 0.25}}
	a := Scores{{0.625, 0.125, 1.125, 0.375}, {0.625, 0.125, 1.125, 0.375}}
	if m := CrossedDifference(a, b, nil); !near(m.Value, 0.125, 1e-15) || m.SE != 0 {
		t.Errorf("got %+v, want .125 ± 0", m)
	}
}

// A cluster's problems are one observation: each problem five times over is as good
// as once.
func TestCrossedClustersAreOneObservation(t *testing.T) {
	once := Scores{{0.2, 0.9, 0.4, 0.7}, {0.1, 1, 0.4, 0.5}, {0.6, 0.8, 0.9, 0.6}}
	var often Scores
	var clusters []string
	for _, row := range once {
		var five []float64
		for _, x := range row {
			five = append(five, slices.Repeat([]float64{x}, 5)...)
		}
		often = append(often, five)
	}
	for _, name := range []string{"a", "b", "c", "d"} {
		clusters = append(clusters, slices.Repeat([]string{name}, 5)...)
	}
	want := CrossedMean(once, nil)
	want.N = 20
	sameMean(t, CrossedMean(often, clusters), want)
}

// Welch (1947): variances of means 1/3 and 4/3 with 2 and 2 degrees of freedom:
// DF = (5/3)² / ((1/9 + 16/9)/2) = 50/17.
func TestWelch(t *testing.T) {
	a, b := ClusterMean([]float64{1, 2, 3}, nil), ClusterMean([]float64{2, 4, 6}, nil)
	sameMean(t, Welch(a, b), Mean{6, 6, -2, math.Sqrt(5.0 / 3), 50.0 / 17})
}

// The interval at 1 - p just touches zero, whatever p is.
func TestTTestIsTheInterval(t *testing.T) {
	for _, m := range []Mean{{Value: 0.3, SE: 0.1, DF: 2}, {Value: -0.02, SE: 0.01, DF: 4.7}, {Value: 1, SE: 3, DF: 100}} {
		p, ok := TTest(m)
		iv, _ := TInterval(m, 1-p)
		if edge := min(math.Abs(iv.Lo), math.Abs(iv.Hi)); !ok || edge > 1e-6*m.SE {
			t.Errorf("%+v: p %.6f, interval there [%g, %g]", m, p, iv.Lo, iv.Hi)
		}
	}
}

// With 2 degrees of freedom p = 1 - t/sqrt(2 + t²): of t = 3 it is 1 - 3/√11.
func TestTTest(t *testing.T) {
	for _, tt := range []struct {
		m    Mean
		want float64
		ok   bool
	}{
		{Mean{Value: 0.3, SE: 0.1, DF: 2}, 1 - 3/math.Sqrt(11), true},
		{Mean{Value: -0.3, SE: 0.1, DF: 2}, 1 - 3/math.Sqrt(11), true},
		{Mean{Value: 0, SE: 0, DF: 2}, 1, true},
		{Mean{Value: 0.1, SE: 0, DF: 2}, 0, false},
		{Mean{Value: 0.1, SE: math.Inf(1), DF: 0}, 0, false},
	} {
		if p, ok := TTest(tt.m); ok != tt.ok || !near(p, tt.want, 1e-9) {
			t.Errorf("%+v: %v, %v, want %v, %v", tt.m, p, ok, tt.want, tt.ok)
		}
	}
}

// t(.975) + t(.8): 1.959964 + .841621, and of 4 degrees of freedom 2.776445 + .940965
// (Abramowitz and Stegun 26.10).
func TestMDE(t *testing.T) {
	for df, want := range map[float64]float64{math.Inf(1): 2.801585, 4: 3.717410} {
		if got := MDE(0.01, df); !near(got, 0.01*want, 1e-8) {
			t.Errorf("MDE(0.01, %g) = %v, want %v", df, got, 0.01*want)
		}
	}
}

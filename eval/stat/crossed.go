package stat

import "math"

// CrossedMean returns the mean of an arm's scores, [seeds][problems], with a standard error that covers
// other seeds and other problems, both regarded as samples:
//
//	SE²   = S + max(0, P - C)
//	S     = s²/n of the n seeds' means
//	P     = SE² of ClusterMean of the problems' means over seeds
//	C     = G/(G-1) · Σ_s Σ_g (Σ_{i∈g} (x_si - x̄_s - x̄_i + x̄))² / (n(n-1)·N²)
//
// C is the noise of one seed on one problem. It is part of both S and P and must count once: the variance
// for two-way clusters of Cameron, Gelbach and Miller (2011), bounded below as Hillis (2007) does for
// readers and cases, which is the same design. Degrees of freedom are Satterthwaite's (1946),
//
//	DF = SE⁴ / (S²/(n-1) + max(0, P-C)²/(G-1))
//
// between min(n-1, G-1) and their sum. clusters is as in ClusterMean. With one seed or one cluster the
// spread is unknown and SE is +Inf. It panics if rows differ in length, and without scores.
func CrossedMean(a Scores, clusters []string) Mean {
	checkedClusters(clusters, a)
	return ClusterMean(problemMeans(a), clusters).crossed(cellVariance(a, clusters), seedVariance(a))
}

// CrossedDifference returns mean(a) - mean(b) on the same problems, as CrossedMean does. S and C sum over
// both arms, each with its own degrees of freedom (Welch 1947); P comes from the problems' differences.
// Seeds are not paired.
func CrossedDifference(a, b Scores, clusters []string) Mean {
	checkedClusters(clusters, a, b)
	d := problemMeans(a)
	for i, x := range problemMeans(b) {
		d[i] -= x
	}
	cells := cellVariance(a, clusters) + cellVariance(b, clusters)
	return ClusterMean(d, clusters).crossed(cells, seedVariance(a), seedVariance(b))
}

// Welch returns the difference of two independent means, with Welch's (1947) degrees of freedom.
func Welch(a, b Mean) Mean {
	m := Mean{N: a.N + b.N, G: a.G + b.G, Value: a.Value - b.Value}
	m.SE, m.DF = satterthwaite(variance{a.SE * a.SE, a.DF}, variance{b.SE * b.SE, b.DF})
	return m
}

// crossed extends m, a mean over problems, to other seeds.
func (m Mean) crossed(cells float64, seeds ...variance) Mean {
	problems := variance{math.Inf(1), 0}
	if m.G > 1 {
		problems = variance{max(0, float64(m.SE*m.SE)-cells), m.DF}
	}
	m.SE, m.DF = satterthwaite(append(seeds, problems)...)
	if m.SE < rounding*math.Abs(m.Value) {
		m.SE = 0
	}
	return m
}

// variance is an estimated variance with its degrees of freedom.
type variance struct{ value, df float64 }

// satterthwaite returns the standard error of a sum of independent parts and its degrees of freedom
// (Satterthwaite 1946). An unknown part, +Inf, makes the sum unknown.
func satterthwaite(parts ...variance) (se, df float64) {
	var sum, spread float64
	df = math.Inf(1)
	for _, p := range parts {
		if math.IsInf(p.value, 1) {
			return math.Inf(1), 0
		}
		sum += p.value
		spread += float64(p.value * p.value / p.df)
		df = min(df, p.df)
	}
	if spread > 0 {
		df = max(df, float64(sum*sum/spread)) // can only be less by rounding
	}
	return math.Sqrt(sum), df
}

// seedVariance returns s²/n of the seeds' means.
func seedVariance(a Scores) variance {
	means := make([]float64, len(a))
	for s, row := range a {
		means[s] = mean(row)
	}
	m := ClusterMean(means, nil)
	return variance{m.SE * m.SE, m.DF}
}

// cellVariance returns C of CrossedMean; 0 if unknown.
func cellVariance(a Scores, clusters []string) float64 {
	n, N := len(a), len(a[0])
	index, G := Clusters(N, clusters)
	if n < 2 || G < 2 {
		return 0
	}
	problems := problemMeans(a)
	all := mean(problems)
	var ss float64
	for _, row := range a {
		own := mean(row)
		residual := make([]float64, G)
		for i, x := range row {
			residual[index[i]] += x - own - problems[i] + all
		}
		for _, r := range residual {
			ss += float64(r * r)
		}
	}
	return float64(G) / float64(G-1) * ss / (float64(n*(n-1)) * float64(N) * float64(N))
}

// problemMeans returns the mean over seeds of each problem.
func problemMeans(a Scores) []float64 {
	out := make([]float64, len(a[0]))
	for _, row := range a {
		for i, x := range row {
			out[i] += x
		}
	}
	for i := range out {
		out[i] /= float64(len(a))
	}
	return out
}

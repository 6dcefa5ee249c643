package eval

import (
	"fmt"

	"exp/eval/stat"
)

// Metric is the value of a metric on a suite.
type Metric struct {
	Name  string
	Value float64
	N     int // problems that have a value
	// SE is the standard error over Clusters groups of problems; nil with fewer than two.
	SE       *float64
	Clusters int
	// Interval is nil with fewer than two clusters: the spread is unknown.
	Interval *stat.Interval
}

// Summarize computes the metrics of Definitions(passK) over items. Metrics without a value for any problem
// are left out.
//
// Intervals are at 95 %, cluster-robust over problems: Student's t in general; Wilson's for pass@1 if each
// problem has one sample and no cluster, and for shares that are 0, or 1, for every problem; the cluster
// bootstrap, seeded by seed, for pass@k, best@k and maj@k with k > 1. Intervals of shares are cut to [0, 1]. It
// is an error if no problem has k samples.
func Summarize(items []Item, passK []int, seed uint64) ([]Metric, error) {
	most := 0
	for _, it := range items {
		most = max(most, it.Samples)
	}
	for _, k := range passK {
		if k < 1 || k > most {
			return nil, fmt.Errorf("pass@%d needs at least %d samples per problem; there are %d", k, k, most)
		}
	}
	var metrics []Metric
	for _, d := range Definitions(passK) {
		var values []float64
		var clusters []string
		for _, it := range items {
			if v, ok := d.Value(it); ok {
				values = append(values, v)
				clusters = append(clusters, it.Cluster)
			}
		}
		if len(values) == 0 {
			continue
		}
		mean := stat.ClusterMean(values, clusters)
		m := Metric{Name: d.Name, N: len(values), Value: mean.Value, Clusters: mean.G}
		if mean.G > 1 {
			m.SE = &mean.SE
		}
		iv, ok := interval(d.K, values, clusters, items, seed)
		if d.Unit == "share" {
			iv = iv.Within(0, 1)
			if same, all := stat.Unanimous(values, clusters, Level); all {
				iv, ok = same, true
			}
		}
		if ok {
			m.Interval = &iv
		}
		metrics = append(metrics, m)
	}
	return metrics, nil
}

// interval returns the interval of the mean of values. k is Definition.K.
func interval(k int, values []float64, clusters []string, items []Item, seed uint64) (stat.Interval, bool) {
	if k > 1 {
		return stat.Bootstrap(values, clusters, resampling(seed))
	}
	if c, ok := singles(items); k == 1 && ok {
		return stat.Wilson(c, len(values), Level), true
	}
	return stat.TInterval(stat.ClusterMean(values, clusters), Level)
}

// singles counts the correct samples if each problem has at most one graded sample and no cluster;
// otherwise ok is false. Problems without a verdict do not count.
func singles(items []Item) (correct int, ok bool) {
	for _, it := range items {
		if it.Graded > 1 || it.Cluster != "" {
			return 0, false
		}
		correct += it.Correct
	}
	return correct, true
}

package eval

import (
	"fmt"

	"exp/eval/stat"
)

// Metric is a metric's value on a suite.
type Metric struct {
	Name  string
	Value float64
	N     int // problems that have a value
	// SE is the standard error over Clusters groups of problems; nil where fewer than
	// two leave the spread unknown.
	SE       *float64
	Clusters int
	// Interval is nil where the spread is unknown: fewer than two clusters.
	Interval *stat.Interval
}

// Summarize computes the metrics of Definitions(passK) over items. A metric that no
// problem has a value of is left out.
//
// Intervals are at 95 %, cluster-robust over problems: Student's t, but Wilson's for
// pass@1 where each problem has one sample and none has a cluster, and the cluster
// bootstrap, seeded by seed, for pass@k with k > 1. That of a share ends at 0 and 1.
// It is an error if no problem has k samples.
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
		if iv, ok := interval(d.K, values, clusters, items, seed); ok {
			if d.Unit == "share" {
				iv.Lo, iv.Hi = max(iv.Lo, 0), min(iv.Hi, 1)
			}
			m.Interval = &iv
		}
		metrics = append(metrics, m)
	}
	return metrics, nil
}

// interval is that of the mean of values, the problems' pass@k, or another metric's
// if k is 0.
func interval(k int, values []float64, clusters []string, items []Item, seed uint64) (stat.Interval, bool) {
	if k > 1 {
		return stat.Bootstrap(values, clusters, resampling(seed))
	}
	if c, ok := singles(items); k == 1 && ok {
		return stat.Wilson(c, len(values), Level), true
	}
	return stat.TInterval(stat.ClusterMean(values, clusters), Level)
}

// singles counts the correct among problems that have one graded sample each; ok is
// false if any has more, or a cluster. Problems without a verdict do not count.
func singles(items []Item) (correct int, ok bool) {
	for _, it := range items {
		if it.Graded > 1 || it.Cluster != "" {
			return 0, false
		}
		correct += it.Correct
	}
	return correct, true
}

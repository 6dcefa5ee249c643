package main

import (
	"slices"
	"strings"

	"exp/experiments/recorded"
	"exp/harness/metric"
)

// mainResults are those that the narrow page shows, suite by suite, in this order; of
// pass@k the first and the last k.
func mainResults(list []recorded.Result) (out []recorded.Result) {
	for len(list) > 0 {
		n := slices.IndexFunc(list, func(r recorded.Result) bool { return r.Suite != list[0].Suite })
		if n < 0 {
			n = len(list)
		}
		out = append(out, mainResultsOf(list[:n])...)
		list = list[n:]
	}
	return out
}

func mainResultsOf(list []recorded.Result) []recorded.Result {
	var passes, rest []recorded.Result
	for _, r := range list {
		switch {
		case strings.HasPrefix(r.Metric, "pass@"):
			passes = append(passes, r)
		case shownIn(r.Metric, metric.WideOnly), r.Metric == "not_graded" && zero(r):
		default:
			rest = append(rest, r)
		}
	}
	if len(passes) > 2 {
		passes = []recorded.Result{passes[0], passes[len(passes)-1]}
	}
	return append(passes, rest...)
}

func zero(r recorded.Result) bool {
	return (r.Before == nil || r.Before.Value == 0) && (r.After == nil || r.After.Value == 0)
}

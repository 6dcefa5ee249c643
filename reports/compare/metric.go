package compare

import (
	"fmt"
	"slices"

	"exp/eval"
	"exp/harness/metric"
)

// scores is a scores blob: what an evaluation says of each problem, and its
// metrics.
type scores struct {
	Items   []eval.Item `json:"items"`
	Metrics []struct {
		Name  string
		Value float64
	} `json:"metrics"`
}

// defaultTests are the metrics that are tested where none is asked for: what a
// policy gets right, alone and with the most samples, and how differently.
func defaultTests(largest int) []string {
	var tests []string
	for _, m := range metric.ShownIn(metric.Tested) {
		switch {
		case m.Name != "pass@K":
			tests = append(tests, m.Name)
		case largest > 1:
			tests = append(tests, passName(largest))
		}
	}
	return tests
}

func passName(k int) string { return fmt.Sprintf("pass@%d", k) }

// overSolved is a mean over the problems that a run solved: others in each run, so
// that runs are compared by it and not problems.
const overSolved = "distinct_correct_solved"

// definitions are the evaluation's metrics that have a value for a problem, in the
// order of a report.
func definitions(ks []int) []eval.Definition {
	return slices.DeleteFunc(eval.Definitions(ks), func(d eval.Definition) bool { return d.Name == overSolved })
}

// withOne sorts ks, with 1 among them.
func withOne(ks []int) []int {
	ks = append([]int{1}, ks...)
	slices.Sort(ks)
	return slices.Compact(ks)
}

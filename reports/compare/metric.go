package compare

import (
	"slices"
	"strconv"
	"strings"

	"exp/eval"
	"exp/harness/metric"
)

// scores is a scores blob: an evaluation's result per problem, and its metrics.
type scores struct {
	Items   []eval.Item `json:"items"`
	Metrics []struct {
		Name  string
		Value float64
	} `json:"metrics"`
}

// defaultTests lists the metrics tested by default: accuracy with one sample and with the
// most samples, and diversity.
func defaultTests(largest int) []string {
	var tests []string
	for _, m := range metric.ShownIn(metric.Tested) {
		switch family, ok := strings.CutSuffix(m.Name, "K"); {
		case !ok || !strings.HasSuffix(family, "@"):
			tests = append(tests, m.Name)
		case largest > 1:
			tests = append(tests, nameAt(family, largest))
		}
	}
	return tests
}

// nameAt returns the name of a metric of a family, such as metric.PassAt.
func nameAt(family string, k int) string { return family + strconv.Itoa(k) }

// overSolved holds the metrics that are means over the problems a run solved. These
// differ between runs, so the comparison is over runs instead of problems.
const overSolved = "distinct_correct_solved"

// definitions lists the evaluation metrics with a value per problem, in report order.
func definitions(ks []int) []eval.Definition {
	return slices.DeleteFunc(eval.Definitions(ks), func(d eval.Definition) bool { return d.Name == overSolved })
}

// withOne sorts ks and adds 1.
func withOne(ks []int) []int {
	ks = append([]int{1}, ks...)
	slices.Sort(ks)
	return slices.Compact(ks)
}

package compare

import (
	"fmt"
	"slices"

	"exp/eval"
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

// Units with a meaning for margins, and for what an interval may hold.
const (
	unitShare  = "share"
	unitReward = "reward"
)

// defaultTests are the metrics that are tested where none is asked for: what a
// policy gets right, alone and with the most samples, and how differently. pass@k
// with the largest k comes second.
func defaultTests(largest int) []string {
	tests := []string{"pass@1"}
	if largest > 1 {
		tests = append(tests, passName(largest))
	}
	return append(tests, "distinct_correct", "solved_two_ways", "kl_target")
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

// ofRuns describes the metrics that only runs have: no problem has a value, or not
// the same problems in each run.
func ofRuns(name string) eval.Definition {
	for _, d := range eval.Definitions(nil) {
		if d.Name == name {
			return d
		}
	}
	d := eval.Definition{Name: name}
	switch name {
	case "kl_target":
		d.Unit, d.Direction, d.Definition = "nats", eval.Down, "KL divergence of the policy from the optimum, over all completions"
	case "kl_reference":
		d.Unit, d.Definition = "nats", "KL divergence of the reference from the policy, over all completions"
	case "policy_entropy":
		d.Unit, d.Definition = "nats", "entropy of the policy over all completions"
	}
	return d
}

// withOne sorts ks, with 1 among them.
func withOne(ks []int) []int {
	ks = append([]int{1}, ks...)
	slices.Sort(ks)
	return slices.Compact(ks)
}

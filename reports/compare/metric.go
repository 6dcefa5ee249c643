package compare

import (
	"fmt"
	"slices"

	"exp/eval/stat"
)

// scores is a scores blob: what an evaluation says of each problem, and its
// metrics.
type scores struct {
	Items   []item `json:"items"`
	Metrics []struct {
		Name  string
		Value float64
	} `json:"metrics"`
}

// item is what the samples of one problem came to. The fields are those that the
// evaluation wrote.
type item struct {
	Problem string `json:"problem"`
	Cluster string `json:"cluster"`
	Samples int    `json:"samples"`
	Graded  int    `json:"n"`
	// Of graded samples.
	Correct         int     `json:"c"`
	Formatted       int     `json:"formatted"`
	DistinctCorrect int     `json:"distinct_correct"`
	DistinctAnswers int     `json:"distinct_answers"`
	AnswerEntropy   float64 `json:"answer_entropy"`
	Reward          float64 `json:"reward"` // sum
	// Of all samples.
	Truncated    int     `json:"truncated"`
	Tokens       int     `json:"tokens"`
	TokenEntropy float64 `json:"token_entropy"` // sum
}

// definition is a metric as the mean over problems of a value per problem. It is the
// evaluation's own definition: a test compares every mean with the recorded one.
type definition struct {
	name, unit, direction, text string
	// value is a problem's; ok is false where it has none.
	value func(it *item) (v float64, ok bool)
	k     int // of pass@k; 0 of others
}

// Units with a meaning for Margin.
const unitShare = "share"

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

// definitions are the metrics that have a value for a problem, in the order of a
// report.
func definitions(ks []int) []definition {
	var list []definition
	for _, k := range ks {
		list = append(list, passAtK(k))
	}
	counted := func(name, unit, direction, text string, value func(it *item) float64) {
		list = append(list, definition{name: name, unit: unit, direction: direction, text: text,
			value: func(it *item) (float64, bool) { return value(it), it.Graded > 0 }})
	}
	sampled := func(name, unit, direction, text string, value func(it *item) float64) {
		list = append(list, definition{name: name, unit: unit, direction: direction, text: text,
			value: func(it *item) (float64, bool) { return value(it) / float64(max(1, it.Samples)), it.Samples > 0 }})
	}
	share := func(it *item, x float64) float64 { return x / float64(max(1, it.Graded)) }

	counted("distinct_correct", "solutions", "up", "different correct answers among the graded samples",
		func(it *item) float64 { return float64(it.DistinctCorrect) })
	counted("solved_two_ways", unitShare, "up", "1 if there are at least two different correct answers, else 0",
		func(it *item) float64 { return indicator(it.DistinctCorrect >= 2) })
	counted("distinct_answers", "answers", "", "different answers, right or wrong, among the graded samples",
		func(it *item) float64 { return float64(it.DistinctAnswers) })
	counted("answer_entropy", "nats", "", "entropy over the classes of equal answers, right or wrong",
		func(it *item) float64 { return it.AnswerEntropy })
	counted("answer_entropy_norm", unitShare, "", "answer_entropy / ln n for n graded samples",
		func(it *item) float64 { return stat.NormalizedEntropy(it.AnswerEntropy, it.Graded) })
	counted("format_rate", unitShare, "up", "graded samples with an answer in the right form / graded samples",
		func(it *item) float64 { return share(it, float64(it.Formatted)) })
	counted("reward_mean", "reward", "up", "sum of rewards / graded samples",
		func(it *item) float64 { return share(it, it.Reward) })
	sampled("truncation_rate", unitShare, "down", "samples that reached the token limit / samples",
		func(it *item) float64 { return float64(it.Truncated) })
	sampled("length_mean", "tokens", "", "sampled tokens, end tokens included / samples",
		func(it *item) float64 { return float64(it.Tokens) })
	list = append(list, definition{name: "token_entropy", unit: "nats",
		text:  "entropy of the policy where each token was sampled, mean over the tokens",
		value: func(it *item) (float64, bool) { return it.TokenEntropy / float64(max(1, it.Tokens)), it.Tokens > 0 }})
	sampled("not_graded", unitShare, "down", "samples without a verdict / samples",
		func(it *item) float64 { return float64(it.Samples - it.Graded) })
	return list
}

func passAtK(k int) definition {
	text := fmt.Sprintf("unbiased estimate of the chance that one of %d samples is correct", k)
	if k == 1 {
		text = "correct samples / graded samples"
	}
	return definition{name: passName(k), unit: unitShare, direction: "up", text: text, k: k,
		value: func(it *item) (float64, bool) {
			if it.Graded < k {
				return 0, false
			}
			p, err := stat.PassAtK(it.Graded, it.Correct, k)
			return p, err == nil
		}}
}

func indicator(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// ofRuns describes the metrics that only runs have: no problem has a value, or not
// the same problems in each run.
func ofRuns(name string) definition {
	d := definition{name: name}
	switch name {
	case "distinct_correct_solved":
		d.unit, d.direction, d.text = "solutions", "up", "different correct answers, mean over the problems that the run solved"
	case "kl_target":
		d.unit, d.direction, d.text = "nats", "down", "KL divergence of the policy from the optimum, over all completions"
	case "kl_reference":
		d.unit, d.text = "nats", "KL divergence of the reference from the policy, over all completions"
	case "policy_entropy":
		d.unit, d.text = "nats", "entropy of the policy over all completions"
	}
	return d
}

// withOne sorts ks, with 1 among them.
func withOne(ks []int) []int {
	ks = append([]int{1}, ks...)
	slices.Sort(ks)
	return slices.Compact(ks)
}

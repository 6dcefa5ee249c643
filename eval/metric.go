package eval

import (
	"fmt"
	"slices"
	"strconv"

	"exp/eval/stat"
)

// Direction says which way a metric improves.
type Direction string

const (
	Up      Direction = "up"
	Down    Direction = "down"
	Neutral Direction = "" // descriptive, not a goal
)

// Definition is a metric: a value per problem, averaged over problems with equal weight. Names are stable:
// reports, stored results and conditions use them.
type Definition struct {
	Name       string
	Unit       string
	Direction  Direction
	Definition string // the value per problem, in one sentence
	// Value returns the value for one problem. If ok is false the problem has none and is left out of the
	// mean.
	Value func(Item) (value float64, ok bool)
	K     int // k of pass@k, best@k and maj@k; 0 for other metrics
}

// Definitions returns all metrics in report order, with pass@k for k = 1 and each k in passK, and best@k and maj@k for
// those above 1.
func Definitions(passK []int) []Definition {
	ks := append([]int{1}, passK...)
	slices.Sort(ks)
	var list []Definition
	ks = slices.Compact(ks)
	for _, k := range ks {
		list = append(list, passAtK(k))
	}
	if k := ks[len(ks)-1]; k > 1 {
		list = append(list, passGap(k))
	}
	return slices.Concat(list, rankedMetrics(ks), countingMetrics(), textMetrics(), beliefMetrics())
}

// Families describes pass@K, pass_gap@K, best@K and maj@K for any K. Their Value is nil.
func Families() []Definition {
	return []Definition{describePass("K"), describeGap("K"), describeBest("K"), describeMajority("K")}
}

// describeGap describes the gain from k samples; it is 0 if a policy always says the same.
func describeGap(k string) Definition {
	return Definition{Name: "pass_gap@" + k, Unit: "share", Definition: "pass@" + k + " - pass@1"}
}

func passGap(k int) Definition {
	one, many, d := passAtK(1), passAtK(k), describeGap(strconv.Itoa(k))
	d.Value = func(it Item) (float64, bool) {
		most, ok := many.Value(it)
		if !ok {
			return 0, false
		}
		least, ok := one.Value(it)
		return most - least, ok
	}
	return d
}

// textMetrics returns the metrics that compare the samples of a problem with each other.
func textMetrics() []Definition {
	define := func(name, unit string, dir Direction, text string, value func(*Texts) float64) Definition {
		return Definition{Name: name, Unit: unit, Direction: dir, Definition: text,
			Value: func(it Item) (float64, bool) {
				if it.Texts == nil {
					return 0, false
				}
				return value(it.Texts), true
			}}
	}
	var list []Definition
	for n := range len(Texts{}.Distinct) {
		list = append(list, define(fmt.Sprintf("distinct_%d", n+1), "share", Neutral,
			fmt.Sprintf("different %d-grams of tokens / %d-grams, over the graded samples (distinct-%d)", n+1, n+1,
				n+1),
			func(t *Texts) float64 { return t.Distinct[n] }))
	}
	return append(list,
		define("self_bleu", "share", Neutral,
			"BLEU-4 of each graded sample against the others, averaged; lower means more different",
			func(t *Texts) float64 { return t.SelfBLEU }),
		define("solution_clusters", "groups", Neutral,
			"effective number of groups of similar texts among the graded samples, exp of the entropy of their sizes",
			func(t *Texts) float64 { return t.Clusters }),
		define("correct_clusters", "groups", Up,
			"groups of similar texts among the correct samples",
			func(t *Texts) float64 { return float64(t.CorrectClusters) }),
		define("two_correct_clusters", "share", Up,
			"1 if the correct samples fall into at least two groups of similar texts, else 0",
			func(t *Texts) float64 { return stat.Indicator(t.CorrectClusters >= 2) }))
}

// OptionProb is a metric that an evaluation has if it compared options by likelihood.
const OptionProb = "option_prob"

// beliefMetrics returns the metrics of questions whose options were compared by likelihood.
func beliefMetrics() []Definition {
	define := func(name string, dir Direction, text string, value func(*Belief) float64) Definition {
		return Definition{Name: name, Unit: "share", Direction: dir, Definition: text,
			Value: func(it Item) (float64, bool) {
				if it.Belief == nil {
					return 0, false
				}
				return value(it.Belief), true
			}}
	}
	brier := define("option_brier", Down, "squared error of the options' probabilities, summed over the options of a "+
		"question: 0 for a sure right answer, 2 for a sure wrong one", func(b *Belief) float64 { return b.Brier })
	brier.Unit = ""
	return []Definition{define(OptionProb, Up, "probability of the right option over the sum of all options' "+
		"probabilities, where options are compared by likelihood", func(b *Belief) float64 { return b.Right }), brier}
}

// voted adapts a value of the vote to Definition.Value.
func voted(value func(*stat.Vote) float64) func(Item) (float64, bool) {
	return func(it Item) (float64, bool) {
		if it.Majority == nil {
			return 0, false
		}
		return value(it.Majority), true
	}
}

func countingMetrics() []Definition {
	define := func(name, unit string, dir Direction, text string, value func(Item) (float64, bool)) Definition {
		return Definition{Name: name, Unit: unit, Direction: dir, Definition: text, Value: value}
	}
	score := perGraded(func(it Item) float64 { return it.Reward })
	return []Definition{
		define("score_mean", "reward", Up,
			"sum of scores / graded samples, where the run's reward alone judges",
			func(it Item) (float64, bool) {
				mean, ok := score(it)
				return mean, ok && it.Judged
			}),
		define("majority", "share", Up,
			"1 if the most frequent answer of the graded samples is correct, first seen wins a tie, else 0 (maj@n)",
			voted(func(v *stat.Vote) float64 { return v.Value })),
		define("majority_tied", "share", Neutral,
			"1 if several answers tie for the most frequent, else 0",
			voted(func(v *stat.Vote) float64 { return v.Tied })),
		define("distinct_correct", "solutions", Up,
			"different correct answers among the graded samples",
			graded(func(it Item) float64 { return float64(it.DistinctCorrect) })),
		define("distinct_correct_solved", "solutions", Up,
			"different correct answers, over problems with at least one (FlowRL eq. 14)",
			func(it Item) (float64, bool) { return float64(it.DistinctCorrect), it.DistinctCorrect > 0 }),
		define("solved_two_ways", "share", Up,
			"1 if there are at least two different correct answers, else 0",
			graded(func(it Item) float64 { return stat.Indicator(it.DistinctCorrect >= 2) })),
		define("distinct_answers", "answers", Neutral,
			"different answers, right or wrong, among the graded samples",
			graded(func(it Item) float64 { return float64(it.DistinctAnswers) })),
		define("answer_entropy", "nats", Neutral,
			"-Σ p ln p over the classes of equal answers, right or wrong; samples without an answer do not count",
			graded(func(it Item) float64 { return it.AnswerEntropy })),
		define("answer_entropy_norm", "share", Neutral,
			"answer_entropy / ln n for n graded samples; 0 where n is 1",
			graded(func(it Item) float64 { return stat.NormalizedEntropy(it.AnswerEntropy, it.Graded) })),
		define("format_rate", "share", Up,
			"graded samples with an answer in the right form / graded samples",
			perGraded(func(it Item) float64 { return float64(it.Formatted) })),
		define("reward_mean", "reward", Up,
			"sum of rewards / graded samples",
			perGraded(func(it Item) float64 { return it.Reward })),
		define("truncation_rate", "share", Down,
			"samples that reached the token limit / samples",
			perSample(func(it Item) float64 { return float64(it.Truncated) })),
		define("length_mean", "tokens", Neutral,
			"sampled tokens, end tokens included / samples",
			perSample(func(it Item) float64 { return float64(it.Tokens) })),
		define("token_entropy", "nats", Neutral,
			"entropy of the policy at each sampled token, at the sampling temperature (1 if that is 0), mean over "+
				"tokens",
			func(it Item) (float64, bool) { return it.TokenEntropy / float64(max(1, it.Tokens)), it.Tokens > 0 }),
		define("not_graded", "share", Down,
			"samples without a verdict / samples",
			perSample(func(it Item) float64 { return float64(it.Samples - it.Graded) })),
	}
}

// describePass describes pass@k for k > 1.
func describePass(k string) Definition {
	return Definition{Name: "pass@" + k, Unit: "share", Direction: Up,
		Definition: "unbiased estimate of the chance that one of " + k + " samples is correct, " +
			"1 - C(n-c," + k + ")/C(n," + k + ") for c correct of n graded"}
}

// passAtK has no value for problems with fewer than k graded samples.
func passAtK(k int) Definition {
	d := describePass(strconv.Itoa(k))
	if k == 1 {
		d.Definition = "correct samples / graded samples (avg@n)"
	}
	d.K = k
	d.Value = func(it Item) (float64, bool) {
		if it.Graded < k {
			return 0, false
		}
		p, err := stat.PassAtK(it.Graded, it.Correct, k)
		return p, err == nil
	}
	return d
}

// graded adapts a value that exists only for problems with graded samples.
func graded(value func(Item) float64) func(Item) (float64, bool) {
	return func(it Item) (float64, bool) { return value(it), it.Graded > 0 }
}

func perGraded(sum func(Item) float64) func(Item) (float64, bool) {
	return graded(func(it Item) float64 { return sum(it) / float64(max(1, it.Graded)) })
}

func perSample(sum func(Item) float64) func(Item) (float64, bool) {
	return func(it Item) (float64, bool) { return sum(it) / float64(max(1, it.Samples)), it.Samples > 0 }
}

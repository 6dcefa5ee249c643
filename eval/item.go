package eval

import (
	"fmt"
	"slices"

	"exp/eval/stat"
	"exp/train/rollout"
)

// Item sums up the samples of one problem. Arms are compared item by item.
type Item struct {
	ProblemID string `json:"problem"`
	Cluster   string `json:"cluster,omitempty"` // see rollout.Problem
	Samples   int    `json:"samples"`           // all samples
	Graded    int    `json:"n"`                 // samples with a verdict
	// These fields count graded samples only.
	Correct         int     `json:"c"`
	Formatted       int     `json:"formatted"`        // samples with an answer, right or wrong
	DistinctCorrect int     `json:"distinct_correct"` // different answers among the correct samples
	DistinctAnswers int     `json:"distinct_answers"` // different answers among all samples
	AnswerEntropy   float64 `json:"answer_entropy"`   // over all answers, nats
	Reward          float64 `json:"reward"`           // sum of rewards
	Judged          bool    `json:"judged,omitempty"` // the run's reward gave the verdicts (see Judged)
	// Majority is the vote of the graded samples; Texts says how much their texts differ. Both are nil in
	// scores of earlier versions; Texts is also nil with fewer than two samples.
	Majority *stat.Vote `json:"majority,omitempty"`
	Texts    *Texts     `json:"texts,omitempty"`
	// Belief is nil for sampled answers.
	Belief *Belief `json:"belief,omitempty"`
	// Ranked is nil unless a reward model scored the samples (Rank).
	Ranked *Ranked `json:"ranked,omitempty"`
	// These fields count all samples.
	Truncated    int     `json:"truncated"`     // samples that reached the token limit
	Tokens       int     `json:"tokens"`        // sampled tokens, end tokens included
	TokenEntropy float64 `json:"token_entropy"` // sum over tokens, nats
}

// Items groups samples and their verdicts by problem, in the order of problems. verdicts[i] belongs to
// samples[i]. Problems without samples are left out. A sample that occurs twice or whose problem is unknown
// is an error.
func Items(problems []rollout.Problem, samples []Sample, verdicts []rollout.Verdict) ([]Item, error) {
	if len(samples) != len(verdicts) {
		panic("eval: length mismatch")
	}
	samples = ownOf(samples)
	index := make(map[string]int, len(problems))
	for i, p := range problems {
		index[p.ID] = i
	}
	type key struct{ problem, k int }
	seen := make(map[key]bool, len(samples))
	ofProblem := make([][]int, len(problems)) // indices into samples
	for j, s := range samples {
		i, ok := index[s.ProblemID]
		if !ok {
			return nil, fmt.Errorf("sample %d: unknown problem %s", s.K, s.ProblemID)
		}
		if seen[key{i, s.K}] {
			return nil, fmt.Errorf("sample %d of problem %s occurs twice", s.K, s.ProblemID)
		}
		seen[key{i, s.K}] = true
		ofProblem[i] = append(ofProblem[i], j)
	}

	var items []Item
	for i, list := range ofProblem {
		if len(list) == 0 {
			continue
		}
		item := Item{ProblemID: problems[i].ID, Cluster: problems[i].Cluster}
		var all, correct []string
		var graded []int // indices into samples
		var right []bool
		for _, j := range list {
			item.add(&samples[j].Completion)
			v := verdicts[j]
			if v.Status != rollout.Graded {
				continue
			}
			item.Graded++
			item.Reward += v.Reward
			all, right = append(all, v.Answer), append(right, v.Correct)
			graded = append(graded, j)
			if v.Answer != "" {
				item.Formatted++
			}
			if v.Correct {
				item.Correct++
				correct = append(correct, v.Answer)
			}
		}
		item.DistinctCorrect = stat.Distinct(correct)
		item.DistinctAnswers = stat.Distinct(all)
		item.AnswerEntropy = stat.Entropy(all)
		if item.Graded > 0 {
			vote := stat.MajorityVote(all, right)
			item.Majority = &vote
		}
		item.Texts = newTexts(samples, graded, right)
		item.Belief = beliefOf(&problems[i], samples[list[0]].Completion.Options)
		items = append(items, item)
	}
	return items, nil
}

// Judged marks items whose verdicts the run's reward alone gave: it has a scale of its own, so its mean is a score.
// kind is the kind of these problems, where others have kinds of their own.
func Judged(items []Item, problems []rollout.Problem, kind string) {
	others := map[string]bool{}
	for _, p := range problems {
		others[p.ID] = p.Kind != "" && p.Kind != kind
	}
	for i := range items {
		items[i].Judged = !others[items[i].ProblemID]
	}
}

// ownOf returns samples without what tools wrote: items describe the policy.
func ownOf(samples []Sample) []Sample {
	some := func(s Sample) bool { return len(s.Completion.Inserted) > 0 }
	if !slices.ContainsFunc(samples, some) {
		return samples
	}
	samples = slices.Clone(samples)
	for i := range samples {
		samples[i].Completion = *samples[i].Completion.Own()
	}
	return samples
}

// add counts a completion.
func (it *Item) add(c *rollout.Completion) {
	it.Samples++
	it.Tokens += c.SampledTokens()
	if c.Finish == rollout.FinishLength {
		it.Truncated++
	}
	for _, h := range c.Entropies {
		it.TokenEntropy += float64(h)
	}
}

package eval

import (
	"fmt"

	"exp/eval/stat"
	"exp/train/rollout"
)

// Item is what the samples of one problem came to. Arms are compared item by item.
type Item struct {
	ProblemID string `json:"problem"`
	Cluster   string `json:"cluster,omitempty"` // see rollout.Problem
	Samples   int    `json:"samples"`           // all of them
	Graded    int    `json:"n"`                 // those with a verdict
	// The following count graded samples only.
	Correct         int     `json:"c"`
	Formatted       int     `json:"formatted"`        // with an answer, right or wrong
	DistinctCorrect int     `json:"distinct_correct"` // different answers among the correct
	DistinctAnswers int     `json:"distinct_answers"` // different answers among all
	AnswerEntropy   float64 `json:"answer_entropy"`   // of all answers, nats
	Reward          float64 `json:"reward"`           // sum
	// Majority is the vote of the graded samples, and Texts how different their texts
	// are; nil in scores of earlier versions, Texts also with fewer than two samples.
	Majority *stat.Vote `json:"majority,omitempty"`
	Texts    *Texts     `json:"texts,omitempty"`
	// The following count all samples.
	Truncated    int     `json:"truncated"`     // reached the token limit
	Tokens       int     `json:"tokens"`        // sampled, end tokens included
	TokenEntropy float64 `json:"token_entropy"` // sum over tokens, nats
}

// Items groups samples and their verdicts by problem, in the order of problems.
// verdicts [len(samples)] belong to samples in order. Problems without samples are
// left out. An error is for a sample that comes twice or has no problem.
func Items(problems []rollout.Problem, samples []Sample, verdicts []rollout.Verdict) ([]Item, error) {
	if len(samples) != len(verdicts) {
		panic("eval: length mismatch")
	}
	index := make(map[string]int, len(problems))
	for i, p := range problems {
		index[p.ID] = i
	}
	type key struct{ problem, k int }
	seen := make(map[key]bool, len(samples))
	ofProblem := make([][]int, len(problems)) // indices of samples
	for j, s := range samples {
		i, ok := index[s.ProblemID]
		if !ok {
			return nil, fmt.Errorf("sample %d: there is no problem %s", s.K, s.ProblemID)
		}
		if seen[key{i, s.K}] {
			return nil, fmt.Errorf("sample %d of problem %s comes twice", s.K, s.ProblemID)
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
		var graded []int // samples
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
		items = append(items, item)
	}
	return items, nil
}

// add counts a completion.
func (it *Item) add(c *rollout.Completion) {
	it.Samples++
	it.Tokens += len(c.Tokens)
	if c.Finish == rollout.FinishLength {
		it.Truncated++
	}
	for _, h := range c.Entropies {
		it.TokenEntropy += float64(h)
	}
}

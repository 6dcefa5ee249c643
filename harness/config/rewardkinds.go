package config

import (
	"slices"
	"strings"
)

// rewardKind is a kind of reward: a row of the only table of reward.kind in this package. What computes it has a row
// in harness/stage.
type rewardKind struct {
	name  string
	about string // its lines in the help of reward.kind

	self    bool // the policy or its completions give it, without a verdict
	blind   bool // nor does it read gold answers
	votes   bool // it counts the answers of a problem's completions
	judges  bool // it can judge completions of task prompts, which has no gold answers
	program bool // a program of the user's gives it
	server  bool // a server gives it
	weights bool // a model in memory gives it, whose folder is reward.weights
	writes  bool // a language model gives it, in words that reward.judge reads
	parts   bool // its answers can have parts of any name, for reward.components

	pays    []string     // which of correct, wrong and format it gives
	retries int          // default of reward.retries; 0: it is never asked again
	keys    func() []Key // which training reads with this kind alone, or with those that they name
	checks  func() []check
	help    map[string]string // of its keys, where a line does not suffice
}

// rewardKinds lists the kinds of reward in the order of help and keys.
func rewardKinds() []rewardKind {
	return []rewardKind{
		{name: "task", about: "reward.correct, reward.wrong or reward.format, by the task's verdict",
			pays: []string{"correct", "wrong", "format"}},
		commandReward(),
		judgeReward(),
		modelReward(),
		trainedReward(),
		generativeReward(),
		majorityReward(),
		confidenceReward(),
		likelihoodReward(),
	}
}

// usualRetries is the default of reward.retries where it is cheap to ask again.
const usualRetries = 2

// Kinds of reward that the policy or its completions give, without a verdict.
const (
	Majority   = "majority"
	Confidence = "confidence"
	Likelihood = "likelihood"
)

// kind returns the reward's row; an empty one if the task defines the reward (outcomes).
func (r *Reward) kind() rewardKind {
	list := rewardKinds()
	if i := slices.IndexFunc(list, func(k rewardKind) bool { return k.name == r.Kind }); i >= 0 {
		return list[i]
	}
	return rewardKind{}
}

// Self reports whether the policy or its completions give the reward, without a verdict.
func (r *Reward) Self() bool { return r.kind().self }

// ByTask reports whether nothing but the task's grader says something of a completion.
func (r *Reward) ByTask() bool { return r.Kind == "task" || r.Self() }

// ByProgram reports whether a program of the user's gives the reward.
func (r *Reward) ByProgram() bool { return r.kind().program }

// ByServer reports whether a server gives the reward, which may change and cost money.
func (r *Reward) ByServer() bool { return r.kind().server }

// HasModel reports whether the model of Weights, held in memory, gives the reward.
func (r *Reward) HasModel() bool { return r.kind().weights }

// Writes reports whether the model of Weights gives the reward in words.
func (r *Reward) Writes() bool { return r.HasModel() && r.kind().writes }

// rewardsThat lists the kinds of reward for which ok holds.
func rewardsThat(ok func(k *rewardKind) bool) []string {
	var names []string
	for _, k := range rewardKinds() {
		if ok(&k) {
			names = append(names, k.name)
		}
	}
	return names
}

// judgingRewards names the kinds that can judge completions of task prompts.
func judgingRewards() string {
	return either(rewardsThat(func(k *rewardKind) bool { return k.judges }))
}

// either joins words: a, b or c.
func either(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

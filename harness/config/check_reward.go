package config

import (
	"fmt"
	"slices"

	"exp/train/rl"
)

func rewardChecks() []check {
	list := selfChecks()
	for _, k := range rewardKinds() {
		if k.checks != nil {
			list = append(list, k.checks()...)
		}
	}
	return append(list, []check{
		{[]string{"reward.kind", "task.kind"}, func(r *Run) (string, string) {
			if r.JudgesAlone() && r.Reward.Kind == "task" {
				return "the task prompts grades nothing itself",
					"set reward.kind to " + judgingRewards() + "; task.kind: math compares with gold answers"
			}
			return "", ""
		}},
		{[]string{"reward.components", "task.mixed.kinds"}, func(r *Run) (string, string) {
			i := slices.IndexFunc(r.Reward.Components, func(name string) bool { return !builtinPart(name) })
			if i >= 0 && r.JudgesAlone() {
				return fmt.Sprintf("reward.components has %s, which only problems of kind prompts have: the other "+
					"rewards are verdicts", r.Reward.Components[i]), "correct, format and score are parts of all"
			}
			return "", ""
		}},
		{[]string{"reward.components", "reward.kind"}, func(r *Run) (string, string) {
			for i, name := range r.Reward.Components {
				own := builtinPart(name)
				switch {
				case slices.Contains(r.Reward.Components[:i], name):
					return fmt.Sprintf("reward.components has %s twice", name), "name each part once"
				case !own && !r.Reward.kind().parts && !r.Reward.Self():
					return fmt.Sprintf("reward.components has %s, which a reward of kind %s does not give", name,
						r.Reward.Kind), "it has correct, format and score"
				}
			}
			return "", ""
		}},
	}...)
}

// builtinPart reports whether every reward has a part of this name.
func builtinPart(name string) bool {
	return slices.Contains([]string{"correct", "format", "score"}, name)
}

// selfChecks checks rewards that completions give themselves.
func selfChecks() []check {
	return []check{
		{[]string{"reward.kind", "task.kind"}, func(r *Run) (string, string) {
			switch {
			case r.Reward.Self() && r.JudgesAlone():
				return fmt.Sprintf("the task prompts needs a reward that gives verdicts, which %s does not",
					r.Reward.Kind), "set reward.kind to " + judgingRewards()
			case r.Reward.kind().votes && !r.Task.kind().oneAnswer:
				return "reward.kind " + r.Reward.Kind + " compares answers, but the answers of task " + r.Task.Kind +
					" are not values", "use it with task " + either(oneAnswer())
			}
			return "", ""
		}},
		{[]string{"reward.kind", "rollout.n"}, func(r *Run) (string, string) {
			if r.Reward.kind().votes && r.Rollout.N < 3 {
				return fmt.Sprintf("rollout.n is %d, but reward.kind %s counts the answers of a problem's "+
					"completions", r.Rollout.N, r.Reward.Kind), "rollout.n: 3 or more; TTRL takes 32 of 64"
			}
			return "", ""
		}},
		{[]string{"reward.kind", "algo.advantage", "reward.components"}, func(r *Run) (string, string) {
			e, _ := rl.EstimatorNamed(r.Algo.Advantage)
			switch {
			case !r.Reward.Self():
			case e.Greedy:
				return r.Algo.Advantage + " scores a greedy completion by itself, which reward.kind " +
					r.Reward.Kind + " cannot", "use algo.advantage grpo or rloo, or another reward.kind"
			case len(r.Reward.Components) > 0:
				return "reward.kind " + r.Reward.Kind + " has no parts for reward.components",
					"reward.components: [], and an algo.advantage other than gdpo"
			}
			return "", ""
		}},
		{[]string{"reward.kind", "algo.filter_groups.metric"}, func(r *Run) (string, string) {
			if r.Reward.kind().blind && r.Algo.FilterGroups.Metric == "acc" {
				return "algo.filter_groups.metric acc looks at gold answers, which reward.kind " + r.Reward.Kind +
					" does without", "algo.filter_groups.metric: score"
			}
			return "", ""
		}},
	}
}

// oneAnswer lists the tasks whose problems have one right answer, which completions give in a place of its own.
func oneAnswer() []string {
	ofFiles := tasksThat(func(k *taskKind) bool { return k.oneAnswer && k.files }) // the usual ones first
	return append(ofFiles, tasksThat(func(k *taskKind) bool { return k.oneAnswer && !k.files })...)
}

package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"exp/train/rl"
)

func rewardChecks() []check {
	return append(slices.Concat(judgeChecks(), selfChecks(), likelihoodChecks()), []check{
		{[]string{"reward.command"}, func(r *Run) (string, string) {
			if len(r.Reward.Command) == 0 || r.Reward.Command[0] == "" {
				return "reward.command names no program",
					"list the program and its arguments: [./my-reward, --strict]"
			}
			return "", ""
		}},
		{[]string{"reward.kind", "task.kind"}, func(r *Run) (string, string) {
			if r.JudgesAlone() && r.Reward.Kind == "task" {
				return "the task prompts grades nothing itself",
					"set reward.kind to command, judge or model; task.kind: math compares with gold answers"
			}
			return "", ""
		}},
		{[]string{"reward.components", "reward.kind"}, func(r *Run) (string, string) {
			for i, name := range r.Reward.Components {
				own := slices.Contains([]string{"correct", "format", "score"}, name)
				switch {
				case slices.Contains(r.Reward.Components[:i], name):
					return fmt.Sprintf("reward.components has %s twice", name), "name each part once"
				case !own && (r.Reward.Kind == "task" || r.Reward.Kind == "model"):
					return fmt.Sprintf("reward.components has %s, which a reward of kind %s does not give", name,
						r.Reward.Kind), "it has correct, format and score"
				}
			}
			return "", ""
		}},
		{[]string{"reward.components", "reward.judge.pattern"}, func(r *Run) (string, string) {
			i := slices.IndexFunc(r.Reward.Components,
				func(name string) bool { return !slices.Contains([]string{"correct", "format", "score"}, name) })
			if r.Reward.Judge.Pattern != "" && i >= 0 {
				return fmt.Sprintf("reward.components has %s, but reward.judge.pattern finds a single number",
					r.Reward.Components[i]), "have the judge answer a JSON object, and leave the pattern out"
			}
			return "", ""
		}},
		{[]string{"reward.row_limit", "reward.batch_limit"}, func(r *Run) (string, string) {
			if r.Reward.RowLimit > r.Reward.BatchLimit {
				return fmt.Sprintf("reward.row_limit (%v) is above reward.batch_limit (%v)", r.Reward.RowLimit,
					r.Reward.BatchLimit), "a batch has at least one row"
			}
			return "", ""
		}},
	}...)
}

// oneAnswer lists the tasks whose problems have one right answer, which completions give in a place of its own.
func oneAnswer() []string { return []string{"math", "words", "stories"} }

// likelihoodChecks checks rewards by the likelihood of reference answers.
func likelihoodChecks() []check {
	return []check{
		{[]string{"reward.kind", "task.kind"}, func(r *Run) (string, string) {
			if r.Reward.Kind == Likelihood && !r.JudgesAlone() &&
				!slices.Contains(oneAnswer(), r.Task.Kind) {
				return "reward.kind likelihood puts the gold answer in the place of a completion's own, but task " +
					r.Task.Kind + " has no single answer in a place", "use it with task math, words or stories"
			}
			return "", ""
		}},
		{[]string{"reward.kind", "rollout.tools.kind"}, func(r *Run) (string, string) {
			if r.Reward.Kind == Likelihood && r.Rollout.Tools.Used() {
				return "reward.kind likelihood replaces the end of a completion, which may hold calls of tools",
					"rollout.tools.kind: none, or another reward.kind"
			}
			return "", ""
		}},
		{[]string{"reward.kind", "rollout.source"}, func(r *Run) (string, string) {
			if r.Reward.Kind == Likelihood && r.Rollout.Source == "recorded" {
				return "reward.kind likelihood asks the policy about its own reasoning, not about recorded rollouts",
					"rollout.source: policy, or another reward.kind"
			}
			return "", ""
		}},
		{[]string{"reward.likelihood.measure", "reward.wrong"}, func(r *Run) (string, string) {
			if r.Reward.Likelihood.Measure == "log" && r.Reward.Wrong >= 0 {
				return fmt.Sprintf("reward.wrong is %s, but reward.likelihood.measure log is never above 0: a "+
						"completion without an answer would be the best", formatFloat(r.Reward.Wrong)),
					"reward.wrong: -10, or lower for long answers"
			}
			return "", ""
		}},
		{[]string{"reward.likelihood.measure", "reward.likelihood.baseline"}, func(r *Run) (string, string) {
			if r.Reward.Likelihood.Measure == "log" && r.Reward.Likelihood.Baseline {
				return "reward.likelihood.baseline clips to 0 to 1, where no difference of logarithms belongs",
					"reward.likelihood.baseline: false, or measure: mean"
			}
			return "", ""
		}},
		{[]string{"reward.likelihood.learn", "algo.distill.top_k"}, func(r *Run) (string, string) {
			if r.Reward.Likelihood.Learn > 0 && r.Algo.Distill.TopK > 0 {
				return "reward.likelihood.learn puts answers where a teacher's likeliest tokens are not known",
					"algo.distill.top_k: 0, or reward.likelihood.learn: 0"
			}
			return "", ""
		}},
	}
}

// selfChecks checks rewards that completions give themselves.
func selfChecks() []check {
	return []check{
		{[]string{"reward.kind", "task.kind"}, func(r *Run) (string, string) {
			switch {
			case !r.Reward.Self():
			case r.JudgesAlone():
				return fmt.Sprintf("the task prompts needs a reward that says what is right, which %s does not",
					r.Reward.Kind), "set reward.kind to command, judge or model"
			case r.Reward.Kind == Majority && !slices.Contains(oneAnswer(), r.Task.Kind):
				return "reward.kind majority compares answers, but those of task " + r.Task.Kind +
					" are not values", "use it with task math, words or stories"
			}
			return "", ""
		}},
		{[]string{"reward.kind", "rollout.n"}, func(r *Run) (string, string) {
			if r.Reward.Kind == Majority && r.Rollout.N < 3 {
				return fmt.Sprintf("rollout.n is %d, but reward.kind majority counts the answers of a problem's "+
					"completions", r.Rollout.N), "rollout.n: 3 or more; TTRL takes 32 of 64"
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
			if r.Reward.Self() && r.Reward.Kind != Likelihood && r.Algo.FilterGroups.Metric == "acc" {
				return "algo.filter_groups.metric acc looks at gold answers, which reward.kind " + r.Reward.Kind +
					" does without", "algo.filter_groups.metric: score"
			}
			return "", ""
		}},
		{[]string{"reward.kind", "rollout.source"}, func(r *Run) (string, string) {
			if r.Reward.Kind == Confidence && r.Rollout.Source == "recorded" {
				return "reward.kind confidence needs entropies, which recorded rollouts do not have",
					"rollout.source: policy, or reward.kind: majority"
			}
			return "", ""
		}},
	}
}

// judgeChecks checks the settings of a judge.
func judgeChecks() []check {
	return []check{
		{[]string{"reward.judge.pattern"}, func(r *Run) (string, string) {
			p := r.Reward.Judge.Pattern
			re, err := regexp.Compile(p)
			switch {
			case err != nil:
				return "reward.judge.pattern: " + err.Error(), "use the syntax of Go's package regexp"
			case p != "" && re.NumSubexp() < 1:
				return fmt.Sprintf("reward.judge.pattern %q has no group", p), `put the number in parentheses: Score: *([0-9.]+)`
			}
			return "", ""
		}},
		{[]string{"reward.judge.low", "reward.judge.high"}, func(r *Run) (string, string) {
			if j := r.Reward.Judge; j.Low != nil && j.High != nil && *j.Low >= *j.High {
				return fmt.Sprintf("reward.judge.low (%s) is not below reward.judge.high (%s)", formatFloat(*j.Low),
					formatFloat(*j.High)), ""
			}
			return "", ""
		}},
		{[]string{"reward.judge.url"}, func(r *Run) (string, string) {
			if strings.HasSuffix(strings.TrimRight(r.Reward.Judge.URL, "/"), "/chat/completions") {
				return "reward.judge.url ends in /chat/completions, which is added to it",
					"end the URL with its version: http://127.0.0.1:8000/v1"
			}
			return "", ""
		}},
	}
}

package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

func rewardChecks() []check {
	return append(judgeChecks(), []check{
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

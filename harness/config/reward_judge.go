package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

func judgeReward() rewardKind {
	return rewardKind{name: "judge",
		about: "a language model behind an OpenAI-compatible server: reward.judge. No other\n" +
			"run uses the network",
		judges: true, server: true, writes: true, parts: true, retries: 6, keys: judgeKeys, checks: judgeChecks,
		help: map[string]string{"reward.judge.url": aboutJudge}}
}

func judgeKeys() []Key {
	writing := ofReward(rewardsThat(func(k *rewardKind) bool { return k.writes })...)
	return []Key{
		{Path: "reward.judge.url", Kind: String,
			Pattern: pattern("a URL such as http://127.0.0.1:8000/v1", `https?://[^\s?#@]+`),
			Help:    "URL of a server with OpenAI's chat completions, up to its version; /chat/completions is added"},
		{Path: "reward.judge.model", Kind: String,
			Pattern: pattern("a name", `.+`), Help: "model to ask the server for"},
		{Path: "reward.judge.template", When: writing, Kind: String, Role: External, Pattern: pattern("a path", `.+`),
			Help: "file with the message to send; {prompt} (all messages of a chat, each under its role), " +
				"{response} and {gold} are filled in"},
		{Path: "reward.judge.pattern", When: writing, Kind: String, Default: is(""),
			Pattern: pattern("a regular expression, or empty", `(?s).*`),
			Help: "regular expression (Go's syntax) whose first group is the score; its last match in the judge's " +
				"answer counts; empty: the answer holds a JSON object"},
		{Path: "reward.judge.field", When: writing, Kind: String, Default: is("score"), Pattern: pattern("a name", `.+`),
			Help: "field of the JSON object that holds the score, without a pattern"},
		{Path: "reward.judge.low", When: writing, Kind: Float, Null: true, Default: null(),
			Help: "lowest valid score; null: no limit"},
		{Path: "reward.judge.high", When: writing, Kind: Float, Null: true, Default: null(),
			Help: "highest valid score; null: no limit"},
		{Path: "reward.judge.temperature", When: writing, Kind: Float, Default: is(0.0), Range: atLeast(0),
			Help: "sampling temperature of the judge"},
		{Path: "reward.judge.max_tokens", When: writing, Kind: Int, Default: is(512), Range: atLeast(1),
			Unit: "tokens", Help: "longest answer of the judge; a truncated one gives no score"},
		{Path: "reward.judge.key_env", Kind: String, Default: is(""),
			Pattern: pattern("the name of a variable, or empty", `[A-Za-z_][A-Za-z0-9_]*|`), Role: Nonsemantic,
			Help: "environment variable that holds the API key, which is never recorded; empty sends none"},
		{Path: "reward.judge.concurrent", Kind: Int, Default: is(4), Range: between(1, 1024), Unit: "requests",
			Role: Nonsemantic, Help: "requests in flight at once"},
		{Path: "reward.judge.rate", Kind: Float, Default: is(0.0), Range: atLeast(0), Unit: "requests per second",
			Role: Nonsemantic, Help: "requests a second; 0: no limit"},
		{Path: "reward.judge.timeout", Kind: Duration, Default: is(time.Minute), Range: above(0), Role: Nonsemantic,
			Help: "time limit of a request"},
		{Path: "reward.judge.cache", Kind: Bool, Default: is(true), Role: Nonsemantic,
			Help: "keep answers in the store by the digest of their request and send an equal request once, which " +
				"makes a judged run repeatable"},
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
		{[]string{"reward.components", "reward.judge.pattern"}, func(r *Run) (string, string) {
			i := slices.IndexFunc(r.Reward.Components,
				func(name string) bool { return !slices.Contains([]string{"correct", "format", "score"}, name) })
			if r.Reward.Judge.Pattern != "" && i >= 0 {
				return fmt.Sprintf("reward.components has %s, but reward.judge.pattern finds a single number",
					r.Reward.Components[i]), "have the judge answer a JSON object, and leave the pattern out"
			}
			return "", ""
		}},
	}
}

// aboutJudge is the help of reward.judge.url.
const aboutJudge = `
    reward:
      kind: judge
      judge: {url: http://127.0.0.1:8000/v1, model: qwen2.5-7b-instruct, template: judge.txt,
              low: 0, high: 10, key_env: JUDGE_KEY}

  with judge.txt ending, say, in: Answer with a JSON object: {"score": 0 to 10}.
  Requests that time out or get 408, 429 or 5xx are retried (reward.retries), after
  Retry-After or growing pauses; 401, 403 and 404 end the run. Answers are kept in the store.
`

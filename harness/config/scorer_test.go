package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A scorer of each kind is configured as a reward of its kind.
func TestScoredByIsTheReward(t *testing.T) {
	for _, block := range []string{
		"{kind: command, command: [./score, --strict], files: [data], workers: 3, batch: 5, row_limit: 5s, batch_limit: 7s, restarts: 2, retries: 4}",
		"{kind: command, command: [./score]}",
		"{kind: judge, judge: {url: 'http://a/v1', model: m, template: t.txt, low: 0, high: 10, key_env: KEY, rate: 2, timeout: 3s, cache: false}}",
		"{kind: judge, retries: 1, judge: {url: 'http://a/v1', model: m, template: t.txt, pattern: '([0-9])', temperature: 1, max_tokens: 9}}",
		"{kind: genrm, weights: some/folder, judge: {template: t.txt, context: 999, sequences: 3, template_vars: {a: 1}, field: x}}",
		"{kind: model, weights: some/folder, text: 'x{response}', begin: true, end: true, label: 3}",
		"{kind: model, weights: some/folder, chat: always, steps: min, split: a, separator: b}",
		"{kind: model, weights: some/folder, steps: last, layout: turns, tokens: [+, -]}",
	} {
		as := load(t, Input{File: "testdata/plain.yaml", Sets: []string{"reward=" + block}}).Run.Reward
		by := load(t, Input{File: "testdata/plain.yaml", Sets: []string{"eval.final.scorer=" + block}}).Run.ScoredBy().Reward
		as.MaxNotGraded, as.Components, as.Credit = 0, nil, "" // an evaluation rewards nothing
		if diff := cmp.Diff(as, by); diff != "" {
			t.Errorf("%s (-reward +scorer):\n%s", block, diff)
		}
	}
}

func TestScorerChecks(t *testing.T) {
	for block, want := range map[string]string{
		"{kind: genrm, judge: {template: t.txt}}":                                       "eval.final.scorer.kind is genrm, but eval.final.scorer.weights names no model",
		"{kind: genrm, weights: trained, judge: {template: t.txt}}":                     "eval.final.scorer.weights is trained, but eval.final.scorer.kind is genrm",
		"{kind: genrm, weights: a, judge: {template: t.txt, context: 512}}":             "eval.final.scorer.judge.context (512) leaves no room for a message: eval.final.scorer.judge.max_tokens is 512",
		"{kind: command, command: []}":                                                  "eval.final.scorer.command names no program",
		"{kind: command, command: [x], weights: a}":                                     "eval.final.scorer.weights has no effect",
		"{kind: judge, judge: {url: 'http://a/v1', model: m, template: t, pattern: x}}": "eval.final.scorer.judge.pattern \"x\" has no group",
		"{weights: a, judge: {model: m}}":                                               "eval.final.scorer.judge.model has no effect",
		"{weights: a, tokens: [Yes]}":                                                   "eval.final.scorer.tokens names 1 token",
		"{weights: a, tokens: [Yes, No], label: 1}":                                     "eval.final.scorer.label names a label, but eval.final.scorer.tokens",
		"{weights: a, layout: marks}":                                                   "eval.final.scorer.layout has no effect",
		"{weights: a, steps: min, layout: marks, chat: always}":                         "eval.final.scorer.layout marks has the reward model read eval.final.scorer.text",
		"{weights: a, steps: min, layout: turns, chat: none}":                           "eval.final.scorer.layout turns has the reward model read a chat",
		"{kind: command, command: [x], row_limit: 9s, batch_limit: 1s}":                 "eval.final.scorer.row_limit (9s) is above eval.final.scorer.batch_limit (1s)",
	} {
		_, err := Load(Input{File: "testdata/plain.yaml", Sets: []string{"eval.final.scorer=" + block}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", block, err, want)
		}
	}
}

// Scores of judges and programs are weights of votes as they are; a scorer that nobody asks for changes no identity.
func TestScorerKinds(t *testing.T) {
	vote := func(block string) any {
		v, _ := load(t, Input{File: "testdata/plain.yaml", Sets: []string{"eval.final.scorer=" + block}}).Value("eval.final.scorer.vote")
		return v
	}
	for block, want := range map[string]string{"{weights: a}": "sigmoid", "{weights: a, steps: min}": "score", "{kind: command, command: [x]}": "score",
		"{kind: genrm, weights: a, judge: {template: t}}": "score"} {
		if got := vote(block); got != want {
			t.Errorf("%s: votes by %v, want %s", block, got, want)
		}
	}
	for _, path := range []string{"eval.final.scorer.kind", "eval.final.scorer.weights", "eval.final.scorer.vote"} {
		if v, ok := load(t, Input{File: "testdata/plain.yaml"}).Params(EvalScore)[path]; ok {
			t.Errorf("%s is %v without a scorer", path, v)
		}
	}
	set := load(t, Input{File: "testdata/plain.yaml", Values: []Value{{Path: "eval.final.scorer.kind", Value: "command"},
		{Path: "eval.final.scorer.command", Value: "[./a b, '-x']"}}})
	if got := set.Run.Eval.Final.Scorer.Command; strings.Join(got, "|") != "./a b|-x" {
		t.Errorf("a flag's list: %q", got)
	}
}

package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// rewards are settings of each kind of reward over the plain configuration.
func rewards() map[string]string {
	return map[string]string{
		"command": "reward={kind: command, command: [./score, --strict], components: [style, correct], files: [data]}",
		"judge":   `reward={kind: judge, judge: {url: "http://127.0.0.1:8000/v1", model: m, template: t.txt, low: 0, high: 10, key_env: KEY}}`,
		"model":   "reward={kind: model, weights: some/folder}",
		"genrm":   "reward={kind: genrm, weights: some/folder, judge: {template: t.txt, low: 0, high: 10}}",

		"likelihood": "reward.kind=likelihood",
	}
}

// What the rest of the program asks of a kind of reward.
func TestRewardKinds(t *testing.T) {
	var got []string
	for _, k := range rewardKinds() {
		r := Reward{Kind: k.name}
		got = append(got, fmt.Sprint(k.name, " ", r.Self(), r.ByTask(), r.ByProgram(), r.ByServer(), r.HasModel()))
	}
	want := []string{ // self, by the task, by a program, by a server, with a model
		"task false true false false false", "command false false true false false", "judge false false false true false",
		"model false false false false true", "trained false false false false false", "genrm false false false false true", "majority true true false false false", "confidence true true false false false",
		"likelihood true true false false false"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// What a reward is belongs to the experiment; how it is asked, and where its files lie,
// does not.
func TestRewardIdentity(t *testing.T) {
	sem := func(sets ...string) map[string]any {
		return load(t, Input{File: "testdata/plain.yaml", Sets: sets}).Semantic(experiment()...)
	}
	for _, tt := range []struct {
		kind, set string
		same      bool
	}{
		{"command", "reward.command=[./score]", false},
		{"command", "reward.components=[correct, style]", false},
		{"command", "reward.files=[elsewhere]", true},
		{"command", "reward.workers=3", true},
		{"command", "reward.batch=3", true},
		{"command", "reward.row_limit=1s", true},
		{"command", "reward.batch_limit=2h", true},
		{"command", "reward.retries=0", true},
		{"command", "reward.restarts=0", true},
		{"command", "reward.max_not_graded=1", true},
		{"judge", "reward.judge.url=https://example.org/v1", false},
		{"judge", "reward.judge.model=n", false},
		{"judge", "reward.judge.field=grade", false},
		{"judge", "reward.judge.pattern='([0-9])'", false},
		{"judge", "reward.judge.low=1", false},
		{"judge", "reward.judge.high=null", false},
		{"judge", "reward.judge.temperature=1", false},
		{"judge", "reward.judge.max_tokens=9", false},
		{"judge", "reward.judge.template=moved/t.txt", true},
		{"judge", "reward.judge.key_env=OTHER", true},
		{"judge", "reward.judge.rate=2", true},
		{"judge", "reward.judge.concurrent=2", true},
		{"judge", "reward.judge.timeout=2s", true},
		{"judge", "reward.judge.cache=false", true},
		{"genrm", "reward.judge.context=2048", false},
		{"genrm", "reward.judge.template_vars={enable_thinking: false}", false},
		{"genrm", "reward.judge.temperature=1", false},
		{"genrm", "reward.judge.sequences=2", true},
		{"genrm", "reward.judge.template=moved/t.txt", true},
		{"genrm", "reward.weights=moved/folder", true},
		{"model", "reward.weights=moved/folder", true},
		{"model", "reward.label=1", false},
		{"model", `reward.text="{response}"`, false},
	} {
		if same := reflect.DeepEqual(sem(rewards()[tt.kind]), sem(rewards()[tt.kind], tt.set)); same != tt.same {
			t.Errorf("%s with %s: the same experiment: %v, want %v", tt.kind, tt.set, same, tt.same)
		}
	}
}

func TestRewardErrors(t *testing.T) {
	for _, tt := range []struct{ kind, set, want string }{
		{"", "reward.components=[style]", "reward.components has style, which a reward of kind task does not give"},
		{"model", "reward.components=[score, style]", "which a reward of kind model does not give"},
		{"command", "reward.components=[style, style]", "reward.components has style twice"},
		{"command", "reward.components=[Style]", "a name of small letters, digits and _"},
		{"command", "reward.command=[]", "reward.command names no program"},
		{"command", "reward.row_limit=11m", "reward.row_limit (11m0s) is above reward.batch_limit (10m0s)"},
		{"command", "reward.correct=2", "reward.correct has no effect: reward.kind is command"},
		{"judge", "reward.judge.pattern='[0-9]+'", "has no group"},
		{"judge", "reward.judge.pattern='('", "missing closing )"},
		{"judge", "reward.judge.low=10", "reward.judge.low (10) is not below reward.judge.high (10)"},
		{"judge", "reward.judge.url=http://h/v1/chat/completions", "which is added to it"},
		{"judge", "reward.judge.url=http://user:pw@h/v1", "a URL such as"},
		{"model", "reward.text='{prompt}'", "a text with {response}"},
		{"genrm", "reward.judge.context=512", "reward.judge.context (512) leaves no room for a message: reward.judge.max_tokens is 512"},
		{"genrm", "reward.judge.pattern='[0-9]+'", "has no group"},
		{"genrm", "reward.judge.url=http://h/v1", "reward.judge.url has no effect: reward.kind is genrm"},
		{"judge", "reward.judge.context=512", "reward.judge.context has no effect: reward.kind is judge"},
		{"model", "reward.judge.template=t.txt", "reward.judge.template has no effect: reward.kind is model"},
		{"", "reward.kind=judge", "reward.judge.model, reward.judge.template"},
		{"", "reward.kind=likelihood", "task countdown has no single answer in a place"},
		{"likelihood", "rollout.tools={kind: python}", "which may hold calls of tools"},
		{"likelihood", "rollout.source=recorded", "not about recorded rollouts"},
		{"likelihood", "reward.likelihood.measure=log", "reward.wrong is 0, but reward.likelihood.measure log is never above 0"},
		{"likelihood", "reward={wrong: -1, likelihood: {measure: log, baseline: true}}", "reward.likelihood.baseline clips to 0 to 1"},
		{"likelihood", "reward.likelihood.learn=-1", "reward.likelihood.learn"},
		{"likelihood", "algo={kind: remax}", "which reward.kind likelihood cannot"},
		{"likelihood", "algo={kind: gdpo}", "reward.kind likelihood has no parts"},
		{"likelihood", "reward.correct=2", "reward.correct has no effect: reward.kind is likelihood"},
	} {
		var sets []string
		if tt.kind != "" {
			sets = append(sets, rewards()[tt.kind])
		}
		if tt.kind == "likelihood" {
			sets = append(sets, "task={kind: words, words: {largest_number: 9, steps: 1}}")
		}
		_, err := Load(Input{File: "testdata/plain.yaml", Sets: append(sets, tt.set)})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s with %s: got %v, want %q", tt.kind, tt.set, err, tt.want)
		}
	}
}

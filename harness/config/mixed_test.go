package config

import (
	"slices"
	"strings"
	"testing"
)

// mixedSets configure a mixed task of the kinds.
func mixedSets(kinds string, more ...string) []string {
	return append([]string{"task={kind: mixed, mixed: {kinds: " + kinds + "}}", "data.train={source: a.jsonl, size: 0}",
		"data.val={source: none, size: 0}", "data.test={source: a.jsonl, size: 0}", "eval.online.every_steps=0"}, more...)
}

// command scores prompts.
const command = "reward={kind: command, command: [./score]}"

func TestMixedErrors(t *testing.T) {
	for _, tt := range []struct {
		kinds, set, want string
	}{
		{"{}", "", "task.mixed.kinds is empty"},
		{"{a: words}", "", `task.mixed.kinds gives "a" the kind words, whose problems have a run of their own`},
		{"{a: mixed}", "", "whose problems have a run of their own"},
		{"{a: maths}", "", `task.mixed.kinds gives "a" the kind maths`},
		{"{a: 1}", "", `the kind 1`},
		{"{a: math}", "task.code.cpu_limit=1s", "task.code.cpu_limit has no effect"},
		{"{a: math}", "data.train.source=generated", "the task mixed cannot generate problems"},
		{"{a: math, b: prompts}", "", "the task prompts grades nothing itself"},
		{"{a: math, b: prompts}", "reward.kind=majority", "the task prompts needs a reward that says what is right"},
		{"{a: math, b: code}", "reward.kind=majority", "those of task mixed are not values"},
		{"{a: math, b: code}", "reward.kind=likelihood", "task mixed has no single answer in a place"},
		{"{a: math, b: prompts}", "reward={kind: command, command: [./score], components: [style]}",
			"reward.components has style, which only problems of kind prompts have"},
		{"{a: math, b: prompts}", "reward={kind: command, command: [./score], correct: -1}",
			"reward.wrong (0) is not below reward.correct (-1)"},
		{"{a: math}", "reward={kind: command, command: [./score], correct: 2}", "reward.correct has no effect"},
		{"{a: math}", "eval.final.graders=[exp]", "which has its own grader"},
	} {
		sets := mixedSets(tt.kinds)
		if tt.set != "" {
			sets = append(sets, tt.set)
		}
		_, err := Load(Input{File: "testdata/plain.yaml", Sets: sets})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s with %s: got %v, want %q", tt.kinds, tt.set, err, tt.want)
		}
	}
}

// Each kind has its own keys, training and evaluations read what they depend on, and a mixed task without prompts asks
// its reward in training alone.
func TestMixedKeys(t *testing.T) {
	r := load(t, Input{File: "testdata/plain.yaml", Sets: mixedSets(`{"b*": code, a: math, c.jsonl: prompts}`, command)})
	if got := r.Run.Task.Kinds(); !slices.Equal(got, []string{"math", "code", "prompts"}) || !r.Run.JudgesAlone() {
		t.Errorf("kinds %q", got)
	}
	score := r.Params(EvalScore)
	for _, key := range []string{"task.mixed.kinds", "task.math.grader", "task.code.rules", "task.prompts.pass",
		"reward.command", "reward.correct"} {
		if _, ok := score[key]; !ok || r.Params(Train)[key] == nil {
			t.Errorf("stages do not depend on %s", key)
		}
	}
	if _, ok := score["task.instructions.rules"]; ok {
		t.Error("a kind without problems has settings")
	}
	r = load(t, Input{File: "testdata/plain.yaml", Sets: mixedSets(`{a: math, b: code}`, command)})
	if _, ok := r.Params(EvalScore)["reward.command"]; ok || r.Run.JudgesAlone() {
		t.Error("evaluations depend on a reward that has no say in them")
	}
}

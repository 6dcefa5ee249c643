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
		{"{a: words}", "", `task.mixed.kinds gives "a" the kind words, whose problems are not read but generated`},
		{"{a: outcomes}", "", `task.mixed.kinds gives "a" the kind outcomes, whose problems have a run of their own`},
		{"{a: mixed}", "", "whose problems have a run of their own"},
		{"{a: maths}", "", `task.mixed.kinds gives "a" the kind maths`},
		{"{a: 1}", "", `the kind 1`},
		{"{a: math}", "task.code.cpu_limit=1s", "task.code.cpu_limit has no effect"},
		{"{a: math}", "data.train.source=generated", "data.train.source is generated, but task.mixed.generate.train is empty"},
		{"{a: math}", "data.test.source=generated", "data.test.source is generated, but task.mixed.generate.test is empty"},
		{"{a: math}", "task.mixed.generate.val={words: 8}", "task.mixed.generate.val has 8 problems, but data.val.source is none"},
		{"{a: math}", "task.mixed.generate.train={math: 8}", "task.mixed.generate.train has math, whose problems are read from files"},
		{"{a: math}", "task.mixed.generate.train={outcomes: 8}", "task.mixed.generate.train has outcomes, and nothing generates such problems"},
		{"{a: math}", "task.mixed.generate.test={words: 0}", "task.mixed.generate.test.words is 0, not a number of problems"},
		{"{a: math}", "task.mixed.generate.test={words: 1.5}", "task.mixed.generate.test.words is 1.5, not a number of problems"},
		{"{a: math}", "task.mixed.generate.test={words: many}", "task.mixed.generate.test.words is many, not a number of problems"},
		{"{a: math}", "task.mixed.generate.test.stories={words: 1}", "must be a text, a number, true, false or null"},
		{"{}", "task.mixed.generate.train={words: 8}", "data.train.source is a file, but task.mixed.kinds gives its rows no kind"},
		{"{a: math}", "task.words.steps=1", "task.words.steps has no effect"},
		{"{a: math}", "task={kind: math, mixed: {generate: {train: {words: 3}}}}", "task.mixed.generate.train has no effect"},
		{"{a: math}", "data.val={source: generated, size: 3}", "data.val.size has no effect"},
		{"{a: math, b: prompts}", "", "the task prompts grades nothing itself"},
		{"{a: math, b: prompts}", "reward.kind=majority", "the task prompts needs a reward that gives verdicts"},
		{"{a: math, b: code}", "reward.kind=majority", "the answers of task mixed are not values"},
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

// generated configures a mixed task that reads nothing.
func generated(more ...string) []string {
	return append([]string{"task={kind: mixed, mixed: {generate: {train: {countdown: 40, words: 10}, val: {words: 6}, " +
		"test: {countdown: 5, stories: 3}}}}", "data={train: {source: generated}, val: {source: generated}, test: " +
		"{source: generated}, seed: 3}", "eval.online={every_steps: 5, problems: 6}"}, more...)
}

// A mixed task that generates problems has the settings of their kinds, and other kinds have none.
func TestMixedGenerates(t *testing.T) {
	r := load(t, Input{File: "testdata/plain.yaml", Sets: generated("task.words.steps=3", "task.countdown.use=all")})
	if got := r.Run.Task.Kinds(); !slices.Equal(got, []string{"countdown", "words", "stories"}) || r.Run.JudgesAlone() {
		t.Errorf("kinds %q", got)
	}
	for split, want := range map[string]int{"train": 50, "val": 6, "test": 8} {
		if n, all := r.Run.GeneratedProblems(split), r.Run.Problems(split); n != want || all != want {
			t.Errorf("%s: %d generated problems of %d, want %d", split, n, all, want)
		}
	}
	prepare, score := r.Params(Prepare), r.Params(EvalScore)
	for _, key := range []string{"task.mixed.generate.train", "task.words.steps", "task.stories.max_steps", "data.seed",
		"task.countdown.operators"} {
		if _, ok := prepare[key]; !ok {
			t.Errorf("the problems do not depend on %s", key)
		}
	}
	if _, ok := prepare["task.functions.arguments"]; ok || r.Params(Train)["task.mixed.generate.test"] != nil {
		t.Error("stages depend on what they do not read")
	}
	if _, ok := score["task.countdown.use"]; !ok {
		t.Error("scores do not depend on task.countdown.use")
	}

	files := load(t, Input{File: "testdata/plain.yaml", Sets: mixedSets("{a: math}", "data.train.size=30",
		"task.mixed.generate.train={functions: 7}")})
	if n, all := files.Run.GeneratedProblems("train"), files.Run.Problems("train"); n != 7 || all != 37 {
		t.Errorf("%d generated problems next to 30 of a file, %d in all", n, all)
	}
	if n := files.Run.Task.ProblemBytes(); n != 6*170 { // of the default 6 hidden tests
		t.Errorf("a generated problem takes %d bytes besides its texts", n)
	}
	if n := files.Run.Problems("test"); n != 0 {
		t.Errorf("%d problems of a whole file", n)
	}
	if _, ok := files.Params(Prepare)["data.seed"]; !ok {
		t.Error("generated problems next to a file do not depend on data.seed")
	}
	one := load(t, Input{File: "testdata/plain.yaml", Sets: generated("task.mixed.generate.train.words=20")})
	if n := one.Run.Task.Mixed.Generate.Counts("train"); n["words"] != 20 || n["countdown"] != 40 {
		t.Errorf("one number changed: %v", n)
	}
}

// Steps cannot take more problems than there are.
func TestMixedSizes(t *testing.T) {
	for _, tt := range []struct {
		sets []string
		want string
	}{
		{generated("train.prompts_per_step=51"), "train.prompts_per_step (51) is above task.mixed.generate.train (50)"},
		{generated("sft={steps: 1, problems_per_step: 51}"), "sft.problems_per_step (51) is above task.mixed.generate.train (50)"},
		{generated("sft={steps: 1, data_size: 51}"), "sft.data_size (51) is above task.mixed.generate.train (50)"},
		{generated("eval.online.problems=7"), "eval.online.problems (7) is above task.mixed.generate.val (6)"},
		{mixedSets("{a: math}", "data.train.size=30", "task.mixed.generate.train={words: 7}", "train.prompts_per_step=38"),
			"train.prompts_per_step (38) is above data.train.size and task.mixed.generate.train (37)"},
		{mixedSets("{a: math}", "data.train.size=30", "train.prompts_per_step=38"),
			"train.prompts_per_step (38) is above data.train.size (30)"},
		{mixedSets("{a: math}", "data.val={source: a.jsonl, size: 4}", "eval.online={every_steps: 1, problems: 5}"),
			"eval.online.problems (5) is above data.val.size (4)"},
		{mixedSets("{a: math}", "data.train.size=30", "task.mixed.generate.train={words: 7}", "train.prompts_per_step=36"), ""},
		{mixedSets("{a: math}", "task.mixed.generate.train={words: 7}", "train.prompts_per_step=99"), ""}, // the file may have more
	} {
		_, err := Load(Input{File: "testdata/plain.yaml", Sets: tt.sets})
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%q: got %v, want %q", tt.sets, err, tt.want)
		}
	}
}

// Without generated problems a mixed run has the identity that it had before it could have some.
func TestMixedIdentity(t *testing.T) {
	r := load(t, Input{File: "testdata/plain.yaml", Sets: mixedSets("{a: math}")})
	for key := range r.Semantic() {
		if strings.HasPrefix(key, "task.mixed.generate") || key == "data.seed" {
			t.Errorf("%s is part of its identity", key)
		}
	}
}

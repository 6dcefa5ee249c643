package stage

import (
	"testing"

	"exp/eval/task"
	"exp/harness/config"
	"exp/harness/dataset"
	"exp/train/rollout"
)

// mixedEnv has a configuration with problems of these kinds, whose reward is a program that dies at once.
func mixedEnv(kinds ...string) *Env {
	e := &Env{Config: &config.Resolved{}}
	r := &e.Config.Run
	r.Task.Kind, r.Task.Math.Grader = config.MixedTask, "math_dapo"
	r.Task.Mixed = config.Mixed{Kinds: map[string]any{}, Column: "data_source"}
	for _, kind := range kinds {
		r.Task.Mixed.Kinds[kind] = kind
	}
	r.Reward = config.Reward{Kind: "command", Command: []string{"false"}, Workers: 1, Batch: 1, RowLimit: 1e9, BatchLimit: 1e9,
		Correct: 3, Wrong: -2}
	return e
}

// A single answer to a problem that has a verdict is graded without the reward that judges others.
func TestGradeOfKind(t *testing.T) {
	e := mixedEnv("math", config.PromptsTask)
	c := rollout.Completion{Text: "Answer: 4", Finish: rollout.FinishStop}
	p := rollout.Problem{ID: "m", Prompt: "2+2?", Answer: "4", Kind: "math"}
	if v, err := Grade(t.Context(), e, &p, &c); err != nil || !v.Correct || v.Reward != 3 {
		t.Errorf("%+v, %v", v, err)
	}
	e.Config.Run.Reward = config.Reward{Kind: "model", Weights: t.TempDir(), Correct: 3} // no model is there
	if v, err := Grade(t.Context(), e, &p, &c); err != nil || !v.Correct || v.Reward != 3 {
		t.Errorf("beside a model that is missing: %+v, %v", v, err)
	}
	p.Kind = config.PromptsTask
	if v, err := Grade(t.Context(), e, &p, &c); err == nil && v.Status == rollout.Graded {
		t.Errorf("without its reward: %+v", v)
	}
}

// Scores depend on the tokenizer if the grader of some kind reads turns.
func TestKindsReadTurns(t *testing.T) {
	for kind, want := range map[string]bool{"instructions": true, "code": false, "math": false} {
		if got := ReadsTurns(&mixedEnv("prompts", kind).Config.Run, nil); got != want {
			t.Errorf("%s: %t", kind, got)
		}
	}
}

// Gold answers of other kinds than mathematics need no grader that reads them.
func TestGoldsOfKinds(t *testing.T) {
	e := mixedEnv("math", config.PromptsTask)
	e.Config.Run.Task.Math.Grader = "exp"
	const odd = "\\begin{nonsense} 7 \\over"
	for kind, want := range map[string]int{"math": 1, config.PromptsTask: 0} {
		n, err := e.checkGolds(dataset.Split{Name: task.Train}, []rollout.Problem{{ID: "a", Answer: odd, Kind: kind}})
		if n != want || err != nil {
			t.Errorf("%s: %d unread, %v", kind, n, err)
		}
	}
}

// In training, problems of every kind keep the columns of data.keep; elsewhere only prompts do.
func TestColumnsOfKinds(t *testing.T) {
	e := mixedEnv("math", config.PromptsTask)
	e.Config.Run.Data.Keep = []string{"rubric"}
	for _, s := range dataset.Splits(&e.Config.Run) {
		want := config.PromptsTask
		if s.Name == task.Train {
			want = ""
		}
		if len(s.Source.Keep) != 1 || s.Source.KeepOf != want {
			t.Errorf("%s keeps %q of %q", s.Name, s.Source.Keep, s.Source.KeepOf)
		}
	}
}

// A split is counted by kind. A kind that training lacks is an event; other splits may lack one.
func TestKindsAreCounted(t *testing.T) {
	e := mixedEnv("math", "code")
	e.Config.Run.Task.Mixed.Generate.Test = map[string]any{"words": int64(3)} // which training need not have
	var events []string
	e.Hooks.Event = func(kind, text string) { events = append(events, kind+": "+text) }
	problems := []rollout.Problem{{ID: "a", Kind: "math"}, {ID: "b", Kind: "math"}}
	summary := map[string]int{}
	for _, s := range dataset.Splits(&e.Config.Run) {
		e.countKinds(s, problems, summary)
	}
	if len(summary) != 3 || summary["train_math"] != 2 || summary["val_math"] != 2 || summary["test_math"] != 2 {
		t.Errorf("counts %v", summary)
	}
	if len(events) != 1 || events[0] != "absent-kind: data.train: no problem is of kind code (task.mixed.kinds)" {
		t.Errorf("events %q", events)
	}
}

// A validation samples as many problems as are generated; next to a file their number is not known.
func TestCallsOfKinds(t *testing.T) {
	e := mixedEnv("math")
	c := &e.Config.Run
	c.Task.Mixed.Generate.Val = map[string]any{"words": int64(6), "countdown": int64(3)}
	c.Eval.Online = config.Online{EverySteps: 1, N: 2}
	for _, tt := range []struct {
		source         string
		problems, want int
	}{{config.Generated, 0, 9}, {config.Generated, 4, 4}, {config.Generated, 12, 9}, {"a.jsonl", 12, 12}, {"a.jsonl", 0, 0}} {
		c.Data.Val.Source, c.Eval.Online.Problems = tt.source, tt.problems
		got := 0
		for _, call := range calls(c, false, true, 1) {
			got = call.Requests
		}
		if got != tt.want {
			t.Errorf("%d of %s: %d problems, want %d", tt.problems, tt.source, got, tt.want)
		}
	}
}

package stage

import (
	"errors"
	"slices"
	"testing"
	"time"

	"exp/harness/config"
	"exp/harness/prompt/prompttest"
	"exp/train/rollout"
)

// People are told what a trial waits for before it gives up.
func TestTrialPatience(t *testing.T) {
	for limit, want := range map[time.Duration]time.Duration{0: 10 * time.Second, 4 * time.Second: 2 * time.Second, time.Minute: 10 * time.Second} {
		if got := trialPatience(&config.Reward{RowLimit: limit}); got != want {
			t.Errorf("limit %v: %v, want %v", limit, got, want)
		}
	}
}

// A trial grades a problem of each kind, and says whose grading failed: the reward's, of prompts, or the task's own.
func TestTrialOfKinds(t *testing.T) {
	math := rollout.Problem{ID: "m", Prompt: "1?", Answer: "1", Kind: "math"}
	broken := rollout.Problem{ID: "i", Prompt: "Write.", Data: []byte(`{"instructions":[{"id":"no:such"}]}`), Kind: "instructions"}
	chat := rollout.Problem{ID: "p", Prompt: "Say.", Kind: "prompts"}
	for _, tt := range []struct {
		name     string
		reward   string // kind; a command dies at once
		problems []rollout.Problem
		fails    bool
		verdict  string // the kind of a verdict that failed
	}{
		{"the reward alone", "command", []rollout.Problem{chat}, true, ""},
		{"the reward, behind verdicts", "command", []rollout.Problem{math, chat}, true, ""},
		{"a verdict", "command", []rollout.Problem{chat, math, broken}, true, "instructions"},
		{"a verdict of a run that trains its reward", "trained", []rollout.Problem{chat, math, broken}, true, "instructions"},
		{"nothing: the reward is still to be trained", "trained", []rollout.Problem{chat, math}, false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := &Env{Prompter: mustPrompter(t, prompttest.ModelFolder(t, false, nil), nil), Config: &config.Resolved{}}
			r := &e.Config.Run
			r.Task.Kind, r.Task.Math.Grader, r.Task.Instructions.Rules = config.MixedTask, "math_dapo", "strict"
			r.Task.Mixed = config.Mixed{Kinds: map[string]any{}, Column: "data_source"}
			for _, p := range tt.problems {
				r.Task.Mixed.Kinds[p.Kind] = p.Kind
			}
			r.Reward = config.Reward{Kind: tt.reward, Command: []string{"false"}, Workers: 1, Batch: 1, RowLimit: 1e9, BatchLimit: 1e9}
			_, refused, err := e.tryRows(t.Context(), tt.problems)
			var verdict *verdictError
			if errors.As(err, &verdict) != (tt.verdict != "") || verdict != nil && verdict.Kind != tt.verdict ||
				(err != nil || refused != "") != tt.fails {
				t.Errorf("refused %q, error %v", refused, err)
			}
		})
	}
}

// A line is shown three times; other lines between do not count.
func TestStderrLines(t *testing.T) {
	var got []string
	lines := stderrLines{show: func(line string) { got = append(got, line) }}
	for _, line := range []string{"a", "b", "a", "a", "a", "b", "c", "a"} {
		lines.add(line)
	}
	want := []string{"a", "b", "a", "a (the same line is not shown again)", "b", "c"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A program that says the same whenever it is started again is quoted three times, with all its lines.
func TestSaysOf(t *testing.T) {
	var got []string
	e := &Env{Config: &config.Resolved{}, Hooks: Hooks{Warn: func(text string) { got = append(got, text) }}}
	e.run().Rollout.Tools.Command = []string{"python3", "agent.py"}
	says := e.saysOf("agent")
	for _, text := range []string{"Traceback:\nno site", "started again once", "Traceback:\nno site", "Traceback:\nno site", "Traceback:\nno site"} {
		says(text)
	}
	const one = "agent python3 agent.py:\nTraceback:\nno site"
	if want := []string{one, "agent python3 agent.py: started again once", one, one + " (the same line is not shown again)"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

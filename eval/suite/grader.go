package suite

import (
	"context"
	"strings"

	"exp/eval/task"
	"exp/train/rollout"
)

const countdownGrader = "countdown"

// defaultGraders are those of a suite that names none: ours, and the two that most
// published scores in mathematics were made with.
func defaultGraders() []string { return []string{"exp", "math_dapo", "math_reward"} }

// Graders names what Grader knows.
func Graders() []string { return append(task.Graders(), countdownGrader) }

// Grader makes a grader of whole responses: one of task.Graders, for problems with a
// gold answer, or "countdown". Its reward is 1 for a right answer, else 0.
func Grader(name string) (rollout.Grader, error) {
	t, err := answersTask([]string{name})
	if err != nil || name != countdownGrader {
		return t, err
	}
	return countdownResponses{t}, nil
}

// answersTask is the task that reads and grades the problems of a suite.
func answersTask(graders []string) (task.Task, error) {
	for _, name := range graders {
		if name == countdownGrader {
			// As Jiayi-Pan/TinyZero: every given number exactly once.
			return task.New(task.Config{Kind: "countdown", Reward: task.Reward{Correct: 1}, Countdown: task.Countdown{MinNumbers: 2, MaxNumbers: 5,
				LargestNumber: 1000, LargestTarget: 100_000, Operators: "+-*/", Use: "all", MinSolutions: 1}})
		}
		return task.New(task.Config{Kind: "math", Reward: task.Reward{Correct: 1}, Math: task.Math{Grader: name}})
	}
	return answersTask(defaultGraders())
}

// countdownResponses grades what language models write: the expression in the last
// <answer>…</answer>, or else the last line; "= target" behind it says nothing.
type countdownResponses struct{ task.Task }

func (g countdownResponses) Grade(ctx context.Context, p *rollout.Problem, c *rollout.Completion) (rollout.Verdict, error) {
	text := c.Text
	if k := strings.LastIndex(text, "</answer>"); k >= 0 {
		if open := strings.LastIndex(text[:k], "<answer>"); open >= 0 {
			text = text[open+len("<answer>") : k]
		}
	}
	text = strings.TrimSpace(text)
	text = text[strings.LastIndexByte(text, '\n')+1:]
	text, _, _ = strings.Cut(text, "=")
	inner := *c
	inner.Text = text
	return g.Task.Grade(ctx, p, &inner)
}

package suite

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"exp/eval"
	"exp/eval/grade/code"
	"exp/eval/task"
	"exp/train/rollout"
)

const countdownGrader = "countdown"

// defaultGraders returns the graders of a suite that names none: ours, and the two behind most published
// mathematics scores.
func defaultGraders() []string { return []string{"exp", "math_dapo", "math_reward"} }

// choiceGraders returns the graders of multiple-choice questions with so many options: ours, and the ones behind most
// published scores that read all letters.
func choiceGraders(options int) []string {
	if options > 4 {
		return []string{"exp", "mmlu_pro"}
	}
	return []string{"exp", "gpqa", "mmlu_pro"}
}

// Graders names the graders that Grader makes of responses, then CodeGraders.
func Graders() []string {
	return slices.Concat(task.Graders(), []string{countdownGrader}, task.InstructionGraders(), CodeGraders())
}

// ForInstructions reports whether the graders check instructions; if one does, all do.
func ForInstructions(graders []string) bool {
	return len(graders) > 0 && !slices.ContainsFunc(graders,
		func(name string) bool { return !slices.Contains(task.InstructionGraders(), name) })
}

// CodeGraders names the graders of programs, the default first: our rules; the published rules with their
// mistakes; our rules with the share of tests passed as reward.
func CodeGraders() []string { return []string{"code", "code_upstream", "code_partial"} }

// CodeOptions returns the options of a grader in CodeGraders; ok is false for other names.
func CodeOptions(name string) (o code.Options, ok bool) {
	switch name {
	case "code":
		return code.Options{Rules: code.Strict}, true
	case "code_upstream":
		return code.Options{Rules: code.Upstream}, true
	case "code_partial":
		return code.Options{Rules: code.Strict, Partial: true}, true
	}
	return code.Options{}, false
}

// ForPrograms reports whether the graders run programs; if one does, all do.
func ForPrograms(graders []string) bool {
	return len(graders) > 0 && !slices.ContainsFunc(graders,
		func(name string) bool { _, ok := CodeOptions(name); return !ok })
}

// Grader makes a grader of whole responses: one of task.Graders, for problems with a gold answer, one of
// task.InstructionGraders, or "countdown"; or one of eval.LikelihoodGraders. The reward is 1 for a right answer, else
// 0. Graders that run programs need a sandbox and are made elsewhere.
func Grader(name string) (rollout.Grader, error) {
	if _, ok := CodeOptions(name); ok {
		return nil, fmt.Errorf("%s runs programs and needs a sandbox", name)
	}
	if eval.ByLikelihood(name) {
		return eval.Likelihood(name)
	}
	t, err := answersTask([]string{name})
	if err != nil || name != countdownGrader {
		return t, err
	}
	return countdownResponses{t}, nil
}

// answersTask returns the task that reads and grades the problems of a suite.
func answersTask(graders []string) (task.Task, error) {
	if ForPrograms(graders) {
		return task.New(task.Config{Kind: "code", Reward: task.Reward{Correct: 1}})
	}
	if ForInstructions(graders) {
		return task.OfInstructionGrader(graders[0])
	}
	if len(graders) == 0 {
		graders = defaultGraders()
	}
	if graders[0] == countdownGrader {
		// As Jiayi-Pan/TinyZero: every given number exactly once.
		return task.New(task.Config{Kind: "countdown", Reward: task.Reward{Correct: 1}, Countdown: task.Countdown{
			MinNumbers: 2, MaxNumbers: 5, LargestNumber: 1000, LargestTarget: 100_000,
			Operators: "+-*/", Use: "all", MinSolutions: 1}})
	}
	return task.New(task.Config{Kind: "math", Reward: task.Reward{Correct: 1}, Math: task.Math{Grader: graders[0]}})
}

// countdownResponses grades responses of language models: the expression in the last <answer>…</answer>,
// else the last line. A trailing "= target" is ignored.
type countdownResponses struct{ task.Task }

func (g countdownResponses) Grade(ctx context.Context, p *rollout.Problem,
	c *rollout.Completion) (rollout.Verdict, error) {
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

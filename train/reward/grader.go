// Package reward grades completions by means outside a task: a program that speaks JSON
// lines (Command), a model behind an OpenAI-compatible server (Judge), or a model on our own engine: one
// that writes a verdict (Generative), or a sequence classifier (Model).
//
// The task still decides whether an answer is right, so accuracy and evaluation mean the
// same with every reward; a Scorer only replaces the reward. Where the data has no gold answers the
// Scorer decides that too (NewAlone). A completion that could not be scored is "not graded", never a
// number.
//
// A Scorer scores a row by the row alone: batching, the number of workers and retries
// change no score. A program or a server that looks at anything else breaks that promise,
// unchecked. Programs run with the user's rights, without a sandbox.
package reward

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"exp/train/rl"
	"exp/train/rollout"
)

// Score is a Scorer's result for one completion.
type Score struct {
	Graded bool
	Value  float64            // 0 unless Graded
	Parts  map[string]float64 // named parts, among those requested; may be nil
	Reason string             // why it is not graded, or a remark on the score
	// Correct and Answer are the verdict of a scorer that judges alone (NewAlone). A
	// scorer without a word on them leaves nil and the empty text.
	Correct *bool
	Answer  string
	// Steps are those of the answer, without what they earn; nil unless each is to earn a reward.
	Steps []rollout.Step
}

// Scorer scores completions. It is used by one goroutine at a time.
type Scorer interface {
	// Score returns one score for each item, in order. It returns an error only if the
	// scorer cannot continue at all: a *BrokenError, or ctx's error.
	Score(ctx context.Context, items []rollout.Item) ([]Score, error)
	// Close ends what the scorer started. An error means that its scores are unreliable.
	Close() error
}

// BrokenError means that the scorer is broken for every row.
type BrokenError struct {
	What string // "the reward command", "the judge"
	Err  error
	Help string
}

func (e *BrokenError) Error() string { return e.What + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *BrokenError) Unwrap() error { return e.Err }

// ExitCode returns the exit code of an evaluation whose infrastructure failed.
func (e *BrokenError) ExitCode() int { return 8 }

// Hint suggests a fix.
func (e *BrokenError) Hint() string { return e.Help }

// Names of components that every grader has: the task's own verdict as numbers, 1 or 0, and
// the whole reward.
const (
	PartCorrect = "correct"
	PartFormat  = "format" // an answer was found, right or wrong
	PartScore   = "score"
)

// Builtin reports whether a component needs no Scorer.
func Builtin(name string) bool {
	return name == PartCorrect || name == PartFormat || name == PartScore
}

// Grader joins a task's verdicts with a Scorer's rewards. It is safe for concurrent use: it
// calls the Scorer for one batch at a time.
type Grader struct {
	task   rollout.Grader // nil: the scorer decides what is right, too
	pass   float64        // the score of a right completion, without a task
	scorer Scorer         // nil: the reward is the task's
	names  []string
	credit *Credit // nil: an answer earns its score

	mu sync.Mutex
}

// Credit says what answers earn whose steps are scored (Score.Steps).
type Credit struct {
	Steps   rl.StepCredit
	Outcome float64 // weight of the task's reward, which an answer earns as a whole
}

// Credits makes the grader reward steps as c says, unless that is nil, and returns the grader.
func (g *Grader) Credits(c *Credit) *Grader {
	g.credit = c
	return g
}

// NewGrader returns a grader with the given components, whose rewards are scorer's, or the
// task's own if scorer is nil. It does not close the scorer.
func NewGrader(task rollout.Grader, scorer Scorer, components []string) *Grader {
	return &Grader{task: task, scorer: scorer, names: components}
}

// NewAlone returns a grader for completions that nothing but scorer judges. One is right if the scorer says so or,
// where it says nothing, if its score is at least pass. Its answer is the scorer's or, without one, its whole text.
func NewAlone(scorer Scorer, pass float64, components []string) *Grader {
	return &Grader{scorer: scorer, pass: pass, names: components}
}

// Components implements rollout.ComponentGrader.
func (g *Grader) Components() []string { return g.names }

// Grade implements rollout.Grader.
func (g *Grader) Grade(ctx context.Context, p *rollout.Problem, c *rollout.Completion) (rollout.Verdict, error) {
	v, err := g.GradeAll(ctx, []rollout.Item{{Problem: p, Completion: c}})
	if err != nil {
		return rollout.Verdict{}, err
	}
	return v[0], nil
}

// GradeAll implements rollout.BatchGrader.
func (g *Grader) GradeAll(ctx context.Context, items []rollout.Item) ([]rollout.Verdict, error) {
	verdicts := make([]rollout.Verdict, len(items))
	var err error
	if g.task != nil {
		if verdicts, err = gradeTask(ctx, g.task, items); err != nil {
			return nil, err
		}
	}
	scores := make([]Score, len(items))
	if g.scorer == nil {
		for i, v := range verdicts {
			scores[i] = Score{Graded: v.Status == rollout.Graded, Value: v.Reward, Reason: v.Reason}
		}
	} else {
		g.mu.Lock()
		defer g.mu.Unlock()
		if scores, err = g.scorer.Score(ctx, items); err != nil {
			return nil, err
		}
	}
	for i := range verdicts {
		if g.task == nil {
			verdicts[i] = g.alone(items[i].Completion, scores[i])
		}
		verdicts[i] = g.join(verdicts[i], scores[i])
	}
	return verdicts, nil
}

// alone returns the verdict of a scorer without a task.
func (g *Grader) alone(c *rollout.Completion, s Score) rollout.Verdict {
	v := rollout.Verdict{Status: rollout.Graded, Correct: s.Value >= g.pass, Answer: s.Answer, Reason: s.Reason}
	if s.Correct != nil {
		v.Correct = *s.Correct
	}
	if v.Answer == "" {
		v.Answer = strings.TrimSpace(c.Own().Text)
	}
	return v
}

// gradeTask calls the task's grader, for all items at once if it supports that.
func gradeTask(ctx context.Context, task rollout.Grader, items []rollout.Item) ([]rollout.Verdict, error) {
	if batch, ok := task.(rollout.BatchGrader); ok {
		return batch.GradeAll(ctx, items)
	}
	verdicts := make([]rollout.Verdict, len(items))
	for i, it := range items {
		v, err := task.Grade(ctx, it.Problem, it.Completion)
		if err != nil {
			return nil, fmt.Errorf("problem %s: %w", it.Problem.ID, err)
		}
		verdicts[i] = v
	}
	return verdicts, nil
}

// join returns the task's verdict with the scorer's reward.
func (g *Grader) join(task rollout.Verdict, s Score) rollout.Verdict {
	if !s.Graded {
		return rollout.Verdict{Status: rollout.NotGraded, Reason: s.Reason}
	}
	v := task
	v.Status, v.Reward = rollout.Graded, s.Value
	if g.credit != nil {
		if task.Status != rollout.Graded && g.credit.Outcome != 0 {
			return rollout.Verdict{Status: rollout.NotGraded, Reason: task.Reason}
		}
		g.credit.pay(&v, task.Reward, s.Steps)
	}
	if task.Status != rollout.Graded {
		v.Correct, v.Answer = false, ""
	}
	for _, name := range g.names {
		x, ok := s.Parts[name]
		switch {
		case name == PartScore:
			x, ok = v.Reward, true
		case name == PartCorrect:
			x, ok = indicator(v.Correct), task.Status == rollout.Graded
		case name == PartFormat:
			x, ok = indicator(v.Answer != ""), task.Status == rollout.Graded
		}
		if !ok {
			return rollout.Verdict{Status: rollout.NotGraded, Reason: "no component " + name}
		}
		v.Components = append(v.Components, x)
	}
	return v
}

// pay gives a verdict the rewards of steps, and of the outcome.
func (c *Credit) pay(v *rollout.Verdict, outcome float64, steps []rollout.Step) {
	earned := make([]float64, len(steps))
	for k, s := range steps {
		earned[k] = s.Right
	}
	c.Steps.Rewards(earned, earned)
	v.Steps = slices.Clone(steps)
	for k, r := range earned {
		v.Steps[k].Reward = r
	}
	v.Outcome = float64(c.Outcome*outcome) + 0 // never -0
	v.Reward = v.Outcome + rollout.Earned(v.Steps)
}

func indicator(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

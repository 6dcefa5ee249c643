// Package task holds what models are trained and evaluated on: tasks that make
// problems, write them as prompts for a small transformer, know a right completion to
// learn from, and grade completions.
//
//	countdown  reach a number from given numbers with + - * /; many right answers
//	words      short arithmetic word problems; one right answer
//	stories    longer word problems in the manner of GSM8K, with worked solutions
//	outcomes   a toy with a known optimum: one token, a reward for each
//	functions  short Python functions from examples; many right programs
//	math       mathematics for language models, read from files
//	code       programs by language models, for problems read from files
//
// Prompts and targets of those that are made are short and use few characters, because
// that is what a model of a few million parameters can learn in minutes.
package task

import (
	"errors"
	"fmt"
	"strings"

	"exp/train/rollout"
)

// Task makes problems and grades what a model writes after their prompts. It is
// immutable and safe for concurrent use.
type Task interface {
	// Alphabet holds every character that prompts and targets may have, each once.
	Alphabet() string
	// Generate makes n problems of a split, all different, a function of its
	// arguments: the first m of n problems are the m problems of the same seed.
	// Problems of different splits differ whatever their seeds, except in a task that
	// has a single problem.
	Generate(split Split, n int, seed uint64) ([]rollout.Problem, error)
	// parseRow reads a problem in the layout of the task's published files.
	parseRow(line []byte) (rollout.Problem, error)
	// check reports what is wrong with a problem that was stored as JSON.
	check(p *rollout.Problem) error

	rollout.Grader
}

// Enumerable is a task whose completions can be listed, so that a policy can be
// compared with the optimum π ∝ π_ref·exp(β·r).
type Enumerable interface {
	Task
	// Enumerate lists every completion of one token by its text, with the verdict's
	// reward. The end token alone is the empty text.
	Enumerate() []Outcome
}

// Outcome is one possible completion.
type Outcome struct {
	Text    string
	Reward  float64
	Correct bool
}

// RunsPrograms tells whether grading a task of this kind runs programs.
func RunsPrograms(kind string) bool { return kind == "functions" || kind == "code" }

// Config says which task, and how it is set up. Only the part that Kind names is
// read, and of "functions" Code.Run, which runs its programs.
type Config struct {
	Kind      string
	Countdown Countdown
	Words     Words
	Stories   Stories
	Outcomes  Outcomes
	Functions Functions
	Math      Math
	Code      Code
	Reward    Reward
}

// Reward is what a completion earns.
type Reward struct {
	Correct float64 // a right answer
	Wrong   float64 // neither
	Format  float64 // a wrong answer in the right form
}

// Kinds are the tasks that New can make.
func Kinds() []string {
	return []string{"countdown", "words", "stories", "outcomes", "functions", "math", "code"}
}

// ErrUnknownKind is returned by New for a task that this program does not have.
var ErrUnknownKind = errors.New("unknown task")

// ConfigError is returned by New for a setting that no task can be made from. Key
// is the configuration key, so that a caller can point to the place in a file.
type ConfigError struct {
	Key     string // such as task.countdown.max_numbers
	Problem string // what is wrong with its value
}

func (e *ConfigError) Error() string { return e.Key + ": " + e.Problem }

// New makes the task that cfg.Kind names.
func New(cfg Config) (Task, error) {
	switch cfg.Kind {
	case "countdown":
		return newCountdown(cfg.Countdown, cfg.Reward)
	case "words":
		return newWords(cfg.Words, cfg.Reward)
	case "stories":
		return newStories(cfg.Stories, cfg.Reward)
	case "outcomes":
		return newOutcomes(cfg.Outcomes, cfg.Reward)
	case "functions":
		return newFunctions(cfg.Functions, cfg.Code.Run, cfg.Reward)
	case "math":
		return newMath(cfg.Math, cfg.Reward)
	case "code":
		return newCode(cfg.Code, cfg.Reward)
	}
	return nil, fmt.Errorf("%w %q; there are %s", ErrUnknownKind, cfg.Kind, strings.Join(Kinds(), ", "))
}

// verdict is a graded completion's verdict: r.Correct, r.Format or r.Wrong by
// whether the answer is right, or at least there.
func (r Reward) verdict(correct bool, answer, reason string) rollout.Verdict {
	v := rollout.Verdict{Status: rollout.Graded, Correct: correct, Answer: answer, Reason: reason}
	switch {
	case correct:
		v.Reward = r.Correct
	case answer != "":
		v.Reward = r.Format
	default:
		v.Reward = r.Wrong
	}
	return v
}

// lastLine is the last line of text that is not blank, without spaces around it.
func lastLine(text string) string {
	text = strings.TrimRight(text, " \t\r\n")
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}

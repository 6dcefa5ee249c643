// Package task holds the tasks that models are trained and evaluated on. A task makes problems, writes them
// as prompts for a small transformer, supplies a right completion to learn from, and grades completions.
//
//	countdown  reach a number from given numbers with + - * /; many right answers
//	words      short arithmetic word problems; one right answer
//	stories    longer word problems in the manner of GSM8K, with worked solutions
//	outcomes   a toy with a known optimum: one token, a reward for each
//	functions  short Python functions from examples; many right programs
//	math       mathematics for language models, read from files
//	code       programs by language models, for problems read from files
//	instructions prompts with instructions that a program can check, read from files
//	prompts    prompts of any kind, read from files, which the run's reward judges alone
//	mixed      problems of several kinds: of the last four, and of those that tasks make, but for outcomes
//
// A new one is a file here with a row in kinds, a row in harness/config (taskkinds.go) with its keys and checks, and
// its settings in both Configs, which harness/dataset copies from one to the other.
//
// Prompts and targets of generated problems are short and use few characters, so that a model with a few
// million parameters can learn them in minutes.
package task

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"exp/train/rollout"
)

// Task makes problems and grades the completions of their prompts. It is immutable and safe for concurrent
// use.
type Task interface {
	// Alphabet holds every character that prompts and targets may use, once each.
	Alphabet() string
	// Generate makes n different problems of a split. The result depends only on the arguments: the first m
	// of n problems are the m problems of the same seed. Problems of different splits differ whatever their
	// seeds, unless the task has just one problem.
	Generate(split Split, n int, seed uint64) ([]rollout.Problem, error)
	// check reports an error in a problem stored as JSON.
	check(p *rollout.Problem) error

	rollout.Grader
}

// Enumerable is a task whose completions can be listed, so that a policy can be compared with the optimum π
// ∝ π_ref·exp(β·r).
type Enumerable interface {
	Task
	// Enumerate lists every one-token completion by its text, with its reward. The empty text is the end
	// token alone.
	Enumerate() []Outcome
}

// Outcome is one possible completion.
type Outcome struct {
	Text    string
	Reward  float64
	Correct bool
}

// kind is a kind of task: a row of the only table of tasks in this package. harness/config has the other one, of their
// keys and checks.
type kind struct {
	name     string
	programs bool // grading runs programs
	part     bool // a mixed task may read such problems
	made     bool // a mixed task may make such problems
	make     func(c Config) (Task, error)
}

func kinds() []kind {
	return []kind{
		{name: "countdown", made: true,
			make: func(c Config) (Task, error) { return newCountdown(c.Countdown, c.Reward) }},
		{name: "words", made: true, make: func(c Config) (Task, error) { return newWords(c.Words, c.Reward) }},
		{name: "stories", made: true, make: func(c Config) (Task, error) { return newStories(c.Stories, c.Reward) }},
		{name: "outcomes", make: func(c Config) (Task, error) { return newOutcomes(c.Outcomes, c.Reward) }},
		{name: "functions", made: true, programs: true,
			make: func(c Config) (Task, error) { return newFunctions(c.Functions, c.Code.Run, c.Reward) }},
		{name: "math", part: true, make: func(c Config) (Task, error) { return newMath(c.Math, c.Reward) }},
		{name: "code", part: true, programs: true,
			make: func(c Config) (Task, error) { return newCode(c.Code, c.Reward) }},
		{name: instructionsKind, part: true,
			make: func(c Config) (Task, error) { return newInstructions(c.Instructions, c.Reward) }},
		{name: "prompts", part: true, make: func(Config) (Task, error) { return promptsTask{}, nil }},
		{name: mixedKind, make: func(c Config) (Task, error) { return newMixed(c) }},
	}
}

// RunsPrograms reports whether grading problems of one of these kinds runs programs.
func RunsPrograms(names ...string) bool {
	return slices.ContainsFunc(kinds(), func(k kind) bool { return k.programs && slices.Contains(names, k.name) })
}

// Config selects and configures a task. New reads only the part that Kind names; for "functions" also
// Code.Run, which runs its programs, and for "mixed" the parts that Mixed names.
type Config struct {
	Kind         string
	Countdown    Countdown
	Words        Words
	Stories      Stories
	Outcomes     Outcomes
	Functions    Functions
	Math         Math
	Code         Code
	Instructions Instructions
	Mixed        Mixed
	Reward       Reward
}

// Reward maps verdicts to rewards.
type Reward struct {
	Correct float64 // a right answer
	Wrong   float64 // any other completion
	Format  float64 // a wrong answer in the right form; see formed for graders that ask for one
}

// Kinds lists the tasks that New can make.
func Kinds() []string {
	var names []string
	for _, k := range kinds() {
		names = append(names, k.name)
	}
	return names
}

// ErrUnknownKind is returned by New for an unknown task.
var ErrUnknownKind = errors.New("unknown task")

// ConfigError is returned by New for an invalid setting. Key is the configuration key, so that callers can
// point to the place in a file.
type ConfigError struct {
	Key     string // such as task.countdown.max_numbers
	Problem string // the error in its value
}

func (e *ConfigError) Error() string { return e.Key + ": " + e.Problem }

// New makes the task that cfg.Kind names.
func New(cfg Config) (Task, error) {
	for _, k := range kinds() {
		if k.name == cfg.Kind {
			return k.make(cfg)
		}
	}
	return nil, fmt.Errorf("%w %q; known: %s", ErrUnknownKind, cfg.Kind, strings.Join(Kinds(), ", "))
}

// verdict builds the verdict on a graded completion. The reward is Correct if the answer is right, Format
// if there is one at all, else Wrong.
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

// formed returns the reward of an answer where the grader asks for a form of the whole response, which is worth the
// same to a right and to a wrong answer: Format - Wrong.
func (r Reward) formed(correct, inForm bool) float64 {
	switch {
	case correct && inForm:
		return r.Correct
	case correct:
		return r.Correct - (r.Format - r.Wrong)
	case inForm:
		return r.Format
	}
	return r.Wrong
}

// lastLine returns the last nonblank line of text, trimmed.
func lastLine(text string) string {
	text = strings.TrimRight(text, " \t\r\n")
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}

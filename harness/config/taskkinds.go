package config

import "slices"

// taskKind is a kind of task: a row of the only table of task.kind in this package. eval/task has the other one, of
// what makes and grades problems.
type taskKind struct {
	name string

	files     bool // problems are read from files: it cannot make any
	part      bool // a mixed task may have such problems, from files or made
	images    bool // problems of files may show images
	columns   bool // files may have further columns for the reward (data.keep)
	oneAnswer bool // problems have one right answer, which completions give in a place of its own
	optimum   bool // it defines the reward itself, of answers so few that the best policy is known

	grader func(t *Task) string // name of the grader that a key chooses; nil: the task has its own
	extra  func(t *Task) int    // bytes of a generated problem in memory besides its texts, tokens and headers

	stages []Stage // that read its keys, where a key does not say
	keys   func() []Key
	checks func() []check

	// of the recipe that exp config new writes
	prompt, answer int    // tokens of the longest ones
	starter        string // the block of its keys
}

// taskKinds lists the tasks in the order of help and keys.
func taskKinds() []taskKind {
	return []taskKind{
		{name: "countdown", part: true, checks: countdownChecks,
			stages: at(Prepare), keys: countdownKeys, prompt: 48, answer: 40, starter: `
  countdown:                # reach a target from given numbers; a problem has many right answers
    min_numbers: 3
    max_numbers: 4
    largest_number: 12
    largest_target: 50
    min_solutions: 2        # one solution leaves no diversity to measure`},
		{name: "words", part: true, oneAnswer: true,
			stages: at(Prepare), keys: wordsKeys, prompt: 256, answer: 64, starter: `
  words:                    # arithmetic word problems with one right answer
    largest_number: 20
    steps: 2                # operations of a problem, at most`},
		{name: "stories", part: true, oneAnswer: true,
			stages: at(Prepare), keys: storiesKeys, prompt: 640, answer: 320, starter: `
  stories:                  # word problems with worked solutions
    min_steps: 1
    max_steps: 2
    largest_number: 20`},
		{name: "outcomes", optimum: true, checks: outcomesChecks,
			stages: at(Prepare, Train, EvalGen, EvalScore), keys: outcomesKeys, prompt: 4, answer: 1, starter: `
  outcomes:                 # one prompt, answers of one token: the optimum is known
    count: 48
    modes:
      - {center: 12, width: 2.0, height: 0.9}
      - {center: 36, width: 2.0, height: 1.0}
    beta: 8                 # of the optimum that evaluation compares with`},
		{name: "functions", part: true, extra: func(t *Task) int { return 170 * t.Functions.HiddenTests },
			stages: at(Prepare), keys: functionsKeys, prompt: 48, answer: 40, starter: `
  functions:                # bodies of Python functions, which the sandbox runs (exp sandbox check)
    arguments: 3
    largest_number: 7
    hidden_tests: 6`},
		{name: "math", files: true, images: true, part: true, columns: true, oneAnswer: true,
			grader: func(t *Task) string { return t.Math.Grader },
			stages: at(Train, EvalScore), keys: mathKeys, prompt: 512, answer: 512, starter: `
  math: {grader: exp}       # the answer after the last \boxed, ####, or "the answer is"`},
		{name: "code", files: true, part: true,
			stages: at(Train, EvalScore), keys: codeKeys, prompt: 1024, answer: 512, starter: `
  code:                     # programs, which the sandbox runs (exp sandbox check)
    cpu_limit: 10s
    mem_limit: 512MiB`},
		{name: "instructions", files: true, images: true, part: true, columns: true,
			stages: at(Train, EvalScore), keys: instructionsKeys, prompt: 1024, answer: 1024, starter: `
  instructions: {rules: strict, partial: true} # as in IFEval and IFBench; the reward is the share followed`},
		{name: PromptsTask, files: true, images: true, part: true, columns: true,
			stages: at(Train, EvalScore), keys: promptsKeys, prompt: 512, answer: 512, starter: `
  prompts: {pass: 1}        # the score from which a completion counts as right`},
		{name: MixedTask, files: true, images: true, columns: true, checks: mixedChecks,
			stages: at(Prepare), keys: mixedKeys, prompt: 1024, answer: 1024, starter: `
  mixed:                    # the kind of each row: math, code, instructions or prompts
    kinds:                  # by its data_source, or by its file
      "*": math             # all others
      "if_*": instructions
  math: {grader: exp}       # each kind has its own keys
  instructions: {partial: true}`},
	}
}

// kind returns the task's row.
func (t *Task) kind() taskKind { return taskNamed(t.Kind) }

// taskNamed returns the row of a kind of task; an empty one for an unknown kind.
func taskNamed(name string) taskKind {
	list := taskKinds()
	if i := slices.IndexFunc(list, func(k taskKind) bool { return k.name == name }); i >= 0 {
		return list[i]
	}
	return taskKind{}
}

// Grader returns the name of what grades the task's completions, and whether a key chooses it.
func (t *Task) Grader() (name string, chosen bool) { return t.GraderOf(t.Kind) }

// GraderOf is Grader for a kind of problems among Kinds.
func (t *Task) GraderOf(kind string) (name string, chosen bool) {
	if k := taskNamed(kind); k.grader != nil {
		return k.grader(t), true
	}
	return kind, false
}

// Kinds lists the kinds of problems, in the order of task.kind's words. Only a mixed task has several.
func (t *Task) Kinds() []string {
	if t.Kind != MixedTask {
		return []string{t.Kind}
	}
	return tasksThat(func(k *taskKind) bool {
		for _, kind := range t.Mixed.Kinds {
			if kind == k.name {
				return true
			}
		}
		return t.makes(k.name)
	})
}

// Mixes is Kinds of a mixed task; others have none.
func (t *Task) Mixes() []string {
	if t.Kind != MixedTask {
		return nil
	}
	return t.Kinds()
}

// makes reports whether a mixed task makes problems of a kind.
func (t *Task) makes(kind string) bool {
	g := &t.Mixed.Generate
	for _, split := range []map[string]any{g.Train, g.Val, g.Test} {
		if _, ok := split[kind]; ok {
			return true
		}
	}
	return false
}

// Has reports whether some problems are of a kind.
func (t *Task) Has(kind string) bool { return slices.Contains(t.Kinds(), kind) }

// HasOptimum reports whether the task defines the reward itself and the best policy is known.
func (t *Task) HasOptimum() bool { return t.kind().optimum }

// ProblemBytes is the most memory that a generated problem takes next to its texts, tokens and their headers.
func (t *Task) ProblemBytes() (most int) {
	for _, kind := range t.Kinds() {
		if k := taskNamed(kind); k.extra != nil {
			most = max(most, k.extra(t))
		}
	}
	return most
}

// tasksThat lists the tasks for which ok holds.
func tasksThat(ok func(k *taskKind) bool) []string {
	var names []string
	for _, k := range taskKinds() {
		if ok(&k) {
			names = append(names, k.name)
		}
	}
	return names
}

// allTasks lists the tasks.
func allTasks() []string { return tasksThat(func(*taskKind) bool { return true }) }

// fromFiles lists the tasks whose problems are read from files.
func fromFiles() []string { return tasksThat(func(k *taskKind) bool { return k.files }) }

// illustrated lists the tasks whose problems may show images.
func illustrated() []string { return tasksThat(func(k *taskKind) bool { return k.images }) }

// PromptsTask is the task whose problems need no gold answers.
const PromptsTask = "prompts"

// MixedTask is the task whose problems are of several kinds.
const MixedTask = "mixed"

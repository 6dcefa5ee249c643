package stage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"exp/eval"
	"exp/eval/grade/code"
	"exp/eval/suite"
	"exp/eval/task"
	"exp/experiments/ident"
	"exp/harness/ask"
	"exp/harness/config"
	"exp/harness/dataset"
	"exp/harness/prompt"
	"exp/sandbox"
	"exp/train/rollout"
)

// Suite is a benchmark of the store that a configuration names; its problems are the blob with its
// digest.
type Suite struct {
	Name    string
	Version string
	Digest  ident.Digest
	Graders []string // the suite's own first
	Asking  suite.Asking
	// Examples is the suite with the examples that its problems are asked with; nil: with none.
	Examples *Suite `json:",omitempty"`
}

// ForeignSuites returns the suites of a configuration that are not its own data.
func ForeignSuites(c *config.Run) (list []string) {
	for _, s := range c.Eval.Final.Suites {
		if s != string(task.Test) && s != string(task.Val) {
			list = append(list, s)
		}
	}
	return list
}

// SuiteOf removes the mark of an evaluation before training from a label.
func SuiteOf(label string) string { return strings.TrimSuffix(label, StartSuffix) }

// GradersOf names the graders of a suite; the first gives its verdicts. For a benchmark they are
// eval.final.graders or else its own; for the run's data, the task's grader and then
// eval.final.graders. Where likelihoods of options are compared, their graders count alone, and nowhere else.
func GradersOf(c *config.Run, s *Suite) []string {
	list := c.Eval.Final.Graders
	if s != nil {
		compares := s.AskingOf(c).Likelihood
		list = slices.DeleteFunc(slices.Clone(list), func(g string) bool {
			return eval.ByLikelihood(g) != (compares != "")
		})
		switch {
		case len(list) > 0:
		case compares == eval.ByLetter, compares == eval.ByBlank:
			return eval.LikelihoodGraders()[:1] // letters have equal lengths, and the text behind a blank is the same
		case compares == eval.ByOption:
			return eval.LikelihoodGraders()[:2]
		}
		if len(list) == 0 {
			list = s.Graders
		}
		return slices.Clone(list)
	}
	own, _ := c.Task.Grader()
	return append([]string{own}, slices.DeleteFunc(slices.Clone(list),
		func(g string) bool { return g == own || eval.ByLikelihood(g) })...)
}

// ReadsTurns reports whether one of these graders judges the answer of a completion's first turn (task.ReadsTurns).
func ReadsTurns(c *config.Run, s *Suite) bool {
	names := GradersOf(c, s)
	if s == nil {
		for _, kind := range c.Task.Kinds() {
			name, _ := c.Task.GraderOf(kind)
			names = append(names, name)
		}
	}
	return slices.ContainsFunc(names, task.ReadsTurns)
}

// suiteOf finds the benchmark of a label; nil for the run's own data.
func (e *Env) suiteOf(label string) *Suite {
	i := slices.IndexFunc(e.Suites, func(s Suite) bool { return s.Name == SuiteOf(label) })
	if i < 0 {
		return nil
	}
	return &e.Suites[i]
}

// AskingOf returns how a configuration asks the problems of a suite: its own settings, else the suite's.
func (s *Suite) AskingOf(c *config.Run) suite.Asking {
	a, f := s.Asking, c.Eval.Final
	switch {
	case f.Likelihood == config.LikelihoodOff:
		a.Likelihood = ""
	case slices.Contains(eval.Ways(), f.Likelihood):
		a.Likelihood = f.Likelihood
	}
	if f.Shots != nil {
		a.Shots = *f.Shots
	}
	if f.ShotsSuite != "" {
		a.ShotsSuite = f.ShotsSuite
	}
	if a.Shots == 0 {
		a.ShotsSuite = ""
	}
	switch f.Description {
	case "":
	case config.None:
		a.Description = ""
	default:
		a.Description = f.Description
	}
	switch {
	case f.Prompt == config.None:
		a.Prompt = config.ProblemMark
	case f.Prompt != config.ProblemMark || a.Prompt == "":
		a.Prompt = f.Prompt
	}
	return a
}

// askingOf is AskingOf for a label; the run's own data is asked as in training.
func (e *Env) askingOf(label string) (a suite.Asking) {
	if s := e.suiteOf(label); s != nil {
		a = s.AskingOf(e.run())
	}
	return a
}

// rendered returns the problems as the model sees them: a benchmark's as AskingOf says, the run's own as in training.
// An error names the problem that cannot be asked so.
func (e *Env) rendered(problems []rollout.Problem, label string) ([]rollout.Problem, error) {
	s := e.suiteOf(label)
	if s == nil {
		return problems, nil
	}
	a := s.AskingOf(e.run())
	var examples *ask.Examples
	if a.Shots > 0 {
		list, err := e.problemsOfSuite(s.Examples)
		if err != nil {
			return nil, err
		}
		if examples, err = ask.NewExamples(s.Examples.Name, list, a); err != nil {
			return nil, err
		}
	}
	return ask.Render(problems, a, examples)
}

// suiteProblems reads the problems of a label.
func (e *Env) suiteProblems(in Inputs, label string) ([]rollout.Problem, error) {
	s := e.suiteOf(label)
	if s == nil {
		return e.problemsOf(in, RoleProblems)
	}
	data, err := e.input(in, RoleProblems)
	if err != nil {
		return nil, fmt.Errorf("suite %s: %w", s.Name, err)
	}
	return s.decode(data)
}

// problemsOfSuite reads the problems of a suite that is not an input by itself.
func (e *Env) problemsOfSuite(s *Suite) ([]rollout.Problem, error) {
	data, err := e.Blobs.Bytes(s.Digest)
	if err != nil {
		return nil, fmt.Errorf("suite %s: %w", s.Name, err)
	}
	return s.decode(data)
}

// decode reads a suite's problems.
func (s *Suite) decode(data []byte) ([]rollout.Problem, error) {
	read := suite.Suite{Name: s.Name, Graders: s.Graders}
	if err := read.Decode(data); err != nil {
		return nil, fmt.Errorf("suite %s: %w", s.Name, err)
	}
	return read.Problems, nil
}

// grader makes one grader of a label, with a sandbox if it runs programs; end closes it.
func (e *Env) grader(ctx context.Context, label, name string,
	first bool) (g rollout.Grader, end func() error, err error) {
	if e.suiteOf(label) == nil && first {
		return e.ownGrader(ctx)
	}
	end = func() error { return nil }
	o, programs := suite.CodeOptions(name)
	if !programs {
		if g, err = suite.Grader(name); err == nil {
			g, err = e.inTurns(name, g)
		}
		return g, end, err
	}
	pool, err := sandbox.Open(ctx, SandboxConfig(e.run()))
	if err != nil {
		return nil, nil, err
	}
	if g, err = code.NewGrader(pool, o); err != nil {
		return nil, nil, errors.Join(err, pool.Close())
	}
	return g, pool.Close, nil
}

// ownGrader makes the grader of evaluations of the run's own data.
func (e *Env) ownGrader(ctx context.Context) (rollout.Grader, func() error, error) {
	switch r := e.run(); {
	case !r.JudgesAlone():
		return e.newTask(ctx)
	case r.Task.Kind != config.MixedTask:
		return e.newJudgeAlone(nil, nil, nil)
	}
	t, closeTask, err := e.newTask(ctx)
	if err != nil {
		return nil, nil, err
	}
	g, closeReward, err := e.newJudgeAlone(t, nil, nil)
	if err != nil {
		return nil, nil, errors.Join(err, closeTask())
	}
	return g, func() error { return errors.Join(closeReward(), closeTask()) }, nil
}

// Grade gives the verdict that an evaluation of the run's own data gives a completion.
func Grade(ctx context.Context, e *Env, p *rollout.Problem, c *rollout.Completion) (v rollout.Verdict, err error) {
	grader := e.ownGrader
	if p.Kind != "" && p.Kind != config.PromptsTask {
		grader = e.newTask // no reward has a say
	}
	g, end, err := grader(ctx)
	if err != nil {
		return v, err
	}
	list, err := eval.Score(ctx, g, []rollout.Problem{*p}, []eval.Sample{{ProblemID: p.ID, Completion: *c}},
		eval.Scoring{})
	_ = end() // all programs have ended
	var none *eval.NotGradedError
	if err != nil && !errors.As(err, &none) {
		return v, err
	}
	return list[0], nil // which says if it has no verdict
}

// notGradedLimit returns how many completions of a final evaluation may go without a verdict.
func (e *Env) notGradedLimit() eval.Limit {
	return eval.Limit{Share: e.run().Eval.Final.MaxNotGraded, Key: "eval.final.max_not_graded"}
}

// judge grades the samples of an evaluation with all graders of its label, and fills in the
// verdicts of the first and the panel of all.
func (e *Env) judge(ctx context.Context, ev *Evaluation, parallelism int) error {
	names := GradersOf(e.run(), e.suiteOf(ev.Label))
	samples := ev.Samples
	if t := e.run().Rollout.Tools; t.Used() {
		samples = slices.Clone(samples)
		for i := range samples {
			samples[i].Completion = *ofPolicy(t, &samples[i].Completion)
		}
	}
	ev.Panel = &eval.Panel{Problems: ev.Problems, Samples: samples}
	for i, name := range names {
		g, end, err := e.grader(ctx, ev.Label, name, i == 0)
		if err != nil {
			return err
		}
		graded := samples
		if i == 0 && e.suiteOf(ev.Label) == nil && e.run().JudgesAlone() {
			graded = ev.Samples // the reward reads tools' answers too, as in training
		}
		verdicts, err := eval.Score(ctx, e.heeds(g), ev.Problems, graded,
			eval.Scoring{Parallelism: parallelism, Limit: e.notGradedLimit()})
		_ = end() // all programs have ended
		if err != nil {
			return err
		}
		ev.Panel.Columns = append(ev.Panel.Columns, eval.Column{Grader: name, Verdicts: verdicts,
			Scaled: i == 0 && e.suiteOf(ev.Label) == nil})
	}
	ev.Verdicts = ev.Panel.Columns[0].Verdicts
	if len(names) > 1 && e.askingOf(ev.Label).Likelihood == "" {
		ev.Panel.Columns = append(ev.Panel.Columns, eval.Union(ev.Panel.Columns))
	}
	return nil
}

// promptsOf returns the function that makes the run's prompter the one of a label: eval.final.truncate says how a
// benchmark's long prompts are cut.
func (e *Env) promptsOf(label string) func(p *prompt.Prompter) *prompt.Prompter {
	return func(p *prompt.Prompter) *prompt.Prompter {
		if e.suiteOf(label) == nil {
			return p
		}
		return cuttingSuites(e.run(), p)
	}
}

// cuttingSuites returns the prompter of benchmarks.
func cuttingSuites(c *config.Run, p *prompt.Prompter) *prompt.Prompter {
	how := c.Eval.Final.Truncate
	if how == "data" || how == "" {
		return p
	}
	return p.Cutting(how, "eval.final.truncate")
}

// PromptPlan describes how a run builds prompts, and how it cuts the ones of benchmarks.
func PromptPlan(c *config.Run, p *prompt.Prompter) prompt.Plan {
	plan := p.Plan()
	if len(ForeignSuites(c)) > 0 {
		plan.Suites, _ = cuttingSuites(c, p).CutBy()
		if d := c.Data; d.Train.Source == config.None && d.Val.Source == config.None && d.Test.Source == config.None {
			plan.Truncate, plan.Filter = plan.Suites, false // there are no other prompts
		}
	}
	plan.Longest = longestGenerated(c, p)
	return plan
}

// longestGenerated returns the tokens of the longest prompt of some training problems that the run's task makes; 0 if
// it makes none, if they are of several kinds, or if tools or agents lengthen them.
func longestGenerated(c *config.Run, p *prompt.Prompter) (longest int) {
	const some = 64
	if c.Data.Train.Source != config.Generated || c.Task.Kind == config.MixedTask || c.Rollout.Tools.Used() {
		return 0
	}
	t, err := task.New(dataset.TaskConfig(c))
	if err != nil {
		return 0
	}
	list, err := t.Generate(task.Train, min(some, c.GeneratedProblems("train")), ident.Seed(c.Data.Seed, "data/train"))
	if err != nil {
		return 0
	}
	for i := range list {
		ids, err := p.Encode(&list[i])
		if err != nil {
			return 0
		}
		longest = max(longest, len(ids))
	}
	return longest
}

// checkSuitePrompts finds the first problem of a benchmark whose prompt cannot be
// encoded or is too long.
func (e *Env) checkSuitePrompts(prompts *prompt.Prompter, s Suite) error {
	problems, err := e.suiteProblems(Inputs{RoleProblems: s.Digest}, s.Name)
	if err != nil {
		return err
	}
	prompts = e.promptsOf(s.Name)(prompts)
	asked, err := e.rendered(problems, s.Name)
	if err != nil {
		return config.Errors{e.Config.ErrorAt("eval.final.suites", config.CodeConflict,
			fmt.Sprintf("suite %s: %v", s.Name, err), "")}
	}
	if err := prompts.Check(asked); err != nil {
		var long *prompt.TooLongError
		if errors.As(err, &long) {
			long.All = true
		}
		help := "the problems within eval.final.prompt must fit into data.max_prompt_tokens and the model's vocabulary"
		if n := s.AskingOf(e.run()).Shots; n > 0 {
			help = fmt.Sprintf("the problems, each with %d examples (eval.final.shots) and within "+
				"eval.final.prompt, must fit into data.max_prompt_tokens and the model's vocabulary", n)
		}
		return config.Errors{e.Config.ErrorAt("eval.final.suites", config.CodeConflict,
			fmt.Sprintf("suite %s: %v", s.Name, err), help)}
	}
	return e.checkAsked(prompts, s, asked)
}

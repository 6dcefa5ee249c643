package stage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"exp/eval/task"
	"exp/experiments/ident"
	"exp/experiments/quantity"
	"exp/harness/config"
	"exp/harness/dataset"
	"exp/train/reward"
	"exp/train/rollout"
)

const (
	// trialRows is how many rows a reward may refuse before it counts as broken.
	trialRows = 3
	// trialSaid is how many of a program's last lines on standard error the error shows.
	trialSaid = 8
)

// trialPatience returns the time after which a trial says that it waits: half of a program's limit, at most 10 s.
func trialPatience(c *config.Reward) time.Duration {
	const most = 10 * time.Second
	if c.RowLimit > 0 {
		return min(most, c.RowLimit/2)
	}
	return most
}

// TryReward scores a completion of the first training problem, or without one of the first test problem, by whatever
// scores completions besides the task's own rules: a program, a judge, or the sandbox. A reward that cannot do that
// ends the run before any work, as a *TrialError. e belongs to the train stage.
func TryReward(ctx context.Context, e *Env, in Inputs) error {
	r := e.run()
	kind := rewardKindOf(&r.Reward)
	if kind.source == nil && !task.RunsPrograms(r.Task.Kinds()...) {
		return nil
	}
	role := RoleTrain
	if _, ok := in[role]; !ok {
		role = RoleTest
	}
	problems, err := e.problemsOf(in, role)
	if err != nil || len(problems) == 0 {
		return err
	}
	t := trial{e: e, what: "the reward", before: "training", kind: kind, source: "the sandbox",
		lenient: r.Reward.MaxNotGraded == 1}
	if kind.source != nil {
		t.source = kind.source(&r.Reward)
	}
	return t.run(ctx, &r.Reward, func(own *Env) (int, string, error) { return own.tryRows(ctx, problems) })
}

// TryScorer tries the scorer of the final evaluation on the first problem of label; problems finds the run's own
// problems by their role. A scorer that fails ends the run before it samples, as a *TrialError.
func TryScorer(ctx context.Context, e *Env, label string, problems func(role string) (ident.Digest, bool)) error {
	s := e.run().Eval.Final.Scorer
	if !s.Used() || s.Trained() { // it is still to be trained
		return nil
	}
	list, err := e.firstProblems(label, problems)
	if err != nil || len(list) == 0 {
		return err
	}
	own := *e
	own.Config, own.scoring = &config.Resolved{Run: *e.run().ScoredBy()}, true
	r := own.run()
	t := trial{e: &own, what: strings.TrimSuffix(scorerBlock, "."), before: "sampling", kind: rewardKindOf(&r.Reward),
		lenient: r.Eval.Final.MaxNotGraded == 1}
	if t.source = "reward model: " + r.Reward.Weights; t.kind.source != nil {
		t.source = t.kind.source(&r.Reward)
	}
	return t.run(ctx, &r.Reward, func(own *Env) (tried int, refused string, err error) {
		scorer, err := own.newScorer(nil)
		if err != nil {
			return 0, "", err
		}
		defer func() { err = errors.Join(err, scorer.Close()) }()
		return own.gradeRows(ctx, reward.NewAlone(scorer, 0, nil), list)
	})
}

// firstProblems returns the first problems of an evaluation, as the policy is asked.
func (e *Env) firstProblems(label string, problems func(role string) (ident.Digest, bool)) ([]rollout.Problem, error) {
	in := Inputs{}
	if s := e.suiteOf(label); s != nil {
		in[RoleProblems] = s.Digest
	}
	for _, split := range dataset.Splits(e.run()) {
		if d, ok := problems(split.Role); ok && string(split.Name) == SuiteOf(label) && len(in) == 0 {
			in[RoleProblems] = d
		}
	}
	if len(in) == 0 {
		return nil, nil
	}
	list, err := e.suiteProblems(in, label)
	if err != nil {
		return nil, err
	}
	return e.rendered(list[:min(trialRows, len(list))], label)
}

// trial tries what scores completions.
type trial struct {
	e            *Env
	what, before string // "the reward", "training"
	kind         rewardKind
	source       string // a line that identifies it
	lenient      bool   // no completion needs a score
}

// run says whether rows have scores, by an error or a warning. rows is given an environment that keeps what a
// program says.
func (t *trial) run(ctx context.Context, r *config.Reward, rows func(own *Env) (tried int, refused string,
	err error)) error {
	var said []string
	own := *t.e
	if !r.ByServer() { // a judge's warnings say why the trial takes long
		own.Hooks.Warn = func(text string) {
			if line := strings.TrimPrefix(text, "reward: "); !slices.Contains(said, line) { // retries repeat it
				said = append(said, line)
			}
		}
	}
	waits := time.AfterFunc(trialPatience(r), func() {
		t.e.warn("%s has not answered yet to the row that is tried before %s: %s", t.what, t.before, t.source)
	})
	tried, refused, err := rows(&own)
	waits.Stop()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil && refused == "":
		return nil
	case err == nil && t.lenient:
		t.e.warn("%s has no score for a trial answer to %s: %s", t.what, quantity.Plural(tried, "problem"), refused)
		return nil
	case err == nil:
		err = errors.New(refused)
	}
	failed := &TrialError{What: t.what, Before: t.before, Said: said[max(0, len(said)-trialSaid):], Err: err,
		advice: "exp doctor checks the sandbox"}
	switch {
	case t.e.scoring:
		failed.Source, failed.advice = t.source, strings.ReplaceAll(t.kind.hint, rewardBlock, scorerBlock)
	case t.kind.source != nil && !errors.As(err, new(*verdictError)):
		failed.Source, failed.advice = t.source, t.kind.hint
	}
	return failed
}

// verdictError is an error of a task's own grader, where a reward judges problems of another kind.
type verdictError struct {
	Kind string
	Err  error
}

func (e *verdictError) Error() string { return "a problem of kind " + e.Kind + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *verdictError) Unwrap() error { return e.Err }

// tryRows grades completions of problems of each kind until one has a score. If none of a kind has, it returns how
// many it tried and why the last one has none.
func (e *Env) tryRows(ctx context.Context, problems []rollout.Problem) (tried int, refused string, err error) {
	t, end, err := e.newTask(ctx)
	if err != nil {
		return 0, "", err
	}
	defer func() { err = errors.Join(err, end()) }()
	trained := e.run().Reward.Trained() // it is still to be trained: the task says enough
	grader := t
	if !trained {
		var stop func() error
		if grader, stop, err = e.newReward(t); err != nil {
			return 0, "", err
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	for _, kind := range e.run().Task.Kinds() {
		list := ofKind(&e.run().Task, problems, kind)
		if trained && kind == config.PromptsTask {
			continue
		}
		tried, refused, err = e.gradeRows(ctx, grader, list[:min(trialRows, len(list))])
		if err != nil && e.run().JudgesAlone() && kind != config.PromptsTask {
			err = &verdictError{kind, err}
		}
		if err != nil || refused != "" {
			return tried, refused, err
		}
	}
	return 0, "", nil
}

// gradeRows grades a completion of one problem after the other until one has a score. If none has, it returns how many
// it tried and why the last one has none.
func (e *Env) gradeRows(ctx context.Context, grader rollout.Grader, problems []rollout.Problem) (tried int,
	refused string, err error) {
	for i := range problems {
		p := &problems[i]
		c := &rollout.Completion{Text: e.trialAnswer(p), Finish: rollout.FinishStop}
		v, err := grader.Grade(ctx, p, c)
		if err != nil {
			return 0, "", err
		}
		if v.Status == rollout.Graded {
			return 0, "", nil
		}
		tried, refused = i+1, v.Reason
		if !reward.Refused(refused) {
			break // it failed: asking again takes as long
		}
	}
	return tried, refused, nil
}

// trialAnswer returns a completion that a reward should have a score for: a right one if the data
// has it.
func (e *Env) trialAnswer(p *rollout.Problem) string {
	for _, text := range []string{p.Target, p.Answer} {
		if text != "" {
			return text
		}
	}
	if e.run().Task.Kind == config.PromptsTask || p.Kind == config.PromptsTask {
		return "I do not know."
	}
	return "```python\nprint(1)\n```"
}

// TrialError reports a reward, or a scorer, that could not score a row before any work.
type TrialError struct {
	What, Before string // "the reward", "training"

	Source string   // what scores, such as "judge: http://127.0.0.1:8000/v1"; "" for the sandbox
	Said   []string // the program's last lines on standard error
	Err    error
	advice string
}

func (e *TrialError) Error() string {
	text := fmt.Sprintf("a row was tried before %s, and %s failed: %v", e.Before, e.What, e.Err)
	if e.Source != "" {
		text += "\n  " + e.Source
	}
	if len(e.Said) > 0 {
		text += "\n  its standard error:\n    " + strings.Join(e.Said, "\n    ")
	}
	return text
}

// Unwrap returns the cause.
func (e *TrialError) Unwrap() error { return e.Err }

// ExitCode returns the exit code of an evaluation whose infrastructure failed, or the cause's.
func (e *TrialError) ExitCode() int {
	var coded interface{ ExitCode() int }
	if errors.As(e.Err, &coded) {
		return coded.ExitCode()
	}
	return 8
}

// Hint says what to do.
func (e *TrialError) Hint() string {
	var hinted interface{ Hint() string }
	if errors.As(e.Err, &hinted) && hinted.Hint() != "" {
		return hinted.Hint()
	}
	return e.advice
}

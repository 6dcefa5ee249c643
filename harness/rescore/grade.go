package rescore

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"exp/eval"
	"exp/eval/exchange"
	"exp/eval/grade/code"
	"exp/eval/grade/peer"
	"exp/eval/suite"
	"exp/eval/task"
	"exp/sandbox"
	"exp/train/rollout"
)

// Watcher hears about the progress of grading programs, which takes a while.
type Watcher interface {
	GradeStart(samples int)
	GradeProgress(done int)
	GradeDone(failed bool)
	// SandboxBroke reports how often the sandbox broke; programs that could not be
	// rerun are not graded.
	SandboxBroke(times int64, last error)
}

// Grade grades the responses with the given graders, or the default ones, and scores
// them. Graders of programs run them in the sandbox.
func (e *Evaluation) Grade(ctx context.Context, asked []string, w Watcher) error {
	names := e.graders(asked)
	programs, err := runsPrograms(names)
	if err != nil {
		return err
	}
	if programs {
		err = e.gradePrograms(ctx, names, w)
	} else {
		err = e.gradeAnswers(ctx, names)
	}
	if err != nil {
		return err
	}
	e.fileVerdicts()
	return e.measure()
}

// runsPrograms reports whether the graders run programs; such graders cannot be mixed
// with others.
func runsPrograms(names []string) (bool, error) {
	n := 0
	for _, name := range names {
		if _, ok := suite.CodeOptions(name); ok {
			n++
		}
	}
	if n > 0 && n < len(names) {
		return false, inputf("--grader: %s run programs and the others compare answers, so they share no problem",
			strings.Join(suite.CodeGraders(), ", "))
	}
	return n > 0, nil
}

// gradeAnswers fills the panel with one column per grader, and their union.
func (e *Evaluation) gradeAnswers(ctx context.Context, names []string) error {
	for _, name := range names {
		if s := e.o.Suite; s != nil && suite.ForInstructions(s.Graders) && !suite.ForInstructions([]string{name}) {
			return inputf("--grader %s: %s has instructions in place of gold answers; %s check them", name, s.Name,
				strings.Join(task.InstructionGraders(), " and "))
		}
		g, err := suite.Grader(name)
		if err != nil {
			return inputf("--grader: %w", err)
		}
		verdicts, err := eval.Score(ctx, g, e.panel.Problems, e.panel.Samples,
			eval.Scoring{Parallelism: runtime.GOMAXPROCS(0)})
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, peer.ErrNoRoute):
			return inputf("--grader %s: %w", name, err)
		case err != nil:
			return err
		}
		ours := name == "exp" || name == "exp_strict"
		e.panel.Columns = append(e.panel.Columns, eval.Column{Grader: name, Verdicts: verdicts, Classes: ours})
	}
	if len(e.panel.Columns) > 1 {
		e.panel.Columns = append(e.panel.Columns, eval.Union(e.panel.Columns))
	}
	return nil
}

// fileVerdicts adds the verdicts in the file itself.
func (e *Evaluation) fileVerdicts() {
	for _, name := range ownVerdicts(e.o.File.ScoreNames()) {
		col := eval.Column{Grader: "file:" + name}
		for i, r := range e.o.File.Responses {
			score, answer := r.Scores[name], e.panel.Columns[0].Verdicts[i].Answer
			col.Verdicts = append(col.Verdicts, rollout.Verdict{Status: rollout.Graded, Correct: score >= 1,
				Reward: score,
				Answer: answer, Reason: "as in the file"})
		}
		e.panel.Columns = append(e.panel.Columns, col)
	}
}

// ownVerdicts selects the verdicts among a file's numbers: acc if verl wrote it, else
// score, else all.
func ownVerdicts(names []string) []string {
	for _, best := range []string{"acc", "score"} {
		if slices.Contains(names, best) {
			return []string{best}
		}
	}
	return names
}

// gradePrograms fills the panel with the verdicts of graders of programs. Each program
// runs once, whatever the number of graders.
func (e *Evaluation) gradePrograms(ctx context.Context, names []string, w Watcher) (err error) {
	if s := e.o.Suite; s == nil || !suite.ForPrograms(s.Graders) {
		return inputf("--grader %s: the problems have no tests to run programs on; name a suite that has tests: "+
			"--suite humaneval",
			names[0])
	}
	var ways []code.Options
	for _, name := range names {
		o, _ := suite.CodeOptions(name)
		ways = append(ways, o)
	}
	pool, err := sandbox.Open(ctx, sandbox.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	sheet, err := code.NewSheet(pool, ways...)
	if err != nil {
		return err
	}
	graders := sheet.Graders(slices.Contains(exchange.ProgramFormats(), e.o.File.Format))

	w.GradeStart(len(e.panel.Samples))
	var done atomic.Int64
	for i, g := range graders {
		counted := rollout.Grader(g)
		if i == 0 {
			counted = counting{g, func() { w.GradeProgress(int(done.Add(1))) }}
		}
		verdicts, err := eval.Score(ctx, counted, e.panel.Problems, e.panel.Samples,
			eval.Scoring{Parallelism: 2 * pool.Slots()})
		if err != nil {
			w.GradeDone(true)
			return err
		}
		e.panel.Columns = append(e.panel.Columns, eval.Column{Grader: names[i], Verdicts: verdicts})
		if err := e.countEnds(ctx, g); err != nil {
			return err
		}
	}
	w.GradeDone(false)
	if n, last := pool.InfraErrors(); n > 0 {
		w.SandboxBroke(n, last)
	}
	return nil
}

// counting is a grader that counts its verdicts.
type counting struct {
	rollout.Grader
	graded func()
}

// Grade implements rollout.Grader.
func (g counting) Grade(ctx context.Context, p *rollout.Problem, c *rollout.Completion) (rollout.Verdict, error) {
	v, err := g.Grader.Grade(ctx, p, c)
	g.graded()
	return v, err
}

// countEnds counts how the programs ended under a grader: the verdict of the first test
// that failed.
func (e *Evaluation) countEnds(ctx context.Context, g *code.SheetGrader) error {
	byID := map[string]*rollout.Problem{}
	for i := range e.panel.Problems {
		byID[e.panel.Problems[i].ID] = &e.panel.Problems[i]
	}
	counts := map[sandbox.Verdict]int{}
	for i := range e.panel.Samples {
		s := &e.panel.Samples[i]
		v, err := g.Verdict(ctx, byID[s.ProblemID], &s.Completion)
		var broken *code.InfraError
		switch {
		case errors.As(err, &broken):
			v.Status = sandbox.InfraError
		case err != nil:
			return err
		}
		counts[v.Status]++
	}
	e.ends = append(e.ends, counts)
	return nil
}

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
	"exp/sandbox"
	"exp/train/rollout"
)

// Watcher hears how the grading of programs goes, which takes a while.
type Watcher interface {
	GradeStart(samples int)
	GradeProgress(done int)
	GradeDone(failed bool)
	// SandboxBroke tells how often the sandbox broke; what could not be run again is not
	// graded.
	SandboxBroke(times int64, last error)
}

// Grade grades the responses with the graders asked for, or with the usual ones, and
// scores them. Graders of programs run them in the sandbox.
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

// runsPrograms tells whether the graders run programs, which no others go with.
func runsPrograms(names []string) (bool, error) {
	n := 0
	for _, name := range names {
		if _, ok := suite.CodeOptions(name); ok {
			n++
		}
	}
	if n > 0 && n < len(names) {
		return false, inputf("--grader: %s run programs, and the others compare answers: they grade no problem in common",
			strings.Join(suite.CodeGraders(), ", "))
	}
	return n > 0, nil
}

// gradeAnswers fills the panel: a column a grader, and their union.
func (e *Evaluation) gradeAnswers(ctx context.Context, names []string) error {
	for _, name := range names {
		g, err := suite.Grader(name)
		if err != nil {
			return inputf("--grader: %w", err)
		}
		verdicts, err := eval.Score(ctx, g, e.panel.Problems, e.panel.Samples, runtime.GOMAXPROCS(0))
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

// fileVerdicts adds what the file says itself.
func (e *Evaluation) fileVerdicts() {
	for _, name := range ownVerdicts(e.o.File.ScoreNames()) {
		col := eval.Column{Grader: "file:" + name}
		for i, r := range e.o.File.Responses {
			score, answer := r.Scores[name], e.panel.Columns[0].Verdicts[i].Answer
			col.Verdicts = append(col.Verdicts, rollout.Verdict{Status: rollout.Graded, Correct: score >= 1, Reward: score,
				Answer: answer, Reason: "as the file has it"})
		}
		e.panel.Columns = append(e.panel.Columns, col)
	}
}

// ownVerdicts picks, of the numbers that a file has for each response, those that are
// verdicts: acc where verl wrote it, else score, else all.
func ownVerdicts(names []string) []string {
	for _, best := range []string{"acc", "score"} {
		if slices.Contains(names, best) {
			return []string{best}
		}
	}
	return names
}

// gradePrograms fills the panel with the verdicts of graders of programs. Each program is
// run once, whatever the number of graders.
func (e *Evaluation) gradePrograms(ctx context.Context, names []string, w Watcher) (err error) {
	if s := e.o.Suite; s == nil || !suite.ForPrograms(s.Graders) {
		return inputf("--grader %s: the problems have no tests to run programs on; name a suite that has: --suite humaneval",
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
		verdicts, err := eval.Score(ctx, counted, e.panel.Problems, e.panel.Samples, 2*pool.Slots())
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

// counting is a grader that tells of each verdict.
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
// that did not pass.
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

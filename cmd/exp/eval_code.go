package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/urfave/cli/v2"

	"exp/cmd/exp/term"
	"exp/eval"
	"exp/eval/exchange"
	"exp/eval/grade/code"
	"exp/eval/stat"
	"exp/eval/suite"
	"exp/sandbox"
	"exp/train/rollout"
)

// runsPrograms tells whether the graders run programs, which no others go with.
func runsPrograms(names []string) (bool, error) {
	n := 0
	for _, name := range names {
		if _, ok := suite.CodeOptions(name); ok {
			n++
		}
	}
	if n > 0 && n < len(names) {
		return false, usagef("--grader: %s run programs, and the others compare answers: they grade no problem in common", strings.Join(suite.CodeGraders(), ", "))
	}
	return n > 0, nil
}

// gradePrograms fills the panel with the verdicts of graders of programs. Each program is
// run once, whatever the number of graders.
func (e *evaluation) gradePrograms(a *app, c *cli.Context, names []string) (err error) {
	if e.suite == nil || !suite.ForPrograms(e.suite.Graders) {
		return usagef("--grader %s: the problems have no tests to run programs on; name a suite that has: --suite humaneval", names[0])
	}
	var ways []code.Options
	for _, name := range names {
		o, _ := suite.CodeOptions(name)
		ways = append(ways, o)
	}
	pool, err := sandbox.Open(c.Context, sandbox.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	sheet, err := code.NewSheet(pool, ways...)
	if err != nil {
		return err
	}
	graders := sheet.Graders(slices.Contains(exchange.ProgramFormats(), e.file.Format))

	began := a.clock.Now()
	display := a.progressDisplay()
	display.StageStart(term.Stage{Kind: "grade", Total: len(e.panel.Samples), Unit: "response"})
	var done atomic.Int64
	for i, g := range graders {
		counting := gradeFunc(func(ctx context.Context, p *rollout.Problem, s *rollout.Completion) (rollout.Verdict, error) {
			v, err := g.Grade(ctx, p, s)
			if i == 0 {
				display.StageProgress(term.Step{Step: int(done.Add(1))})
			}
			return v, err
		})
		verdicts, err := eval.Score(c.Context, counting, e.panel.Problems, e.panel.Samples, 2*pool.Slots())
		if err != nil {
			display.StageDone(term.Result{Status: term.Failed, Wall: a.clock.Now().Sub(began)})
			a.closeProgress()
			if c.Context.Err() != nil {
				return stoppedf(c.Context, "grading stopped")
			}
			return err
		}
		e.panel.Columns = append(e.panel.Columns, eval.Column{Grader: names[i], Verdicts: verdicts})
		if err := e.countEnds(c.Context, g); err != nil {
			return err
		}
	}
	display.StageDone(term.Result{Status: term.Done, Wall: a.clock.Now().Sub(began)})
	a.closeProgress()
	if n, last := pool.InfraErrors(); n > 0 {
		a.warn("the sandbox broke %d times, the last time: %v; what could not be run again is not graded", n, last)
	}
	return nil
}

// gradeFunc is a rollout.Grader.
type gradeFunc func(context.Context, *rollout.Problem, *rollout.Completion) (rollout.Verdict, error)

// Grade implements rollout.Grader.
func (f gradeFunc) Grade(ctx context.Context, p *rollout.Problem, c *rollout.Completion) (rollout.Verdict, error) {
	return f(ctx, p, c)
}

// countEnds counts how the programs ended under a grader: the verdict of the first test
// that did not pass.
func (e *evaluation) countEnds(ctx context.Context, g *code.SheetGrader) error {
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

// evalEnd is a way in which programs ended, with how many did under each grader.
type evalEnd struct {
	Verdict sandbox.Verdict `json:"verdict"`
	Samples map[string]int  `json:"samples"` // by grader
}

func (e *evaluation) endsData() (list []evalEnd) {
	all := map[sandbox.Verdict]int{}
	for _, counts := range e.ends {
		for v, n := range counts {
			all[v] = max(all[v], n)
		}
	}
	order := slices.SortedFunc(maps.Keys(all), func(a, b sandbox.Verdict) int {
		if all[a] != all[b] {
			return all[b] - all[a]
		}
		return strings.Compare(string(a), string(b))
	})
	for _, v := range order {
		end := evalEnd{v, map[string]int{}}
		for i, counts := range e.ends {
			end.Samples[e.panel.Columns[i].Grader] = counts[v]
		}
		list = append(list, end)
	}
	return list
}

func endsTable(d evalData) table {
	t := table{Columns: []column{{Key: "program"}}}
	var names []string
	for _, g := range d.Graders {
		if _, ok := d.Ends[0].Samples[g.Name]; ok {
			names = append(names, g.Name)
			t.Columns = append(t.Columns, column{Key: g.Name})
		}
	}
	for _, end := range d.Ends {
		row := []any{string(end.Verdict)}
		for _, name := range names {
			row = append(row, end.Samples[name])
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// partialScore is the mean over problems of the mean score of their responses, the share
// of tests that pass, with its 95 % interval; ok is false without a verdict.
func (e *evaluation) partialScore(col eval.Column) (m eval.Metric, ok bool) {
	sum, n := map[string]float64{}, map[string]int{}
	for i, s := range e.panel.Samples {
		if v := col.Verdicts[i]; v.Status == rollout.Graded {
			sum[s.ProblemID] += v.Reward
			n[s.ProblemID]++
		}
	}
	var values []float64
	var clusters []string
	for _, p := range e.panel.Problems {
		if n[p.ID] > 0 {
			values, clusters = append(values, sum[p.ID]/float64(n[p.ID])), append(clusters, p.Cluster)
		}
	}
	if len(values) == 0 {
		return m, false
	}
	mean := stat.ClusterMean(values, clusters)
	m = eval.Metric{Name: "tests_passed", Value: mean.Value, N: len(values), Clusters: mean.G}
	if mean.G > 1 {
		m.SE = &mean.SE
	}
	if iv, ok := stat.TInterval(mean, eval.Level); ok {
		iv.Lo, iv.Hi = max(iv.Lo, 0), min(iv.Hi, 1)
		m.Interval = &iv
	}
	return m, true
}

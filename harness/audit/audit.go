// Package audit looks among a run's recorded completions for rewards that a policy may earn without being right:
// right answers that rest on a convention, on words taken for a unit or on a step that is not sure, and answers on
// which graders disagree. It grades the completions again and clusters them by form; it records nothing.
package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"exp/eval/grade"
	"exp/eval/suite"
	"exp/eval/task"
	"exp/experiments/blob"
	"exp/experiments/ident"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/train/rollout"
)

// Cause says why a verdict deserves a look. The weak bases of right answers come first.
type Cause string

// The causes, in the order in which a completion with several is counted under one.
const (
	Guess        Cause = "guess"
	Unit         Cause = "unit"
	Convention   Cause = "convention"
	Disagreement Cause = "disagreement"
)

// Options select what is audited.
type Options struct {
	Scope   string   // of the samples: "train", "eval"
	Graders []string // compared with our own; the run's own first
}

// Report is what an audit found, the largest cluster first.
type Report struct {
	Completions int // with a text
	Right       int // by our grader
	Suspicious  int
	NotKept     int // without a text
	NoGold      int // whose problem is not recorded
	Clusters    []Cluster
	Bins        []Bin
}

// Bin is a range of training steps. An evaluation has one, of step 0.
type Bin struct {
	First, Last int64
	Completions int
}

// Cluster holds completions of one cause whose answers have one form.
type Cluster struct {
	Cause       Cause
	Form        string
	Accepted    []string // of a disagreement: graders that call them right
	Refused     []string // and those that call them wrong
	Completions int
	First, Last int64 // steps with such completions
	ByBin       []int // completions by bin of the report
	Example     Example
}

// Example is the newest completion of a cluster.
type Example struct {
	Item   string
	Sample int
	Step   int64
	Gold   string
	Answer string // as written
	Reason string
}

// ErrNoMathematics is returned for a run whose problems are not of mathematics.
var ErrNoMathematics = errors.New("only answers to problems of mathematics are audited")

// auditor grades the completions of one run.
type auditor struct {
	o       Options
	graders []rollout.Grader // of o.Graders; nil: ours, whose verdict is there anyway
	golds   map[string]map[string]*rollout.Problem
	db      *store.DB
	found   []finding
	report  Report
}

// finding is what the audit says of one completion.
type finding struct {
	step     int64
	cause    Cause // "" if there is nothing to say
	right    bool
	form     string
	accepted []string
	refused  []string
	example  Example
}

// Run audits the recorded completions of a run.
func Run(ctx context.Context, db *store.DB, run store.Run, o Options) (*Report, error) {
	a := &auditor{o: o, db: db, golds: map[string]map[string]*rollout.Problem{}}
	for _, name := range o.Graders {
		var g rollout.Grader
		if !task.OwnGrader(name) {
			var err error
			if g, err = suite.Grader(name); err != nil {
				return nil, err
			}
		}
		a.graders = append(a.graders, g)
	}
	packs := db.Blobs.NewPackReader()
	defer packs.Close()
	const page = 1000
	q := store.SampleQuery{Scope: o.Scope, Limit: page}
	for {
		rows, err := db.Samples(ctx, run.ID, q)
		if err != nil {
			return nil, err
		}
		if err := a.page(ctx, packs, rows); err != nil {
			return nil, err
		}
		if len(rows) < page {
			break
		}
		q.After = rows[len(rows)-1].ID
	}
	a.cluster()
	return &a.report, nil
}

// page reads and grades some samples, on all cores.
func (a *auditor) page(ctx context.Context, packs *blob.PackReader, rows []store.Sample) error {
	type graded struct {
		sample  store.Sample
		problem *rollout.Problem
		text    string
		finding finding
		err     error
	}
	var list []*graded
	for _, row := range rows {
		if row.Ref.Pack.IsZero() {
			a.report.NotKept++
			continue
		}
		p, err := a.problem(ctx, row)
		if err != nil {
			return err
		}
		if p == nil {
			a.report.NoGold++
			continue
		}
		var kept struct {
			Text string `json:"text"`
		}
		if err := packs.Read(row.Ref, &kept); err != nil {
			return fmt.Errorf("sample %d of problem %s: %w", row.K, row.Item, err)
		}
		list = append(list, &graded{sample: row, problem: p, text: kept.Text})
	}
	var wg sync.WaitGroup
	threads := runtime.GOMAXPROCS(0)
	for k := range threads {
		wg.Go(func() {
			for i := k; i < len(list); i += threads {
				g := list[i]
				g.finding, g.err = a.judge(ctx, g.problem, g.text)
				g.finding.step = g.sample.Step
				e := &g.finding.example
				e.Item, e.Sample, e.Step = g.sample.Item, g.sample.K, g.sample.Step
			}
		})
	}
	wg.Wait()
	for _, g := range list {
		if g.err != nil {
			return g.err
		}
		a.found = append(a.found, g.finding)
	}
	return ctx.Err()
}

// judge grades one completion with all graders.
func (a *auditor) judge(ctx context.Context, p *rollout.Problem, text string) (finding, error) {
	golds, err := task.Golds(p)
	if err != nil {
		return finding{}, err
	}
	v, gold := grade.Verdict{}, golds[0]
	for i, g := range golds {
		if w := grade.Response(g, text); i == 0 || w.Correct {
			v, gold = w, g
		}
		if v.Correct {
			break
		}
	}
	f := finding{right: v.Correct, form: formOf(v.Extracted),
		example: Example{Gold: gold, Answer: v.Extracted, Reason: v.Reason}}
	f.vote("exp", v.Correct)
	for i, g := range a.graders {
		if g == nil {
			continue
		}
		w, err := g.Grade(ctx, p, &rollout.Completion{Text: text})
		if err != nil {
			return f, err
		}
		f.vote(a.o.Graders[i], w.Correct)
	}
	switch {
	case v.Correct && v.Basis == grade.Guess:
		f.cause = Guess
	case v.Correct && v.Basis == grade.UnitRule:
		f.cause = Unit
	case v.Correct && v.Basis == grade.Convention:
		f.cause = Convention
	case len(f.accepted) > 0 && len(f.refused) > 0:
		f.cause = Disagreement
	}
	return f, nil
}

func (f *finding) vote(grader string, right bool) {
	if right {
		f.accepted = append(f.accepted, grader)
	} else {
		f.refused = append(f.refused, grader)
	}
}

// problem finds the problem of a sample among those that its stage read; nil if they are not recorded.
func (a *auditor) problem(ctx context.Context, s store.Sample) (*rollout.Problem, error) {
	key := fmt.Sprint(s.Stage, " ", s.Scope)
	if a.golds[key] == nil {
		a.golds[key] = map[string]*rollout.Problem{}
		st, err := a.db.StageByID(ctx, s.Stage)
		if err != nil {
			return nil, err
		}
		role := map[string]string{"train": config.RoleTrain, "val": config.RoleVal,
			"eval": config.RoleProblems}[s.Scope]
		i := slices.IndexFunc(st.Inputs, func(in store.IO) bool { return in.Role == role })
		if i >= 0 {
			if err := a.read(key, st.Inputs[i].Digest); err != nil {
				return nil, err
			}
		}
	}
	return a.golds[key][s.Item], nil
}

// read reads the problems of a blob.
func (a *auditor) read(key string, d ident.Digest) error {
	data, err := a.db.Blobs.Bytes(d)
	if err != nil {
		return err
	}
	t, err := task.New(task.Config{Kind: "math", Math: task.Math{Grader: "exp"}})
	if err != nil {
		return err
	}
	problems, err := task.Read(t, bytes.NewReader(data), "problems")
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoMathematics, err)
	}
	for i := range problems {
		a.golds[key][problems[i].ID] = &problems[i]
	}
	return nil
}

// Package audit looks among a run's recorded completions for rewards that a policy may earn without being right:
// right answers that rest on a convention, on words taken for a unit or on a step that is not sure, and answers on
// which graders disagree. It reads the verdicts that gave the rewards, with their bases, and grades the completions
// again to compare: with the same grader, whose verdict may be another today, and with others. It clusters them by
// form and records nothing.
//
// A second grading ends answers at the usual end-of-turn tokens, not at all special tokens of the run's tokenizer.
package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"exp/eval/suite"
	"exp/eval/task"
	"exp/experiments/blob"
	"exp/experiments/ident"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/train/rollout"
)

// Cause says why a verdict deserves a look.
type Cause string

// The causes; a completion with several counts under the first.
const (
	Changed      Cause = "changed" // the same grader gives another verdict today
	Guess        Cause = "guess"
	Unit         Cause = "unit"
	Convention   Cause = "convention"
	Disagreement Cause = "disagreement"
)

// Options select the completions to audit.
type Options struct {
	Scope   string   // of the samples: "train", "eval"
	Graders []string // compared with the recorded verdict and our own grader
}

// Report is the result of an audit, the largest cluster first.
type Report struct {
	Completions int // with a text
	Right       int // by the recorded verdict
	Changed     int // that the same grader judges otherwise today
	Suspicious  int
	NoVerdict   int // whose verdict is not recorded: ours of today stands for it
	NotGraded   int // that have no verdict, by the record
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
	Accepted    []string // of a change or disagreement: graders that call them right
	Refused     []string // graders that call them wrong
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

// auditor judges the completions of one run.
type auditor struct {
	o       Options
	graders map[string]rollout.Grader              // by name; nil for an unknown grader
	golds   map[string]map[string]*rollout.Problem // by stage and scope, by problem
	db      *store.DB
	found   []finding
	report  Report
}

// Run audits the recorded completions of a run.
func Run(ctx context.Context, db *store.DB, run store.Run, o Options) (*Report, error) {
	a := &auditor{o: o, db: db, graders: map[string]rollout.Grader{}, golds: map[string]map[string]*rollout.Problem{}}
	for _, name := range o.Graders {
		g, err := suite.Grader(name)
		if err != nil {
			return nil, err
		}
		a.graders[name] = g
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

// page reads and judges some samples, on all cores.
func (a *auditor) page(ctx context.Context, packs *blob.PackReader, rows []store.Sample) error {
	list, err := a.recorded(ctx, packs, rows)
	if err != nil {
		return err
	}
	found, errs := make([]finding, len(list)), make([]error, len(list))
	var wg sync.WaitGroup
	threads := runtime.GOMAXPROCS(0)
	for k := range threads {
		wg.Go(func() {
			for i := k; i < len(list); i += threads {
				found[i], errs[i] = a.judge(ctx, list[i])
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	a.found = append(a.found, found...)
	return ctx.Err()
}

// recorded reads the texts, verdicts and problems of samples.
func (a *auditor) recorded(ctx context.Context, packs *blob.PackReader, rows []store.Sample) ([]completion, error) {
	ids := make([]int64, len(rows))
	for i, row := range rows {
		ids[i] = row.ID
	}
	verdicts, err := a.db.Verdicts(ctx, ids)
	if err != nil {
		return nil, err
	}
	of := map[int64][]store.Verdict{}
	for _, v := range verdicts {
		of[v.Sample] = append(of[v.Sample], v)
	}
	var list []completion
	for _, row := range rows {
		if row.Ref.Pack.IsZero() {
			a.report.NotKept++
			continue
		}
		p, err := a.problem(ctx, row)
		if err != nil {
			return nil, err
		}
		if p == nil {
			a.report.NoGold++
			continue
		}
		c := completion{sample: row, problem: p}
		if err := packs.Read(row.Ref, &c.kept); err != nil {
			return nil, fmt.Errorf("sample %d of problem %s: %w", row.K, row.Item, err)
		}
		if c.kept.Graded != nil {
			c.kept.Text = *c.kept.Graded
		}
		switch c.verdict = rewarding(row, of[row.ID]); {
		case c.verdict == nil:
			a.report.NoVerdict++
		case !c.verdict.Graded:
			a.report.NotGraded++
			continue
		}
		list = append(list, c)
	}
	return list, a.known(list)
}

// rewarding returns the verdict that gave a sample its reward: the oldest with that reward, because later ones may
// be of other versions of the grader. An evaluation gives no rewards: its newest verdict counts.
func rewarding(s store.Sample, verdicts []store.Verdict) *store.Verdict {
	i := slices.IndexFunc(verdicts, func(v store.Verdict) bool { return v.Graded && v.Reward == s.Reward })
	if i >= 0 {
		return &verdicts[i]
	}
	return s.Verdict
}

// known makes the graders of the recorded verdicts that are not there yet.
func (a *auditor) known(list []completion) error {
	for _, c := range list {
		name := c.grader()
		if _, ok := a.graders[name]; ok {
			continue
		}
		a.graders[name] = nil
		if slices.Contains(suite.Graders(), name) {
			g, err := suite.Grader(name)
			if err != nil {
				return err
			}
			a.graders[name] = g
		}
	}
	return nil
}

// problem finds the problem of a sample among the problems that its stage read; nil if they are not recorded.
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

// Package explain says why a stage was executed instead of taken from the cache: which
// parameters, inputs, code, numerics or seed differ from the nearest earlier stage of
// its kind, in any run. It only reads the record.
package explain

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"runtime"
	"slices"
	"time"

	"exp/experiments/ident"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/plan"
)

// ErrNoStage is returned if a run has no stage of that name, or none at all.
var ErrNoStage = errors.New("no such stage")

// Run explains the stages of a run, in the schema exp.why/1.
type Run struct {
	Run    ident.Digest `json:"run"`
	Name   string       `json:"name"`
	Seed   int64        `json:"seed"`
	Reason string       `json:"reason,omitempty"` // why the run did not finish: a condition or an error
	Stages []Stage      `json:"stages"`
}

// Stage says what happened to a stage, and why.
type Stage struct {
	Name    string       `json:"stage"` // as in plan.Stage.Name: "eval.gen[test]"
	SID     ident.Digest `json:"sid"`
	Status  store.Status `json:"status"`
	Miss    Miss         `json:"miss"`
	Nearest *Nearest     `json:"nearest,omitempty"` // the stage it is compared with, or was taken from
	Reasons []Reason     `json:"reasons"`
}

// Miss says why a stage was executed; empty if it was not.
type Miss string

const (
	First   Miss = "first"   // no earlier stage of its kind
	Again   Miss = "again"   // the same stage was done before
	Differs Miss = "differs" // see Reasons
)

// Nearest is an earlier stage.
type Nearest struct {
	Run     ident.Digest `json:"run"`
	Name    string       `json:"name"`
	SID     ident.Digest `json:"sid"`
	Started time.Time    `json:"started"`
}

// OfRun explains the stages of a run in the order of their start, each as last executed.
// only limits them to one name or kind. It returns ErrNoStage if none is left.
func OfRun(ctx context.Context, db *store.DB, run store.Run, only string) (*Run, error) {
	all, err := db.Stages(ctx, run.ID)
	if err != nil {
		return nil, err
	}
	e := &Run{Run: run.RID, Name: run.Name, Seed: run.Seed, Stages: []Stage{}}
	if e.Reason, err = db.Reason(ctx, run.ID); err != nil {
		return nil, err
	}
	x := explainer{ctx: ctx, db: db, stages: all}
	for i := range all {
		s := &all[i]
		later := slices.ContainsFunc(all[i+1:], func(t store.Stage) bool { return t.SID == s.SID })
		if later || only != "" && only != planName(s) && only != s.Kind {
			continue
		}
		out, err := x.executed(s)
		if err != nil {
			return nil, err
		}
		e.Stages = append(e.Stages, out)
	}
	if len(e.Stages) == 0 {
		return nil, ErrNoStage
	}
	return e, nil
}

// Planned explains why stage i of a plan, with known sid and inputs, will be executed.
func Planned(
	ctx context.Context, db *store.DB, p *plan.Run, i int, sid ident.Digest, inputs map[string]ident.Digest,
) (*Stage, error) {
	s := p.Stages[i]
	params, err := json.Marshal(p.Params(i))
	if err != nil {
		return nil, err
	}
	code := p.Code[s.Kind]
	row := store.Stage{
		SID: sid, Kind: string(s.Kind), Label: s.Label, Params: params, Code: code.Digest,
		Numerics: p.Numerics, Seed: s.Seed,
	}
	for role, d := range inputs {
		row.Inputs = append(row.Inputs, store.IO{Role: role, Digest: d})
	}
	e := &Stage{Name: s.Name(), SID: sid, Reasons: []Reason{}}
	here := store.Source{Code: code.Digest, Go: runtime.Version(), Files: code.Files}
	x := explainer{ctx: ctx, db: db, here: map[ident.Digest]store.Source{code.Digest: here}}
	return e, x.miss(e, &row, math.MaxInt64, math.MaxInt64)
}

// planName returns the name that plans use for a stage: eval.gen[test].
func planName(s *store.Stage) string {
	return plan.Stage{Kind: config.Stage(s.Kind), Label: s.Label}.Name()
}

// explainer explains the stages of a run.
type explainer struct {
	ctx    context.Context
	db     *store.DB
	stages []store.Stage
	// here holds the sources of this program, which the store may lack.
	here map[ident.Digest]store.Source
}

// executed explains a stage that the run executed or took from the cache.
func (x explainer) executed(s *store.Stage) (Stage, error) {
	e := Stage{Name: planName(s), SID: s.SID, Status: s.Status, Reasons: []Reason{}}
	if s.Status == store.Cached {
		e.Nearest = &Nearest{Run: s.ReusedRun, SID: s.SID}
		if from, err := x.db.Run(x.ctx, s.ReusedRun); err == nil {
			e.Nearest.Name = from.Name
		}
		return e, nil
	}
	first := s.ID
	for _, t := range x.stages {
		if t.SID == s.SID {
			first = min(first, t.ID)
		}
	}
	err := x.miss(&e, s, s.ID, first)
	return e, err
}

// miss completes e, which explains s. Rows below at count as the same work done before,
// even in the same run; rows below first are candidates for comparison.
func (x explainer) miss(e *Stage, s *store.Stage, at, first int64) error {
	same, err := x.db.StagesBySID(x.ctx, s.SID)
	if err != nil {
		return err
	}
	for i := range same {
		if same[i].Status == store.Done && same[i].ID < at {
			e.Miss = Again
			e.Nearest, err = x.near(&same[i])
			return err
		}
	}
	before, err := x.db.StagesBefore(x.ctx, s.Kind, first)
	if err != nil {
		return err
	}
	if len(before) == 0 {
		e.Miss = First
		return nil
	}
	return x.compare(e, s, before)
}

// compare completes e with the differences between s and the nearest of the earlier
// stages; there is at least one.
func (x explainer) compare(e *Stage, s *store.Stage, before []store.Stage) error {
	e.Miss = Differs
	var prior *store.Stage
	for i := range before {
		t := &before[i]
		reasons, err := Differences(t, s)
		if err != nil {
			return err
		}
		if prior == nil || distance(reasons) <= distance(e.Reasons) { // the newest wins a tie
			prior, e.Reasons = t, reasons
		}
	}
	x.makers(s, e.Reasons)
	if prior.Code != s.Code {
		files, err := x.code(prior.Code, s.Code)
		if err != nil {
			return err
		}
		e.Reasons = append(slices.DeleteFunc(e.Reasons, func(r Reason) bool { return r.What == Code }), files...)
	}
	var err error
	e.Nearest, err = x.near(prior)
	return err
}

func (x explainer) near(s *store.Stage) (*Nearest, error) {
	r, err := x.db.RunByID(x.ctx, s.Run)
	return &Nearest{Run: r.RID, Name: r.Name, SID: s.SID, Started: s.Started}, err
}

// Package differ lists the differences between two recorded runs: configuration,
// sources, data and initial weights, environment, and the first step where their
// trajectories part. It finds causes; reports/compare compares results.
package differ

import (
	"context"

	"exp/experiments/ident"
	"exp/experiments/store"
)

// Parts selects the parts to compare.
type Parts struct{ Config, Code, Inputs, Env, Trajectory bool }

// All returns all parts.
func All() Parts { return Parts{Config: true, Code: true, Inputs: true, Env: true, Trajectory: true} }

// Options select the parts to compare, and how.
type Options struct {
	Parts Parts
	Lines bool // include the diff of source files
	// EnvText formats a value of an environment, decoded from JSON. Values with equal
	// texts are equal.
	EnvText func(name string, value any) string
}

// Diff lists the differences, in the schema exp.diff/1. Parts that were not requested
// are absent.
type Diff struct {
	A Run `json:"a"`
	B Run `json:"b"`
	// Identical: nothing that was compared differs.
	Identical  bool           `json:"identical"`
	First      *First         `json:"first,omitempty"` // nil if no stage read different things
	Config     []ConfigChange `json:"config,omitempty"`
	Code       []CodeChange   `json:"code,omitempty"`
	Inputs     []InputChange  `json:"inputs,omitempty"`
	Env        []EnvChange    `json:"env,omitempty"`
	Trajectory *Trajectory    `json:"trajectory,omitempty"`
}

// Run is one of the two runs.
type Run struct {
	Run      ident.Digest `json:"run"`
	XID      ident.Digest `json:"xid"`
	Name     string       `json:"name"`
	Algo     string       `json:"algo"`
	Seed     int64        `json:"seed"`
	Numerics string       `json:"numerics"`
	Status   store.Status `json:"status"`
	Chain    ident.Digest `json:"chain"`
}

func runOf(r store.Run) Run {
	return Run{
		Run: r.RID, XID: r.XID, Name: r.Name, Algo: r.Algo, Seed: r.Seed, Numerics: r.Numerics,
		Status: r.Status, Chain: r.Chain,
	}
}

// Runs compares run a with run b.
func Runs(ctx context.Context, db *store.DB, a, b store.Run, o Options) (*Diff, error) {
	r := differ{ctx: ctx, db: db, o: o, runs: [2]store.Run{a, b}, d: &Diff{A: runOf(a), B: runOf(b)},
		archives: map[ident.Digest]map[string][]byte{}}
	for i, run := range r.runs {
		var err error
		if r.stages[i], err = db.Stages(ctx, run.ID); err != nil {
			return nil, err
		}
	}
	for _, part := range []struct {
		on   bool
		read func() error
	}{
		{o.Parts.Config, r.config}, {o.Parts.Code, r.code}, {o.Parts.Inputs, r.inputs}, {o.Parts.Env, r.env},
		{o.Parts.Trajectory, r.trajectory},
	} {
		if !part.on {
			continue
		}
		if err := part.read(); err != nil {
			return nil, err
		}
	}
	if err := r.first(); err != nil {
		return nil, err
	}
	r.d.Identical = r.identical()
	return r.d, nil
}

// differ collects the differences of two runs in d.
type differ struct {
	ctx    context.Context
	db     *store.DB
	o      Options
	runs   [2]store.Run
	stages [2][]store.Stage
	d      *Diff
	// archives holds the files of the source archives read so far, by path.
	archives map[ident.Digest]map[string][]byte
}

func (r *differ) identical() bool {
	d := r.d
	if len(d.Config)+len(d.Code)+len(d.Inputs)+len(d.Env) > 0 {
		return false
	}
	if t := d.Trajectory; t != nil && (t.Step != 0 || t.StepsA != t.StepsB) {
		return false
	}
	return r.o.Parts != All() || d.A.Seed == d.B.Seed && d.A.Numerics == d.B.Numerics
}

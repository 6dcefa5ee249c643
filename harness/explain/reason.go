package explain

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"exp/experiments/ident"
	"exp/experiments/store"
	"exp/harness/config"
)

// Reason is one difference that caused a cache miss.
type Reason struct {
	What Cause  `json:"what"`
	Name string `json:"name"` // of the key, the role or the file; empty for numerics and seed
	// Old and New are the two values, nil where a side has none: JSON for a parameter, a
	// Digest for an input, a State for a file, otherwise a string or a Digest.
	Old any    `json:"old"`
	New any    `json:"new"`
	By  string `json:"by,omitempty"` // for an input: the stage of this run that made it
}

// Cause is a kind of difference.
type Cause string

const (
	Params   Cause = "params"
	Input    Cause = "input"
	Code     Cause = "code"
	Numerics Cause = "numerics"
	Seed     Cause = "seed"
)

// State is the state of a source file.
type State string

const (
	Present State = "there"
	Changed State = "changed"
)

// distance counts first how many kinds of things differ, then how many things.
func distance(list []Reason) int {
	kinds := map[Cause]bool{}
	for _, r := range list {
		kinds[r.What] = true
	}
	return 1000*len(kinds) + len(list)
}

// Differences compares the parts of two stages' ids; for code it only says that it
// differs.
func Differences(old, new *store.Stage) ([]Reason, error) {
	reasons := []Reason{}
	var params [2]map[string]any
	inputs := [2]map[string]any{{}, {}}
	for i, s := range []*store.Stage{old, new} {
		if err := json.Unmarshal(s.Params, &params[i]); err != nil {
			return nil, fmt.Errorf("parameters of stage %s: %w", s.SID.Short(), err)
		}
		if s.Label != "" {
			params[i]["suite"] = s.Label
		}
		for _, io := range s.Inputs {
			inputs[i][io.Role] = io.Digest
		}
	}
	compare := func(what Cause, names []string, of [2]map[string]any) {
		for _, name := range names {
			a, inA := of[0][name]
			b, inB := of[1][name]
			if inA != inB || !reflect.DeepEqual(a, b) {
				reasons = append(reasons, Reason{What: what, Name: name, Old: a, New: b})
			}
		}
	}
	compare(Params, config.InOrder(params[0], params[1]), params)
	roles := slices.AppendSeq(slices.Collect(maps.Keys(inputs[0])), maps.Keys(inputs[1]))
	slices.Sort(roles)
	compare(Input, slices.Compact(roles), inputs)
	if old.Code != new.Code {
		reasons = append(reasons, Reason{What: Code, Old: old.Code, New: new.Code})
	}
	if old.Numerics != new.Numerics && new.Kind != string(config.Prepare) { // prepare computes no numbers
		reasons = append(reasons, Reason{What: Numerics, Old: old.Numerics, New: new.Numerics})
	}
	if old.Seed != new.Seed {
		reasons = append(reasons, Reason{What: Seed, Old: old.Seed, New: new.Seed})
	}
	return reasons, nil
}

// makers names the stage of the run that made each differing input.
func (x explainer) makers(new *store.Stage, reasons []Reason) {
	for i := range reasons {
		r := &reasons[i]
		if r.What != Input {
			continue
		}
		for k := range x.stages {
			s := &x.stages[k]
			if s.ID < new.ID && slices.ContainsFunc(s.Outputs, func(o store.IO) bool { return o.Digest == r.New }) {
				r.By = planName(s)
			}
		}
	}
}

// code lists the files that differ between two states of the sources.
func (x explainer) code(old, new ident.Digest) ([]Reason, error) {
	a, errA := x.source(old)
	b, errB := x.source(new)
	if errors.Is(errA, store.ErrNotFound) || errors.Is(errB, store.ErrNotFound) {
		return []Reason{{What: Code, Name: "sources that are not in the store", Old: old, New: new}}, nil
	}
	if err := errors.Join(errA, errB); err != nil {
		return nil, err
	}
	var list []Reason
	if a.Go != b.Go {
		list = append(list, Reason{What: Code, Name: "Go compiler", Old: a.Go, New: b.Go})
	}
	for _, c := range ident.CompareFiles(a.Files, b.Files) {
		r := Reason{What: Code, Name: c.Path}
		switch c.Change {
		case ident.OnlyInA:
			r.Old = Present
		case ident.OnlyInB:
			r.New = Present
		case ident.Changed:
			r.Old, r.New = Present, Changed
		}
		list = append(list, r)
	}
	return list, nil
}

func (x explainer) source(code ident.Digest) (store.Source, error) {
	if s, ok := x.here[code]; ok {
		return s, nil
	}
	return x.db.Source(x.ctx, code)
}

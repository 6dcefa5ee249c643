package differ

import (
	"slices"

	"exp/experiments/store"
	"exp/harness/explain"
)

// First is the first thing that differs between two runs, in the order of their stages. Later
// stages may read other things because of it.
type First struct {
	Stage string `json:"stage"` // kind and label
	explain.Reason
}

// first finds the first stage that read different things, and what. A stage that one of the runs
// did not execute is left out.
func (r *differ) first() error {
	var seen []string
	for i := range r.stages[0] {
		name := r.stages[0][i].Name()
		if slices.Contains(seen, name) {
			continue
		}
		seen = append(seen, name)
		a, b := newest(r.stages[0], name), newest(r.stages[1], name)
		if b == nil {
			continue
		}
		reasons, err := explain.Differences(a, b)
		if err != nil {
			return err
		}
		if len(reasons) > 0 {
			r.d.First = &First{Stage: name, Reason: reasons[0]}
			return nil
		}
	}
	return nil
}

// newest returns the last record of a stage, or nil.
func newest(stages []store.Stage, name string) *store.Stage {
	for i := len(stages) - 1; i >= 0; i-- {
		if stages[i].Name() == name {
			return &stages[i]
		}
	}
	return nil
}

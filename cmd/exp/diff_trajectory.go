package main

import (
	"context"
	"math"
	"slices"

	"exp/experiments/ident"
	"exp/experiments/store"
)

// trajectoryDiff says where two trajectories part. The chains themselves begin with
// the run's id and so always differ between two runs; what is compared is what
// enters them at each step.
type trajectoryDiff struct {
	StepsA int64 `json:"steps_a"`
	StepsB int64 `json:"steps_b"`
	Equal  int64 `json:"equal"` // steps from the first on that are equal bit for bit
	// Step is the first that differs, Field the first thing in it that does, in the
	// order in which a step makes them: items, tokens, logprobs, rewards, params,
	// metrics.NAME. 0 and empty if none of the common steps does.
	Step    int64          `json:"step"`
	Field   string         `json:"field"`
	Metrics []metricChange `json:"metrics"` // of that step, those that differ
}

// metricChange is a deterministic metric at the first step that differs; null where
// a run has it not.
type metricChange struct {
	Name string `json:"name"`
	A    any    `json:"a"`
	B    any    `json:"b"`
}

func (r *runDiffer) trajectory() error {
	var steps [2][]store.StepRow
	var metrics [2]map[int64]map[string]float64
	for i, run := range r.runs {
		var err error
		if steps[i], err = r.db.Steps(r.ctx, run.ID, 0, store.AllSteps); err != nil {
			return err
		}
		if metrics[i], err = detMetrics(r.ctx, r.db, run.ID); err != nil {
			return err
		}
	}
	t := &trajectoryDiff{StepsA: int64(len(steps[0])), StepsB: int64(len(steps[1])), Metrics: []metricChange{}}
	r.d.Trajectory = t
	for i := range min(len(steps[0]), len(steps[1])) {
		a, b := steps[0][i].Det, steps[1][i].Det
		a.Metrics, b.Metrics = metrics[0][a.Step], metrics[1][b.Step]
		if a.Params.IsZero() || b.Params.IsZero() { // not taken at this step by one of them
			a.Params, b.Params = ident.Digest{}, ident.Digest{}
		}
		if field := a.Differs(b); field != "" {
			t.Step, t.Field = a.Step, field
			t.Metrics = metricChanges(a.Metrics, b.Metrics)
			return nil
		}
		t.Equal++
	}
	return nil
}

// detMetrics returns the deterministic metrics of a run by step and name.
func detMetrics(ctx context.Context, db *store.DB, run int64) (map[int64]map[string]float64, error) {
	curves, err := db.Metrics(ctx, run, "", 0, store.AllSteps)
	if err != nil {
		return nil, err
	}
	byStep := map[int64]map[string]float64{}
	for _, c := range curves {
		if !c.Det {
			continue
		}
		for i, step := range c.Steps {
			if byStep[step] == nil {
				byStep[step] = map[string]float64{}
			}
			byStep[step][c.Name] = c.Values[i]
		}
	}
	return byStep, nil
}

// metricChanges lists the metrics that differ, those that both have first, by name.
func metricChanges(a, b map[string]float64) []metricChange {
	var names []string
	for name := range a {
		names = append(names, name)
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	both, one := []metricChange{}, []metricChange{}
	for _, name := range names {
		x, inA := a[name]
		y, inB := b[name]
		switch {
		case inA && inB && math.Float64bits(x) != math.Float64bits(y):
			both = append(both, metricChange{name, x, y})
		case inA && !inB:
			one = append(one, metricChange{name, x, nil})
		case inB && !inA:
			one = append(one, metricChange{name, nil, y})
		}
	}
	return append(both, one...)
}

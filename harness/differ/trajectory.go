package differ

import (
	"math"
	"slices"

	"exp/experiments/ident"
	"exp/experiments/store"
)

// Trajectory says where two trajectories part. Chains start from the run's id and so
// always differ between two runs; this compares what enters them at each step.
type Trajectory struct {
	StepsA int64 `json:"steps_a"`
	StepsB int64 `json:"steps_b"`
	Equal  int64 `json:"equal"` // leading steps that are equal bit for bit
	// Step is the first that differs and Field the first field of it that does; 0 and
	// empty if all common steps are equal.
	Step    int64          `json:"step"`
	Field   ident.Field    `json:"field"`
	Metrics []MetricChange `json:"metrics"` // metrics of that step that differ
}

// MetricChange is a deterministic metric at the first step that differs; nil if a run
// lacks it.
type MetricChange struct {
	Name string   `json:"name"`
	A    *float64 `json:"a"`
	B    *float64 `json:"b"`
}

func (r *differ) trajectory() error {
	var steps [2][]store.StepRow
	var metrics [2]map[int64]map[string]float64
	for i, run := range r.runs {
		var err error
		if steps[i], err = r.db.Steps(r.ctx, run.ID, 0, store.AllSteps); err != nil {
			return err
		}
		curves, err := r.db.Metrics(r.ctx, run.ID, "", 0, store.AllSteps)
		if err != nil {
			return err
		}
		metrics[i] = store.DetByStep(curves)
	}
	t := &Trajectory{StepsA: int64(len(steps[0])), StepsB: int64(len(steps[1])), Metrics: []MetricChange{}}
	r.d.Trajectory = t
	for i := range min(len(steps[0]), len(steps[1])) {
		a, b := steps[0][i].Det, steps[1][i].Det
		a.Metrics, b.Metrics = metrics[0][a.Step], metrics[1][b.Step]
		if a.Params.IsZero() || b.Params.IsZero() { // one of them has no digest at this step
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

// metricChanges lists the metrics that differ by name; the ones that both have come first.
func metricChanges(a, b map[string]float64) []MetricChange {
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
	both, one := []MetricChange{}, []MetricChange{}
	for _, name := range names {
		x, inA := a[name]
		y, inB := b[name]
		switch {
		case inA && inB && math.Float64bits(x) != math.Float64bits(y):
			both = append(both, MetricChange{name, &x, &y})
		case inA && !inB:
			one = append(one, MetricChange{name, &x, nil})
		case inB && !inA:
			one = append(one, MetricChange{name, nil, &y})
		}
	}
	return append(both, one...)
}

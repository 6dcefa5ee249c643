package run

import (
	"math"
	"slices"

	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/metric"
	"exp/train/rl"
)

// liveSteps tells the store the steps of a stage before training that keeps its curve until it ends; of other stages,
// nothing.
type liveSteps struct {
	kind string
	file *store.LiveSteps // nil: nothing to tell
}

// liveSteps returns the steps of stage i, whose row has begun. Its owner must close them.
func (x *execution) liveSteps(i int, row store.Stage) liveSteps {
	kind := x.p.Stages[i].Kind
	if !slices.Contains(kind.Facts().Makes, config.RoleCurve) {
		return liveSteps{}
	}
	return liveSteps{string(kind), x.DB.NewLiveSteps(x.run.RID, row.SID)}
}

// add tells of a finished step what the stage will keep of it.
func (l liveSteps) add(step int, measured []rl.Metric) {
	if l.file == nil {
		return
	}
	kept := map[string]float64{}
	for _, m := range measured {
		s, _ := metric.StageOf(m.Name)
		if s.Name == l.kind && !math.IsNaN(m.Value) && !math.IsInf(m.Value, 0) {
			kept[m.Name] = m.Value
		}
	}
	l.file.Add(step, kept)
}

// Close ends the telling.
func (l liveSteps) Close() {
	if l.file != nil {
		l.file.Close()
	}
}

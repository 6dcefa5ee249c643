package reports

import (
	"math"

	"exp/harness/metric"
	"exp/reports/figure"
)

// phases draws the time per step and phase: the sum over steps divided by the number of
// steps, mean over seeds. A phase of every tenth step counts a tenth.
func phases(arms []*arm) figure.Phases {
	f := figure.Phases{Head: figure.Head{Name: "phases", Title: "Time by phase of a training step",
		Order: labels(arms),
		About: "Wall-clock time of each phase, summed over the steps of a run and divided by their number, mean " +
			"over seeds (timing_s/…)"},
		Per: "per step"}
	table := make([][]float64, len(arms))
	for _, p := range metric.Phases() {
		some := false
		row := make([]float64, len(arms))
		for i, a := range arms {
			// A method without the phase spends no time in it.
			if v, n := a.mean(func(r *run) float64 { return r.perStep(p.Name) }); n > 0 {
				row[i] = v
			}
			some = some || row[i] > 0
		}
		if !some {
			continue
		}
		f.Phases = append(f.Phases, p.InSentence())
		for i := range arms {
			table[i] = append(table[i], row[i])
		}
	}
	for i, a := range arms {
		f.Rows = append(f.Rows, figure.PhaseRow{Name: a.label, Seconds: table[i]})
	}
	return f
}

// perStep returns the sum of a series divided by the run's steps, NaN without the series.
func (r *run) perStep(metric string) float64 {
	c, ok := r.curves[metric]
	if !ok || r.Steps == 0 {
		return math.NaN()
	}
	var sum float64
	for _, v := range c.Values {
		if !math.IsNaN(v) {
			sum += v
		}
	}
	return sum / float64(r.Steps)
}

package serve

import (
	"context"
	"math"
	"slices"
	"strconv"

	"exp/experiments/quantity"
	"exp/experiments/store"
	"exp/harness/metric"
)

// phases is the time of the parts of the newest step.
type phases struct {
	Step  int64
	Total string
	Parts []phase
	Over  string // steps of the mean: "6 steps"
}

// phase is a part of a step.
type phase struct {
	Name        string
	Last, Mean  string
	Start, Wide string // of its bar, in percent
	Class       string
}

// phasesOf reads the parts of the newest step.
func (s *Server) phasesOf(ctx context.Context, run store.Run) (p phases, err error) {
	step, err := s.db.Metrics(ctx, run.ID, "timing_s/step", max(0, run.Steps-phaseSteps+1), store.AllSteps)
	if err != nil || len(step) == 0 || len(step[0].Steps) == 0 {
		return p, err
	}
	last := len(step[0].Steps) - 1
	p.Step, p.Over = step[0].Steps[last], quantity.Plural(last+1, "step")
	curves, err := s.db.Metrics(ctx, run.ID, "timing_s/*", step[0].Steps[0], p.Step)
	if err != nil {
		return p, err
	}
	var sum float64
	type part struct {
		name       string
		last, mean float64
		place      int
	}
	var parts []part
	for i, m := range metric.Phases() {
		at := slices.IndexFunc(curves, func(c store.Curve) bool { return c.Name == m.Name })
		if at < 0 {
			continue
		}
		x := part{name: m.Title, place: i}
		for k, v := range curves[at].Values {
			if math.IsNaN(v) {
				continue
			}
			x.mean += v / float64(last+1)
			if curves[at].Steps[k] == p.Step {
				x.last = v
			}
		}
		sum += x.last
		parts = append(parts, x)
	}
	p.Total = quantity.Duration(quantity.Seconds(sum))
	var start float64
	for _, x := range parts {
		share := 0.0
		if sum > 0 {
			share = 100 * x.last / sum
		}
		p.Parts = append(p.Parts, phase{Name: x.name, Last: seconds(x.last), Mean: seconds(x.mean),
			Start: percent(start), Wide: percent(share), Class: "p" + strconv.Itoa(x.place)})
		start += share
	}
	return p, nil
}

func percent(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) + "%" }

// seconds is a duration that may be far below a second.
func seconds(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v < 1e-3:
		return quantity.Fixed(v*1e6, 0) + " µs"
	case v < 1:
		return quantity.Fixed(v*1e3, 1) + " ms"
	}
	return quantity.Duration(quantity.Seconds(v))
}

package serve

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"exp/experiments/ident"
	"exp/experiments/recorded"
	"exp/experiments/store"
	"exp/harness/metric"
	"exp/reports/figure"
)

// mostStages bounds the curves of stages that are kept, of a megabyte each at most.
const mostStages = 64

// stageCache keeps the curves of stages that have ended; runs share them.
type stageCache struct {
	mu   sync.Mutex
	kept map[ident.Digest][]store.Curve
}

// read returns the curves of a stage, by name.
func (c *stageCache) read(db *store.DB, of recorded.StageCurve) ([]store.Curve, error) {
	if of.Live {
		return of.Read(db)
	}
	c.mu.Lock()
	curves, ok := c.kept[of.Key]
	c.mu.Unlock()
	if ok {
		return curves, nil
	}
	curves, err := of.Read(db)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil || len(c.kept) >= mostStages {
		c.kept = map[ident.Digest][]store.Curve{}
	}
	c.kept[of.Key] = curves
	return curves, nil
}

// stageCurves finds the curves of a run's stages before training, also of one that has not ended.
func (s *Server) stageCurves(ctx context.Context, run store.Run) ([]recorded.StageCurve, error) {
	var kinds []string
	for _, st := range metric.Stages() {
		kinds = append(kinds, st.Name)
	}
	stages, err := s.db.Stages(ctx, run.ID)
	return recorded.StageCurves(s.db, run, stages, kinds, true), err
}

// stageMetrics lists the metrics that stages before training recorded, of the first run of each arm: the seeds of an
// arm share them. A curve that cannot be read has none; the page of its run says why.
func (s *Server) stageMetrics(ctx context.Context, arms []arm) (names []string, err error) {
	for _, a := range arms {
		found, err := s.stageCurves(ctx, a.Runs[0])
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			curves, err := s.stages.read(s.db, f)
			if err != nil {
				continue
			}
			for _, c := range curves {
				if !slices.Contains(names, c.Name) {
					names = append(names, c.Name)
				}
			}
		}
	}
	return names, nil
}

// stageDefaults returns the names that the page of a run draws unless asked otherwise.
func stageDefaults(names []string) (list []string) {
	for _, st := range metric.Stages() {
		for _, name := range st.Curves {
			if slices.Contains(names, name) {
				list = append(list, name)
			}
		}
	}
	return list
}

// stageLine is a line of a stage's metric, which several arms may share. It is named by the first.
type stageLine struct {
	figure.Arm
	of []string // labels of the arms
}

// readStages reads the metrics that stages before training recorded, by name.
func (s *Server) readStages(ctx context.Context, arms []arm, metrics []string) (map[string][]stageLine, error) {
	all := map[string][][]recorded.KeyedCurve{}
	for _, name := range metrics {
		if _, before := metric.StageOf(name); before {
			all[name] = make([][]recorded.KeyedCurve, len(arms))
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	for i, a := range arms {
		for _, r := range a.Runs {
			found, err := s.stageCurves(ctx, r)
			if err != nil {
				return nil, err
			}
			for _, f := range found {
				curves, err := s.stages.read(s.db, f)
				if err != nil {
					return nil, err
				}
				for _, c := range curves {
					if of, wanted := all[c.Name]; wanted {
						of[i] = append(of[i], recorded.KeyedCurve{Key: f.Key, Curve: c})
					}
				}
			}
		}
	}
	out := map[string][]stageLine{}
	for name, of := range all {
		for _, shared := range recorded.ShareCurves(of) {
			out[name] = append(out[name], stageLineOf(arms, shared))
		}
	}
	return out, nil
}

func stageLineOf(arms []arm, shared recorded.SharedCurve) (l stageLine) {
	l.Name = arms[shared.Arms[0]].Label
	for _, i := range shared.Arms {
		l.of = append(l.of, arms[i].Label)
	}
	last := int64(0)
	for _, c := range shared.Curves {
		last = max(last, c.LastStep)
	}
	middle := func(sp store.Span) (float64, bool) { return float64(sp.From+sp.To) / 2, true }
	grid := store.Grid{To: roundedUp(last), N: curvePoints}
	for _, c := range shared.Curves {
		l.Seeds = append(l.Seeds, seriesOf(spansOf(c.Curve, grid), middle))
	}
	return l
}

// spansOf summarises a curve on a grid, as store.DB.Spans does.
func spansOf(c store.Curve, g store.Grid) (list []store.Span) {
	width := g.Width()
	sums := 0.0 // of the last span
	counted := 0
	for i, step := range c.Steps {
		start := g.From + (step-g.From)/width*width
		if len(list) == 0 || list[len(list)-1].Start != start {
			nan := math.NaN()
			list = append(list, store.Span{Start: start, From: step, Min: nan, Max: nan, Mean: nan})
			sums, counted = 0, 0
		}
		sp := &list[len(list)-1]
		sp.To, sp.N = step, sp.N+1
		v := c.Values[i]
		if math.IsNaN(v) {
			continue
		}
		if !(sp.Min <= v) {
			sp.Min = v
		}
		if !(sp.Max >= v) {
			sp.Max = v
		}
		sums, counted = sums+v, counted+1
		sp.Mean = sums / float64(counted)
	}
	return list
}

// lines returns the lines as arms of a figure, and the same for each arm that shares one.
func lines(list []stageLine) (drawn, all []figure.Arm) {
	for _, l := range list {
		drawn = append(drawn, l.Arm)
		for _, name := range l.of {
			copied := l.Arm
			copied.Name = name
			all = append(all, copied)
		}
	}
	return drawn, all
}

// stageNote says what the axis counts, and which arms share a line.
func stageNote(st metric.Stage, list []stageLine) string {
	parts := []string{"x: " + st.Step}
	for _, l := range list {
		if len(l.of) > 1 {
			parts = append(parts, fmt.Sprintf("one line for %s, which share the stage", strings.Join(l.of, ", ")))
		}
	}
	return strings.Join(parts, "; ")
}

package serve

import (
	"context"
	"fmt"
	"testing"

	"exp/experiments/ident"
	"exp/experiments/store"
	"exp/reports/compare"
)

// A metric of a short run alone has all its points next to a run of many steps, in the chart and in its
// values, which are read apart.
func TestGridOfMetric(t *testing.T) {
	study := newStudy(t)
	record := func(name, metric string, steps int64) arm {
		run, at, _ := study.begin(name, "ppo", 0, steps)
		w := study.db.NewStepWriter(run.ID, at.ID, nil)
		for n := int64(1); n <= steps; n++ {
			det := ident.Det{Step: n, Metrics: map[string]float64{metric: float64(n), "actor/entropy": 1}}
			study.must(w.Record(store.Step{Det: det, Chain: digestOf(fmt.Sprint(name, n))}))
		}
		study.must(w.Close())
		return arm{Arm: compare.Arm{Label: name, Runs: []store.Run{run}}}
	}
	arms := []arm{record("short", "critic/vf_loss", 6), record("long", "actor/log_z", 1200)}
	s := newSite(t, study)
	ctx, p := context.Background(), plotted{x: "step"}
	page, err := s.server.readCurves(ctx, arms, []string{"critic/vf_loss", "actor/log_z", "actor/entropy"}, p)
	study.must(err)
	alone, err := s.server.readCurves(ctx, arms, []string{"critic/vf_loss"}, p)
	study.must(err)
	points, values := page["critic/vf_loss"][0].Seeds[0].Y, alone["critic/vf_loss"][0].Seeds[0].Y
	if len(points) != 6 || len(values) != 6 {
		t.Errorf("%d points in the chart, %d values, want 6", len(points), len(values))
	}
	if n := len(page["actor/log_z"][0].Seeds[0].Y); n > curvePoints {
		t.Errorf("%d points, more than %d", n, curvePoints)
	}
}

package reports

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"exp/experiments/quantity"
	"exp/experiments/store"
	"exp/harness/config"
)

// stageCost is the cost of a stage in an arm.
type stageCost struct {
	Kind     string  `json:"kind"`
	Label    string  `json:"label,omitempty"`
	Arm      string  `json:"arm"`
	Executed int     `json:"executed"` // runs of the arm that executed it
	Reused   int     `json:"reused"`   // runs that took the result of an earlier execution
	Seconds  number  `json:"seconds"`  // per execution, mean; of a stage that was only reused, the reused execution
	CPU      number  `json:"cpu_seconds"`
	PeakMem  int64   `json:"peak_bytes"` // the largest
	seconds  float64 // Seconds
}

func (c stageCost) name() string {
	if c.Label == "" {
		return c.Kind
	}
	return c.Kind + " " + c.Label
}

// stageCosts sums up the stages of each arm, [stages][arms] in the order of execution.
func (s *source) stageCosts(ctx context.Context) ([][]stageCost, error) {
	var names []string
	for _, r := range eachRun(s.arms) {
		for _, st := range r.stages {
			if key := st.Kind + "\x00" + st.Label; !slices.Contains(names, key) {
				names = append(names, key)
			}
		}
	}
	var out [][]stageCost
	for _, key := range names {
		kind, label, _ := strings.Cut(key, "\x00")
		var row []stageCost
		for _, a := range s.arms {
			c, err := s.stageCost(ctx, a, kind, label)
			if err != nil {
				return nil, err
			}
			row = append(row, c)
		}
		out = append(out, row)
	}
	return out, nil
}

func (s *source) stageCost(ctx context.Context, a *arm, kind, label string) (stageCost, error) {
	out := stageCost{Kind: kind, Label: label, Arm: a.Name}
	var wall, cpu float64
	var reused []store.Stage
	for _, r := range a.Runs {
		for _, st := range r.stages {
			if st.Kind != kind || st.Label != label {
				continue
			}
			switch st.Status {
			case store.Done, store.Repeated:
				out.Executed++
				wall, cpu = wall+st.WallS, cpu+st.CPUS
				out.PeakMem = max(out.PeakMem, st.PeakMem)
			case store.Cached:
				out.Reused++
				reused = append(reused, st)
			}
		}
	}
	n := out.Executed
	if n == 0 && len(reused) > 0 {
		first, err := s.executed(ctx, reused[0])
		if err != nil {
			return out, err
		}
		wall, cpu, out.PeakMem, n = first.WallS, first.CPUS, first.PeakMem, 1
	}
	out.seconds = wall / float64(n)
	out.Seconds, out.CPU = number(out.seconds), number(cpu/float64(n))
	return out, nil
}

// executed returns the execution whose outputs a stage reused.
func (s *source) executed(ctx context.Context, reused store.Stage) (store.Stage, error) {
	all, err := s.db.StagesBySID(ctx, reused.SID)
	if err != nil {
		return store.Stage{}, err
	}
	for _, st := range all {
		if st.ID == reused.ReusedFrom {
			return st, nil
		}
	}
	return store.Stage{StageResult: store.StageResult{WallS: math.NaN(), CPUS: math.NaN()}}, nil
}

// stageGrid shows the time per stage.
func (s *source) stageGrid(costs [][]stageCost) *grid {
	g := &grid{Caption: "Wall-clock time by stage", Columns: []column{left("stage")},
		Note: text("Time per execution, mean over the seeds that executed the stage. Stages with equal inputs " +
			"run once and share the result: “shared” marks the time of that one execution, which other arms may " +
			"share.")}
	for _, a := range s.arms {
		g.Columns = append(g.Columns, right(a.Name))
	}
	for _, row := range costs {
		cells := []line{text("%s", row[0].name())}
		for _, c := range row {
			cells = append(cells, c.cell())
		}
		g.add(cells...)
	}
	return g
}

func (c stageCost) cell() line {
	l := text("%s", quantity.TypesetSeconds(c.seconds))
	if c.Executed == 0 && c.Reused > 0 {
		l = line{styled(muted, "shared ")}.with(l...)
	}
	return l
}

// costGrid shows the training cost per run of each arm.
func (s *source) costGrid(costs [][]stageCost) *grid {
	g := &grid{Caption: "Training", Columns: []column{left("per run, mean over seeds")}}
	for _, a := range s.arms {
		g.Columns = append(g.Columns, right(a.Name))
	}
	row := func(title string, cell func(a *arm) string) {
		cells := []line{text("%s", title)}
		for _, a := range s.arms {
			cells = append(cells, text("%s", cell(a)))
		}
		g.add(cells...)
	}
	row("training steps", func(a *arm) string {
		return meanCount(a,
			func(r *run) float64 { return float64(r.Steps) })
	})
	row("sampled tokens", func(a *arm) string {
		return meanCount(a,
			func(r *run) float64 { return float64(r.Tokens) })
	})
	row("tokens per second", func(a *arm) string {
		v, _ := a.mean(func(r *run) float64 { return r.perStep("perf/total_num_tokens") / r.perStep("timing_s/step") })
		if v >= 1000 {
			return quantity.TypesetCount(int64(math.Round(v)))
		}
		return quantity.TypesetShort(v)
	})
	row("seconds per step", func(a *arm) string {
		v, _ := a.mean(func(r *run) float64 { return r.perStep("timing_s/step") })
		return quantity.TypesetShort(v)
	})
	row("peak training memory", func(a *arm) string {
		for _, stage := range costs {
			for _, c := range stage {
				if c.Kind == string(config.Train) && c.Arm == a.Name && c.PeakMem > 0 {
					return quantity.Bytes(c.PeakMem)
				}
			}
		}
		return absent
	})
	return g
}

func meanCount(a *arm, value func(*run) float64) string {
	v, n := a.mean(value)
	if n == 0 {
		return absent
	}
	return quantity.TypesetCount(int64(math.Round(v)))
}

// devices lists the devices that executed an arm's runs.
func (a *arm) devices() string {
	var all []string
	for _, r := range a.Runs {
		if d := fmt.Sprintf("%s (%s)", r.Device, r.Numerics); !slices.Contains(all, d) {
			all = append(all, d)
		}
	}
	return strings.Join(all, ", ")
}

package compare

import (
	"context"
	"slices"
	"strings"

	"exp/experiments/store"
	"exp/harness/config"
)

// addCosts sums up the costs of the arms' runs.
func (c *comparison) addCosts(ctx context.Context) error {
	for _, s := range c.arms {
		var sum Cost
		var machines []string
		for _, r := range s.runs {
			if err := c.addCost(ctx, &sum, r); err != nil {
				return err
			}
			if d := r.run.Device; d != "" && !slices.Contains(machines, d) {
				machines = append(machines, d)
			}
		}
		n := float64(len(s.runs))
		slices.Sort(machines)
		c.result.Cost = append(c.result.Cost, Cost{Steps: sum.Steps / n, Tokens: sum.Tokens / n,
			TrainS:    sum.TrainS / n,
			UpstreamS: sum.UpstreamS / n, EvalS: sum.EvalS / n, Machine: strings.Join(machines, ", ")})
	}
	return nil
}

func (c *comparison) addCost(ctx context.Context, sum *Cost, r *record) error {
	sum.Steps += float64(r.run.Steps)
	sum.Tokens += float64(r.run.Tokens)
	for _, key := range sortedKeys(r.stages) {
		st := r.stages[key]
		seconds, err := c.took(ctx, st)
		if err != nil {
			return err
		}
		switch config.Stage(st.Kind).Facts().Part {
		case config.Learning:
			sum.TrainS += seconds + r.stoppedS
		case config.Upstream:
			sum.UpstreamS += seconds
		case config.Evaluating:
			if !strings.HasSuffix(st.Label, startSuffix) {
				sum.EvalS += seconds
			}
		}
	}
	return nil
}

// took returns the duration of a stage's execution; for a reused stage, of the original.
func (rd *reader) took(ctx context.Context, st store.Stage) (float64, error) {
	if st.Status != store.Cached {
		return st.WallS, nil
	}
	if s, ok := rd.walls[st.SID]; ok {
		return s, nil
	}
	all, err := rd.db.StagesBySID(ctx, st.SID)
	if err != nil {
		return 0, err
	}
	for _, o := range all {
		if o.ID == st.ReusedFrom {
			rd.walls[st.SID] = o.WallS
		}
	}
	return rd.walls[st.SID], nil
}

package stage

import (
	"context"
	"fmt"

	"exp/train/rollout"
)

// saidGrader lets an agent's own verdict stand, where it gave one.
type saidGrader struct{ rollout.Grader }

// Components implements rollout.ComponentGrader.
func (g saidGrader) Components() []string { return rollout.ComponentNames(g.Grader) }

// said returns the agent's verdict of a completion; nil if it gave none.
func (g saidGrader) said(p *rollout.Problem, c *rollout.Completion) (*rollout.Verdict, error) {
	v := c.AgentVerdict
	if v != nil && v.Status == rollout.Graded && len(g.Components()) > 0 {
		return nil, fmt.Errorf("problem %s: the agent gives a score, which has no parts, and reward.components names "+
			"some: leave out the score, or reward.components", p.ID)
	}
	return v, nil
}

// Grade implements rollout.Grader.
func (g saidGrader) Grade(ctx context.Context, p *rollout.Problem, c *rollout.Completion) (rollout.Verdict, error) {
	if v, err := g.said(p, c); v != nil || err != nil {
		if err != nil {
			return rollout.Verdict{}, err
		}
		return *v, nil
	}
	return g.Grader.Grade(ctx, p, c)
}

// saidBatchGrader is saidGrader for a grader that judges many completions at once.
type saidBatchGrader struct {
	saidGrader
	batch rollout.BatchGrader
}

// GradeAll implements rollout.BatchGrader.
func (g saidBatchGrader) GradeAll(ctx context.Context, items []rollout.Item) ([]rollout.Verdict, error) {
	all := make([]rollout.Verdict, len(items))
	var rest []rollout.Item
	var place []int
	for i, it := range items {
		switch v, err := g.said(it.Problem, it.Completion); {
		case err != nil:
			return nil, err
		case v != nil:
			all[i] = *v
		default:
			rest, place = append(rest, it), append(place, i)
		}
	}
	if len(rest) == 0 {
		return all, nil
	}
	verdicts, err := g.batch.GradeAll(ctx, rest)
	if err != nil {
		return nil, err
	}
	if len(verdicts) != len(rest) {
		return nil, fmt.Errorf("the grader returned %d verdicts for %d completions", len(verdicts), len(rest))
	}
	for i, v := range verdicts {
		all[place[i]] = v
	}
	return all, nil
}

// heeds wraps a grader where an agent may give verdicts.
func (e *Env) heeds(g rollout.Grader) rollout.Grader {
	if !e.run().Rollout.Tools.Agent() {
		return g
	}
	w := saidGrader{g}
	if batch, ok := g.(rollout.BatchGrader); ok {
		return saidBatchGrader{w, batch}
	}
	return w
}

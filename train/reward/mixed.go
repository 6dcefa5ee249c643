package reward

import (
	"context"

	"exp/train/rollout"
)

// Mixed grades the problems of one kind by one grader, and all others by another, each in one call: a scorer judges
// chats alone, and the task's verdicts on the other problems stay as they are. It is safe for concurrent use.
type Mixed struct {
	kind       string
	of, others *Grader // with the same components
}

// NewMixed returns a grader that gives problems of a kind (rollout.Problem.Kind) to of, and others to others.
func NewMixed(kind string, of, others *Grader) *Mixed { return &Mixed{kind, of, others} }

// Components implements rollout.ComponentGrader.
func (m *Mixed) Components() []string { return m.of.names }

// Grade implements rollout.Grader.
func (m *Mixed) Grade(ctx context.Context, p *rollout.Problem, c *rollout.Completion) (rollout.Verdict, error) {
	if p.Kind == m.kind {
		return m.of.Grade(ctx, p, c)
	}
	return m.others.Grade(ctx, p, c)
}

// GradeAll implements rollout.BatchGrader.
func (m *Mixed) GradeAll(ctx context.Context, items []rollout.Item) ([]rollout.Verdict, error) {
	verdicts := make([]rollout.Verdict, len(items))
	for _, g := range []*Grader{m.others, m.of} {
		var list []rollout.Item
		var at []int
		for i, it := range items {
			if (it.Problem.Kind == m.kind) == (g == m.of) {
				list, at = append(list, it), append(at, i)
			}
		}
		if len(list) == 0 {
			continue
		}
		part, err := g.GradeAll(ctx, list)
		if err != nil {
			return nil, err
		}
		for j, i := range at {
			verdicts[i] = part[j]
		}
	}
	return verdicts, nil
}

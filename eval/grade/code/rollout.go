package code

import (
	"context"
	"encoding/json"

	"exp/train/rollout"
)

// Rollout converts the problem for training; Data holds the whole problem.
func (p *Problem) Rollout() (rollout.Problem, error) {
	data, err := json.Marshal(p)
	if err != nil {
		return rollout.Problem{}, err
	}
	return rollout.Problem{ID: p.ID, Prompt: p.Prompt, Target: p.Solution, Cluster: p.Cluster, Data: data}, nil
}

// Grade implements rollout.Grader for problems made by Rollout. The reward is the score. A program that the
// sandbox could not run is not graded.
func (g *Grader) Grade(ctx context.Context, p *rollout.Problem, c *rollout.Completion) (rollout.Verdict, error) {
	problem, err := problemOf(p)
	if err != nil {
		return rollout.Verdict{}, err
	}
	return rolloutVerdict(g.Response(ctx, problem, c.Text))
}

// ProblemOf returns, checked, the problem behind a Rollout.
func ProblemOf(p *rollout.Problem) (*Problem, error) {
	problem, err := problemOf(p)
	if err != nil {
		return nil, err
	}
	return problem, problem.Check()
}

package code

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"exp/train/rollout"
)

// Rollout is the problem in the vocabulary of training; Data holds all of it.
func (p *Problem) Rollout() (rollout.Problem, error) {
	data, err := json.Marshal(p)
	if err != nil {
		return rollout.Problem{}, err
	}
	return rollout.Problem{ID: p.ID, Prompt: p.Prompt, Target: p.Solution, Cluster: p.Cluster, Data: data}, nil
}

// Grade is rollout.Grader for problems that Rollout made. The reward is the score; a
// program that the sandbox could not run is not graded.
func (g *Grader) Grade(ctx context.Context, p *rollout.Problem, c *rollout.Completion) (rollout.Verdict, error) {
	var problem Problem
	if err := json.Unmarshal(p.Data, &problem); err != nil {
		return rollout.Verdict{}, fmt.Errorf("problem %s has no code problem as its data: %w", p.ID, err)
	}
	v, err := g.Response(ctx, &problem, c.Text)
	if broken := new(InfraError); errors.As(err, &broken) {
		return rollout.Verdict{Reason: broken.Error()}, nil
	}
	if err != nil {
		return rollout.Verdict{}, err
	}
	return rollout.Verdict{Status: rollout.Graded, Correct: v.Correct, Reward: v.Score, Answer: v.Program.Text, Reason: v.Reason}, nil
}

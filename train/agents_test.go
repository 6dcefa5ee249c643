package train

import (
	"context"
	"slices"
	"testing"

	"exp/train/rollout"
)

// asker is an agent of two turns. Some episodes it judges itself, and some fail, before the first turn or after.
type asker struct{}

func (asker) Episodes() int { return 5 }

func (asker) Play(ctx context.Context, e rollout.Episode) (c rollout.Completion, err error) {
	if e.Seed%13 == 0 {
		c.AgentVerdict = &rollout.Verdict{Reason: "it never began"}
		return c, nil
	}
	c.Asked = &rollout.Asked{Tokens: []int32{1 + int32(len(e.Problem.ID)+len(e.Problem.Prompt))%4, 2, 3}, Text: "asked"}
	for turn := range 2 {
		inserted := []int32{4, 1, 2}[:3*turn]
		p := e.Params
		if p.MaxNewTokens -= len(c.Tokens) + len(inserted); p.MaxNewTokens <= 0 {
			break
		}
		said, err := e.Ask(ctx, slices.Concat(c.Asked.Tokens, c.Tokens, inserted), e.Seed+uint64(turn), p)
		if err != nil {
			return c, err
		}
		c.Continue(inserted, "EBC"[:3*turn], &said)
	}
	switch e.Seed % 7 {
	case 0:
		c.AgentVerdict = &rollout.Verdict{Reason: "it broke"}
	case 1:
		c.AgentVerdict = &rollout.Verdict{Status: rollout.Graded, Reward: 0.5, Answer: "half"}
	}
	return c, nil
}

// heeding lets the agent's verdicts stand.
func heeding(g graderFunc) graderFunc {
	return func(p *rollout.Problem, c *rollout.Completion) rollout.Verdict {
		if c.AgentVerdict != nil {
			return *c.AgentVerdict
		}
		return g(p, c)
	}
}

// withAgent changes a toy so that an agent asks for its completions.
func (r *toyRun) withAgent() {
	r.cfg.Sampling.Agent, r.cfg.Sampling.MaxNewTokens = asker{}, 16
	r.cfg.VerifyRate, r.cfg.Turns = 1, true
	r.grade = heeding(r.grade)
}

// Completions of an agent stand behind its own prompts, are verified against the trainer like others, and have its
// verdicts.
func TestAgent(t *testing.T) {
	r := newToyRun(t, GRPO, 2)
	r.withAgent()
	r.cfg.Steps = 3
	r.run()
	said, failed, graded, turns := 0, 0, 0, 0
	for _, s := range r.steps {
		for _, tr := range s.Trajectories {
			c := tr.Completion
			turns += len(c.Inserted)
			if c.Asked.Text == "asked" && (len(tr.Prompt) != 3 || tr.Prompt[2] != 3) {
				t.Errorf("the prompt is %v", tr.Prompt)
			}
			switch v := tr.Verdict; {
			case v.Status == rollout.NotGraded:
				failed++
			case v.Answer == "half" && v.Reward == 0.5:
				said++
			default:
				graded++
			}
		}
	}
	if said == 0 || failed == 0 || graded == 0 || turns == 0 {
		t.Errorf("%d verdicts of the agent, %d failures, %d verdicts of the grader, %d second turns", said, failed, graded, turns)
	}
}

// What waits in a checkpoint, and what values were last seen on, keeps the prompts of its agent.
func TestAgentContinues(t *testing.T) {
	for _, kind := range []Kind{FlowRL, PPO, GRPO} {
		whole := newToyRun(t, kind, 2)
		whole.withAgent()
		whole.cfg.Steps, whole.cfg.Staleness = 5, 1
		whole.run()
		continues(t, whole)
	}
}

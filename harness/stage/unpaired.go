package stage

import (
	"context"

	"exp/eval/layout"
	"exp/harness/config"
	"exp/train"
	"exp/train/model"
	"exp/train/rl"
)

// startUnpaired reads single answers, and prepares to learn from them. It sets the counts of x.
func (e *Env) startUnpaired(ctx context.Context, in Inputs, x *tuning, owned *closers) (preferring, *model.Model,
	error) {
	c := e.run()
	answers, counts, err := e.labelledAnswers(ctx, in, owned)
	if err != nil {
		return nil, nil, err
	}
	x.counts = counts
	m, err := e.preferModel(in)
	if err != nil {
		return nil, nil, err
	}
	conf := UnpairedConfig(c)
	conf.Offload = e.Offload
	t, err := train.NewUnpaired(conf, train.UnpairedParts{Backend: e.Backend, Model: m, Answers: answers,
		Seed: seedFunc(c.Prefer.Seed), Recorder: recorder(x.record), Ranks: e.Ranks,
		Tensor:  Everyone(c, e.group().Size()).Tensor,
		Waiting: train.Waiting{Phase: e.Hooks.Phase, Stop: e.Hooks.Stop}})
	if err != nil {
		m.Close()
		return nil, nil, err
	}
	return t, m, nil
}

// labelledAnswers returns what the stage learns from, and counts for its summary.
func (e *Env) labelledAnswers(ctx context.Context, in Inputs, owned *closers) (list []train.LabelledAnswer,
	counts map[string]float64, err error) {
	read, err := linesOf[layout.Labelled](e, in, RolePairs)
	if err == nil {
		err = e.showImages(in, owned, answersOf(read))
	}
	if err != nil {
		return nil, nil, err
	}
	prompts, err := e.prompter()
	if err != nil {
		return nil, nil, err
	}
	answers, plan, err := prompts.Answers(ctx, read)
	if err != nil {
		return nil, nil, err
	}
	for i, x := range answers {
		if x != nil {
			list = append(list, train.LabelledAnswer{ID: read[i].Answer.ID, Prompt: x.Prompt,
				Completion: &x.Completion, Good: read[i].Good})
		}
	}
	if plan.Same+plan.Long > 0 {
		e.event("answers-left-out", "prefer.source: %s", &plan)
	}
	if advice := plan.Advice(); advice != "" {
		e.event("unbalanced-answers", "%s", advice)
	}
	return list, map[string]float64{"answers": float64(plan.Count()), "chosen": float64(plan.Chosen),
		"rejected": float64(plan.Rejected), "tokens": float64(plan.Tokens), "learned_tokens": float64(plan.Learned),
		"same": float64(plan.Same), "long": float64(plan.Long)}, nil
}

// UnpairedConfig returns the settings of learning from single answers.
func UnpairedConfig(c *config.Run) train.UnpairedConfig {
	p := c.Prefer
	return train.UnpairedConfig{
		Steps: p.Steps, AnswersPerStep: p.AnswersPerStep, MicroBatchTokens: c.Compute.MicroBatchTokens,
		Recompute: c.Compute.Recompute, Slices: c.Train.Slices, Optim: optimConfig(p.Optim, p.Steps),
		Loss: rl.UnpairedConfig{Beta: p.Beta, Loss: must(rl.ParseUnpairedLoss(p.Loss)), Chosen: p.ChosenWeight,
			Rejected: p.RejectedWeight},
	}
}

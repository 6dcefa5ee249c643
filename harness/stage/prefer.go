package stage

import (
	"context"

	"exp/eval/layout"
	"exp/harness/config"
	"exp/train"
	"exp/train/model"
	"exp/train/rl"
)

// prefer teaches the weights to prefer the better of two answers, from pairs in a file. It does not depend on the
// run's seed, so all runs with the same upstream configuration share its result.
func prefer(ctx context.Context, e *Env, in Inputs) (*Outcome, error) {
	c := e.run()
	pairs, counts, err := e.preferredPairs(ctx, in)
	if err != nil {
		return nil, err
	}
	m, err := e.loadModel(in, RoleWeights, model.Heads{LM: true}, true)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	conf := PreferConfig(c)
	conf.Offload = e.Offload
	x := tuning{e: e, kind: config.Prefer, counts: counts}
	t, err := train.NewPrefer(conf, train.PreferParts{Backend: e.Backend, Model: m, Pairs: pairs,
		Seed: seedFunc(c.Prefer.Seed), Recorder: recorder(x.record), Ranks: e.Ranks,
		Tensor: Everyone(c, e.group().Size()).Tensor})
	if err != nil {
		return nil, err
	}
	defer t.Close()
	last, outputs, err := x.run(ctx, t)
	if err != nil || outputs == nil {
		return nil, err
	}
	return &Outcome{Outputs: outputs, Summary: last, Facts: metrics(fact("steps", float64(c.Prefer.Steps)),
		fact("loss", last["prefer/loss"]), fact("accuracy", last["prefer/accuracy"]))}, nil
}

// preferredPairs returns what the stage learns from, and counts for its summary.
func (e *Env) preferredPairs(ctx context.Context, in Inputs) (list []train.PreferredPair, counts map[string]float64,
	err error) {
	prompts, err := e.prompter()
	if err != nil {
		return nil, nil, err
	}
	read, err := linesOf[layout.Pair](e, in, RolePairs)
	if err != nil {
		return nil, nil, err
	}
	pairs, plan, err := prompts.Pairs(ctx, read)
	if err != nil {
		return nil, nil, err
	}
	for i, x := range pairs {
		if x != nil {
			list = append(list, train.PreferredPair{ID: read[i].Chosen.ID, Prompt: x.Chosen.Prompt,
				Chosen: &x.Chosen.Completion, Rejected: &x.Rejected.Completion})
		}
	}
	if plan.Same+plan.Long > 0 {
		e.event("pairs-left-out", "prefer.source: %s", &plan)
	}
	return list, map[string]float64{"pairs": float64(plan.Pairs), "tokens": float64(plan.Tokens),
		"learned_tokens": float64(plan.Learned), "same": float64(plan.Same), "long": float64(plan.Long)}, nil
}

// PreferConfig returns the settings of learning from preferences.
func PreferConfig(c *config.Run) train.PreferConfig {
	p := c.Prefer
	return train.PreferConfig{
		Steps: p.Steps, PairsPerStep: p.PairsPerStep, MicroBatchTokens: c.Compute.MicroBatchTokens,
		Recompute: c.Compute.Recompute, Slices: c.Train.Slices, Optim: optimConfig(p.Optim, p.Steps),
		Reference: p.Reference == config.ReferenceStart,
		Loss: rl.PairConfig{Beta: p.Beta, Loss: must(rl.ParsePairLoss(p.Loss)), Smoothing: p.Smoothing,
			PerToken: p.PerToken, Target: p.TargetMargin, Imitate: p.SFTWeight},
	}
}

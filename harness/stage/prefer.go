package stage

import (
	"context"
	"errors"
	"os"
	"sync"

	"exp/eval/layout"
	"exp/harness/config"
	"exp/train"
	"exp/train/checkpoint"
	"exp/train/model"
	"exp/train/rl"
)

// preferring is what learns from preferences, of pairs or of single answers.
type preferring interface {
	tuner
	Close()
}

// prefer teaches the weights to prefer the better of two answers, from pairs in a file, or good answers to bad ones.
// It does not depend on the run's seed, so all runs with the same upstream configuration share its result.
func prefer(ctx context.Context, e *Env, in Inputs) (*Outcome, error) {
	c := e.run()
	x := tuning{e: e, kind: config.Prefer}
	start := e.startPairs
	if c.Prefer.Unpaired() {
		start = e.startUnpaired
	}
	var owned closers
	defer owned.close()
	t, m, err := start(ctx, in, &x, &owned)
	if err != nil {
		return nil, err
	}
	free := sync.OnceFunc(func() {
		t.Close()
		m.Close()
	})
	defer free()
	if h := m.Heads; h.Adapters != nil {
		x.put = func(t learns) (Output, error) { return e.putFolded(in, t, m.Config, h, free) }
	}
	last, outputs, err := x.run(ctx, t)
	if err != nil || outputs == nil {
		return nil, err
	}
	facts := metrics(fact("steps", float64(c.Prefer.Steps)), fact("loss", last["prefer/loss"]))
	if right, ok := last["prefer/accuracy"]; ok {
		facts = append(facts, fact("accuracy", right))
	}
	return &Outcome{Outputs: outputs, Summary: last, Facts: facts}, nil
}

// startPairs reads pairs, and prepares to learn from them. It sets the counts of x.
func (e *Env) startPairs(ctx context.Context, in Inputs, x *tuning, owned *closers) (preferring, *model.Model,
	error) {
	c := e.run()
	pairs, counts, err := e.preferredPairs(ctx, in, owned)
	if err != nil {
		return nil, nil, err
	}
	x.counts = counts
	m, err := e.preferModel(in)
	if err != nil {
		return nil, nil, err
	}
	conf := PreferConfig(c)
	conf.Offload = e.Offload
	t, err := train.NewPrefer(conf, train.PreferParts{Backend: e.Backend, Model: m, Pairs: pairs,
		Seed: seedFunc(c.Prefer.Seed), Recorder: recorder(x.record), Ranks: e.Ranks,
		Tensor:  Everyone(c, e.group().Size()).Tensor,
		Waiting: train.Waiting{Phase: e.Hooks.Phase, Stop: e.Hooks.Stop}})
	if err != nil {
		m.Close()
		return nil, nil, err
	}
	return t, m, nil
}

// preferModel makes the model that learns: all weights, or adapters on frozen ones.
func (e *Env) preferModel(in Inputs) (*model.Model, error) {
	arch, err := e.architecture()
	if err != nil {
		return nil, err
	}
	return e.startModel(in, PreferHeads(e.run(), arch), seedFunc(e.run().Prefer.Seed))
}

// putFolded stores the stage's weights with the adapters that t learned folded in. free frees the memory of training,
// before folding takes some. All ranks call it.
func (e *Env) putFolded(in Inputs, t learns, arch model.Config, h model.Heads, free func()) (out Output, err error) {
	path := ""
	err = e.withLearned(t, func(tensors []checkpoint.Source) error {
		file, err := os.CreateTemp(e.Dir, "adapters-*.safetensors")
		if err != nil {
			return err
		}
		path = file.Name()
		return errors.Join(checkpoint.WriteSafetensors(file, tensors), file.Close())
	})
	if path != "" {
		defer os.Remove(path)
	}
	if err != nil || !e.leads() {
		return out, err
	}
	free()
	x := checkpoint.Trained{Config: arch, Heads: h}
	if x.Learned, err = checkpoint.OpenFile(path); err != nil {
		return out, err
	}
	defer x.Learned.Close()
	if x.Weights, _, err = e.openWeights(in, RoleWeights); err != nil {
		return out, err
	}
	defer x.Weights.Close()
	folded, err := x.Folded(e.alone())
	if err != nil {
		return out, err
	}
	return e.putWeights(folded)
}

// preferredPairs returns what the stage learns from, and counts for its summary.
func (e *Env) preferredPairs(ctx context.Context, in Inputs, owned *closers) (list []train.PreferredPair,
	counts map[string]float64, err error) {
	read, err := linesOf[layout.Pair](e, in, RolePairs)
	if err == nil {
		err = e.showImages(in, owned, compared(read))
	}
	if err != nil {
		return nil, nil, err
	}
	prompts, err := e.prompter()
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

// PreferRows returns the rows of a step of the stage, with answers of at most longest tokens, prompt included.
func PreferRows(c *config.Run, longest int) train.Rows {
	if c.Prefer.Unpaired() {
		return UnpairedConfig(c).Rows(longest)
	}
	return PreferConfig(c).Rows(2 * longest)
}

// PreferConfig returns the settings of learning from preferences.
func PreferConfig(c *config.Run) train.PreferConfig {
	p := c.Prefer
	loss := must(rl.ParsePairLoss(p.Loss))
	return train.PreferConfig{
		Steps: p.Steps, PairsPerStep: p.PairsPerStep, MicroBatchTokens: c.Compute.MicroBatchTokens,
		Recompute: c.Compute.Recompute, Slices: c.Train.Slices, Optim: adaptedOptim(p.Optim, p.LoRA, p.Steps),
		Reference: p.Reference == config.ReferenceStart,
		Loss: rl.PairConfig{Beta: p.Beta, Loss: loss, Smoothing: p.Smoothing,
			PerToken: p.PerToken || loss == rl.OddsRatio, Target: p.TargetMargin, Imitate: p.SFTWeight},
	}
}

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
		Recompute: c.Compute.Recompute, Slices: c.Train.Slices, Optim: adaptedOptim(p.Optim, p.LoRA, p.Steps),
		Loss: rl.UnpairedConfig{Beta: p.Beta, Loss: must(rl.ParseUnpairedLoss(p.Loss)), Chosen: p.ChosenWeight,
			Rejected: p.RejectedWeight},
	}
}

// Package forecast says what a run needs before it begins, from its configuration alone: memory of devices and of
// their machines, disk, and what ranks send one another. It plans where a stage keeps its memory, and whether so many
// ranks can share the work. It measures nothing and computes nothing of the run: what a stage really takes is recorded
// next to its forecast (harness/run). Memory is for completions of full length: how long they will be is not known.
package forecast

import (
	"cmp"
	"fmt"

	"exp/harness/config"
	"exp/harness/device"
	"exp/harness/prompt"
	"exp/harness/stage"
	"exp/train/model"
	"exp/train/published"
)

// Run is a run to forecast.
type Run struct {
	Config *config.Resolved
	Ranks  int // that share the work; 0 and 1: one process
	Vocab  int // size of the tokenizer's vocabulary; 0 reads the tokenizer
	// Rates of this machine's CPU, for the times of a run that computes on it in one process; nil: no times.
	Rates *Rates
}

// rates returns the rates of a rank's device, if they are known, and those of the CPU.
func (r Run) rates() (Rates, *Rates) {
	switch {
	case device.UsesGPU(&r.Config.Run):
		return gpuRates(), nil
	case r.Ranks > 1 || r.Rates == nil:
		return Rates{}, nil
	}
	return *r.Rates, r.Rates
}

// Of is the run of a configuration on so many ranks, or in one process.
func Of(r *config.Resolved, ranks int) Run { return Run{Config: r, Ranks: ranks} }

// Batch returns the length of the longest sequences that a run learns from, and how many a sampler draws together.
func (r Run) Batch(arch model.Config) (length, together int) {
	c := &r.Config.Run
	together = c.Rollout.MaxSequences
	if n := sampledPerStep(c); n > 0 {
		together = min(together, n)
	}
	if c.Data.Train.Source != config.None {
		return longestOf(config.Train, c, arch), together
	}
	for _, kind := range tuningStages(c) {
		length = max(length, longestOf(kind, c, arch))
	}
	return length, together
}

// Placement returns where a rank keeps the memory of a stage, if that learns or samples; of training, a rank that
// learns.
func (r Run) Placement(kind config.Stage) stage.Placement {
	c, ranks := &r.Config.Run, max(1, r.Ranks)
	if !kind.Facts().Shared() && kind != config.EvalGen {
		return stage.Placement{}
	}
	if !device.UsesGPU(c) {
		return stage.Placement{CacheTokens: c.Rollout.CacheTokens}
	}
	arch, err := architectureOf(c, r.Vocab)
	if err != nil {
		return stage.Placement{}
	}
	return planOf(kind, c, arch, longestOf(kind, c, arch), crewOf(kind, c, ranks)).placement
}

// SamplerPlacement returns where a rank that only samples keeps its memory. A run that only fine-tunes has none.
func (r Run) SamplerPlacement() stage.Placement {
	c := &r.Config.Run
	arch, err := architectureOf(c, r.Vocab)
	if err != nil || c.Train.Steps == 0 {
		return stage.Placement{CacheTokens: c.Rollout.CacheTokens}
	}
	w := stage.Samplers(c, max(1, r.Ranks))
	return planOf(config.Train, c, arch, longestOf(config.Train, c, arch), w).placement
}

// Architecture returns the architecture of a run's model. It needs no weights, and knows published models that are
// not here.
func Architecture(c *config.Run) (model.Config, error) { return architectureOf(c, 0) }

// architectureOf returns the configured architecture; it needs no weights. vocab is
// the size of the tokenizer's vocabulary; 0 reads the tokenizer.
func architectureOf(c *config.Run, vocab int) (model.Config, error) {
	if c.Model.Init == "pretrained" {
		if arch, err := stage.ReadArchitecture(c); err == nil {
			return arch, nil
		}
		if arch, ok := published.Model(c.Model.Name()); ok {
			return arch, nil
		}
		return model.Config{}, fmt.Errorf("the architecture of %q is not known", c.Model.Name())
	}
	if vocab == 0 {
		tok, err := prompt.Tokenizer(c)
		if err != nil {
			return model.Config{}, err
		}
		vocab = tok.VocabSize()
	}
	return stage.ModelConfig(c, vocab), nil
}

// longestOf returns the length of the longest sequence of a stage.
func longestOf(kind config.Stage, c *config.Run, arch model.Config) int {
	if kind == config.EvalGen {
		return min(arch.MaxPositions, c.Data.MaxPromptTokens+c.Eval.Final.MaxNewTokens)
	}
	if n := c.SFT.MaxTokens; kind == config.SFT && n > 0 {
		return min(arch.MaxPositions, n)
	}
	if kind == config.RewardModel {
		return min(arch.MaxPositions, cmp.Or(c.RewardModel.MaxTokens, arch.MaxPositions))
	}
	if kind == config.Prefer {
		return min(arch.MaxPositions, cmp.Or(c.Prefer.MaxTokens, arch.MaxPositions))
	}
	longest := c.Data.MaxPromptTokens + c.Rollout.MaxNewTokens
	if c.Model.Init == "random" {
		longest = min(longest, arch.MaxPositions)
	}
	return longest
}

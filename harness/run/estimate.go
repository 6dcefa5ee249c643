package run

import (
	"fmt"

	"exp/harness/config"
	"exp/harness/stage"
	"exp/train"
	"exp/train/checkpoint"
	"exp/train/model"
)

// Estimate is what a run will need, from its configuration alone.
type Estimate struct {
	Model      string `json:"model"`
	Parameters int    `json:"parameters"`      // of the policy's backbone with its output projection
	Heads      int    `json:"head_parameters"` // of auxiliary heads
	Memory     []Part `json:"memory"`          // on the device, by part
	Disk       int64  `json:"disk_bytes"`      // that the run will take in the store, at most
	// Per training step, at most:
	Completions int `json:"completions_per_step"`
	Tokens      int `json:"tokens_per_step"` // prompts and completions at full length
	Updates     int `json:"updates_per_step"`

	weights     int64 // bytes of a set of weights
	checkpoints int64 // bytes of those that are kept
}

// Part is a part of memory.
type Part struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

// Total sums the parts.
func (e Estimate) Total() int64 {
	var n int64
	for _, p := range e.Memory {
		n += p.Bytes
	}
	return n
}

// architectureOf returns the configured architecture without needing weights.
func architectureOf(c *config.Run) (model.Config, error) {
	if c.Model.Init == "pretrained" {
		if arch, err := checkpoint.ReadConfig(c.Model.Base); err == nil {
			return arch, nil
		}
		if arch, ok := model.Published(c.Model.Base); ok {
			return arch, nil
		}
		return model.Config{}, fmt.Errorf("the architecture of %q is not known", c.Model.Base)
	}
	tok, err := stage.Tokenizer(c)
	if err != nil {
		return model.Config{}, err
	}
	return stage.ModelConfig(c, tok.VocabSize()), nil
}

// NewEstimate counts what a run of this configuration needs while it trains.
func NewEstimate(r *config.Resolved) (Estimate, error) {
	c := &r.Run
	arch, err := architectureOf(c)
	if err != nil {
		return Estimate{}, err
	}
	t := stage.TrainConfig(c)
	needs := t.Needs()
	heads := model.Heads{LM: true}
	if needs.LogZ {
		heads.LogZ = &t.LogZ
	}
	e := Estimate{Model: modelName(c), Completions: c.Train.PromptsPerStep * c.Rollout.N,
		Updates: c.Train.PromptsPerStep / c.Train.PromptsPerUpdate * c.Algo.Epochs}
	e.Parameters, e.Heads = model.Parameters(arch, heads)
	longest := c.Data.MaxPromptTokens + c.Rollout.MaxNewTokens
	if c.Model.Init == "random" {
		longest = min(longest, arch.MaxPositions)
	}
	e.Tokens = e.Completions * longest
	e.memory(c, arch, heads, t, longest)
	critic, value := model.Parameters(arch, model.Heads{Value: true})
	learning := int64(e.Parameters + e.Heads)
	if needs.Critic {
		learning += int64(critic + value)
	}
	keep := 0
	if c.Checkpoint.EverySteps > 0 {
		keep = c.Checkpoint.Keep
	}
	// A stopped run writes one in any case.
	e.weights, e.checkpoints = 4*int64(e.Parameters+e.Heads), 12*learning*int64(max(1, keep))
	e.Disk = e.checkpoints + 4*e.weights
	return e, nil
}

// stageBytes is what a stage writes as files, at most.
func (e *Estimate) stageBytes(kind config.Stage) int64 {
	switch kind {
	case config.Init:
		return e.weights
	case config.SFT:
		return 4 * e.weights // and a checkpoint if it is stopped
	case config.Train:
		return e.checkpoints + e.weights
	case config.Merge:
		return 2 * e.weights // a folder, and blobs
	}
	return 0
}

// memory adds up the parts for the device. On the CPU everything is float32 and
// weights that are multiplied with have packed copies; on a GPU weights and
// activations are bf16 with float32 master weights, gradients and moments.
func (e *Estimate) memory(c *config.Run, arch model.Config, heads model.Heads, t train.Config, longest int) {
	needs := t.Needs()
	add := func(name string, bytes int64) {
		if bytes > 0 {
			e.Memory = append(e.Memory, Part{name, bytes})
		}
	}
	policy := int64(e.Parameters + e.Heads)
	value, head := model.Parameters(arch, model.Heads{Value: true})
	critic := int64(value + head)
	// Bytes per parameter: stored, multiplied from, gradient, two moments.
	learner, frozen, element := int64(4+8+4+8), int64(4+4), int64(4)
	if c.Compute.Device != "cpu" {
		learner, frozen, element = 4+2+4+8, 2, 2
	}
	add("policy: weights, gradients, optimizer", policy*learner)
	if needs.Reference {
		add("reference policy", int64(e.Parameters)*frozen)
	}
	if needs.Critic {
		add("critic: weights, gradients, optimizer", critic*learner)
	}
	keep := model.KeepAll
	if c.Compute.Recompute {
		keep = model.KeepInputs
	}
	tokens := max(c.Compute.MicroBatchTokens, longest)
	limit := model.Capacity{Tokens: tokens, Sequences: tokens/2 + 1}
	add("activations of a micro-batch", element*int64(arch.ActivationFloats(heads, limit, keep)+arch.ActivationFloats(heads, limit, model.KeepNothing)))
	add("key/value cache of the sampler", element*int64(c.Rollout.MaxSequences*5/4*longest)*int64(2*arch.Layers*arch.KVHeads*arch.Head))
}

package forecast

import (
	"exp/kernels"
	"exp/train/model"
)

// ModelNeeds is the memory that a model needs on the CPU.
type ModelNeeds struct {
	Evaluate int64 `json:"evaluate_bytes"`                     // weights in float32
	Frozen   int64 `json:"evaluate_bf16_bytes"`                // weights if kept in bf16
	Cache    int64 `json:"cache_bytes_per_token"`              // keys and values
	State    int64 `json:"state_bytes_per_sequence,omitempty"` // of linear attention
	Train    int64 `json:"train_bytes"`                        // weights, gradients of one slice and moments, all in float32
}

// NeedsOf returns the memory that a model needs on the CPU, without activations; the
// plan of a run includes those.
func NeedsOf(c model.Config) ModelNeeds {
	heads, copies := model.Heads{LM: true}, panels(kernels.F32)
	_, n := model.Layout(c, heads)
	return ModelNeeds{
		Evaluate: int64(c.ModelBytes(heads, false, copies, kernels.F32, 1)),
		Frozen:   int64(c.BackboneBytes(true, kernels.BF16, copies, kernels.F32, 1)),
		Cache:    int64(c.CacheBytes(1, 1, kernels.F32, 1)),
		State:    int64(c.StateBytes(kernels.F32)),
		Train:    int64(c.ModelBytes(heads, true, copies, kernels.F32, 1) + 8*n),
	}
}

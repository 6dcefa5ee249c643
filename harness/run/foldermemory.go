package run

import (
	"exp/kernels"
	"exp/train/model"
)

// ModelNeeds is what a model takes on the CPU.
type ModelNeeds struct {
	Evaluate int64 `json:"evaluate_bytes"`        // its weights in float32
	Frozen   int64 `json:"evaluate_bf16_bytes"`   // its weights where they are kept in bf16
	Cache    int64 `json:"cache_bytes_per_token"` // keys and values
	Train    int64 `json:"train_bytes"`           // weights, gradients and moments, all in float32
}

// NeedsOf adds up what a model takes on the CPU, without activations: the plan of a run
// counts those too.
func NeedsOf(c model.Config) ModelNeeds {
	heads := model.Heads{LM: true}
	return ModelNeeds{
		Evaluate: int64(weightBytes(c, heads, false, true, kernels.F32)),
		Frozen:   int64(c.BackboneBytes(true, kernels.BF16, panels(kernels.F32), kernels.F32)),
		Cache:    int64(c.CacheBytes(1, 1, kernels.F32)),
		Train:    int64(weightBytes(c, heads, true, true, kernels.F32)),
	}
}

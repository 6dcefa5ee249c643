package forecast

import (
	"exp/harness/bench"
	"exp/train/model"
)

// Rates say how fast a device computes.
type Rates struct {
	Forward  float64 `json:"forward_flops"`  // operations of passes over sequences, 1/s
	Backward float64 `json:"backward_flops"` // of backward passes
	Sampling float64 `json:"sampling_flops"` // of steps that sample
	Memory   float64 `json:"memory"`         // bytes/s, in updates of parameters and in small sampling steps

	columns int     // that a product computes at a time
	start   float64 // s, of a sampling step
	tail    float64 // share of sampling's time that its last completions add
}

// known reports whether r says anything.
func (r Rates) known() bool { return r.Forward > 0 }

// gpuRates are the rates of a GPU.
func gpuRates() Rates {
	return Rates{Forward: gpuFLOPs, Backward: gpuFLOPs, Sampling: gpuFLOPs, Memory: gpuMemory,
		columns: factorChunk, start: stepStart, tail: tailShare}
}

// RatesOf returns the rates that a CPU reached in a trial. They include all that is no product.
func RatesOf(t bench.Trial) Rates {
	tokens := float64(t.Sequences * t.Length)
	steps := workOf(t.Model, model.Heads{LM: true}, float64(t.Length), panelColumns)
	drawn := float64(t.Drawn)
	sampled := drawn * (float64(t.Prompt+t.New-1)*steps.token + float64(t.New)*steps.scored)
	_, n := model.Layout(t.Model, model.Heads{LM: true})
	return Rates{
		Forward:  steps.forward(tokens, tokens, float64(t.Sequences)) / t.Forward,
		Backward: steps.backward(tokens, tokens, float64(t.Sequences), false) / t.Backward,
		Sampling: sampled / t.Sampling,
		Memory:   updateBytes * float64(n) / t.Update,
		columns:  panelColumns,
	}
}

// updateBytes are the bytes of a parameter that an update with AdamW in float32 reads and writes: the gradient is
// read, the parameter and both moments are also written.
const updateBytes = 7 * floatBytes

// work is the floating-point operations of a forward pass, by what they grow with. Adapters have frozen weights below
// them.
type work struct {
	token     float64 // of a token, in the layers' weights
	scored    float64 // of a token that gets a log-prob
	attention float64 // of a sequence
	frozen    bool
	adapters  model.AdapterWork // of a token
}

// workOf returns the work of a model on sequences of some length, on a device that multiplies so many columns at a
// time: the narrow factors of adapters are filled up.
func workOf(c model.Config, h model.Heads, length float64, columns int) work {
	one := c.ForwardFLOPs(1, 0)
	w := work{token: one, attention: c.ForwardFLOPs(int(length), 0) - float64(int(length))*one}
	if h.LM {
		w.scored = c.ForwardFLOPs(1, 1) - one
	}
	if a := h.Adapters; a != nil {
		w.frozen, w.adapters = true, a.Work(c)
		filled := float64(roundUp(a.Rank, max(1, columns))) / float64(a.Rank)
		w.adapters.Forward *= filled
		w.adapters.Backward *= filled
	}
	return w
}

// forward returns the work of a forward pass over tokens in some sequences, of which scored get log-probs.
func (w work) forward(tokens, scored, sequences float64) float64 {
	return tokens*(w.token+w.adapters.Forward) + scored*w.scored + sequences*w.attention
}

// backward returns the work of the backward pass: products for the gradients of inputs and of weights, but not of
// frozen weights, and logits again. With recompute it computes the layers again, too.
func (w work) backward(tokens, scored, sequences float64, recompute bool) float64 {
	weights := 2.0
	if w.frozen {
		weights = 1
	}
	n := tokens*(weights*w.token+w.adapters.Backward) + scored*(1+weights)*w.scored + 2*sequences*w.attention
	if recompute {
		n += tokens*(w.token+w.adapters.Forward) + sequences*w.attention
	}
	return n
}

// forwardTime returns the seconds of a forward pass.
func (r Rates) forwardTime(w work, tokens, scored, sequences float64) float64 {
	return w.forward(tokens, scored, sequences)/r.Forward + tokens*w.adapters.ForwardMoved*floatBytes/r.Memory
}

// backwardTime returns the seconds of a backward pass.
func (r Rates) backwardTime(w work, tokens, scored, sequences float64, recompute bool) float64 {
	moved := w.adapters.BackwardMoved
	if recompute {
		moved += w.adapters.ForwardMoved
	}
	return w.backward(tokens, scored, sequences, recompute)/r.Backward + tokens*moved*floatBytes/r.Memory
}

const floatBytes = 4

package run

import (
	"encoding/json"
	"runtime"

	"exp/harness/config"
	"exp/harness/stage"
	"exp/kernels"
	"exp/train"
	"exp/train/generate"
	"exp/train/model"
)

// memoryOf adds up what a stage that learns, config.SFT or config.Train, allocates
// on the device, by part; the other stages take less. The lengths are those that the
// engine itself allocates, or a little more: sequences of full length, panels of the
// widest instruction set. What Go keeps on its own heap (problems, samples, the
// record) is not counted.
//
// On the CPU everything is float32, and weights that are multiplied with have packed
// copies; on a GPU weights and activations are bf16 with float32 master weights,
// gradients and moments.
func memoryOf(kind config.Stage, c *config.Run, arch model.Config, longest int) []Part {
	var parts []Part
	add := func(name string, bytes int) {
		if bytes > 0 {
			parts = append(parts, Part{name, int64(bytes)})
		}
	}
	cpu, element := c.Compute.Device == "cpu", 4
	if !cpu {
		element = 2
	}
	var needs train.Needs
	heads := model.Heads{LM: true}
	if kind == config.Train {
		needs, heads = policyOf(c)
	}
	add("policy: weights, gradients, optimizer", weightBytes(arch, heads, true, cpu))
	if needs.Reference {
		add("reference policy", weightBytes(arch, model.Heads{LM: true}, false, cpu))
	}
	if needs.Critic {
		add("critic: weights, gradients, optimizer", weightBytes(arch, model.Heads{Value: true}, true, cpu))
	}
	keep := model.KeepAll
	if c.Compute.Recompute {
		keep = model.KeepInputs
	}
	limit := train.MicroBatchCapacity(c.Compute.MicroBatchTokens, longest)
	add("activations of a micro-batch", element*(arch.WorkspaceLen(heads, limit, keep)+arch.WorkspaceLen(heads, limit, model.KeepNothing)))
	if kind == config.Train {
		cache, step := engineOptions(c, arch, longest).Len(arch)
		add("key/value cache of the sampler", element*cache)
		add("activations of a sampling step", element*step)
	}
	if cpu {
		add("scratch memory of the kernels", element*scratchLen(c, arch, limit.Tokens, longest))
	}
	return parts
}

// policyOf returns which models training needs beside the policy, and its heads.
func policyOf(c *config.Run) (train.Needs, model.Heads) {
	t := stage.TrainConfig(c)
	heads := model.Heads{LM: true}
	if t.Needs().LogZ {
		heads.LogZ = &t.LogZ
	}
	return t.Needs(), heads
}

// weightBytes counts what a model takes, with its optimizer's moments if it learns.
func weightBytes(arch model.Config, h model.Heads, trainable, cpu bool) int {
	_, n := model.Layout(arch, h)
	switch {
	case cpu && trainable:
		return 4*arch.ModelLen(h, true, panels) + 8*n
	case cpu:
		return 4 * arch.ModelLen(h, false, panels)
	case trainable:
		return (4 + 2 + 4 + 8) * n
	}
	return 2 * n
}

// engineOptions are those of the sampler in training. A published recipe may stretch
// the positions of its model.
func engineOptions(c *config.Run, arch model.Config, longest int) generate.Options {
	o := stage.EngineOptions(c, arch, c.Rollout.MaxNewTokens)
	if c.Model.Init != "random" {
		o.MaxTokens = longest
	}
	return o
}

// panels is PackedLen of the CPU backend at its widest: panels of 32 columns.
func panels(out, in int) (packed, packedT int) {
	const columns = 32
	return roundUp(out, columns) * in, roundUp(in, columns) * out
}

func roundUp(n, unit int) int { return (n + unit - 1) / unit * unit }

// scratchLen is the number of elements that operations of the CPU backend allocate
// for themselves. For each thread that is the most of: a gradient block of the
// widest input, packed (MatMulDW); a chunk of logits that stays in cache (LogProb);
// the keys and values of a sequence (AttentionBackward); a row's scores against the
// cache (PagedAttention). All threads share the logit gradients of some blocks of
// rows (LogProbBackward), or the logits of a sampling step that restricts the choice
// among tokens. tokens is the length of a micro-batch, longest that of a sequence.
func scratchLen(c *config.Run, arch model.Config, tokens, longest int) int {
	const (
		rows     = 14      // of a register tile
		cached   = 1 << 17 // elements that a thread's chunk of logits may have
		together = 1 << 22 // the same of logit gradients
	)
	threads := c.Compute.Threads
	if threads == 0 {
		threads = runtime.NumCPU()
	}
	V := arch.Vocab
	packed := kernels.BlockRows * (rows + roundUp(max(arch.Width, arch.FFN, arch.Heads*arch.Head), 32))
	chunk := min(max(1, cached/V/rows)*rows, roundUp((tokens+threads-1)/threads, rows)) + 1
	keys := roundUp(longest, kernels.Lanes) * 2 * (arch.Head + 32)
	engine := engineOptions(c, arch, longest)
	scores := arch.Heads / arch.KVHeads * roundUp(engine.MaxTokens, engine.PageTokens)
	shared := min(max(kernels.BlockRows, together/V), tokens) * V
	if r := c.Rollout; r.TopK > 0 || r.TopP < 1 || r.MinP > 0 {
		shared = max(shared, 2*r.MaxSequences*V)
	}
	return threads*max(packed, chunk*V, keys, scores) + shared
}

// takePeak returns the most bytes that were allocated on a device at a time since
// the last call; 0 where the backend does not count.
func takePeak(be kernels.Backend) int64 {
	if b, ok := be.(interface{ TakePeak() int64 }); ok {
		return b.TakePeak()
	}
	return 0
}

// memoryUse is recorded in the result of a stage that learns, under "memory".
type memoryUse struct {
	Peak    int64 `json:"peak_bytes"`    // on the device, measured
	Planned int64 `json:"planned_bytes"` // what the plan said
}

// withMemory adds what a stage took of the device to its summary, a JSON object.
func (x *execution) withMemory(kind config.Stage, summary json.RawMessage, peak int64) (json.RawMessage, error) {
	if peak == 0 || kind != config.SFT && kind != config.Train {
		return summary, nil
	}
	e, err := NewEstimate(x.p.Config)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := json.Unmarshal(summary, &fields); err != nil {
		return nil, err
	}
	fields["memory"] = memoryUse{Peak: peak, Planned: e.planned(kind)}
	return json.Marshal(fields)
}

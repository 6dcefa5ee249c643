package run

import (
	"encoding/json"
	"runtime"

	"exp/harness/config"
	"exp/harness/stage"
	"exp/kernels"
	"exp/train"
	"exp/train/checkpoint"
	"exp/train/generate"
	"exp/train/model"
)

// memoryOf adds up what a stage that learns, config.SFT or config.Train, allocates
// on the device, by part, or the final evaluation, config.EvalGen, of a run that learns
// nothing; the other stages take less. The lengths are those that the
// engine itself allocates, or a little more: sequences of full length, panels of the
// widest instruction set. What Go keeps on its own heap (problems, samples, the
// record) is not counted.
//
// On the CPU weights that are multiplied with have packed copies, of the operand type;
// on a GPU they are bf16 with float32 master weights, gradients and moments.
func memoryOf(kind config.Stage, c *config.Run, arch model.Config, longest int) []Part {
	var parts []Part
	add := func(name string, bytes int) {
		if bytes > 0 {
			parts = append(parts, Part{name, int64(bytes)})
		}
	}
	cpu, operand := c.Compute.Device == "cpu", stage.Operand(c)
	var needs train.Needs
	heads := model.Heads{LM: true}
	if kind == config.Train {
		needs, heads = policyOf(c)
	}
	if kind == config.EvalGen {
		add("weights", referenceBytes(c, arch, cpu, operand))
		if a, err := stage.StartAdapters(c, arch); err == nil && a != nil {
			heads.Adapters = a
			add("adapters", arch.AdapterBytes(heads, false, panels(operand), operand))
		}
		cache, step := stage.EngineOptions(c, arch, c.Eval.Final.MaxNewTokens).Bytes(arch, heads, operand)
		add("key/value cache of the sampler", cache)
		add("activations of a sampling step", step)
		if cpu {
			add("scratch memory of the kernels", scratchBytes(c, arch, c.Rollout.MaxSequences, longest))
		}
		return parts
	}
	if adapted := stage.WithAdapters(heads, c, arch); kind == config.Train && adapted.Adapters != nil {
		heads = adapted
		add("frozen weights", arch.BackboneBytes(true, frozenType(c), panels(operand), operand))
		add("policy: adapters, gradients, optimizer", adapterBytes(arch, heads, operand))
		if needs.Reference && c.Model.HasAdapter() && c.SFT.Steps == 0 {
			add("reference policy: adapters", arch.AdapterBytes(model.Heads{LM: true, Adapters: heads.Adapters}, false, panels(operand), operand))
		}
		if needs.Critic {
			add("critic: adapters, gradients, optimizer", adapterBytes(arch, stage.WithAdapters(model.Heads{Value: true}, c, arch), operand))
		}
	} else {
		add("policy: weights, gradients, optimizer", weightBytes(arch, heads, true, cpu, operand))
		if needs.Reference {
			add("reference policy", referenceBytes(c, arch, cpu, operand))
		}
		if needs.Critic {
			add("critic: weights, gradients, optimizer", weightBytes(arch, model.Heads{Value: true}, true, cpu, operand))
		}
	}
	if kind == config.Train && c.Reward.Kind == "model" {
		if m, err := checkpoint.ReadClassifierConfig(c.Reward.Weights); err == nil { // else the plan says what is wrong
			heads := model.Heads{Value: true}
			room := model.Capacity{Tokens: c.Compute.MicroBatchTokens, Sequences: c.Compute.MicroBatchTokens/2 + 1}
			add("reward model", weightBytes(m, heads, false, cpu, operand)+m.WorkspaceBytes(heads, room, model.KeepNothing, operand))
		}
	}
	keep := model.KeepAll
	if c.Compute.Recompute {
		keep = model.KeepInputs
	}
	limit := train.MicroBatchCapacity(c.Compute.MicroBatchTokens, longest)
	add("activations of a micro-batch", arch.WorkspaceBytes(heads, limit, keep, operand)+arch.WorkspaceBytes(heads, limit, model.KeepNothing, operand))
	if kind == config.Train {
		cache, step := engineOptions(c, arch, longest).Bytes(arch, heads, operand)
		add("key/value cache of the sampler", cache)
		add("activations of a sampling step", step)
	}
	if cpu {
		add("scratch memory of the kernels", scratchBytes(c, arch, limit.Tokens, longest))
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
func weightBytes(arch model.Config, h model.Heads, trainable, cpu bool, operand kernels.DType) int {
	_, n := model.Layout(arch, h)
	switch {
	case cpu && trainable:
		return arch.ModelBytes(h, true, panels(operand), operand) + 8*n
	case cpu:
		return arch.ModelBytes(h, false, panels(operand), operand)
	case trainable:
		return (4 + 2 + 4 + 8) * n
	}
	return 2 * n
}

// adapterBytes counts what a model of adapters takes that learn, on weights that others
// count.
func adapterBytes(arch model.Config, h model.Heads, operand kernels.DType) int {
	_, n := model.AdapterLayout(arch, h, h.Adapters)
	return arch.AdapterBytes(h, true, panels(operand), operand) + 8*n
}

// frozenType is the type that frozen weights have in memory: that of the folder that they
// come from, BF16 of a published model that is not there.
func frozenType(c *config.Run) kernels.DType {
	if c.Model.Init != "pretrained" {
		return kernels.F32
	}
	if t, err := stage.OpenModel(c); err == nil {
		defer t.Close()
		if d, ok := t.Uniform(); !ok || d != checkpoint.BF16 {
			return kernels.F32
		}
	}
	return kernels.BF16
}

// referenceBytes counts the reference policy: the weights of a folder as they are, or
// those of a stage in float32.
func referenceBytes(c *config.Run, arch model.Config, cpu bool, operand kernels.DType) int {
	h := model.Heads{LM: true}
	if c.Model.Init != "pretrained" || !cpu || c.SFT.Steps > 0 || stage.FoldsAdapter(c) {
		return weightBytes(arch, h, false, cpu, operand)
	}
	return arch.BackboneBytes(true, frozenType(c), panels(operand), operand) + arch.AdapterBytes(h, false, panels(operand), operand)
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

// panels is PackedLen of the CPU backend at its widest: panels of 32 columns, in bf16
// with steps of 32 terms.
func panels(operand kernels.DType) func(out, in int) (packed, packedT int) {
	const columns = 32
	return func(out, in int) (packed, packedT int) {
		if operand == kernels.BF16 {
			n := roundUp(out, columns) * roundUp(in, kernels.TileTerms)
			return n, n
		}
		return roundUp(out, columns) * in, roundUp(in, columns) * out
	}
}

func roundUp(n, unit int) int { return (n + unit - 1) / unit * unit }

// scratchBytes is what operations of the CPU backend allocate for themselves. For each
// thread that is the most of: rows of the widest input, packed (MatMul, MatMulDW); a
// chunk of logits that stays in cache (LogProb); the keys and values of a sequence
// (AttentionBackward); a row's scores against the cache (PagedAttention). All threads
// share the logit gradients of some blocks of rows (LogProbBackward), and the logits of
// a sampling step, in float32 only if it restricts the choice among tokens. tokens is the
// length of a micro-batch, longest that of a sequence.
func scratchBytes(c *config.Run, arch model.Config, tokens, longest int) int {
	const together = 1 << 22 // logit gradients that are kept at a time
	threads := c.Compute.Threads
	if threads == 0 {
		threads = runtime.NumCPU()
	}
	operand, V := stage.Operand(c), arch.Vocab
	perThread := floatScratch
	if operand == kernels.BF16 {
		perThread = tileScratch
	}
	gradients := min(max(kernels.BlockRows, together/V), tokens) * V * operand.Size()
	r := c.Rollout
	restricted := r.TopK > 0 || r.TopP > 0 && r.TopP < 1 || r.MinP > 0
	logits := r.MaxSequences * V
	if operand == kernels.BF16 {
		logits = min(r.MaxSequences, max(32, together/V)) * V
	}
	if restricted {
		logits *= 2 // and their exponentials
	}
	if operand == kernels.F32 {
		if restricted {
			gradients = max(gradients, 4*logits) // one buffer serves both
		}
		logits = 0
	}
	return 4*threads*perThread(engineOptions(c, arch, longest), arch, (tokens+threads-1)/threads, longest) + gradients + 4*logits
}

// floatScratch is what a thread takes in float32, in elements; rows is its share of
// those of a micro-batch.
func floatScratch(engine generate.Options, arch model.Config, rows, longest int) int {
	const (
		tile    = 14        // rows of a register tile
		panel   = 32        // columns of one, and of a panel that is packed for it
		product = 1 << 17   // elements of a product that are computed at a time
		logits  = 352 << 10 // elements of logits that are
		queries = 96        // rows of a sequence whose probabilities are kept going back
	)
	dw := 0
	for _, k := range []int{arch.Width, arch.FFN, arch.Heads * arch.Head} {
		n := max(arch.QKV(), 2*arch.FFN, arch.Vocab)
		cols := (k + 511) / 512
		width := roundUp((roundUp(k, panel)/panel+cols-1)/cols*panel, panel)
		height := min(n, product/roundUp(width, 128))
		dw = max(dw, kernels.BlockRows*(roundUp(height, tile)+width))
	}
	packed := min(10*tile, roundUp(rows, tile)) * roundUp(min(max(arch.Width, 2*arch.FFN, arch.Vocab), 1024), panel)
	chunk := min(max(1, logits/arch.Vocab/tile)*tile, roundUp(rows, tile))
	output := chunk*(roundUp(arch.Vocab, panel)+panel) + roundUp(arch.Vocab, panel) + chunk*roundUp(arch.Width, panel)
	T, head := roundUp(longest, panel), roundUp(arch.Head, panel)
	attention := T*(4*arch.Head+head) + 2*queries*(head+T) + panel*arch.Head // of sequences that share a prompt
	scores := 2 * roundUp(engine.MaxTokens, max(engine.PageTokens, panel))
	return max(dw, packed, output, attention, scores)
}

// tileScratch is the same in bf16.
func tileScratch(engine generate.Options, arch model.Config, rows, longest int) int {
	const (
		block  = 32             // rows or columns that are multiplied at a time
		step   = block * 32 / 2 // elements of a step of their terms
		pieces = 8              // steps of a gradient that are packed at a time
		group  = 4              // blocks of queries that are taken back at a time
	)
	dw := 0
	for _, k := range []int{arch.Width, arch.FFN, arch.Heads * arch.Head} {
		kBlock := min(roundUp(k, block), 512)
		nBlock := min(roundUp(max(arch.QKV(), 2*arch.FFN, arch.Vocab), block), 1<<18/kBlock/block*block)
		dw = max(dw, nBlock*kBlock+(nBlock+kBlock)/block*pieces*step)
	}
	logits := block*(roundUp(arch.Vocab, block)+kernels.Lanes) + roundUp(arch.Width, 32)/32*step
	ts, ds := roundUp(longest, 32)/32, roundUp(arch.Head, 32)/32
	keys := (64*ts+block)*ds*32 + 64*ts + (3*ts*ds+ds+group*(4*ds+ts+2))*step
	scores := 2 * (roundUp(engine.MaxTokens, max(engine.PageTokens, block)) + 2*roundUp(arch.Head, block))
	return max(dw, logits, keys, scores)
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
	if peak == 0 || !kind.Facts().Learns {
		return summary, nil
	}
	e, err := x.estimate()
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

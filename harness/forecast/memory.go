package forecast

import (
	"runtime"

	"exp/harness/config"
	"exp/harness/device"
	"exp/harness/stage"
	"exp/kernels"
	"exp/train"
	"exp/train/checkpoint"
	"exp/train/generate"
	"exp/train/model"
	"exp/train/tensor"
)

// memoryOf returns the memory of the device and of its host, by part, of a learning stage (config.SFT or
// config.Train), or of the final evaluation (config.EvalGen) of a run that learns
// nothing; other stages need less. Sizes are what the engine allocates, or slightly more:
// full-length sequences, panels of the widest instruction set. The program itself comes on
// top (programBytes).
//
// Each of several ranks has its shard of the optimizer's moments, fewer gradients that wait
// in the tree, and its share of the threads; those that only learn or only sample have what that
// needs.
//
// On a GPU, at says which parts the host's pinned memory holds instead, and how large the sampler's
// cache is. On the CPU, weights used in matmuls have packed copies in the operand type; on a GPU they
// have none.
func memoryOf(kind config.Stage, c *config.Run, arch model.Config, longest int, w stage.Crew,
	at stage.Placement) (device, host []Part) {
	if kind == config.EvalGen {
		return evalMemory(c, arch, longest, at), nil
	}
	var parts, pinned parts
	add := parts.add
	operand, copies := stage.Operand(c), copiesOf(c)
	heads := model.Heads{LM: true}
	var needs train.Needs
	if kind == config.Train {
		needs, heads = policyOf(c)
		heads = stage.WithAdapters(heads, c, arch)
	}
	switch {
	case heads.Adapters != nil:
		parts.addAdapted(&pinned, c, arch, heads, needs, w, at.Offload)
	case w.Learns:
		parts.addModels(&pinned, c, arch, heads, needs, w, at.Offload)
	default:
		heads = model.Heads{LM: true}
		add("policy: weights", train.CopyBytes(arch, w.Rollout, operand, copies))
		if stage.TrainConfig(c).SamplersNeedReference() {
			add("reference policy", heldReference(c, arch, w.Rollout))
		}
	}
	if kind == config.Train && c.Reward.Kind == "model" && w.Judges() {
		add("reward model", rewardBytes(c))
	}
	limit := capacityOf(kind, c, longest, w)
	activations, teaching := teacherRooms(kind, c, arch, limit, longest, w)
	add(string(kernels.ActivationRoom), activations+activationBytes(c, arch, heads, limit, operand, w))
	rows := 0 // of a sampling step by the ranks that share products in training
	engine := engineOf(kind, c, arch, longest, w)
	scratch := scratchBytes(kind, c, arch, engine, limit.scratch(), longest, w)
	if kind == config.Train && w.Samples {
		if rows = engine.Rows(); w.Copies() {
			scratch += tensor.SampleRoomBytes(arch, rows, w.Rollout, operand)
			rows = 0
		}
		if w.Copies() && heads.Adapters == nil {
			add("policy: copy of weights for sampling", train.CopyBytes(arch, w.Rollout, operand, copies))
		}
		parts.addEngine(engine, at, arch, heads, operand, w.Rollout)
	}
	scratch += tensor.RoomBytes(arch, limit.tokens, rows, w.Tensor, operand, copies, w.Learns)
	add(string(kernels.ScratchRoom), max(scratch, teaching))
	return parts, pinned
}

// evalMemory returns the parts of the memory of sampling for an evaluation.
func evalMemory(c *config.Run, arch model.Config, longest int, at stage.Placement) []Part {
	var parts parts
	operand := stage.Operand(c)
	heads := model.Heads{LM: true}
	parts.add("weights", referenceBytes(c, arch, 1))
	if a, err := stage.StartAdapters(c, arch); err == nil && a != nil {
		heads.Adapters = a
		parts.add("adapters", arch.AdapterBytes(heads, false, copiesOf(c), operand))
	}
	w := stage.Everyone(c, 1)
	engine := engineOf(config.EvalGen, c, arch, longest, w)
	parts.addEngine(engine, at, arch, heads, operand, 1)
	step := model.Capacity{Tokens: engine.MaxSequences}
	parts.add(string(kernels.ScratchRoom), scratchBytes(config.EvalGen, c, arch, engine, step, longest, w))
	if c.JudgesAlone() && c.Reward.Kind == "model" { // which scores when the rest is freed
		parts.add("reward model beyond the policy", max(0, rewardBytes(c)-int(sumParts(parts))))
	}
	return parts
}

// rewardBytes returns the memory of the reward model, or 0 if its configuration cannot be
// read, which the plan reports.
func rewardBytes(c *config.Run) int {
	operand := stage.Operand(c)
	m, err := checkpoint.ReadClassifierConfig(c.Reward.Weights)
	if err != nil {
		return 0
	}
	held := kernels.F32
	if t, err := checkpoint.OpenFolder(c.Reward.Weights); err == nil {
		held = t.Frozen()
		t.Close()
	}
	heads := model.Heads{Value: true}
	room := model.Capacity{Tokens: c.Compute.MicroBatchTokens, Sequences: c.Compute.MicroBatchTokens/2 + 1}
	return m.BackboneBytes(false, held, copiesOf(c), operand, 1) + m.AdapterBytes(heads, false, copiesOf(c), operand) +
		m.WorkspaceBytes(heads, room, model.KeepNothing, operand, 1)
}

// capacities size the workspaces of a stage; a workspace of capacity zero is not allocated.
type capacities struct {
	scored, trained model.Capacity
	tokens          int // of the largest micro-batch, which may be less than a small workspace holds
}

// capacityOf returns the capacities of the workspaces of a stage whose sequences have at most longest tokens.
func capacityOf(kind config.Stage, c *config.Run, longest int, w stage.Crew) (x capacities) {
	var rows train.Rows
	if kind == config.SFT { // the run may have no algorithm
		rows = stage.SFTConfig(c).Rows(longest)
	} else {
		rows = stage.TrainConfig(c).Rows(longest)
		x.scored, x.tokens = rows.Scored(), rows.ScoredTokens()
	}
	if w.Learns {
		x.trained, x.tokens = rows.Trained(), max(x.tokens, rows.TrainedTokens())
	}
	return x
}

// scratch returns the largest micro-batch, for the workspace of operations.
func (x capacities) scratch() model.Capacity {
	return model.Capacity{Tokens: x.tokens, Sequences: x.trained.Sequences}
}

// activationBytes returns the memory of a micro-batch's forward and backward passes.
func activationBytes(c *config.Run, arch model.Config, h model.Heads, limit capacities,
	operand kernels.DType, w stage.Crew) int {
	keep := model.KeepAll
	if c.Compute.Recompute {
		keep = model.KeepInputs
	}
	bytes := 0
	if limit.scored.Tokens > 0 {
		bytes += arch.WorkspaceBytes(h, limit.scored, model.KeepNothing, operand, w.Tensor)
	}
	if limit.trained.Tokens > 0 {
		bytes += arch.WorkspaceBytes(h, limit.trained, keep, operand, w.Tensor)
	}
	return bytes
}

// policyOf returns the policy's heads and which other models training needs.
func policyOf(c *config.Run) (train.Needs, model.Heads) {
	t := stage.TrainConfig(c)
	heads := model.Heads{LM: true}
	if t.Needs().LogZ {
		heads.LogZ = &t.LogZ
	}
	return t.Needs(), heads
}

// frozenType returns the type of frozen weights in memory: float32 of what this run makes, also by sft; else
// the folder's, or BF16 for a published model that is not here.
func frozenType(c *config.Run) kernels.DType {
	if c.Model.Init != "pretrained" || c.SFT.Steps > 0 {
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

// referenceBytes returns the memory of the reference policy: a folder's weights as they
// are, or a stage's in float32, on each of the ranks that share its products. Adapters are folded into
// weights that are held twice: for that and as products read them.
func referenceBytes(c *config.Run, arch model.Config, shared int) int {
	h, copies, operand := model.Heads{LM: true}, copiesOf(c), stage.Operand(c)
	if stage.FoldsAdapter(c) && c.SFT.Steps == 0 {
		return arch.ModelBytes(h, false, copies, operand, shared)
	}
	return arch.BackboneBytes(true, frozenType(c), copies, operand, shared) +
		arch.AdapterBytes(h, false, copies, operand)
}

// engineOf returns the options of the sampler of a rank in a stage; none if it never samples. A published
// recipe may stretch its model's positions in training.
func engineOf(kind config.Stage, c *config.Run, arch model.Config, longest int, w stage.Crew) generate.Options {
	switch {
	case kind == config.EvalGen:
		return stage.EngineOptions(c, arch, c.Eval.Final.MaxNewTokens, nil)
	case kind != config.Train || !w.Samples:
		return generate.Options{PageTokens: c.Rollout.PageTokens}
	}
	o := stage.EngineOptions(c, arch, c.Rollout.MaxNewTokens, w.Calls(c))
	if c.Model.Init != "random" {
		o.MaxTokens = longest
	}
	return o
}

// copiesOf returns PackedLen of the backend that a configuration selects: of the widest CPU, of a GPU
// with tensor cores, or of a GPU without, which multiplies from the weights.
func copiesOf(c *config.Run) model.PackedLen {
	switch {
	case device.UsesTensorCores(c):
		return func(out, in int) (packed, packedT int) { return out * roundUp(in, factorChunk), 0 }
	case !device.UsesGPU(c):
		return panels(stage.Operand(c))
	}
	return func(out, in int) (packed, packedT int) { return 0, 0 }
}

// factorChunk is the number of elements in a chunk: tensor cores need rows of whole chunks.
const factorChunk = 8

// panels returns PackedLen of the widest CPU backend: panels of 32 columns, in bf16
// with steps of 32 terms.
func panels(operand kernels.DType) model.PackedLen {
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

// scratchBytes returns what the backend allocates for its own operations (on a GPU: gpuScratch).
//
// On the CPU each thread has the largest of: packed rows of the widest input (MatMul,
// MatMulDW); a chunk of logits that fits in cache (LogProb); a sequence's keys and values
// (AttentionBackward); a row's scores against the cache (PagedAttention). All threads
// share the logit gradients of a few blocks of rows (LogProbBackward), and the logits
// of a sampling step, in float32 only if it restricts the choice of tokens. batch is
// the largest micro-batch, longest the length of a sequence.
func scratchBytes(kind config.Stage, c *config.Run, arch model.Config, engine generate.Options, batch model.Capacity,
	longest int, w stage.Crew) int {
	tokens := batch.Tokens
	if device.UsesGPU(c) {
		return gpuScratch(c, arch, engine, batch, w)
	}
	const together = 1 << 22 // logit gradients kept at a time
	threads := c.Compute.Threads
	if threads == 0 {
		threads = max(1, runtime.NumCPU()/w.All)
	}
	operand, V := stage.Operand(c), arch.Vocab
	perThread := floatScratch
	if operand == kernels.BF16 {
		perThread = tileScratch
	}
	gradients := min(max(kernels.BlockRows, together/V), tokens) * V * operand.Size()
	restricted := restricts(kind, c)
	logits := engine.MaxSequences * V
	if operand == kernels.BF16 {
		logits = min(engine.MaxSequences, max(32, together/V)) * V
	}
	if restricted {
		logits *= 2 // and their exponentials
	}
	if kind == config.Train && c.Algo.Distill.TopK > 0 { // all logits of some rows, to choose from
		top := 2 * min(max(32, together/V), tokens) * V
		if operand == kernels.F32 {
			gradients = max(gradients, 4*top)
		}
		logits = max(logits, top)
	}
	if operand == kernels.F32 {
		if restricted {
			gradients = max(gradients, 4*logits) // one buffer serves both
		}
		logits = 0
	}
	scratch := 0
	for _, c := range arch.Kinds() {
		scratch = max(scratch, perThread(engine, c, (tokens+threads-1)/threads, longest))
	}
	if arch.Recurrent() {
		scratch = max(scratch, deltaScratch(arch, tokens, min(longest, tokens)))
		if blocks := tokens/kernels.BlockRows + batch.Sequences; arch.Delta.Scan { // GroupedNormBackward
			scratch = max(scratch, (blocks*arch.Delta.Out()+threads-1)/threads)
		}
	}
	return 4*threads*scratch + gradients + 4*logits
}

// restricts reports whether a stage samples from some of the tokens only.
func restricts(kind config.Stage, c *config.Run) bool {
	less := func(k int, p float64) bool { return k > 0 || p > 0 && p < 1 }
	if r, f := c.Rollout, c.Eval.Final; kind == config.EvalGen {
		return less(f.TopK, f.TopP)
	} else if less(r.TopK, r.TopP) || r.MinP > 0 {
		return true
	}
	o := c.Eval.Online
	return o.EverySteps > 0 && less(o.TopK, o.TopP)
}

// gpuScratch returns the bytes of a GPU's workspace: the largest of the gradients of a
// micro-batch's logits (LogProbBackward), a piece of its logits (LogProb), and the logits in a
// piece of a sampling step, for short rows with weights and order of the tokens (Sample); ranks that share
// products have their part of each, and those that do not learn no gradients. A number for each row and
// head is attention's (AttentionBackward). Linear attention keeps states (DeltaRuleBackward) of the sequences and of
// their prompts. Tensor cores have factors of their own.
func gpuScratch(c *config.Run, arch model.Config, engine generate.Options, batch model.Capacity, w stage.Crew) int {
	tokens := batch.Tokens
	const piece = 160 << 20 // elements
	V, operand, shared := arch.Vocab, stage.Operand(c), w.Tensor
	own := func(n int) int { return (n + shared - 1) / shared } // a rank's part of rows or tokens
	arrays := 1
	if V < 1024 {
		arrays = 3 // for short rows
	}
	rows := min(own(engine.MaxSequences), max(1, piece/(arrays*V)))
	logits := V // of a row that is scored
	if c.Algo.Distill.TopK > 0 && V < 1024 {
		logits *= 2 // TopTokens keeps the order of its tokens, too
	}
	gradients := 0
	if w.Learns {
		all := max(own(tokens)*V, tokens*own(V))
		gradients = all * operand.Size()
		if c.Algo.Distill.TopK > 0 { // their kernels also need the products of some rows
			gradients += 4 * min(all, max(piece, V))
		}
	}
	bytes := max(gradients, 4*logits*min(own(tokens), max(1, piece/logits)), 4*arrays*rows*V, 4*tokens*arch.Heads)
	if arch.Recurrent() {
		bytes = max(bytes, 4*device.DeltaScratch(arch.Delta, tokens, min(tokens, 2*batch.Sequences), w.Learns))
	}
	if device.UsesTensorCores(c) {
		bytes += factorBytes(arch, tokens, shared)
	}
	return bytes
}

// factorBytes returns the bytes of the factors that tensor cores need in another layout than a
// micro-batch's activations have: gradients of the residual stream, which are float32, and operands
// whose rows are no whole chunks.
func factorBytes(arch model.Config, tokens, shared int) int {
	left, right := roundUp(arch.Width, factorChunk), 0
	vocab := (arch.Vocab + shared - 1) / shared
	widths := []int{arch.Width, arch.FFN, 2 * arch.FFN, vocab}
	for _, c := range arch.Kinds() {
		widths = append(widths, c.Heads*c.Head, c.QKV())
	}
	for _, width := range widths {
		if width%factorChunk != 0 {
			left = max(left, roundUp(width, factorChunk))
			right = max(right, roundUp(min(width, arch.Width), factorChunk))
		}
	}
	return 2 * tokens * (left + right)
}

// floatScratch returns a thread's scratch in float32, in elements; rows is its share of
// a micro-batch's rows.
func floatScratch(engine generate.Options, arch model.Config, rows, longest int) int {
	const (
		tile    = 14        // rows of a register tile
		panel   = 32        // columns of a tile, and of a panel packed for it
		product = 1 << 17   // elements of a product computed at a time
		logits  = 352 << 10 // elements of logits computed at a time
		queries = 96        // rows of a sequence whose probabilities the backward pass keeps
	)
	dw := 0
	for _, k := range []int{arch.Width, arch.FFN, arch.Heads * arch.Head, max(arch.Delta.Out(), arch.Width)} {
		n := max(arch.WidestMap(), arch.Vocab)
		cols := (k + 511) / 512
		width := roundUp((roundUp(k, panel)/panel+cols-1)/cols*panel, panel)
		height := min(n, product/roundUp(width, 128))
		dw = max(dw, kernels.BlockRows*(roundUp(height, tile)+width))
	}
	packed := min(10*tile, roundUp(rows, tile)) * roundUp(min(max(arch.Width, 2*arch.FFN, arch.Vocab), 1024), panel)
	chunk := min(max(1, logits/arch.Vocab/tile)*tile, roundUp(rows, tile))
	output := chunk*(roundUp(arch.Vocab, panel)+panel) + roundUp(arch.Vocab, panel) + chunk*roundUp(arch.Width, panel)
	T, head := roundUp(longest, panel), roundUp(arch.Head, panel)
	attention := T*(4*arch.Head+head) + 2*queries*(head+T) + panel*arch.Head // for sequences that share a prompt
	scores := 2 * roundUp(engine.MaxTokens, max(engine.PageTokens, panel))
	return max(dw, packed, output, attention, scores)
}

// tileScratch is floatScratch for bf16.
func tileScratch(engine generate.Options, arch model.Config, rows, longest int) int {
	const (
		block  = 32             // rows or columns multiplied at a time
		step   = block * 32 / 2 // elements of one step of terms
		pieces = 8              // steps of a gradient packed at a time
		group  = 4              // blocks of queries per backward pass
	)
	dw := 0
	for _, k := range []int{arch.Width, arch.FFN, arch.Heads * arch.Head, max(arch.Delta.Out(), arch.Width)} {
		kBlock := min(roundUp(k, block), 512)
		nBlock := min(roundUp(max(arch.WidestMap(), arch.Vocab), block), 1<<18/kBlock/block*block)
		dw = max(dw, nBlock*kBlock+(nBlock+kBlock)/block*pieces*step)
	}
	logits := block*(roundUp(arch.Vocab, block)+kernels.Lanes) + roundUp(arch.Width, 32)/32*step
	ts, ds := roundUp(longest, 32)/32, roundUp(arch.Head, 32)/32
	keys := (64*ts+block)*ds*32 + 64*ts + (3*ts*ds+ds+group*(4*ds+ts+2))*step
	scores := 2 * (roundUp(engine.MaxTokens, max(engine.PageTokens, block)) + 2*roundUp(arch.Head, block))
	return max(dw, logits, keys, scores)
}

// deltaScratch is floatScratch for linear attention. DeltaRuleBackward keeps states for some columns of a group of
// sequences, and the scaled queries and keys of all its tokens; ShortConvBackward keeps a number for each row and
// channel of a strip; DeltaRule keeps two states, and scaled queries and keys of some rows.
func deltaScratch(arch model.Config, tokens, longest int) int {
	const keep, strip, scaled = 32, 64, 32 // rows from a kept state to the next; channels of a strip; rows
	s := arch.Delta
	states := 3 + keep + 1 + 2*(longest/keep+1)
	back := states*s.KeyDim*kernels.Lanes + keep*kernels.Lanes + 4*tokens*s.KeyDim
	return max(back, tokens*strip, 2*s.State()/s.Values+2*scaled*s.KeyDim)
}

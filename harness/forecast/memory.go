package forecast

import (
	"slices"

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

// memoryOf returns the memory of the device and of its host, by part, of a learning stage (config.SFT,
// config.RewardModel, config.Prefer or config.Train), of one that measures pass rates (config.PassRate), or of the
// final evaluation (config.EvalGen) of a run that learns nothing; other stages need less. Sizes are what the engine
// allocates, or slightly more: full-length sequences, panels of the widest instruction set. The program itself comes
// on top (programBytes).
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
	var tower parts
	if mayShowImages(kind, c) {
		tower.addTower(kind, c, arch, longest, w)
	}
	if kind == config.EvalGen {
		return append(evalMemory(c, arch, longest, at, nil), tower...), nil
	}
	if kind == config.PassRate {
		return append(ratingMemory(c, arch, longest, w, at), tower...), nil
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
	if kind != config.Train {
		heads = learningHeads(kind, c, arch)
	}
	switch {
	case heads.Adapters != nil:
		parts.addAdapted(&pinned, frozenType(kind, c), c, arch, heads, needs, w, at.Offload,
			stage.PolicyOptim(kind, c))
	case w.Learns:
		parts.addModels(&pinned, c, arch, heads, needs, w, at.Offload, stage.PolicyOptim(kind, c))
	default:
		heads = model.Heads{LM: true}
		add("policy: weights", train.CopyBytes(arch, w.Rollout, operand, copies))
		if stage.TrainConfig(c).SamplersNeedReference() {
			add("reference policy", heldReference(c, arch, w.Rollout))
		}
	}
	judging := 0
	if kind == config.Train && (c.Reward.HasModel() || c.Reward.Trained()) && w.Scores(c) {
		held, room := rewardBytes(c, arch)
		add("reward model", held)
		judging = room
	}
	limit := capacityOf(kind, c, longest, w)
	activations, teaching := teacherRooms(kind, c, arch, limit, longest, w)
	add(string(kernels.ActivationRoom), activations+activationBytes(c, arch, heads, limit, operand, w))
	parts.reach(c, arch, heads, limit, operand, w)
	parts.wait(kind, c, longest, w)
	rows := 0 // of a sampling step by the ranks that share products in training
	engine := engineOf(kind, c, arch, longest, w)
	output := w.Learns && heads.LM && heads.Adapters == nil
	scratch := workspace{kind, c, arch, engine, limit.scratch(), longest, w, output, restricts(kind, c)}.bytes()
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
	add(string(kernels.ScratchRoom), max(scratch, teaching, judging))
	return append(parts, tower...), pinned
}

// mostImageTokens returns the most tokens that an image has in a stage whose sequences have at most longest.
func mostImageTokens(kind config.Stage, c *config.Run, longest int) int {
	learned := kind == config.SFT && c.SFT.OnConversations() || kind == config.Prefer
	brought := kind != config.SFT && c.Rollout.Tools.Agent() // by agents, anywhere in a conversation
	if learned || brought {
		return longest
	}
	return c.Data.MaxPromptTokens
}

// mayShowImages reports whether a stage reads data that may show images. Estimate.Show leaves out what shows none.
func mayShowImages(kind config.Stage, c *config.Run) bool {
	if kind == config.EvalGen {
		return !slices.Equal(c.Eval.Final.Suites, []string{config.None}) // as an endpoint has them
	}
	return kind != config.RewardModel
}

// evalMemory returns the parts of the memory of sampling for an evaluation: of a benchmark with such needs, or, if
// that is nil, of any problems.
func evalMemory(c *config.Run, arch model.Config, longest int, at stage.Placement, needs *stage.SuiteNeeds) []Part {
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
	changed := restricts(config.EvalGen, c)
	if needs != nil {
		engine, changed = needs.Engine, needs.Scored || changed
		longest = engine.MaxTokens
		if engine.CacheTokens > 0 {
			at.CacheTokens = engine.CacheTokens
		}
	}
	parts.addEngine(engine, at, arch, heads, operand, 1)
	parts.sharePrompts(c, engine, at, arch, heads, operand, needs)
	step := model.Capacity{Tokens: engine.MaxSequences}
	room := workspace{config.EvalGen, c, arch, engine, step, longest, w, false, changed}
	parts.add(string(kernels.ScratchRoom), room.bytes())
	if c.JudgesAlone() && (c.Reward.HasModel() || c.Reward.Trained()) { // which scores when the rest is freed
		held, room := rewardBytes(c, arch)
		parts.add("reward model beyond the policy", max(0, held+room-int(sumParts(parts))))
	}
	if c.Eval.Final.Scorer.Used() { // likewise
		held, room := rewardBytes(c.ScoredBy(), arch)
		parts.add("scorer beyond the policy", max(0, held+room-int(sumParts(parts))))
	}
	return parts
}

// rewardBytes returns the memory of the reward model, with its sampler if it writes, and what it needs of the
// workspace of operations, which all models share; 0 if its configuration cannot be read, which the plan reports. arch
// is the policy's, and the one of a reward model that the run trains.
func rewardBytes(c *config.Run, arch model.Config) (held, scratch int) {
	if c.Reward.Trained() {
		return scorerBytes(c, arch, model.Heads{Value: true}, kernels.F32), 0
	}
	if !c.Reward.Writes() {
		return classifierBytes(c), 0
	}
	own := stage.JudgeRun(c)
	judge, err := stage.ReadArchitecture(own)
	if err != nil {
		return 0, 0
	}
	for _, p := range evalMemory(own, judge, longestOf(config.EvalGen, own, judge), stage.Placement{}, nil) {
		if p.Name == string(kernels.ScratchRoom) {
			scratch += int(p.Bytes)
		} else {
			held += int(p.Bytes)
		}
	}
	return held, scratch
}

// classifierBytes returns the memory of a reward model that is a sequence classifier in a folder.
func classifierBytes(c *config.Run) int {
	m, heads, err := stage.ScorerHeads(&c.Reward)
	if err != nil {
		return 0
	}
	held := kernels.F32
	if t, err := checkpoint.OpenFolder(c.Reward.Weights); err == nil {
		held = t.Frozen()
		t.Close()
	}
	return scorerBytes(c, m, heads, held)
}

// scorerBytes returns the memory of a sequence classifier whose weights have a type.
func scorerBytes(c *config.Run, m model.Config, heads model.Heads, held kernels.DType) int {
	operand := stage.Operand(c)
	room := model.Capacity{Tokens: c.Compute.MicroBatchTokens, Sequences: c.Compute.MicroBatchTokens/2 + 1}
	return m.BackboneBytes(false, held, copiesOf(c), operand, 1) + m.AdapterBytes(heads, false, copiesOf(c), operand) +
		m.WorkspaceBytes(heads, room, model.KeepNothing, operand, 1)
}

// capacities size the workspaces of a stage; a workspace of capacity zero is not allocated.
type capacities struct {
	scored, trained model.Capacity
	tokens          int // of the largest micro-batch, which may be less than a small workspace holds
	// The largest micro-batches of both workspaces.
	scoredTokens, trainedTokens int
}

// capacityOf returns the capacities of the workspaces of a stage whose sequences have at most longest tokens.
func capacityOf(kind config.Stage, c *config.Run, longest int, w stage.Crew) (x capacities) {
	rows := rowsOf(kind, c, longest)
	if kind == config.Train {
		x.scored, x.scoredTokens = rows.Scored(), rows.ScoredTokens()
	}
	if w.Learns {
		x.trained, x.trainedTokens = rows.Trained(), rows.TrainedTokens()
	}
	x.tokens = max(x.scoredTokens, x.trainedTokens)
	return x
}

// rowsOf returns the completions, or examples, of a stage that learns. The run may have no algorithm.
func rowsOf(kind config.Stage, c *config.Run, longest int) train.Rows {
	switch kind {
	case config.SFT:
		return stage.SFTConfig(c).Rows(longest)
	case config.RewardModel:
		if c.RewardModel.OfSteps() {
			return stage.StepModelConfig(c).Rows(longest + 1)
		}
		return stage.RewardModelConfig(c).Rows(2*longest + 1)
	case config.Prefer:
		return stage.PreferRows(c, longest)
	}
	return stage.TrainConfig(c).Rows(longest)
}

// each calls f for each workspace, with its capacity and what the largest micro-batch needs of it.
func (x capacities) each(c *config.Run, f func(all, reached model.Capacity, keep model.Keep)) {
	keep := model.KeepAll
	if c.Compute.Recompute {
		keep = model.KeepInputs
	}
	reached := func(all model.Capacity, tokens int) model.Capacity {
		all.Tokens = min(all.Tokens, tokens)
		return all
	}
	if x.scored.Tokens > 0 {
		f(x.scored, reached(x.scored, x.scoredTokens), model.KeepNothing)
	}
	if x.trained.Tokens > 0 {
		f(x.trained, reached(x.trained, x.trainedTokens), keep)
	}
}

// scratch returns the largest micro-batch, for the workspace of operations.
func (x capacities) scratch() model.Capacity {
	return model.Capacity{Tokens: x.tokens, Sequences: x.trained.Sequences}
}

// activationBytes returns the memory of a micro-batch's forward and backward passes.
func activationBytes(c *config.Run, arch model.Config, h model.Heads, limit capacities,
	operand kernels.DType, w stage.Crew) (bytes int) {
	limit.each(c, func(all, _ model.Capacity, keep model.Keep) {
		bytes += arch.WorkspaceBytes(h, all, keep, operand, w.Tensor)
	})
	return bytes
}

// reachedBytes returns how much of activationBytes takes memory of a CPU.
func reachedBytes(c *config.Run, arch model.Config, h model.Heads, limit capacities,
	operand kernels.DType, w stage.Crew) (bytes int) {
	limit.each(c, func(all, reached model.Capacity, keep model.Keep) {
		bytes += arch.ReachedBytes(h, all, reached, keep, operand, w.Tensor, device.ResidentOnCPU)
	})
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

// frozenType returns the type of a stage's frozen weights in memory: float32 of what this run makes, also by
// fine-tuning; else the folder's, or BF16 for a published model that is not here.
func frozenType(kind config.Stage, c *config.Run) kernels.DType {
	if c.Model.Init != "pretrained" || c.SFT.Steps > 0 ||
		c.Prefer.Steps > 0 && kind != config.Prefer && kind != config.RewardModel {
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
	if stage.FoldsAdapter(c) && !c.Tunes() {
		return arch.ModelBytes(h, false, copies, operand, shared)
	}
	return arch.BackboneBytes(true, frozenType(config.Train, c), copies, operand, shared) +
		arch.AdapterBytes(h, false, copies, operand)
}

// engineOf returns the options of the sampler of a rank in a stage; none if it never samples. A published
// recipe may stretch its model's positions in training.
func engineOf(kind config.Stage, c *config.Run, arch model.Config, longest int, w stage.Crew) generate.Options {
	switch {
	case kind == config.EvalGen:
		return stage.EngineOptions(c, arch, c.Eval.Final.MaxNewTokens, nil)
	case kind != config.Train && kind != config.PassRate || !w.Samples:
		return generate.Options{PageTokens: c.Rollout.PageTokens}
	}
	calls := stage.RatingCalls
	if kind == config.Train {
		calls = func(c *config.Run, _ int) []generate.Call { return w.Calls(c) }
	}
	o := stage.EngineOptions(c, arch, c.Rollout.MaxNewTokens, calls(c, w.All))
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

// panelColumns is how many columns a panel of the widest CPU backend has.
const panelColumns = 32

// panels returns PackedLen of the widest CPU backend: panels of 32 columns, in bf16
// with steps of 32 terms.
func panels(operand kernels.DType) model.PackedLen {
	return func(out, in int) (packed, packedT int) {
		if operand == kernels.BF16 {
			n := roundUp(out, panelColumns) * roundUp(in, kernels.TileTerms)
			return n, n
		}
		return roundUp(out, panelColumns) * in, roundUp(in, panelColumns) * out
	}
}

func roundUp(n, unit int) int { return (n + unit - 1) / unit * unit }

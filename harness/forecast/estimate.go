package forecast

import (
	"exp/harness/config"
	"exp/harness/device"
	"exp/harness/stage"
	"exp/train"
	"exp/train/generate"
	"exp/train/model"
	"exp/train/rl"
)

// Teacher is a model that algo.reference or algo.teachers names.
type Teacher struct {
	Name       string `json:"name"`
	Parameters int    `json:"parameters,omitempty"` // 0: its architecture is not known
}

// Estimate is a forecast of a run's needs, computed from its configuration alone.
type Estimate struct {
	Model      string    `json:"model"`
	Parameters int       `json:"parameters"`         // of the policy's backbone including the output projection
	Adapters   int       `json:"adapters,omitempty"` // LoRA parameters, the only trained ones
	Heads      int       `json:"head_parameters"`    // of auxiliary heads
	Teachers   []Teacher `json:"teachers,omitempty"` // algo.reference's first
	Ranks      int       `json:"ranks,omitempty"`    // each needs Memory; 0: one process
	Phases     []Phase   `json:"phases,omitempty"`   // of a training step
	// Learning is the work of stages that learn from examples; empty where neither times nor ranks are known.
	Learning []Learning `json:"learning,omitempty"`
	// Rates are of this machine's CPU, on which the times rest; nil: the times, if any, are a GPU's.
	Rates      *Rates `json:"rates,omitempty"`
	Device     string `json:"device,omitempty"`      // the GPU planned for, also where it is missing
	Memory     []Part `json:"memory"`                // on the device, by part
	HostMemory []Part `json:"host_memory,omitempty"` // pinned, for a GPU, by part
	// Ranks that only sample, and the memory of each. Memory is then a learning rank's.
	Samplers      int    `json:"samplers,omitempty"`
	SamplerMemory []Part `json:"sampler_memory,omitempty"`
	// Memory of the sft stage, in which all ranks learn: on the device and pinned. Empty without one.
	SFTMemory     []Part `json:"sft_memory,omitempty"`
	SFTHostMemory []Part `json:"sft_host_memory,omitempty"`
	// The same for the prefer stage.
	PreferMemory     []Part `json:"prefer_memory,omitempty"`
	PreferHostMemory []Part `json:"prefer_host_memory,omitempty"`
	// The same for the reward_model stage.
	RewardModelMemory     []Part  `json:"reward_model_memory,omitempty"`
	RewardModelHostMemory []Part  `json:"reward_model_host_memory,omitempty"`
	Rating                *Rating `json:"pass_rate,omitempty"` // of training problems before training; nil without it
	// Room of the sampler's cache, if it is less than its sequences may need; 0 else.
	CacheTokens     int   `json:"cache_tokens,omitempty"`
	FullCacheTokens int   `json:"full_cache_tokens,omitempty"`
	Program         int64 `json:"program_bytes"` // of this machine's memory, for the program itself
	// ImageBytes are of this machine's memory, for features of images and for reading them; Show sets it.
	ImageBytes int64 `json:"image_bytes,omitempty"`
	Disk       int64 `json:"disk_bytes"` // upper bound of a run's weights and checkpoints in the store
	// Upper bound of what the store keeps of training's completions.
	CompletionBytes int64 `json:"completion_bytes,omitempty"`
	// Upper bounds per training step. Sampled includes what a filter samples and drops,
	// and ReMax's greedy completions; with recorded rollouts it counts only what is
	// sampled in addition.
	Completions int `json:"completions_per_step"`   // trained on
	FirstValues int `json:"first_values,omitempty"` // completions of every problem before training
	Sampled     int `json:"sampled_per_step"`
	Tokens      int `json:"tokens_per_step"` // prompts and completions trained on, at full length
	Updates     int `json:"updates_per_step"`
	// Images is the work of vision towers in a training step; nil without any. Show sets it.
	Images *ImageWork `json:"images,omitempty"`

	rates       Rates // that times rest on; the zero value: there are none
	onGPU       bool  // Memory is a GPU's
	longest     int   // tokens of a sequence, for Program
	held        int   // completions of a step, for Program
	deviceBytes int64 // memory of Device
	weights     int64 // bytes of a set of weights in float32
	merged      int64 // bytes that merge writes: folders, and blobs
	trained     int64 // bytes that training changes
	initial     int64 // bytes in the store of what training starts from
	checkpoints int64 // bytes of the checkpoints kept
	tuned       int64 // bytes of what fine-tuning learns, and of its checkpoints, which go when it is done
}

// Part is one part of memory.
type Part struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"` // to allocate
	// Untouched are bytes of them that nothing reads or writes. A CPU's system gives no memory for them.
	Untouched int64 `json:"untouched_bytes,omitempty"`
}

// resident returns the memory that the part takes.
func (p Part) resident() int64 { return p.Bytes - p.Untouched }

// Total returns the memory that the parts of Memory take.
func (e Estimate) Total() int64 { return sumParts(e.Memory) }

// inMachine returns the memory for arrays of this machine that a rank takes at its peak.
func (e *Estimate) inMachine() int64 {
	if e.onGPU {
		return e.Pinned()
	}
	return max(e.Total(), e.tuning())
}

// tuning returns the most memory of the device that a stage before training takes.
func (e *Estimate) tuning() int64 {
	return max(sumParts(e.SFTMemory), sumParts(e.RewardModelMemory), sumParts(e.PreferMemory), sumParts(e.rated()))
}

// rated returns the memory of the stage that measures pass rates; nil without it.
func (e *Estimate) rated() []Part {
	if e.Rating == nil {
		return nil
	}
	return e.Rating.Memory
}

// OnGPU reports whether Memory is a GPU's.
func (e *Estimate) OnGPU() bool { return e.onGPU }

// Usable returns how much of the memory of the GPU planned for a plan may fill.
func (e *Estimate) Usable() int64 { return figures{Memory: e.deviceBytes}.usable() }

// Planned returns the bytes that one stage which ranks share allocates on its device.
func (e Estimate) Planned(kind config.Stage) (bytes int64) {
	for _, p := range e.partsOf(kind) {
		bytes += p.Bytes
	}
	return bytes
}

// partsOf returns the memory of one stage that ranks share, by part.
func (e *Estimate) partsOf(kind config.Stage) []Part {
	switch kind {
	case config.SFT:
		return e.SFTMemory
	case config.RewardModel:
		return e.RewardModelMemory
	case config.Prefer:
		return e.PreferMemory
	case config.PassRate:
		return e.rated()
	}
	return e.Memory
}

// sumParts returns the memory that parts take.
func sumParts(parts []Part) (bytes int64) {
	for _, p := range parts {
		bytes += p.resident()
	}
	return bytes
}

// Estimate estimates what the run needs while training.
func (r Run) Estimate() (Estimate, error) {
	c, ranks := &r.Config.Run, max(1, r.Ranks)
	arch, err := architectureOf(c, r.Vocab)
	if err != nil {
		return Estimate{}, err
	}
	if c.Data.Train.Source == config.None {
		return r.untrained(arch), nil
	}
	needs, heads := policyOf(c)
	e := Estimate{Model: c.Model.Title(), Completions: c.Train.PromptsPerStep * c.Rollout.N,
		Updates: c.Train.PromptsPerStep / c.Train.PromptsPerUpdate * c.Algo.Epochs, FirstValues: stage.FirstValues(c)}
	e.Parameters, e.Heads = model.Parameters(arch, heads)
	for _, x := range teachersOf(c) {
		e.Teachers = append(e.Teachers, Teacher{x.name, x.parameters()})
	}
	longest := longestOf(config.Train, c, arch)
	e.Tokens, e.Sampled = e.Completions*c.Rollout.Tools.Most()*longest, sampledPerStep(c)
	e.onGPU = device.UsesGPU(c)
	if ranks > 1 {
		e.Ranks = ranks
	}
	e.rates, e.Rates = r.rates()
	w := stage.Learners(c, ranks)
	p := e.planStages(c, arch, longest, w)
	e.take(p, engineOf(config.Train, c, arch, longest, w))
	if w.Apart() {
		others := stage.Samplers(c, ranks)
		e.takeSamplers(ranks-w.Ranks, planLike(p, config.Train, c, arch, longest, others),
			engineOf(config.Train, c, arch, longest, others))
	}
	completions := max(e.Completions, e.Sampled)
	if c.Data.PassRate.Samples > 0 {
		rates := planLike(p, config.PassRate, c, arch, longest, raters(c, ranks))
		e.Rating = ratingOf(c, arch, longest, ranks, rates, e.rates)
		completions = max(completions, stage.RatedTogether(c, ranks)*e.Rating.Each)
	}
	e.longest, e.held = longest, completions
	e.Program = programBytes(c, longest, completions, e.inMachine())
	if ranks > 1 || e.rates.known() {
		e.Phases = phasesOf(c, arch, longest, ranks, p, e.rates)
	}
	trained, learning := e.learned(c, arch, heads, needs)
	e.weights = 4 * int64(e.Parameters+e.Heads)
	e.checkpoints = (12*learning + stateBytes(c, e.Sampled, e.weights)) * keptCheckpoints(c)
	e.trained, e.initial = 4*trained, e.weights
	if c.Eval.Online.Chooses() { // each checkpoint may hold another file of weights, and the end one more
		e.checkpoints += 4 * trained * (keptCheckpoints(c) + 1)
	}
	if c.Model.Init == "pretrained" {
		e.initial = 1 << 12 // a reference to weights outside the store
	}
	e.CompletionBytes = keptCompletions(c)
	e.merged = 2 * e.weights
	if c.Merge.Format != "hf" {
		e.merged *= 2
	}
	e.tuned = (1 + 3*keptCheckpoints(c)) * e.weights
	e.Disk = e.checkpoints + e.trained + e.initial + e.merged
	if c.LearnsFirst() {
		e.Disk = max(e.checkpoints+e.trained, e.tuned) + e.initial + e.merged
	}
	e.Disk += e.kept(c)
	return e, nil
}

// learned returns the parameters that a run trains of the policy, and of all models, and sets e.Adapters.
func (e *Estimate) learned(c *config.Run, arch model.Config, heads model.Heads, needs train.Needs) (
	trained, all int64) {
	count := func(h model.Heads) int64 {
		h = stage.WithAdapters(h, c, arch)
		if h.Adapters == nil {
			backbone, more := model.Parameters(arch, h)
			return int64(backbone + more)
		}
		_, n := model.AdapterLayout(arch, h, h.Adapters)
		return int64(n)
	}
	trained = count(heads)
	if stage.WithAdapters(heads, c, arch).Adapters != nil {
		e.Adapters = int(trained)
	}
	all = trained
	if needs.Critic {
		all += count(model.Heads{Value: true})
	}
	if needs.Process {
		all += count(model.Heads{LM: true})
	}
	return trained, all
}

// kept returns the bytes of what stages that learn from examples make, but for the last of them, and of the folder
// of a reward model.
func (e *Estimate) kept(c *config.Run) int64 {
	n := max(0, len(tuningStages(c))-1)
	if c.RewardModel.Steps > 0 {
		n++
	}
	return int64(n) * e.weights
}

// keptCheckpoints returns how many checkpoints a learning stage keeps. One that stops always writes one.
func keptCheckpoints(c *config.Run) int64 {
	if c.Checkpoint.EverySteps > 0 || c.Checkpoint.EveryMinutes > 0 {
		return int64(max(1, c.Checkpoint.Keep))
	}
	return 1
}

// tuningStages returns the stages of a run that learn from examples before reinforcement learning.
func tuningStages(c *config.Run) (kinds []config.Stage) {
	if c.SFT.Steps > 0 {
		kinds = append(kinds, config.SFT)
	}
	if c.RewardModel.Steps > 0 {
		kinds = append(kinds, config.RewardModel)
	}
	if c.Prefer.Steps > 0 {
		kinds = append(kinds, config.Prefer)
	}
	return kinds
}

// setTuning sets the memory of such a stage.
func (e *Estimate) setTuning(kind config.Stage, p planned) {
	switch kind {
	case config.SFT:
		e.SFTMemory, e.SFTHostMemory = p.device, p.host
	case config.RewardModel:
		e.RewardModelMemory, e.RewardModelHostMemory = p.device, p.host
	default:
		e.PreferMemory, e.PreferHostMemory = p.device, p.host
	}
}

// planStages plans the memory of learning ranks in training, which it returns, and of the stages before it that learn,
// for one GPU.
func (e *Estimate) planStages(c *config.Run, arch model.Config, longest int, w stage.Crew) planned {
	p := planOf(config.Train, c, arch, longest, w)
	all := stage.Everyone(c, w.All)
	for _, kind := range tuningStages(c) {
		longest := longestOf(kind, c, arch)
		tuning := planLike(p, kind, c, arch, longest, all)
		if !tuning.fits() { // a larger GPU may have room for both
			tuning = planOf(kind, c, arch, longest, all)
			p = planLike(tuning, config.Train, c, arch, longestOf(config.Train, c, arch), w)
		}
		e.setTuning(kind, tuning)
		e.addLearning(kind, c, arch, w.All, tuning)
	}
	return p
}

// take sets the memory as planned for a sampler with room for all sequences, or less.
func (e *Estimate) take(p planned, engine generate.Options) {
	e.Memory, e.HostMemory, e.Device, e.deviceBytes = p.device, p.host, p.gpu.Name, p.gpu.Memory
	if tokens := p.placement.CacheTokens; tokens > 0 && tokens < engine.FullCache() {
		e.CacheTokens, e.FullCacheTokens = tokens, engine.FullCache()
	}
}

// takeSamplers sets the memory of n ranks that only sample; their cache is the one that counts.
func (e *Estimate) takeSamplers(n int, p planned, engine generate.Options) {
	e.Samplers, e.SamplerMemory, e.CacheTokens, e.FullCacheTokens = n, p.device, 0, 0
	if tokens := p.placement.CacheTokens; tokens > 0 && tokens < engine.FullCache() {
		e.CacheTokens, e.FullCacheTokens = tokens, engine.FullCache()
	}
}

// untrained estimates what a run without training needs, on each of several ranks: to learn from examples,
// if it does, and to sample, if it has suites.
func (r Run) untrained(arch model.Config) Estimate {
	c, ranks := &r.Config.Run, max(1, r.Ranks)
	e := Estimate{Model: c.Model.Title(), onGPU: device.UsesGPU(c)}
	e.Parameters, _ = model.Parameters(arch, model.Heads{LM: true})
	if e.weights = 4 * int64(e.Parameters); ranks > 1 {
		e.Ranks = ranks
	}
	e.rates, e.Rates = r.rates()
	w, longest := stage.Everyone(c, 1), longestOf(config.EvalGen, c, arch)
	engine := engineOf(config.EvalGen, c, arch, longest, w)
	sampled, tuned := planned{}, len(c.Eval.Final.Suites) == 0 && c.LearnsFirst()
	if !tuned {
		sampled = planOf(config.EvalGen, c, arch, longest, w)
	}
	e.Disk = e.weights
	for _, kind := range tuningStages(c) {
		all, longest := stage.Everyone(c, ranks), longestOf(kind, c, arch)
		p := planLike(sampled, kind, c, arch, longest, all)
		if !p.fits() { // a larger GPU may have room for both
			p = planOf(kind, c, arch, longest, all)
		}
		e.addLearning(kind, c, arch, ranks, p)
		switch e.setTuning(kind, p); {
		case tuned && sumParts(p.device) >= sumParts(sampled.device):
			sampled = p
		case tuned:
		case p.gpu != sampled.gpu:
			sampled = planLike(p, config.EvalGen, c, arch, longestOf(config.EvalGen, c, arch), w)
		}
		e.addDisk(c)
	}
	e.take(sampled, engine)
	e.longest = longest
	e.Program = programBytes(c, longest, 0, e.inMachine())
	return e
}

// addDisk sets what a run that only fine-tunes writes: its start, the weights with a checkpoint, and the folder.
func (e *Estimate) addDisk(c *config.Run) {
	if e.initial = e.weights; c.Model.Init == "pretrained" {
		e.initial = 1 << 12
	}
	if e.merged = 2 * e.weights; c.Merge.Format != "hf" {
		e.merged *= 2
	}
	e.tuned = (1 + 3*keptCheckpoints(c)) * e.weights
	e.Disk = e.initial + e.tuned + e.merged
	e.Disk += e.kept(c)
}

// What a kept completion takes: compressed text, ids and log-probs, and a row of the database. Measured with
// completions of a random model, whose texts and ids compress least.
const (
	keptTokenBytes      = 12
	keptCompletionBytes = 160
)

// keptCompletions returns the most bytes that the store keeps of a run's training completions.
func keptCompletions(c *config.Run) int64 {
	n := float64(c.Train.Steps) * float64(c.Train.PromptsPerStep) * float64(c.Rollout.N) * c.Store.Samples.Train
	most := c.Rollout.MaxNewTokens + (c.Rollout.Tools.Most()-1)*(c.Data.MaxPromptTokens+c.Rollout.MaxNewTokens)
	return int64(n * float64(most*keptTokenBytes+keptCompletionBytes))
}

// bytesPerToken is the assumed length of a token's text.
const bytesPerToken = 4

// stateBytes returns what a checkpoint holds of completions, numbers in base64: if sampling runs ahead, those that
// wait, three numbers per token and the text; of generated problems with tracked values the last completion of each,
// two numbers per token. If the reference policy is renewed, its weights take as much as the policy's.
func stateBytes(c *config.Run, sampled int, weights int64) int64 {
	n := int64(c.Rollout.Staleness) * int64(sampled) * int64(c.Rollout.MaxNewTokens) * (3*4*4/3 + bytesPerToken)
	if c.Algo.ReferenceEvery > 0 {
		n += weights
	}
	if stage.TrainConfig(c).Tracks() {
		n += int64(c.Problems("train")) * int64(c.Rollout.MaxNewTokens) * 2 * 4 * 4 / 3
	}
	return n
}

// sampledPerStep returns the most completions that a step samples.
func sampledPerStep(c *config.Run) int {
	n := c.Train.PromptsPerStep * c.Rollout.N
	if c.Algo.FilterGroups.Metric != "none" && c.Algo.FilterGroups.Metric != "" {
		n *= c.Algo.FilterGroups.MaxBatches
	}
	if c.Rollout.Source == "recorded" {
		n = 0
	}
	if e, _ := rl.EstimatorNamed(c.Algo.Advantage); e.Greedy {
		n += c.Train.PromptsPerStep
	}
	return n
}

// StageBytes returns the most bytes that a stage writes as files.
func (e *Estimate) StageBytes(kind config.Stage) int64 {
	switch kind {
	case config.Init:
		return e.initial
	case config.SFT, config.RewardModel, config.Prefer:
		return e.tuned
	case config.Train:
		return e.checkpoints + e.trained
	case config.Merge:
		return e.merged
	}
	return 0
}

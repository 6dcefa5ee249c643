package forecast

import (
	"exp/harness/config"
	"exp/harness/device"
	"exp/harness/stage"
	"exp/kernels"
	"exp/train"
	"exp/train/model"
	"exp/train/optim"
)

// Phase is a part of a step that learns.
type Phase struct {
	Name    string  `json:"name"`
	Sent    int64   `json:"bytes_sent"`        // by a rank
	Seconds float64 `json:"seconds,omitempty"` // 0: not known for this device
	// Ahead is the work of ranks that only sample, while the others learn.
	Ahead bool `json:"ahead,omitempty"`
}

// What the times rest on: assumed shares of an H100's published rates (989 TFLOP/s dense in bf16, 3.35 TB/s,
// NVLink at 450 GB/s, a network of 400 Gbit/s, PCIe 5 at 64 GB/s). Of these only products (536 to 733 TFLOP/s without
// attention) and memory were measured, on an H200 (kernels/cuda/RESULTS.md).
const (
	gpuFLOPs    = 400e12  // that products reach, 1/s
	gpuMemory   = 2.85e12 // bytes/s, 85 % of 3.35
	nodeLink    = 370e9   // bytes/s and direction, within a node
	networkLink = 45e9    // bytes/s, between nodes
	hostLink    = 50e9    // bytes/s, between a GPU and its host's memory
	nodeGPUs    = 8
	stepStart   = 0.5e-3 // s, of a sampling step
	gatherStart = 15e-6  // s, of a gather of a few rows
	tailShare   = 0.25   // of sampling, until the last completions end
)

// rankPlan is the work of a step on some ranks.
type rankPlan struct {
	c              *config.Run
	arch           model.Config
	heads          model.Heads
	needs          train.Needs
	ranks, shared  int
	tokens         float64 // of a step's prompts, counted once, and completions
	scored         float64 // of the tokens, that get log-probs
	sequences      float64
	length         float64 // of a sequence
	operand, float float64 // bytes
	rates          Rates   // of a rank's device; the zero value: not known
	onGPU          bool
	offload        train.Offload
	optim          train.Optim
	cacheTokens    int // of the sampler's cache; 0: enough
}

// phasesOf returns the phases of a training step on some ranks, for completions of full length. learner is
// the plan of a rank that learns.
func phasesOf(c *config.Run, arch model.Config, longest, all int, learner planned, rates Rates) []Phase {
	w, at := stage.Learners(c, all), learner.placement
	needs, heads := policyOf(c)
	heads = stage.WithAdapters(heads, c, arch)
	r := c.Rollout
	p := rankPlan{c: c, arch: arch, heads: heads, needs: needs, ranks: w.Ranks, shared: w.Tensor,
		offload: at.Offload, cacheTokens: at.CacheTokens, rates: rates, optim: stage.PolicyOptim(config.Train, c),
		length: float64(longest), operand: float64(stage.Operand(c).Size()), float: float64(kernels.F32.Size()),
		sequences: float64(c.Train.PromptsPerStep * r.N * r.Tools.Most()), onGPU: device.UsesGPU(c)}
	fresh := float64(min(r.MaxNewTokens, longest))
	p.scored = p.sequences * fresh
	p.tokens = float64(c.Train.PromptsPerStep)*(p.length-fresh) + p.scored
	s := p
	s.shared = w.Rollout
	var list []Phase
	if w.Copies() && heads.Adapters == nil {
		list = append(list, p.copying(w.Rollout))
	}
	list = append(list, s.sampling(fresh))
	if w.Apart() {
		others := stage.Samplers(c, all)
		s.ranks, s.shared = others.Ranks, others.Rollout
		s.cacheTokens = planLike(learner, config.Train, c, arch, longest, others).placement.CacheTokens
		list = s.ahead(fresh, w.Ranks)
	}
	if needs.Reference {
		q := p
		// Several reference policies share the completions. The time is as if the largest scored them all.
		largest := 0
		if !c.Algo.HasTeacher() { // the start
			largest, _ = model.Parameters(arch, model.Heads{LM: true})
		}
		for _, x := range teachersOf(c) {
			if n := x.parameters(); n > largest {
				largest, q.arch, q.heads = n, x.arch, model.Heads{LM: true}
			}
		}
		if c.Algo.Distill.TopK > 0 {
			q.scored *= 2 // its likeliest tokens take another product
		}
		list = append(list, q.pass("reference log-probs", 1, false))
	}
	if needs.Critic {
		list = append(list, p.pass("values", 1, false))
	}
	models := 1.0
	if needs.Critic {
		models = 2
	}
	passes := models * float64(c.Algo.Epochs)
	updates := models * float64(c.Train.PromptsPerStep/c.Train.PromptsPerUpdate*c.Algo.Epochs)
	if needs.Process {
		list = append(list, p.pass("process rewards", float64(stage.TrainConfig(c).ProcessPasses()), false))
		passes++
		updates += float64(c.Train.PromptsPerStep / c.Algo.Prime.PromptsPerUpdate)
	}
	return append(list, p.pass("forward and backward passes", passes, true), p.update(updates))
}

// groups returns the number of groups that share the mini-batches.
func (p rankPlan) groups() float64 { return float64(p.ranks / p.shared) }

// others is the share of what a group gathers that a rank sends: its part, to each other rank.
func (p rankPlan) others() float64 { return float64(p.shared-1) / float64(p.shared) }

// forwardBytes returns the bytes of a token's activations that a group gathers in a forward pass:
// queries, keys and values, gate and up, and what two products add to the residual stream.
func (p rankPlan) forwardBytes() float64 {
	a := p.arch
	layer := p.operand*float64(a.Projected()+2*a.FFN) + 2*p.float*float64(a.Width)
	return float64(a.Layers)*layer + p.float*float64(a.Width) // and the embedding
}

// backwardBytes returns the bytes that the group gathers in a backward pass.
func (p rankPlan) backwardBytes() float64 {
	a := p.arch
	layer := p.operand*float64(a.FFN+a.Heads*a.Head) + 2*p.float*float64(a.Width)
	bytes := float64(a.Layers)*layer + p.float*float64(a.Width) // and the output projection's
	if p.c.Compute.Recompute {
		bytes += p.forwardBytes() + p.float*float64(int(a.Layers*a.Width)) // and the kept inputs
	}
	return bytes
}

// productLink returns the rate of gathers within a group.
func (p rankPlan) productLink() float64 {
	if p.shared > nodeGPUs {
		return networkLink
	}
	return nodeLink
}

// pass is a phase of passes over all sequences.
func (p rankPlan) pass(name string, times float64, backward bool) Phase {
	bytes := p.forwardBytes()
	if backward {
		bytes += p.backwardBytes()
	}
	sent := times * p.tokens / p.groups() * bytes * p.others()
	if backward && p.onGPU {
		sent += times * p.tokens / p.groups() / float64(p.c.Compute.MicroBatchTokens) * p.columnBytes()
	}
	x := Phase{Name: name, Sent: int64(sent)}
	if p.rates.known() {
		w := workOf(p.arch, p.heads, p.length, p.rates.columns)
		ranks, sequences := float64(p.ranks), p.sequences/p.groups() // each rank of a group attends
		seconds := p.rates.forwardTime(w, p.tokens/ranks, p.scored/ranks, sequences)
		if backward {
			seconds += p.rates.backwardTime(w, p.tokens/ranks, p.scored/ranks, sequences, p.c.Compute.Recompute)
		}
		x.Seconds = times*seconds + sent/p.productLink()
	}
	return x
}

// sampling is the phase that draws the completions, each of so many tokens.
func (p rankPlan) sampling(fresh float64) Phase {
	return p.drawing(float64(sampledPerStep(p.c)), float64(p.c.Rollout.N), fresh)
}

// drawing is a phase that draws so many completions of so many tokens, each of several of a problem.
func (p rankPlan) drawing(sampled, each, fresh float64) Phase {
	tokens := sampled*fresh + sampled/each*(p.length-fresh)
	const record = 12 // bytes of a token: its number, log-prob and entropy
	groups := p.groups()
	attention := p.operand * float64(p.arch.Layers*p.arch.Heads*p.arch.Head)
	sent := tokens/groups*(p.forwardBytes()+attention)*p.others() + sampled*fresh/groups*record*(groups-1)
	x := Phase{Name: "sampling", Sent: int64(sent)}
	if !p.rates.known() || sampled == 0 {
		return x
	}
	rows := sampled / groups
	batch := min(rows, float64(p.c.Rollout.MaxSequences))
	if p.cacheTokens > 0 { // sequences are half finished on average; those that restart are not counted
		batch = min(batch, max(1, float64(p.cacheTokens)/(p.length-fresh/2)))
	}
	w, shared := workOf(p.arch, p.heads, p.length, p.rates.columns), float64(p.shared)
	work := (w.token + w.adapters.Forward + w.scored) / shared
	cache := float64(p.arch.CacheBytes(1, 1, stage.Operand(p.c), p.shared)) * batch * (p.length - fresh/2)
	step := max((work/2*p.operand+cache)/p.rates.Memory, batch*work/p.rates.Sampling) + p.rates.start
	if p.shared > 1 {
		step += float64(4*p.arch.Layers) * gatherStart
	}
	prompts := rows / each * (p.length - fresh) * (w.token + w.adapters.Forward) / shared / p.rates.Sampling
	x.Seconds = prompts + rows/batch*fresh*step*(1+p.rates.tail) + sent/p.productLink()
	return x
}

// copying is the phase in which a group gives each of its ranks a copy of the weights, cut for so many ranks.
func (p rankPlan) copying(rollout int) Phase {
	n := p.float * float64(p.arch.ArenaLen(model.Heads{LM: true}, rollout))
	sent := n * p.others()
	x := Phase{Name: "weights for sampling", Sent: int64(sent)}
	if p.onGPU {
		x.Seconds = sent/p.productLink() + n*(1+p.operand/p.float)/gpuMemory
	}
	return x
}

// ahead returns the phases of ranks that only sample: they sample, hand the completions to all ranks, and
// get the weights from those that learn, which send each what it needs.
func (p rankPlan) ahead(fresh float64, learners int) []Phase {
	sampling := p.sampling(fresh)
	sampling.Ahead = true
	const record = 3*4*4/3 + bytesPerToken // of a token: three numbers in base64, and its text
	others := float64(p.ranks + learners - 1)
	completions := float64(sampledPerStep(p.c)) * fresh * record * others // the first sampler's
	n := p.float * p.sampled()
	sent := n * float64(p.ranks) / float64(learners)
	give := Phase{Name: "completions to all ranks", Sent: int64(completions), Ahead: true}
	teach := Phase{Name: "weights to ranks that sample", Sent: int64(sent)}
	if p.onGPU {
		link := float64(nodeLink)
		if p.ranks+learners > nodeGPUs {
			link = networkLink
		}
		give.Seconds, teach.Seconds = completions/networkLink, max(n, sent)/link
	}
	return []Phase{sampling, give, teach}
}

// sampled returns the number of parameters that a rank which only samples gets.
func (p rankPlan) sampled() float64 {
	if p.heads.Adapters != nil {
		return p.trained()
	}
	return float64(p.arch.ArenaLen(model.Heads{LM: true}, p.shared))
}

// trained returns the number of a policy's parameters on a rank that are trained.
func (p rankPlan) trained() float64 {
	if p.heads.Adapters != nil {
		_, adapters := model.AdapterLayout(p.arch, p.heads, p.heads.Adapters)
		return float64(adapters)
	}
	return float64(p.arch.ArenaLen(p.heads, p.shared))
}

// trainedTensors returns the policy's tensors that are trained.
func (p rankPlan) trainedTensors() []model.Tensor {
	if p.heads.Adapters != nil {
		tensors, _ := model.AdapterLayout(p.arch, p.heads, p.heads.Adapters)
		return tensors
	}
	tensors, _ := model.Layout(p.arch, p.heads)
	return tensors
}

// columnBytes returns the bytes that a rank sends when its group exchanges the columns of the layers'
// weights for the backward pass: a CPU packs them once an update, a GPU takes them for each micro-batch.
func (p rankPlan) columnBytes() float64 {
	if p.heads.Adapters != nil {
		return 0
	}
	tables := 2
	if p.arch.TieEmbeddings {
		tables = 1
	}
	rows := float64(int(tables*p.arch.Vocab*p.arch.Width)) / float64(p.shared) // of embedding and output projection
	return p.float * (p.trained() - rows) * p.others()
}

// update is the phase that sums gradients, updates and packs.
func (p rankPlan) update(updates float64) Phase {
	n, groups := p.trained(), p.groups()
	exchanges, products := 2.0, 0.0 // gradients to their shards, parameters from them
	if p.optim.Kind == optim.KindMuon {
		exchanges++ // momenta
		products = optim.NewtonFLOPs(train.HiddenMatrices(p.trainedTensors())) / groups
	}
	across := exchanges * p.float * n * (groups - 1) / groups
	within := 0.0
	if p.heads.Adapters == nil { // the output projection for all
		within = p.float * float64(int(p.arch.Vocab*p.arch.Width)) * p.others()
		if !p.onGPU {
			within += p.columnBytes()
		}
	}
	x := Phase{Name: "gradients and parameters", Sent: int64(updates * (across + within))}
	if p.rates.known() {
		near := min(groups, max(1, float64(nodeGPUs/p.shared)))
		volume := exchanges * p.float * n
		x.Seconds = updates * (volume*(1-1/near)/nodeLink + volume/near*(1-near/groups)/networkLink +
			within/p.productLink() + p.memoryTime(n) + products/p.rates.Forward)
	}
	return x
}

// memoryTime returns the seconds in which an update of n parameters reads and writes them: gradients,
// parameters and moments, and each gradient that waits for others, written once and read once.
func (p rankPlan) memoryTime(n float64) float64 {
	groups := p.groups()
	moments := float64(2*p.optim.Kind.Moments(p.optim.Momentum)) * p.float * n / groups // read and written
	waiting := 2 * p.float * n * max(0, float64(p.c.Train.Slices)/groups-1)
	near, far := 3*p.float*n/groups, 0.0
	for _, x := range []struct {
		bytes  float64
		onHost bool
	}{{moments, p.offload.Moments}, {waiting, p.offload.Sums}} {
		if x.onHost {
			far += x.bytes
		} else {
			near += x.bytes
		}
	}
	return near/p.rates.Memory + far/hostLink
}

// step returns the most that a rank sends in a step, and the step's time. Ranks that only sample
// do so while the others learn.
func (e *Estimate) step() (sent int64, seconds float64) {
	var ahead, learning Phase
	for _, p := range e.Phases {
		sum := &learning
		if p.Ahead {
			sum = &ahead
		}
		sum.Sent, sum.Seconds = sum.Sent+p.Sent, sum.Seconds+p.Seconds
	}
	return max(ahead.Sent, learning.Sent), max(ahead.Seconds, learning.Seconds)
}

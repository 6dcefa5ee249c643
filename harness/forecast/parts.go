package forecast

import (
	"cmp"
	"strings"

	"exp/harness/config"
	"exp/harness/device"
	"exp/harness/stage"
	"exp/kernels"
	"exp/train"
	"exp/train/generate"
	"exp/train/model"
	"exp/train/ranks"
)

// parts is a list of parts of the memory.
type parts []Part

// add adds a part that takes any memory.
func (p *parts) add(name string, bytes int) {
	if bytes > 0 {
		*p = append(*p, Part{Name: name, Bytes: int64(bytes)})
	}
}

// reach sets how much of the activations on a CPU no micro-batch reaches.
func (p parts) reach(c *config.Run, arch model.Config, h model.Heads, limit capacities, operand kernels.DType,
	w stage.Crew) {
	if device.UsesGPU(c) {
		return
	}
	for i := range p {
		if p[i].Name == string(kernels.ActivationRoom) {
			p[i].Untouched = int64(activationBytes(c, arch, h, limit, operand, w) -
				reachedBytes(c, arch, h, limit, operand, w))
		}
	}
}

// waitPart ends the names of the parts where gradients wait in the tree of slices.
const waitPart = ": gradients of slices that wait"

// wait sets how much of that room on a CPU stays untouched, since a mini-batch has fewer bundles than slices.
func (p parts) wait(kind config.Stage, c *config.Run, longest int, w stage.Crew) {
	if device.UsesGPU(c) || w.Groups() > 1 {
		return
	}
	rows := rowsOf(kind, c, longest)
	all := ranks.Waiting(c.Train.Slices, c.Train.Slices)
	used := ranks.Waiting(c.Train.Slices, rows.Update*rows.Bundles())
	for i := range p {
		if strings.HasSuffix(p[i].Name, waitPart) {
			each := int(p[i].Bytes) / all
			p[i].Untouched = int64((all - used) * (each - device.ResidentOnCPU(each, 0)))
		}
	}
}

// addEngine adds the memory of a sampler whose cache has the placement's room, on each of the ranks that
// share its products.
func (p *parts) addEngine(o generate.Options, at stage.Placement, arch model.Config, h model.Heads,
	operand kernels.DType, shared int) {
	o.CacheTokens = at.CacheTokens
	cache, step := o.Bytes(arch, h, operand, shared)
	p.add(string(kernels.CacheRoom), cache)
	p.add(string(kernels.StepRoom), step)
}

// sharePrompts sets how much of a CPU's cache an evaluation does not touch, since the completions of a problem share
// its prompt, and since it knows how long the prompts of a benchmark are.
func (p parts) sharePrompts(c *config.Run, o generate.Options, at stage.Placement, arch model.Config, h model.Heads,
	operand kernels.DType, needs *stage.SuiteNeeds) {
	n := c.Eval.Final.N
	o.CacheTokens = at.CacheTokens
	all, _ := o.Bytes(arch, h, operand, 1)
	switch {
	case device.UsesGPU(c):
		return
	case needs != nil:
		o.CacheTokens = min(needs.Held, cmp.Or(at.CacheTokens, needs.Held))
	case at.CacheTokens > 0 || n < 2:
		return
	default:
		fresh := min(c.Eval.Final.MaxNewTokens, o.MaxTokens)
		o.Calls = []generate.Call{{Requests: (o.MaxSequences+n-1)/n + 1, Samples: n, Prompt: o.MaxTokens - fresh,
			New: fresh}}
	}
	touched, _ := o.Bytes(arch, h, operand, 1)
	for i := range p {
		if p[i].Name == string(kernels.CacheRoom) {
			p[i].Untouched = int64(all - touched)
		}
	}
}

// addModels adds the models of a rank that learns.
func (p *parts) addModels(pinned *parts, c *config.Run, arch model.Config, h model.Heads, needs train.Needs,
	w stage.Crew, off train.Offload, policy train.Optim) {
	operand, copies := stage.Operand(c), copiesOf(c)
	whole := func(name string, h model.Heads, o train.Optim) {
		n := arch.ArenaLen(h, w.Tensor)
		tensors, _ := model.Layout(arch, h)
		p.addLearner(pinned, name+": weights", func(trainable bool, copies model.PackedLen) int {
			return arch.ModelBytes(h, trainable, copies, operand, w.Tensor)
		}, n, copies, off, c.Train.Slices, w.Groups())
		moments, room := o.StateBytes(tensors, n, w.Groups(), copies, operand)
		p.addOptimizer(pinned, name, off, moments, room)
	}
	whole(learnerName(h), h, policy)
	if needs.Reference {
		p.add("reference policy", heldReference(c, arch, w.Tensor))
	}
	if needs.Critic {
		whole("critic", model.Heads{Value: true}, stage.TrainConfig(c).Critic)
	}
	if needs.Process {
		whole("process reward model", model.Heads{LM: true}, stage.TrainConfig(c).Process.Optim)
	}
}

// learnerName names a model that learns, by its heads.
func learnerName(h model.Heads) string {
	if h.Score {
		return "reward model"
	}
	return "policy"
}

// addAdapted adds the models of a rank if only adapters learn.
func (p *parts) addAdapted(pinned *parts, frozen kernels.DType, c *config.Run, arch model.Config, h model.Heads,
	needs train.Needs, w stage.Crew, off train.Offload, policy train.Optim) {
	operand, copies := stage.Operand(c), copiesOf(c)
	p.add("frozen weights", arch.BackboneBytes(h.LM, frozen, copies, operand, 1))
	adapted := func(name string, h model.Heads, o train.Optim) {
		if !w.Learns {
			p.add(name+": adapters", arch.AdapterBytes(h, false, copies, operand))
			return
		}
		tensors, n := model.AdapterLayout(arch, h, h.Adapters)
		p.addLearner(pinned, name+": adapters", func(trainable bool, copies model.PackedLen) int {
			return arch.AdapterBytes(h, trainable, copies, operand)
		}, n, copies, off, c.Train.Slices, w.Groups())
		moments, room := o.StateBytes(tensors, n, w.Groups(), copies, operand)
		p.addOptimizer(pinned, name, off, moments, room)
	}
	adapted(learnerName(h), h, policy)
	referred := w.Learns && needs.Reference || c.Train.Steps > 0 && stage.TrainConfig(c).SamplersNeedReference()
	if n := heldTeachers(c, w.Tensor); referred && n > 0 {
		p.add("reference policy", n)
	}
	if referred && !c.Algo.HasTeacher() && c.Model.HasAdapter() && !c.Tunes() {
		p.add("reference policy: adapters", arch.AdapterBytes(model.Heads{LM: true, Adapters: h.Adapters}, false,
			copies, operand))
	}
	if w.Learns && needs.Critic {
		adapted("critic", stage.WithAdapters(model.Heads{Value: true}, c, arch), stage.TrainConfig(c).Critic)
	}
	if w.Learns && needs.Process {
		adapted("process reward model", stage.WithAdapters(model.Heads{LM: true}, c, arch),
			stage.TrainConfig(c).Process.Optim)
	}
}

// addLearner adds the memory of n parameters in training. bytes returns what their model takes: weights,
// the copies that products read, and gradients. A learner also has gradients that wait in the tree of
// slices, with pieces of other ranks' gradients: size ranks share a mini-batch. off says whether they are pinned.
func (p *parts) addLearner(pinned *parts, name string, bytes func(trainable bool, copies model.PackedLen) int,
	n int, copies model.PackedLen, off train.Offload, slices, size int) {
	who, _, _ := strings.Cut(name, ":")
	held := p
	if off.Sums {
		held = pinned
	}
	p.add(name, bytes(false, nil))
	p.add(who+": copies of weights for products", bytes(true, copies)-bytes(true, nil))
	p.add(who+": gradients", bytes(true, nil)-bytes(false, nil))
	held.add(who+waitPart, int(4*ranks.Room(slices, size, n)))
}

// addOptimizer adds the memory of who's optimizer, the two results of train.Optim.StateBytes.
func (p *parts) addOptimizer(pinned *parts, who string, off train.Offload, moments, room int) {
	held := p
	if off.Moments {
		held = pinned
	}
	held.add(who+": moments of the optimizer", moments)
	p.add(who+": matrices that the optimizer makes orthogonal", room)
}

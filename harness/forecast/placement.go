package forecast

import (
	"exp/harness/config"
	"exp/harness/device"
	"exp/harness/stage"
	"exp/train"
	"exp/train/model"
)

// figures describe a kind of GPU.
type figures struct {
	Name   string
	Memory int64 // bytes, as its driver reports
}

// publishedGPUs are the GPUs that a plan assumes where there is none, the smaller first.
func publishedGPUs() []figures {
	return []figures{
		{"NVIDIA H100, 80 GB", 81559 << 20},
		{"NVIDIA H200, 141 GB", 143771 << 20},
	}
}

// gpuOf returns the GPUs to plan for: the one that a configuration selects, or published ones if it
// is missing here; nil on the CPU.
func gpuOf(c *config.Run) []figures {
	choice, err := device.OfRun(c)
	switch {
	case err != nil:
		return publishedGPUs()
	case choice.GPU != nil:
		return []figures{{choice.GPU.Name, choice.GPU.Memory}}
	}
	return nil
}

// planned is where a stage's memory lies.
type planned struct {
	gpu          figures // the zero value on the CPU
	placement    stage.Placement
	device, host []Part
}

// planOf plans the memory of a stage: on a GPU with the least that the host must hold. If no
// offload lets a sampler keep all sequences at full length, its cache gets what is left. Of several
// GPUs it takes the first with room.
func planOf(kind config.Stage, c *config.Run, arch model.Config, longest int, w stage.Crew) planned {
	list := gpuOf(c)
	if len(list) == 0 {
		at := stage.Placement{CacheTokens: cacheTokens(kind, c, arch, longest, w)}
		return planOn(figures{}, at, kind, c, arch, longest, w)
	}
	var p planned
	for _, g := range list {
		if p = planOnGPU(g, kind, c, arch, longest, w); p.fits() {
			break
		}
	}
	return p
}

// planLike is planOf for the device of another plan.
func planLike(p planned, kind config.Stage, c *config.Run, arch model.Config, longest int, w stage.Crew) planned {
	if p.gpu.Memory == 0 {
		return planOf(kind, c, arch, longest, w)
	}
	return planOnGPU(p.gpu, kind, c, arch, longest, w)
}

func planOn(g figures, at stage.Placement, kind config.Stage, c *config.Run, arch model.Config,
	longest int, w stage.Crew) planned {
	p := planned{gpu: g, placement: at}
	p.device, p.host = memoryOf(kind, c, arch, longest, w, at)
	return p
}

// planOnGPU is planOf for one GPU.
func planOnGPU(g figures, kind config.Stage, c *config.Run, arch model.Config, longest int, w stage.Crew) planned {
	var p planned
	for _, off := range offloads(kind, c, w) {
		at := stage.Placement{Offload: off, CacheTokens: cacheTokens(kind, c, arch, longest, w)}
		if p = planOn(g, at, kind, c, arch, longest, w); p.fits() {
			return p
		}
	}
	if c.Rollout.CacheTokens > 0 || tunes(kind) || !w.Samples {
		return p
	}
	engine := engineOf(kind, c, arch, longest, w)
	operand := stage.Operand(c)
	shared := w.Rollout
	if kind == config.EvalGen {
		shared = 1 // a rank samples alone
	}
	perToken := arch.CacheBytes(1, engine.PageTokens, operand, shared) / engine.PageTokens
	over := sumParts(p.device) - g.usable()
	p.placement.CacheTokens = max(engine.LeastCache(), engine.FullCache()-int(over)/perToken-engine.PageTokens)
	return planOn(g, p.placement, kind, c, arch, longest, w)
}

// tunes reports whether a stage learns from examples, and samples nothing.
func tunes(kind config.Stage) bool {
	return kind == config.SFT || kind == config.RewardModel || kind == config.Prefer
}

// cacheTokens returns the room that rollout.cache_tokens gives the cache of a stage's sampler: at least
// what an engine takes; 0 if it is not set.
func cacheTokens(kind config.Stage, c *config.Run, arch model.Config, longest int, w stage.Crew) int {
	if c.Rollout.CacheTokens == 0 {
		return 0
	}
	return max(c.Rollout.CacheTokens, engineOf(kind, c, arch, longest, w).LeastCache())
}

// offloads returns what a stage on some ranks may keep on the host, the least first. Groups of ranks
// exchange gradients, which therefore stay in device memory.
func offloads(kind config.Stage, c *config.Run, w stage.Crew) []train.Offload {
	none, moments, all := train.Offload{}, train.Offload{Moments: true}, train.Offload{Moments: true, Sums: true}
	switch {
	case kind == config.EvalGen || kind == config.PassRate || !w.Learns:
		return []train.Offload{none}
	case c.Compute.Offload == config.OffloadAuto && w.Groups() > 1:
		return []train.Offload{none, moments}
	case c.Compute.Offload == config.OffloadAuto:
		return []train.Offload{none, moments, all}
	case c.Compute.Offload == config.OffloadMoments:
		return []train.Offload{moments}
	case c.Compute.Offload == config.OffloadAll:
		return []train.Offload{all}
	}
	return []train.Offload{none}
}

// usable returns the memory that a plan may fill: a sixty-fourth stays for the driver's context, the
// kernels and gaps between buffers.
func (f figures) usable() int64 { return f.Memory - f.Memory/64 }

// fits reports whether the device has room for the plan.
func (p planned) fits() bool { return p.gpu.Memory == 0 || sumParts(p.device) <= p.gpu.usable() }

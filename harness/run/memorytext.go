package run

import (
	"fmt"

	"exp/experiments/quantity"
)

// memoryText renders the memory by part.
func (e *Estimate) memoryText(add func(format string, args ...any)) {
	who := fmt.Sprintf("each of %d ranks", e.Ranks)
	if e.Samplers > 0 {
		who = fmt.Sprintf("each of %d ranks that learn", e.Ranks-e.Samplers)
	}
	machine := e.Program + sumParts(e.HostMemory)
	switch {
	case e.Ranks > 0 && e.onGPU:
		add("         memory   %s of the GPU's and %s of its machine's on %s", quantity.Bytes(e.Total()),
			quantity.Bytes(machine), who)
	case e.Ranks > 0:
		add("         memory   %s on %s", quantity.Bytes(e.Resident()), who)
	case e.onGPU:
		add("         memory   %s of the GPU's, %s of this machine's", quantity.Bytes(e.Total()),
			quantity.Bytes(machine))
	default:
		add("         memory   %s in all", quantity.Bytes(e.Resident()))
	}
	e.partsText(add, e.Memory)
	for _, p := range e.HostMemory {
		add("                  %9s  %s, in this machine's pinned memory", quantity.Bytes(p.Bytes), p.Name)
	}
	e.programText(add)
	if e.Samplers > 0 {
		bytes := sumParts(e.SamplerMemory)
		if !e.onGPU {
			bytes += e.Program
		}
		add("                  %s on each of %d ranks that only sample", quantity.Bytes(bytes), e.Samplers)
		e.partsText(add, e.SamplerMemory)
		e.programText(add)
	}
	if e.onGPU && e.Device != "" {
		add("                  planned for %s, which has %s", e.Device, quantity.Bytes(e.deviceBytes))
	}
	if e.CacheTokens > 0 {
		add("                  the cache holds %s tokens, %.0f%% of all sequences at full length; others restart",
			quantity.Count(int64(e.CacheTokens)), 100*float64(e.CacheTokens)/float64(e.FullCacheTokens))
	}
}

func (e *Estimate) partsText(add func(format string, args ...any), list []Part) {
	for _, p := range list {
		add("                  %9s  %s", quantity.Bytes(p.Bytes), p.Name)
	}
}

// programText renders the program's own memory, which a machine that computes on its CPU has to hold.
func (e *Estimate) programText(add func(format string, args ...any)) {
	if !e.onGPU {
		add("                  %9s  the program: code, Go's heap, database", quantity.Bytes(e.Program))
	}
}

// most returns the memory of a rank's device that needs most.
func (e *Estimate) most() int64 { return max(e.Total(), sumParts(e.SamplerMemory)) }

// resident returns what so many ranks take of their machine's memory, which computes on its CPU. If it has
// all ranks, it has those that only sample; else it may have any.
func (e *Estimate) resident(ranks int) int64 {
	if ranks == e.Ranks {
		learn, sample := int64(ranks-e.Samplers), int64(e.Samplers)
		return learn*e.Resident() + sample*(sumParts(e.SamplerMemory)+e.Program)
	}
	return int64(ranks) * (e.most() + e.Program)
}

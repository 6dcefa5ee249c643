package forecast

import (
	"fmt"
	"strings"

	"exp/experiments/quantity"
)

// Text renders an estimate, one line per part, each after indent.
func (e *Estimate) Text(indent string) string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, indent+fmt.Sprintf(format, args...)) }
	add("needs    model    %s: %s parameters%s", e.Model, quantity.Parameters(int64(e.Parameters)), headText(e.Heads))
	for _, x := range e.Teachers {
		size := "of unknown size, so it is not counted below"
		if x.Parameters > 0 {
			size = quantity.Parameters(int64(x.Parameters)) + " parameters"
		}
		add("         teacher  %s: %s", x.Name, size)
	}
	e.memoryText(add)
	kept := ""
	if e.CompletionBytes > 0 {
		kept = fmt.Sprintf(", and %s of completions at full length (store.samples.train)",
			quantity.Bytes(e.CompletionBytes))
	}
	add("         disk     up to %s in the store%s", quantity.Bytes(e.Disk), kept)
	e.learningText(add)
	if e.Completions == 0 {
		e.basisText(add)
		return strings.Join(lines, "\n")
	}
	more := ""
	if e.Sampled != e.Completions {
		more = fmt.Sprintf(" (sampled: up to %d)", e.Sampled)
	}
	add("         a step   %s%s, up to %s tokens, %s", quantity.Plural(e.Completions, "completion"), more,
		quantity.Count(int64(e.Tokens)), quantity.Plural(e.Updates, "update"))
	e.imageText(add)
	if n := e.FirstValues; n > 0 {
		add("         before   %s of every problem, for its first value (algo.spo.first)",
			quantity.Plural(n, "completion"))
	}
	e.ratingText(add)
	e.phaseText(add)
	e.basisText(add)
	return strings.Join(lines, "\n")
}

func headText(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" and %s in heads", quantity.Parameters(int64(n)))
}

// memoryText renders the memory by part.
func (e *Estimate) memoryText(add func(format string, args ...any)) {
	who := fmt.Sprintf("each of %d ranks", e.Ranks)
	if e.Samplers > 0 {
		who = fmt.Sprintf("each of %d ranks that learn", e.Ranks-e.Samplers)
	}
	machine := e.program() + sumParts(e.HostMemory)
	switch {
	case e.Ranks > 0 && e.onGPU:
		add("         memory   %s of the GPU's and %s of its machine's on %s", quantity.Bytes(e.Total()),
			quantity.Bytes(machine), who)
	case e.Ranks > 0:
		add("         memory   %s on %s", quantity.Bytes(e.Total()+e.program()), who)
	case e.onGPU:
		add("         memory   %s of the GPU's, %s of this machine's", quantity.Bytes(e.Total()),
			quantity.Bytes(machine))
	default:
		add("         memory   %s in all", quantity.Bytes(e.Total()+e.program()))
	}
	e.partsText(add, e.Memory)
	e.pinnedText(add, e.HostMemory)
	e.programText(add)
	if e.Samplers > 0 {
		bytes := sumParts(e.SamplerMemory)
		if !e.onGPU {
			bytes += e.program()
		}
		add("                  %s on each of %d ranks that only sample", quantity.Bytes(bytes), e.Samplers)
		e.partsText(add, e.SamplerMemory)
		e.programText(add)
	}
	e.tuningText(add, "SFT", e.SFTMemory, e.SFTHostMemory)
	e.tuningText(add, "reward_model", e.RewardModelMemory, e.RewardModelHostMemory)
	e.tuningText(add, "prefer", e.PreferMemory, e.PreferHostMemory)
	e.tuningText(add, "pass_rate", e.rated(), nil)
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
		add("                  %9s  %s", quantity.Bytes(p.resident()), p.Name)
	}
}

func (e *Estimate) pinnedText(add func(format string, args ...any), list []Part) {
	for _, p := range list {
		add("                  %9s  %s, in this machine's pinned memory", quantity.Bytes(p.Bytes), p.Name)
	}
}

// programText renders the program's own memory, which a machine that computes on its CPU has to hold.
func (e *Estimate) programText(add func(format string, args ...any)) {
	if !e.onGPU {
		add("                  %9s  the program: code, Go's heap, database", quantity.Bytes(e.Program))
		if e.ImageBytes > 0 {
			add("                  %9s  features of images, and reading them", quantity.Bytes(e.ImageBytes))
		}
	}
}

// tuningText renders the memory of a stage that learns from examples, if it needs more than training.
func (e *Estimate) tuningText(add func(format string, args ...any), name string, device, host []Part) {
	n, bytes := max(1, e.Ranks), sumParts(device)
	more := bytes > e.mostInTraining()
	if !e.onGPU {
		more, bytes = int64(n)*bytes > e.training(n), bytes+e.program()
	}
	does, where := "needs", ""
	if !more {
		if does = "pins"; sumParts(host) <= sumParts(e.HostMemory) {
			return
		}
	}
	if e.Ranks > 0 {
		where = fmt.Sprintf(" on each of %d ranks", e.Ranks)
	}
	than := "training"
	if e.Completions == 0 {
		than = "sampling"
	}
	add("                  %s%s in %s, which %s more than %s", quantity.Bytes(bytes), where, name, does, than)
	e.partsText(add, device)
	e.pinnedText(add, host)
	e.programText(add)
}

// mostInTraining returns the memory of the device of a rank that needs most in training.
func (e *Estimate) mostInTraining() int64 { return max(e.Total(), sumParts(e.SamplerMemory)) }

// Most returns the memory of the device of a rank that needs most in some stage.
func (e *Estimate) Most() int64 {
	return max(e.mostInTraining(), e.tuning())
}

// Pinned returns the memory that a rank which learns pins in some stage.
func (e *Estimate) Pinned() int64 {
	return max(sumParts(e.HostMemory), sumParts(e.SFTHostMemory), sumParts(e.RewardModelHostMemory),
		sumParts(e.PreferHostMemory))
}

// training returns what so many ranks on a machine take in training, without their programs. If it has all
// ranks, it has those that only sample; else it may have any.
func (e *Estimate) training(ranks int) int64 {
	if ranks == e.Ranks {
		return int64(ranks-e.Samplers)*e.Total() + int64(e.Samplers)*sumParts(e.SamplerMemory)
	}
	return int64(ranks) * e.mostInTraining()
}

// program returns what a process takes besides arrays.
func (e *Estimate) program() int64 { return e.Program + e.ImageBytes }

// Resident returns what so many ranks take of their machine's memory, which computes on its CPU.
func (e *Estimate) Resident(ranks int) int64 {
	return max(e.training(ranks), int64(ranks)*e.tuning()) + int64(ranks)*e.program()
}

package forecast

import (
	"exp/experiments/quantity"
	"exp/harness/config"
	"exp/harness/device"
	"exp/harness/stage"
	"exp/kernels"
	"exp/train/model"
	"exp/train/tensor"
)

// Rating is the work of the stage that measures pass rates of training problems.
type Rating struct {
	Each     int     `json:"completions_each"`   // of a problem
	Problems int     `json:"problems,omitempty"` // at most; 0: all of a file, whose number is not known here
	Tokens   int64   `json:"tokens,omitempty"`   // of all completions at full length
	Seconds  float64 `json:"seconds,omitempty"`  // 0: not known for this device, or without the number of problems
	Memory   []Part  `json:"memory"`             // of each rank, on its device
}

// raters is the crew that measures pass rates: all ranks, which learn nothing.
func raters(c *config.Run, ranks int) stage.Crew {
	w := stage.Everyone(c, ranks)
	w.Rollout, w.Learns = w.Tensor, false
	return w
}

// crewOf returns the ranks that a plan of a stage is for.
func crewOf(kind config.Stage, c *config.Run, ranks int) stage.Crew {
	switch kind {
	case config.Train:
		return stage.Learners(c, ranks)
	case config.PassRate:
		return raters(c, ranks)
	}
	return stage.Everyone(c, ranks)
}

// ratingOf returns the work of the stage, nil without it. p is the plan of its memory.
func ratingOf(c *config.Run, arch model.Config, longest, ranks int, p planned, rates Rates) *Rating {
	x := &Rating{Each: c.Data.PassRate.Samples, Problems: c.Problems("train"), Memory: p.device}
	if most := c.Data.Train.MaxSamples; most > 0 {
		if most += c.GeneratedProblems("train"); x.Problems == 0 || most < x.Problems {
			x.Problems = most
		}
	}
	w := raters(c, ranks)
	fresh := min(c.Rollout.MaxNewTokens, longest)
	x.Tokens = int64(x.Problems) * int64(x.Each) * int64(fresh)
	work := rankPlan{c: c, arch: arch, heads: model.Heads{LM: true}, ranks: w.Ranks, shared: w.Tensor,
		cacheTokens: p.placement.CacheTokens, length: float64(longest), operand: float64(stage.Operand(c).Size()),
		float: float64(kernels.F32.Size()), onGPU: device.UsesGPU(c), rates: rates}
	x.Seconds = work.drawing(float64(x.Problems*x.Each), float64(x.Each), float64(fresh)).Seconds
	return x
}

// ratingMemory returns the parts of the memory of that stage on the device of a rank.
func ratingMemory(c *config.Run, arch model.Config, longest int, w stage.Crew, at stage.Placement) []Part {
	var parts parts
	operand, copies, heads := stage.Operand(c), copiesOf(c), model.Heads{LM: true}
	parts.add("weights", referenceBytes(c, arch, w.Tensor))
	if a, err := stage.StartAdapters(c, arch); err == nil && a != nil {
		heads.Adapters = a
		parts.add("adapters", arch.AdapterBytes(heads, false, copies, operand))
	}
	engine := engineOf(config.PassRate, c, arch, longest, w)
	parts.addEngine(engine, at, arch, heads, operand, w.Tensor)
	step := model.Capacity{Tokens: engine.MaxSequences}
	changed := restricts(config.PassRate, c)
	scratch := workspace{config.PassRate, c, arch, engine, step, longest, w, false, changed}.bytes() +
		tensor.RoomBytes(arch, 0, engine.Rows(), w.Tensor, operand, copies, false)
	judging := 0
	if c.JudgesAlone() && (c.Reward.HasModel() || c.Reward.Trained()) {
		held, room := rewardBytes(c, arch)
		parts.add("reward model", held)
		judging = room
	}
	parts.add(string(kernels.ScratchRoom), max(scratch, judging))
	return parts
}

// ratingText renders the work of the stage.
func (e *Estimate) ratingText(add func(format string, args ...any)) {
	x := e.Rating
	if x == nil {
		return
	}
	more := ""
	if x.Problems > 0 {
		more = ": " + quantity.Count(int64(x.Problems*x.Each)) + " completions, up to " + quantity.Count(x.Tokens) +
			" tokens"
	}
	if x.Seconds > 0 {
		more += ", " + quantity.Duration(quantity.Seconds(x.Seconds)) + " calculated"
	}
	add("         before   %s of every problem, for its pass rate (data.pass_rate.samples)%s",
		quantity.Plural(x.Each, "completion"), more)
}

package forecast

import (
	"fmt"
	"strings"

	"exp/experiments/quantity"
)

// learningText renders the work of stages that learn from examples.
func (e *Estimate) learningText(add func(format string, args ...any)) {
	for _, x := range e.Learning {
		length, time := "full length", ""
		if x.Average {
			length = "their average length"
		}
		if x.Seconds > 0 {
			time = fmt.Sprintf(", %s s each, %s in all", e.seconds(secondsOf(x.Phases)),
				quantity.Duration(quantity.Seconds(x.Seconds)))
		}
		add("         %-8s %s of %s tokens, with examples of %s%s", x.Stage, quantity.Plural(x.Steps, "step"),
			quantity.Count(int64(x.Tokens)), length, time)
		for _, p := range x.Once {
			p.Name += ", once"
			e.phaseLine(add, p)
		}
		for _, p := range x.Phases {
			e.phaseLine(add, p)
		}
	}
}

// phaseText renders the phases of a training step.
func (e *Estimate) phaseText(add func(format string, args ...any)) {
	if len(e.Phases) == 0 {
		return
	}
	bytes, seconds := e.step()
	switch {
	case seconds == 0:
		add("         traffic  up to %s that a rank sends in a step", quantity.Bytes(bytes))
	case e.Ranks > 0:
		add("         traffic  up to %s that a rank sends in a step, and %.0f s", quantity.Bytes(bytes), seconds)
	case e.onGPU:
		add("         time     %.0f s a step", seconds)
	default:
		add("         time     %s s a step", e.seconds(seconds))
	}
	for _, p := range e.Phases {
		e.phaseLine(add, p)
	}
	if seconds == 0 {
		e.aheadText(add)
		add("         time     not known: exp bench measures this machine")
	}
}

// phaseLine renders a phase: what a rank sends in it, and how long it takes, if these are known.
func (e *Estimate) phaseLine(add func(format string, args ...any), p Phase) {
	switch {
	case !e.rates.known():
		add("                  %9s  %s", quantity.Bytes(p.Sent), p.Name)
	case e.Ranks > 0:
		add("                  %9s  %6.1f s  %s", quantity.Bytes(p.Sent), p.Seconds, p.Name)
	default:
		add("                  %7s s  %s", e.seconds(p.Seconds), p.Name)
	}
}

// seconds renders a time; steps on a CPU may be short.
func (e *Estimate) seconds(x float64) string {
	if e.onGPU {
		return quantity.Fixed(x, 1)
	}
	return quantity.Short(x)
}

// basisText says what the times rest on.
func (e *Estimate) basisText(add func(format string, args ...any)) {
	if !e.rates.known() || len(e.Phases)+len(e.Learning) == 0 {
		return
	}
	if r := e.Rates; r != nil {
		add("         rests on %s GFLOP/s forward, %s backward and %s in sampling, and %s GB/s in updates:",
			quantity.Short(r.Forward/1e9), quantity.Short(r.Backward/1e9), quantity.Short(r.Sampling/1e9),
			quantity.Short(r.Memory/1e9))
		add("                  just measured here with a small model of this shape; without grading and the record")
		return
	}
	links := ""
	if e.Ranks > 0 {
		links = fmt.Sprintf(" %.0f GB/s to its node of %d, %.0f GB/s beyond,", nodeLink/1e9, nodeGPUs, networkLink/1e9)
	}
	add("         rests on %.0f TFLOP/s and %.2f TB/s of a GPU, %.0f GB/s to its host,%s", gpuFLOPs/1e12,
		gpuMemory/1e12, hostLink/1e9, links)
	add("                  completions of full length and phases one after the other: calculated, not measured")
	e.aheadText(add)
}

// aheadText says which phases other ranks go through at the same time.
func (e *Estimate) aheadText(add func(format string, args ...any)) {
	var names []string
	for _, p := range e.Phases {
		if p.Ahead {
			names = append(names, p.Name)
		}
	}
	if len(names) > 0 {
		add("                  ranks that only sample work on %s while the others learn:",
			strings.Join(names, " and "))
		add("                  the totals are those of the slower side and of the side that sends more")
	}
}

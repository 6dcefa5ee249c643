package metric

import (
	"slices"
	"strings"
)

// Stage is a stage before training that records metrics of its own steps.
type Stage struct {
	Name   string   // as in configurations
	Prefix string   // of its metrics' names, before a slash
	Step   string   // label of an axis that counts its steps
	Curves []string // metrics that reports and the pages of runs draw
}

// Stages lists the stages before training that record metrics of their steps, in order.
func Stages() []Stage {
	return []Stage{
		{Name: "sft", Prefix: "sft", Step: "step of fine-tuning", Curves: []string{"sft/loss"}},
		{Name: "reward_model", Prefix: "rm", Step: "step of the reward model",
			Curves: []string{"rm/loss", "rm/accuracy", "rm/margin", "rm/step_loss", "rm/step_accuracy"}},
		{Name: "prefer", Prefix: "prefer", Step: "step of learning from preferences",
			Curves: []string{"prefer/loss", "prefer/accuracy", "prefer/margin"}},
	}
}

// StageOf returns the stage before training that records a metric; ok is false if none does.
func StageOf(name string) (s Stage, ok bool) {
	head, _, _ := strings.Cut(name, "/")
	list := Stages()
	i := slices.IndexFunc(list, func(s Stage) bool { return s.Prefix == head && head != name })
	if i < 0 {
		return s, false
	}
	return list[i], true
}

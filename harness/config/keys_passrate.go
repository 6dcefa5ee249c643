package config

import (
	"fmt"
	"slices"
	"strings"
)

// Keys that choose training problems by their pass rates: the shares of completions that are right.

const passRatePath = "data.pass_rate."

// mostRated is the greatest number of completions of a problem. One right or one wrong of them stays within the
// default range.
const mostRated = 512

// passRateKeys returns these keys.
func passRateKeys() []Key {
	on := []Clause{only("rollout.source", "policy"), except("data.train.source", None), positive("train.steps"),
		except("task.kind", tasksThat(func(k *taskKind) bool { return k.optimum })...)}
	selects := append(slices.Clone(on), slices.Concat(except(passRatePath+"column", None),
		positive(passRatePath+"samples")))
	keys := []Key{
		{Path: passRatePath + "samples", Kind: Int, Default: is(0), Range: between(0, mostRated), Unit: "completions",
			Stages: at(PassRate), When: on,
			Help: "completions of each training problem to sample, with the weights that reinforcement learning " +
				"starts from, and to grade before it; it then trains on problems with a pass rate from min to max " +
				"alone. 0 is off"},
		{Path: passRatePath + "column", Kind: String, Default: is(None), Pattern: pattern("the name of a column, or none", `.+`),
			Stages: at(Prepare), When: append(slices.Clone(on), except("data.train.source", Generated)),
			Help: "column of data.train's files with each problem's pass rate, a number from 0 to 1 that was " +
				"measured before, such as extra_info.solve_rate; it takes the place of samples. Problems without " +
				"one are left out"},
		{Path: passRatePath + "min", Kind: Float, Default: is(0.001), Range: between(0, 1), Unit: "fraction",
			Stages: at(Select), When: selects,
			Help: "least pass rate of a problem to train on; the default leaves out problems that are never solved"},
		{Path: passRatePath + "max", Kind: Float, Default: is(0.999), Range: between(0, 1), Unit: "fraction",
			Stages: at(Select), When: selects,
			Help: "greatest pass rate of a problem to train on; the default leaves out problems that are always " +
				"solved"},
		{Path: passRatePath + "seed", Kind: Int, Default: is(0), Range: atLeast(0), Stages: at(PassRate),
			When: append(slices.Clone(on), positive(passRatePath+"samples")),
			Help: "root of the random streams of these completions; independent of the run's seed"},
	}
	for i := range keys {
		keys[i].Late = true
	}
	return keys
}

// addRates makes PassRate read the key if completions and their verdicts before training depend on it, as they do in
// training. Numbers of completions and the order of problems do not count.
func (k *Key) addRates() {
	block, _, _ := strings.Cut(k.Path, ".")
	switch {
	case !k.Reads(Train), k.Reads(PassRate):
		return
	case slices.Contains([]string{"task", "model", "tokenizer", "sandbox", "compute"}, block):
	case block == "rollout" && !slices.Contains([]string{"rollout.source", "rollout.n", "rollout.staleness"}, k.Path):
	case block == "data" && k.Reads(EvalGen): // what prompts depend on
	default:
		return
	}
	k.Stages = slices.Insert(slices.Clone(k.Stages), slices.Index(k.Stages, Train), PassRate)
}

func passRateChecks() []check {
	list := []check{
		{[]string{passRatePath + "samples", passRatePath + "column"}, func(r *Run) (string, string) {
			if p := r.Data.PassRate; p.Samples > 0 && p.Recorded() {
				return fmt.Sprintf("data.pass_rate.column reads the pass rates that data.pass_rate.samples (%d) "+
					"measures", p.Samples), "leave one of them out"
			}
			return "", ""
		}},
		{[]string{passRatePath + "min", passRatePath + "max"}, func(r *Run) (string, string) {
			if p := r.Data.PassRate; p.Min > p.Max {
				return fmt.Sprintf("data.pass_rate.min (%s) is above data.pass_rate.max (%s): no problem passes",
					formatFloat(p.Min), formatFloat(p.Max)), ""
			}
			return "", ""
		}},
	}
	list = append(list, check{[]string{passRatePath + "column", "task.mixed.generate.train"},
		func(r *Run) (string, string) {
			if n := r.GeneratedProblems("train"); r.Data.PassRate.Recorded() && n > 0 {
				return fmt.Sprintf("data.pass_rate.column reads pass rates from rows, but %d training problems are "+
					"generated (task.mixed.generate.train) and have none", n), "data.pass_rate.samples measures all"
			}
			return "", ""
		}})
	return append(list, check{[]string{passRatePath + "samples", passRatePath + "min", passRatePath + "max"},
		func(r *Run) (string, string) {
			p := r.Data.PassRate
			for right := 0; right <= p.Samples; right++ {
				if rate := float64(right) / float64(p.Samples); p.Samples == 0 || p.Min <= rate && rate <= p.Max {
					return "", ""
				}
			}
			return fmt.Sprintf("data.pass_rate.samples (%d) gives no pass rate from data.pass_rate.min (%s) to "+
					"data.pass_rate.max (%s)", p.Samples, formatFloat(p.Min), formatFloat(p.Max)),
				"more data.pass_rate.samples (8 and 16 are usual), or a wider range"
		}})
}

// aboutPassRate returns help that does not fit on a key's help line; empty for most keys.
func aboutPassRate(path string) string {
	if path != passRatePath+"samples" {
		return ""
	}
	return `
  Problems that the policy never solves, and those that it always solves, teach it little:
  their completions have the same reward. This sorts them out once, before training, while
  algo.filter_groups does so in every step, after sampling.

    data: {pass_rate: {samples: 8}}                     # 1 to 7 of 8 are right
    data: {pass_rate: {samples: 16, min: 0.1, max: 0.8}}
    data: {pass_rate: {column: solve_rate, max: 0.5}}   # measured before, in the rows

  The stage pass_rate samples as training does (rollout, but for rollout.n) and grades by the
  task's verdict; for task prompts, reward.kind and task.prompts.pass decide.
  Completions without a verdict do not count. The stage select then keeps the problems, in
  their order. All seeds share both stages, and runs with another min or max the first.
  exp problems RUN lists the problems with their rates.
`
}

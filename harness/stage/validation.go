package stage

import (
	"exp/eval"
	"exp/eval/stat"
	"exp/train/rl"
	"exp/train/rollout"
)

// verlDraws has the number of draws and the seed of verl's bootstrap_metric.
var verlDraws = stat.SubsetDraws{Draws: 1000, Seed: 42}

// validation returns verl's validation metrics (val-core/…, val-aux/…; stat.Validation) of the
// graded samples of a validation; verdicts are in the samples' order. The variables are the
// verdict's reward and acc, 1 if it is correct; the vote is over answers, where no answer counts as
// one too. source names the set of problems.
//
// Its best@n is lower than the pass@n next to it, the chance that one of n samples is right. It
// counts no turns.
func validation(source string, samples []eval.Sample, verdicts []rollout.Verdict) []rl.Metric {
	v := stat.Validation{Answer: []string{}, Variables: []stat.Variable{{Name: "reward"}, {Name: "acc"}}}
	for i, s := range samples {
		x := verdicts[i]
		if x.Status != rollout.Graded {
			continue
		}
		acc := 0.0
		if x.Correct {
			acc = 1
		}
		v.Source, v.Problem, v.Answer = append(v.Source, source), append(v.Problem, s.ProblemID),
			append(v.Answer, x.Answer)
		v.Variables[0].Values = append(v.Variables[0].Values, x.Reward)
		v.Variables[1].Values = append(v.Variables[1].Values, acc)
	}
	var out []rl.Metric
	for _, m := range v.Metrics(verlDraws) {
		out = append(out, fact(m.Name, m.Value))
	}
	return out
}

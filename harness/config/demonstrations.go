package config

import (
	"fmt"
	"strings"

	"exp/train/rl"
)

// demonstrationKeys set demonstrations in groups.
func demonstrationKeys(token []Clause) []Key {
	return block(token, at(Train), []Key{
		{Path: "algo.demonstrations.weight", Kind: Float, Default: byKind("algo.demonstrations.weight", is(0.0)),
			Range: atLeast(0), Late: true,
			Help: "weight of demonstrations in the policy loss: the target of a problem, a right completion in the " +
				"data, takes the place of one of its rollout.n completions (LUFFY, arXiv:2504.14945); 0 is off"},
		{Path: "algo.demonstrations.shaping", Kind: Float, Default: is(0.1), Range: above(0), Late: true,
			When: []Clause{positive("algo.demonstrations.weight")},
			Help: "gamma of p/(p + gamma), which a demonstration's token of probability p adds to the loss: the " +
				"smaller, the more improbable tokens learn"},
	})
}

// demonstrationChecks checks what demonstrations go with.
func demonstrationChecks() []check {
	const weight = "algo.demonstrations.weight"
	refuse := func(key string, when func(r *Run) bool, why, hint string) check {
		return check{[]string{key, weight}, func(r *Run) (string, string) {
			if r.Algo.Demonstrations.Weight > 0 && when(r) {
				return fmt.Sprintf("%s, but %s", why, weight+" is above 0"), hint
			}
			return "", ""
		}}
	}
	return []check{
		refuse("rollout.n", func(r *Run) bool {
			e, _ := rl.EstimatorNamed(r.Algo.Advantage)
			return r.Rollout.N < 2 && !e.Groups // which other checks refuse
		}, "rollout.n is 1, and a demonstration would leave the policy no completion", "rollout.n: 2 or more"),
		refuse("task.kind", func(r *Run) bool { return r.Task.Kind == "outcomes" },
			"problems of task.kind outcomes have no target", "another task, whose rows have targets"),
		refuse("algo.loss", func(r *Run) bool {
			l, _ := rl.PolicyLossNamed(r.Algo.Loss)
			return !l.ByTokens || l.Whole
		}, "algo.loss cannot leave the tokens of some completions out", "algo.loss: "+strings.Join(losses(
			func(l rl.PolicyLoss) bool { return l.ByTokens && !l.Whole }), ", ")),
		refuse("algo.advantage", func(r *Run) bool {
			e, _ := rl.EstimatorNamed(r.Algo.Advantage)
			return e.Values || e.Process || e.Tracks
		}, "algo.advantage needs completions of the policy itself", "algo.advantage: grpo, rloo or another without "+
			"a critic"),
		refuse("reward.kind", func(r *Run) bool { return r.Reward.Self() },
			"reward.kind takes rewards from what the policy samples", "another reward.kind"),
		refuse("algo.kl.reward_coef", func(r *Run) bool { return r.Algo.KL.RewardCoef > 0 },
			"algo.kl.reward_coef charges what the policy samples",
			"algo.kl.loss_coef, which leaves demonstrations out"),
		refuse("algo.rollout_correction.mode", func(r *Run) bool { return r.Algo.RolloutCorrection.Mode == "bypass" },
			"algo.rollout_correction.mode is bypass", "algo.rollout_correction.mode: decoupled"),
		refuse("rollout.staleness", func(r *Run) bool { return r.Rollout.Staleness > 0 },
			"rollout.staleness is above 0", "rollout.staleness: 0"),
		refuse("rollout.tools.kind", func(r *Run) bool { return r.Rollout.Tools.Used() },
			"a target has no calls of rollout.tools", "rollout.tools.kind: none"),
		refuse("rollout.source", func(r *Run) bool { return r.Rollout.Source == "recorded" },
			"rollout.source is recorded", "add the demonstrations to the recorded rollouts, with their rewards"),
	}
}

package config

import (
	"fmt"
	"slices"
	"strings"

	"exp/train/rl"
)

// creditKeys are the keys of rewards of single steps; scored holds where a process reward model scores completions.
func creditKeys(scored []Clause) []Key {
	each := append(slices.Clone(scored), except("reward.credit", rl.CreditAnswer))
	return []Key{
		{Path: "reward.credit", Kind: Enum, Words: rl.StepCredits(), Default: is(rl.CreditAnswer), Late: true,
			When: scored,
			Help: "what earns the reward: answer, the completion as a whole, or each step, at its last token (sum); " +
				"min weighs the steps' rewards so that a return is about the least of those to come (PURE)"},
		{Path: "reward.step_wrong", Kind: Float, Default: is(-1.0), Late: true, When: each,
			Help: "reward of a step that is certainly wrong; others have one between this and reward.step_right, by " +
				"the probability that they are right"},
		{Path: "reward.step_right", Kind: Float, Default: is(1.0), Late: true, When: each,
			Help: "reward of a step that is certainly right; at 0 no number of steps earns more than 0"},
		{Path: "reward.step_weight", Kind: Float, Default: is(1.0), Range: atLeast(0), Late: true, When: each,
			Help: "weight of the rewards of steps"},
		{Path: "reward.step_temperature", Kind: Float, Default: is(0.1), Range: above(0), Late: true,
			When: append(slices.Clone(scored), only("reward.credit", rl.CreditMin)),
			Help: "the smaller, the more of the weight has the step with the least reward"},
		{Path: "reward.outcome_weight", Kind: Float, Default: is(0.0), Range: atLeast(0), Late: true, When: each,
			Help: "weight of the task's verdict, 1 for a right answer, in the reward at the completion's end; 0: " +
				"steps alone earn rewards"},
	}
}

// aboutCredit explains reward.credit.
const aboutCredit = `
  A process reward model says how probable it is that each step of a completion is right.

    answer  the completion earns reward.steps of these probabilities, at its end
    sum     each step earns r = step_wrong + (step_right - step_wrong) * probability, at the last
            token of the step, so a token's return is the sum of r of its step and later ones
    min     each step earns r * exp(-r/step_temperature) / the sum of exp(-r/step_temperature) over
            the completion's steps, so a return is about the least r to come, 0 after it
            (PURE, arXiv:2504.15275)

  Rewards of steps are multiplied by step_weight; outcome_weight * the task's verdict comes on top,
  at the end. Algorithms that see which token earns a reward read them: grpo_process, pure, ppo and
  its relatives, reinforce_plus_plus, remax, otb. The last step takes all that follows it.

    reward: {kind: trained, steps: min, credit: sum, outcome_weight: 1}
    algo: {kind: grpo_process}
`

// RewardsSteps reports whether each step of a completion earns a reward.
func (r *Reward) RewardsSteps() bool { return r.Credit != "" && r.Credit != rl.CreditAnswer }

// estimator returns the advantage estimator: the chosen one, or the loss's own.
func (a *Algo) estimator() rl.Estimator {
	if l, _ := rl.PolicyLossNamed(a.Loss); l.Advantages != nil {
		e, _ := l.Advantages(a.Settings)
		return e
	}
	e, _ := rl.EstimatorNamed(a.Advantage)
	return e
}

// creditChecks checks rewards of steps.
func creditChecks() []check {
	return append(creditAlgorithmChecks(), []check{
		{[]string{"reward.credit", "rollout.tools.kind"}, func(r *Run) (string, string) {
			if r.Reward.RewardsSteps() && r.Rollout.Tools.Used() {
				return "reward.credit " + r.Reward.Credit + " rewards steps of a completion, but rollout.tools " +
					"writes parts of it", "reward.credit: answer, or rollout.tools.kind: none"
			}
			return "", ""
		}},
		{[]string{"reward.credit", "rollout.source"}, func(r *Run) (string, string) {
			if r.Reward.RewardsSteps() && r.Rollout.Source == "recorded" {
				return "reward.credit " + r.Reward.Credit + " rewards steps, and recorded rollouts may bring " +
					"rewards of whole completions", "reward.credit: answer, or rollout.source: policy"
			}
			return "", ""
		}},
		{[]string{"reward.credit", "task.kind"}, func(r *Run) (string, string) {
			if r.Reward.RewardsSteps() && r.Task.Kind == MixedTask && r.JudgesAlone() {
				return "reward.credit " + r.Reward.Credit + " rewards steps, but of task.mixed.kinds the " +
					"reward model scores prompts alone", "reward.credit: answer"
			}
			return "", ""
		}},
		{[]string{"reward.outcome_weight", "task.kind"}, func(r *Run) (string, string) {
			if r.Reward.OutcomeWeight > 0 && r.JudgesAlone() {
				return "reward.outcome_weight weighs the task's verdict, and the task prompts has none",
					"reward.outcome_weight: 0"
			}
			return "", ""
		}},
		{[]string{"reward.step_wrong", "reward.step_right"}, func(r *Run) (string, string) {
			if x := r.Reward; x.StepWrong >= x.StepRight {
				return fmt.Sprintf("reward.step_wrong (%s) is not below reward.step_right (%s)",
					formatFloat(x.StepWrong), formatFloat(x.StepRight)), "training maximises the reward"
			}
			return "", ""
		}},
		{[]string{"reward.step_weight", "reward.outcome_weight"}, func(r *Run) (string, string) {
			if r.Reward.StepWeight == 0 && r.Reward.OutcomeWeight == 0 {
				return "reward.step_weight and reward.outcome_weight are 0: nothing earns a reward",
					"one of them above 0"
			}
			return "", ""
		}},
	}...)
}

// creditAlgorithmChecks checks that the algorithm reads the rewards of steps, if there are any.
func creditAlgorithmChecks() []check {
	return []check{
		{[]string{"reward.credit", "algo.kind"}, func(r *Run) (string, string) {
			e := r.Algo.estimator()
			if !r.Reward.RewardsSteps() || e.Steps || e.Tokens {
				return "", ""
			}
			reads := estimators(func(e rl.Estimator) bool { return e.Steps || e.Tokens })
			return fmt.Sprintf("reward.credit %s rewards steps, but %s reads one reward of a completion, their sum, "+
					"which grows with the number of steps", r.Reward.Credit, readsWhole(&r.Algo, e)),
				"algo.advantage: " + either(reads) + "; or reward.credit: answer"
		}},
		{[]string{"algo.advantage", "reward.kind"}, func(r *Run) (string, string) {
			e := r.Algo.estimator()
			if !e.Steps || r.Reward.RewardsSteps() {
				return "", ""
			}
			return e.Name + " reads rewards of steps, and nothing gives any",
				"a process reward model and reward.credit: reward: {kind: model, weights: FOLDER, steps: min, " +
					"credit: sum}, or kind: trained with reward_model.kind: steps"
		}},
		{[]string{"algo.advantage", "reward.credit"}, func(r *Run) (string, string) {
			if e := r.Algo.estimator(); e.Name != "grpo_process" || r.Reward.Credit != rl.CreditMin {
				return "", ""
			}
			return "reward.credit min leaves most steps next to nothing, from which grpo_process would subtract the " +
				"mean of all steps", "reward.credit: sum, or algo.kind: pure"
		}},
	}
}

// readsWhole names what reads one reward of a completion.
func readsWhole(a *Algo, e rl.Estimator) string {
	if strings.HasPrefix(a.Loss, "flowrl") || e.Name == "" {
		return "algo.loss " + a.Loss
	}
	return "algo.advantage " + e.Name
}
